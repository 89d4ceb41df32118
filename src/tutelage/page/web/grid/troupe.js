// Students on one level, all at the same time; and where each is between two steps.

import { Player } from "../play/player.js";

const SHORTEST = 0.35; // of the way between steps, which glides however fast the steps are

export class Troupe {
  constructor(arena, level, dialect) {
    this.arena = arena;
    this.level = level;
    this.dialect = dialect;
    this.players = new Map();
    this.trails = new Map();
    this.before = new Map();
    this.episode = 0;
    this.seed = crypto.getRandomValues(new Uint32Array(2));
  }

  /** These students play, no others; those who come in later begin anew. */
  cast(students, { greedy }) {
    for (const [student, player] of this.players) if (!students.includes(student)) (player.close(), this.players.delete(student));
    for (const student of students) {
      if (!this.players.has(student)) this.enter(student);
      this.players.get(student).greedy = greedy;
    }
  }

  enter(student) {
    const player = new Player(this.arena, student);
    this.players.set(student, player);
    this.begin(student, player);
  }

  begin(student, player) {
    player.begin(this.level, this.seed[0] + this.episode, this.seed[1]);
    this.trails.set(student, [this.tile(player)]);
    this.before.set(student, this.pose(player));
  }

  /** Another level, or another episode on the same one. */
  again(level = this.level) {
    this.level = level;
    this.episode += 1;
    for (const [student, player] of this.players) this.begin(student, player);
  }

  /** Everyone who is still under way takes a step; gives whether anyone was. */
  step() {
    const any = !this.done;
    for (const [student, player] of this.players) {
      this.before.set(student, this.pose(player));
      if (player.done) continue;
      player.step();
      this.trails.get(student).push(this.tile(player));
    }
    return any;
  }

  /** All have arrived, or their time is up. */
  get done() {
    return [...this.players.values()].every((player) => player.done);
  }

  /** Where a student is drawn, `share` of the way from its last step to the next. */
  at(student, share) {
    const [from, to] = [this.before.get(student), this.pose(this.players.get(student))];
    const gone = ease(Math.min(share / SHORTEST, 1));
    const quarter = ((((to.turn - from.turn) % 4) + 6) % 4) - 2; // the shorter way round
    return { x: from.x + (to.x - from.x) * gone, y: from.y + (to.y - from.y) * gone, turn: from.turn + quarter * gone };
  }

  pose({ state }) {
    return { x: state.x, y: state.y, turn: this.dialect.facing ? state.direction : 0 };
  }

  tile({ state }) {
    return state.y * Math.sqrt(state.view(this.dialect.blocks).length) + state.x;
  }

  /** Gives all records back. */
  close() {
    for (const player of this.players.values()) player.close();
  }
}

function ease(t) {
  return t * t * (3 - 2 * t);
}
