// The students of a room, with their networks' weights in the memory of their engines.

import { bytesOf } from "../base/bundle.js";
import { fromHalf } from "../engine.js";

/** Lets the students of a room in; `open` gives the engine of a name. */
export async function admit(listed, open) {
  return Promise.all(listed.map(async (facts, number) => {
    const engine = await open(facts.engine);
    const weights = floats(await bytesOf(facts.block), facts.half);
    const params = engine.make("params");
    params.load(new Uint8Array(weights.buffer, weights.byteOffset, weights.byteLength));
    return { ...facts, number, engine, params, colour: `student-${number % 10}` };
  }));
}

/** Single precision of half, where weights are kept so. */
function floats(bytes, half) {
  return half ? fromHalf(new Uint16Array(bytes.buffer)) : new Float32Array(bytes.buffer);
}
