// What a student makes of a level: episodes played to their end, and the scores that the library gives them.

import { Player } from "./player.js";

/** Plays episodes one after another; yields what is known so far, often enough to be interrupted.
 *
 * `setting` is the run's discount and λ; `where(player)` names the tile or the metre at which the student is, for counts.
 */
export class Judge {
  constructor(arena, student, episodes) {
    this.arena = arena;
    this.player = new Player(arena, student);
    this.setting = arena.make("setting");
    this.scores = arena.make("scores");
    this.bootstrap = student.bootstrap;
    this.episodes = Array.from({ length: episodes }, () => arena.make("episode"));
    this.returns = [];
    this.setting.discount = student.discount;
    this.setting.gae_lambda = student.lambda;
    this.setting.scale = student.scale ?? NaN;
  }

  /** Gives the records back. */
  close() {
    this.player.close();
    this.arena.free(this.setting, this.scores, ...this.episodes);
  }

  /** One verdict after every episode, and `null` now and then in between. `draw` is the function that draws the level of
   * each episode, where it is not one level; what is known of a level is then the one episode on it.
   */
  *verdicts(level, seed, { greedy = false, where = null, places = 0, draw = null } = {}) {
    const visits = where ? new Uint32Array(places) : null;
    this.player.greedy = greedy;
    let best = -Infinity;
    for (let n = 0; n < this.episodes.length; n++) {
      if (draw) this.arena.engine.fn(draw)(this.arena.key(seed[1], seed[0] + n), level);
      yield* this.play(level, [seed[0] ^ (n + 1), seed[1]], this.episodes[n], where, visits);
      best = Math.max(best, this.player.return);
      this.returns[n] = this.player.return;
      yield { ...this.means(n + 1, draw ? null : best), best, visits };
    }
  }

  *play(level, [a, b], episode, where, visits) {
    const { player } = this;
    player.begin(level, a, b);
    episode.bytes.fill(0);
    for (let t = 0; !player.done; t++) {
      if (visits) visits[where(player)] += 1;
      episode.value[t] = player.value;
      player.step();
      episode.reward[t] = player.reward;
      episode.terminated[t] = player.terminated;
      episode.truncated[t] = player.truncated;
      if (player.truncated && this.bootstrap) episode.next_value[t] = player.afterwards();
      if (t % 16 === 15) yield null;
    }
    if (visits) visits[where(player)] += 1;
  }

  /** The means over the first `n` episodes; `best` is what MaxMC knows of their level, or null if each had its own. */
  means(n, best) {
    const { setting, scores } = this;
    const total = { episode_return: 0, length: 0, solved: 0, pvl: 0, maxmc: 0 };
    for (let k = 0; k < n; k++) {
      setting.best_return = best ?? this.returns[k];
      this.arena.fn("score")(this.episodes[k], setting, scores);
      for (const name of Object.keys(total)) total[name] += scores[name];
    }
    const means = Object.fromEntries(Object.entries(total).map(([name, sum]) => [name, sum / n]));
    return { episodes: n, return: means.episode_return, ...means };
  }
}
