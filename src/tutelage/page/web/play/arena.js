// Where one kind of level is played: the functions of an env engine by their roles, and the records they take.

export class Arena {
  /** `rules` say which functions of the engine stand for reset, step, edit …, and how long an episode may be. */
  constructor(engine, rules) {
    this.engine = engine;
    this.rules = rules;
    this.types = new Map();
    for (const name of Object.values(rules.functions)) {
      const { takes, gives } = engine.fn(name);
      for (const [argument, type] of [...takes, ...gives]) this.types.set(argument, type);
    }
    this.limit = this.make("limit");
    this.limit.value = rules.limit;
    this.scratch = { key: this.make("key"), level: this.make("level") };
  }

  /** Whether this kind of level has such a function: suites' own envs know nothing of edits. */
  can(role) {
    return role in this.rules.functions;
  }

  /** The function that plays a role. */
  fn(role) {
    return this.engine.fn(this.rules.functions[role]);
  }

  /** A record for what these functions call by this name. */
  make(argument) {
    return this.engine.make(this.types.get(argument));
  }

  /** Gives records back. */
  free(...records) {
    for (const record of records) this.engine.free(record);
  }

  /** A key in the arena's own record, which the next call overwrites. */
  key(a, b) {
    return written(this.scratch.key, a, b);
  }

  /** Whether an episode with this return has solved its level. */
  solved(episodeReturn) {
    this.judged ??= { return: this.make("return"), solved: this.make("solved") };
    this.judged.return.value = episodeReturn;
    this.fn("solved")(this.judged.return, this.judged.solved);
    return this.judged.solved.value === 1;
  }

  /** What `describe` says of a level, by name. */
  describe(level) {
    this.metrics ??= this.make("metrics");
    this.fn("describe")(level, this.metrics);
    return Object.fromEntries([...this.metrics.layout.leaves.keys()].map((name) => [name, this.metrics[name]]));
  }
}

/** Any two numbers are a key. */
export function written(key, a, b) {
  key.value = [a, b];
  return key;
}

/** Two random numbers, for keys. */
export function chance() {
  return crypto.getRandomValues(new Uint32Array(2));
}
