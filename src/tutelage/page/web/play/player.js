// One student on one level, step by step.

import { written } from "./arena.js";

export class Player {
  constructor(arena, student) {
    const { engine: mind } = student;
    this.arena = arena;
    this.student = student;
    this.key = arena.make("key");
    this.state = arena.make("state");
    this.obs = arena.make("obs");
    this.action = arena.make("action");
    this.outcome = arena.make("outcome");
    this.mind = {
      key: mind.make("key"),
      obs: mind.make("obs"),
      memory: mind.make("memory"),
      start: mind.make("start"),
      noise: mind.make("noise"),
      action: mind.make("action"),
      thoughts: mind.make("thoughts"),
    };
    this.greedy = false;
    this.done = true;
  }

  /** Gives the records back. */
  close() {
    this.arena.free(this.key, this.state, this.obs, this.action, this.outcome);
    for (const record of Object.values(this.mind)) this.student.engine.free(record);
  }

  /** Begins an episode; two numbers decide all that is left to chance. */
  begin(level, a, b) {
    this.seed = [a, b];
    this.arena.fn("reset")(written(this.key, a, b), level, this.state, this.obs);
    this.mind.memory.bytes.fill(0);
    this.mind.start.value = 1;
    this.steps = 0;
    this.return = 0;
    this.reward = 0;
    this.done = this.solved = false;
    this.think();
  }

  /** Chooses the next action: what the student sees and thinks may be looked at before it acts. */
  think() {
    const { key, obs, memory, start, noise, action, thoughts } = this.mind;
    const { engine, params } = this.student;
    obs.set(this.obs);
    if (this.greedy) noise.bytes.fill(0);
    else engine.fn("noise")(written(key, this.seed[0] ^ (this.steps + 1), this.seed[1]), noise);
    engine.fn("act")(params, memory, obs, start, noise, memory, action, thoughts);
    start.value = 0;
    this.action.set(action);
  }

  /** Takes the chosen action, and chooses the next one unless the episode is over. */
  step() {
    this.act();
    if (!this.done) this.think();
  }

  /** Takes the action that is in `action`. */
  act() {
    const { arena, key, state, action, obs, outcome } = this;
    arena.fn("step")(key, state, action, arena.limit, state, obs, outcome);
    this.steps += 1;
    this.reward = outcome.reward;
    this.return += this.reward;
    this.terminated = outcome.terminated === 1;
    this.truncated = outcome.truncated === 1;
    this.done = this.terminated || this.truncated;
    if (this.done) this.solved = arena.solved(this.return);
  }

  /** What the student thinks of where it is when time has run out. */
  afterwards() {
    this.think();
    return this.value;
  }

  /** How good the student thinks its position is. */
  get value() {
    return this.mind.thoughts.value;
  }
}
