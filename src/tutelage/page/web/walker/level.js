// A walker's level: `{ genes, seed, rules }`, eight numbers by name, a seed, and whose obstacles they make.

export const GENES = [
  { name: "roughness", high: 10, step: 0.1 },
  { name: "pit_gap_low", high: 10, step: 0.1 },
  { name: "pit_gap_high", high: 10, step: 0.1 },
  { name: "stump_height_low", high: 5, step: 0.05 },
  { name: "stump_height_high", high: 5, step: 0.05 },
  { name: "stair_height_low", high: 5, step: 0.05 },
  { name: "stair_height_high", high: 5, step: 0.05 },
  { name: "stair_steps", low: 1, high: 9, step: 1 },
];
export const PAIRS = { pit_gap: [1, 2], stump_height: [3, 4], stair_height: [5, 6] };
export const SEEDS = 2 ** 32;
const NO_STAIRS = [0, 0, 1];

/** Gymnasium's normal terrain. */
export function plain() {
  return { genes: [1, 0, 0, 0, 0, 0, 0, 1], seed: 1, rules: "own" };
}

/** The level as `to_json` of a design space with so many parameters writes it. */
export function walkerJson({ genes, seed }, parameters) {
  const known = GENES.slice(0, parameters).map(({ name }, n) => [name, genes[n]]);
  return { ...Object.fromEntries(known), seed };
}

/** The level that `to_json` wrote, with five parameters or with eight; an error that says what does not fit. */
export function walkerFromJson(data) {
  if (typeof data !== "object" || data === null) throw new Error("A walker's level is a mapping with its parameters.");
  const few = !("stair_steps" in data);
  const genes = GENES.map((gene, n) => (few && n >= 5 ? NO_STAIRS[n - 5] : inRange(gene, data[gene.name])));
  return checked({ genes, seed: data.seed, rules: "own" });
}

function inRange({ name, low = 0, high }, value) {
  const words = name.replaceAll("_", " ");
  if (typeof value !== "number" || !(value >= low && value <= high)) throw new Error(`The ${words} of a walker's level is ${low} to ${high}.`);
  return value;
}

function checked(level) {
  for (const [name, [low, high]] of Object.entries(PAIRS)) {
    if (level.genes[low] > level.genes[high]) throw new Error(`The low end of the ${name.replaceAll("_", " ")} cannot exceed its high end.`);
  }
  if (!Number.isInteger(level.genes[7])) throw new Error("The steps of stairs are whole.");
  if (!Number.isInteger(level.seed) || level.seed < 0 || level.seed >= SEEDS) throw new Error(`The seed of a walker's level is 0 to ${SEEDS - 1}.`);
  return level;
}

/** Writes a level into an engine's record. */
export function writeWalker({ genes, seed }, record) {
  record.genes = genes;
  record.seed = seed;
  return record;
}

/** Reads a level out of an engine's record; single precision is written with as many digits as it has. */
export function readWalker(record, rules) {
  return { genes: Array.from(record.genes, short), seed: record.seed, rules };
}

/** The shortest number that is this one in single precision. */
function short(x) {
  for (let digits = 1; digits < 9; digits++) {
    const text = Number(x.toPrecision(digits));
    if (Math.fround(text) === x) return text;
  }
  return x;
}

/** A level as an address has it. */
export function walkerAddress({ genes, seed, rules }, kind) {
  const facts = { room: kind, ...Object.fromEntries(GENES.map(({ name }, n) => [name, genes[n]])), seed };
  return new URLSearchParams(rules === "own" ? facts : { ...facts, rules });
}

/** The level of an address, if there is one in it; an error that says what does not fit. */
export function walkerFromAddress(facts, known) {
  if (!facts.has("seed")) return null;
  const number = (name) => (/^\d+(\.\d+)?$/.test(facts.get(name) ?? "") ? Number(facts.get(name)) : NaN);
  const rules = facts.get("rules") ?? "own";
  if (!known.includes(rules)) throw new Error("The address names rules that this page does not have.");
  const data = Object.fromEntries([...GENES.map(({ name }) => name), "seed"].map((name) => [name, number(name)]));
  return { ...walkerFromJson(data), rules };
}
