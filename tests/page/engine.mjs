// Draws a level and plays it in an engine, and writes what came of it as JSON: node engine.mjs ENGINE.JS WASM MANIFEST SEED STEPS
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [script, wasm, manifest, seed, steps] = process.argv.slice(2);
const { Engine, fromHalf } = await import(pathToFileURL(script));
const engine = await Engine.open(readFileSync(wasm), JSON.parse(readFileSync(manifest)));
const [key, level, state, obs, action, limit, outcome] = engine.make("key level state obs action limit outcome");
key.value = [0, Number(seed)];
engine.fn("sample")(key, level);
engine.fn("reset")(key, level, state, obs);
engine.make("buffer", 9); // so that memory grows and views must be found anew
limit.value = 250;
const rewards = [];
for (let t = 0; t < Number(steps); t++) {
  action.value = t % 3;
  engine.fn("step")(key, state, action, limit, state, obs, outcome);
  rewards.push(outcome.reward);
}
const refusals = [];
for (const wrong of [
  () => engine.fn("stride"),
  () => engine.make("flat"),
  () => engine.fn("reset")(key, level),
  () => engine.fn("reset")(key, level, obs, state),
  () => level.view("floor"),
  () => level.set(state),
  () => level.load(new Uint8Array(3)),
]) {
  try { wrong(); } catch (error) { refusals.push(error.message); }
}
const other = engine.make("level").load(level.save());
engine.free(engine.make("level"));
process.stdout.write(JSON.stringify({
  walls: [...level.walls], copied: [...other.walls], place: [state.x, state.y, state.direction, state.time],
  image: [...obs.image], rewards, refusals, halves: [...fromHalf(new Uint16Array([0x3c00, 0xc000, 1, 0x7bff]))],
}));
