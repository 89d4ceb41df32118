// Judges a level and evolves others as the page does, with a student whose weights are zero, and writes what came of it
// as JSON: node evolving.mjs WEB FOLDER STUDENT-FOLDER RULES TRIED
import { readFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [web, env, mind, rules, tried] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(path.join(web, name)));
const { Engine } = await load("engine.js");
const { Arena } = await load("play/arena.js");
const { Judge } = await load("play/judge.js");
const { evolution } = await load("play/evolution.js");
const { DIALECTS } = await load("grid/dialect.js");
const { emptyLevel, fromAddress, fromJson, readLevel, sameLevel, toAddress, toJson, writeLevel } = await load("grid/level.js");

const open = (place) => Engine.open(readFileSync(`${place}.wasm`), JSON.parse(readFileSync(`${place}.json`)));
const [arena, engine] = [new Arena(await open(env), JSON.parse(rules)), await open(mind)];
const student = { engine, params: engine.make("params"), discount: 0.995, lambda: 0.95, scale: 1, bootstrap: false };
const dialect = DIALECTS.maze;
const start = writeLevel({ ...emptyLevel(7), goal: 8 }, arena.make("level"), dialect);

const verdicts = [...new Judge(arena, student, 8).verdicts(start, [3, 4])].filter(Boolean);
const wishes = { seed: [5, 6], edits: 3, episodes: 4, score: "pvl", replay: 0.8, generator: false };
const kept = [];
for (const news of evolution(arena, student, start, wishes)) {
  for (const found of news ?? []) if (found.admitted) kept.push(found);
  if (news?.some((found) => found.tried >= Number(tried))) break;
}
const levels = kept.map(({ id, parent, generation, score, level }) => {
  const read = readLevel(arena.scratch.level.load(level), dialect);
  const [json, address] = [toJson(read, dialect), toAddress(read, dialect)];
  const again = [fromJson(json, dialect), fromAddress(address, dialect)].every((other) => sameLevel(read, other));
  return { id, parent, generation, score, json, address: address.toString(), again };
});
process.stdout.write(JSON.stringify({ verdict: verdicts.at(-1), count: verdicts.length, levels }));
