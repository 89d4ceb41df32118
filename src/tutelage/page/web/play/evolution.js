// ACCEL's loop without learning: explore or replay, edit, play, score, keep. Levels evolve for a student as it is.

import { written } from "./arena.js";
import { Judge } from "./judge.js";

/** Endless; yields lists of what happened, and `null` in between.
 *
 * `wishes`: seed, edits, episodes of a trial, score ("pvl" or "maxmc"), replay (the share of cycles that edit a level of
 * the buffer), generator (whether the other cycles look at new levels, or `start` is the only first ancestor).
 */
export function* evolution(arena, student, start, wishes) {
  const world = new World(arena, student, start, wishes);
  for (;;) yield* world.cycle();
}

class World {
  constructor(arena, student, start, wishes) {
    Object.assign(this, { arena, start, wishes });
    this.judge = new Judge(arena, student, wishes.episodes);
    this.buffer = arena.make("buffer");
    this.slot = arena.make("slot");
    this.candidate = arena.make("candidate");
    this.inserted = arena.make("inserted");
    this.renewal = arena.make("renewal");
    this.level = arena.make("level");
    this.key = arena.make("key");
    this.drawn = 0;
    this.tried = 0;
    arena.fn("empty")(this.buffer);
  }

  /** A key that was not used before. */
  next() {
    return written(this.key, this.wishes.seed[0] + this.drawn++, this.wishes.seed[1]);
  }

  /** 1 decide; explore: 5 to 8 of Algorithm 1; replay: 10 to 16, without 12, the student's update. */
  *cycle() {
    const begun = this.buffer.filled > 0;
    const replay = begun && (!this.wishes.generator || Math.random() < this.wishes.replay);
    if (replay) return yield* this.replay();
    if (begun || this.wishes.generator) this.arena.fn("sample")(this.next(), this.level);
    else this.level.set(this.start);
    return yield* this.offer(-1, -1);
  }

  *replay() {
    const { arena, buffer, slot, level } = this;
    arena.fn("pick")(this.next(), buffer, buffer, slot);
    const at = slot.value;
    const [id, generation] = [buffer.id[at], buffer.generation[at]];
    this.take(at);
    const parent = yield* this.trial();
    yield [this.renew(at, id, parent)];
    arena.fn(`edit_${this.wishes.edits}`)(this.next(), level, level);
    yield* this.offer(id, generation);
  }

  /** The level of a slot. */
  take(at) {
    for (const [path, leaf] of this.level.layout.leaves) {
      const all = this.buffer.view(`level.${path}`);
      this.level.view(path).set(all.subarray(at * leaf.length, (at + 1) * leaf.length));
    }
  }

  /** The verdict on the level after all episodes. */
  *trial() {
    let last = null;
    const seed = [this.wishes.seed[1] + this.tried, this.wishes.seed[0]];
    for (const verdict of this.judge.verdicts(this.level, seed)) {
      last = verdict ?? last;
      yield null;
    }
    this.tried += 1;
    return last;
  }

  renew(at, id, verdict) {
    const { renewal, buffer } = this;
    Object.assign(renewal, { slot: at, score: verdict[this.wishes.score], best_return: verdict.best });
    this.arena.fn("renew")(buffer, renewal, buffer);
    return { renewed: id, score: renewal.score };
  }

  *offer(parent, generation) {
    const { candidate, level, buffer, inserted, arena } = this;
    const verdict = yield* this.trial();
    const before = buffer.id.slice();
    for (const path of level.layout.leaves.keys()) candidate.view(`level.${path}`).set(level.view(path));
    const score = verdict[this.wishes.score];
    Object.assign(candidate, { parent, generation: generation + 1, birth: this.tried, score, best_return: verdict.best });
    arena.fn("insert")(buffer, candidate, buffer, inserted);
    const admitted = inserted.admitted === 1;
    const gone = [...before].find((id, n) => id >= 0 && buffer.id[n] !== id) ?? -1;
    const facts = { tried: this.tried, admitted, parent, generation: generation + 1, score, solved: verdict.solved };
    yield [admitted ? { ...facts, id: inserted.id, gone, level: level.save(), metrics: arena.describe(level) } : facts];
  }
}
