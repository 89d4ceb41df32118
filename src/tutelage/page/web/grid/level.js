// Levels of tiles: `{ height, width, blocks, start, goal, direction, rules, anew }`, tiles numbered row by row. They are
// never changed. `rules` names those of a suite, if the level is played by such; `anew` the held-out level of which it is
// but one draw, each episode having its own, until somebody changes it.

const FLOOR = ".";
const START = "S";
const GOAL = "G";
const QUARTERS = 4;

/** A room without blocks, from corner to corner. */
export function emptyLevel(size) {
  return { height: size, width: size, blocks: new Uint8Array(size * size), start: 0, goal: size * size - 1, direction: 0 };
}

/** The level with a block on a tile or without; start and goal keep theirs. */
export function withBlock(level, tile, there) {
  if (tile === level.start || tile === level.goal || !!level.blocks[tile] === there) return level;
  const blocks = level.blocks.slice();
  blocks[tile] = there ? 1 : 0;
  return { ...level, blocks, anew: undefined };
}

/** The level with its `start` or its `goal` on another tile, which is cleared; the two never meet. */
export function withPlace(level, place, tile) {
  if (tile === level.start || tile === level.goal) return level;
  return { ...withBlock(level, tile, false), [place]: tile, anew: undefined };
}

/** The level with the student looking another way at first. */
export function turned(level) {
  return { ...level, direction: (level.direction + 1) % QUARTERS, anew: undefined };
}

/** Whether two levels are one. */
export function sameLevel(a, b) {
  const facts = ["height", "width", "start", "goal", "direction", "rules", "anew"];
  return facts.every((name) => a[name] === b[name]) && a.blocks.every((block, tile) => block === b.blocks[tile]);
}

/** The rows of a level, as the library writes them. */
export function rowsOf(level, mark) {
  const letters = Array.from(level.blocks, (block) => (block ? mark : FLOOR));
  letters[level.start] = START;
  letters[level.goal] = GOAL;
  return Array.from({ length: level.height }, (_, y) => letters.slice(y * level.width, (y + 1) * level.width).join(""));
}

/** The level as `to_json` writes it. */
export function toJson(level, dialect) {
  const rows = rowsOf(level, dialect.mark);
  return dialect.facing ? { rows, direction: level.direction } : { rows };
}

/** The level that `to_json` wrote; an error that says what does not fit. */
export function fromJson(data, dialect) {
  if (typeof data !== "object" || data === null) throw new Error("A level is a mapping with its rows.");
  return fromRows(data.rows, dialect, dialect.facing ? data.direction : 0);
}

/** The level that rows of characters draw. */
export function fromRows(rows, dialect, direction) {
  const { kind, mark, sizes } = dialect;
  if (!Array.isArray(rows) || !rows.every((row) => typeof row === "string")) throw new Error(`The rows of a ${kind} level are a list of texts.`);
  const [height, width] = [rows.length, rows.length ? rows[0].length : 0];
  if (rows.some((row) => row.length !== width)) throw new Error("All rows must be of one length.");
  if (height !== width || height < sizes[0] || height > sizes[1]) throw new Error(`A ${kind} has as many rows as columns, ${range(sizes)}.`);
  const text = rows.join("");
  const strange = [...text].find((letter) => ![mark, FLOOR, START, GOAL].includes(letter));
  if (strange) throw new Error(`A ${kind} is written with ${mark}, ${FLOOR}, ${START} and ${GOAL}, not with “${strange}”.`);
  for (const [letter, word] of [[START, "start"], [GOAL, "goal"]]) {
    if (text.split(letter).length !== 2) throw new Error(`A ${kind} has exactly one ${word} ${letter}.`);
  }
  if (!Number.isInteger(direction) || direction < 0 || direction >= QUARTERS) throw new Error("The direction is 0, 1, 2 or 3.");
  const blocks = Uint8Array.from(text, (letter) => (letter === mark ? 1 : 0));
  return { height, width, blocks, start: text.indexOf(START), goal: text.indexOf(GOAL), direction };
}

function range([low, high]) {
  return low === high ? String(low) : `${low} to ${high}`;
}

/** Writes a level into an engine's record. */
export function writeLevel(level, record, dialect) {
  record.view(dialect.blocks).set(level.blocks);
  record.agent = level.start;
  record.goal = level.goal;
  if (dialect.facing) record.direction = level.direction;
  return record;
}

/** Reads a level out of an engine's record. */
export function readLevel(record, dialect) {
  const blocks = record.view(dialect.blocks).slice();
  const size = Math.sqrt(blocks.length);
  return { height: size, width: size, blocks, start: record.agent, goal: record.goal, direction: record.direction ?? 0 };
}

/** A level as an address has it. */
export function toAddress(level, dialect) {
  const facts = { room: dialect.kind, size: level.width, [dialect.blocks]: fromBits(level.blocks), start: level.start, goal: level.goal };
  if (dialect.facing) facts.facing = level.direction;
  for (const name of ["rules", "anew"]) if (level[name]) facts[name] = level[name];
  return new URLSearchParams(facts);
}

/** The level of an address; an error that says what does not fit. */
export function fromAddress(facts, dialect) {
  const number = (name, below) => {
    const text = facts.get(name) ?? "";
    if (!/^\d{1,5}$/.test(text) || Number(text) >= below) throw new Error(`The address has no ${name} that fits.`);
    return Number(text);
  };
  const size = number("size", dialect.sizes[1] + 1);
  if (size < dialect.sizes[0]) throw new Error(`A ${dialect.kind} has ${range(dialect.sizes)} tiles a side.`);
  const blocks = toBits(facts.get(dialect.blocks) ?? "", size * size);
  const [start, goal] = [number("start", size * size), number("goal", size * size)];
  if (start === goal || blocks[start] || blocks[goal]) throw new Error("The address has start and goal where they cannot be.");
  const direction = dialect.facing ? number("facing", QUARTERS) : 0;
  return { height: size, width: size, blocks, start, goal, direction, rules: facts.get("rules") ?? undefined, anew: facts.get("anew") ?? undefined };
}

/** Bits, eight in a byte, the first the highest, in base64 as addresses have it. */
function fromBits(bits) {
  const bytes = new Uint8Array(Math.ceil(bits.length / 8));
  bits.forEach((bit, n) => (bytes[n >> 3] |= bit << (7 - (n & 7))));
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function toBits(text, count) {
  if (!/^[\w-]*$/.test(text)) throw new Error("The address is damaged.");
  const letters = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  if (letters.length !== Math.ceil(count / 8)) throw new Error("The address is of a level of another size.");
  return Uint8Array.from({ length: count }, (_, n) => (letters.charCodeAt(n >> 3) >> (7 - (n & 7))) & 1);
}
