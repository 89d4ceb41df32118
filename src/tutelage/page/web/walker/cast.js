// Walkers on one terrain, all at the same time: their episodes, and where their parts are between two steps.

import { Player } from "../play/player.js";

export class Cast {
  constructor(arena, level) {
    this.arena = arena;
    this.level = level;
    this.players = new Map();
    this.before = new Map();
    this.now = new Map();
    this.scene = arena.make("scene");
    this.episode = 0;
    this.seed = crypto.getRandomValues(new Uint32Array(2));
  }

  /** These students walk, no others. */
  cast(students, { greedy }) {
    for (const [student, player] of this.players) if (!students.includes(student)) (player.close(), this.players.delete(student));
    for (const student of students) {
      if (!this.players.has(student)) {
        const player = new Player(this.arena, student);
        this.players.set(student, player);
        this.begin(student, player);
      }
      this.players.get(student).greedy = greedy;
    }
  }

  begin(student, player) {
    player.begin(this.level, this.seed[0] + this.episode, this.seed[1]);
    player.fate = "walking";
    this.now.set(student, this.pose(player));
    this.before.set(student, this.now.get(student));
  }

  /** Another episode. */
  again() {
    this.episode += 1;
    for (const [student, player] of this.players) this.begin(student, player);
  }

  /** Everyone who is still under way takes a step. */
  step() {
    for (const [student, player] of this.players) {
      this.before.set(student, this.now.get(student));
      if (player.done) continue;
      player.step();
      this.now.set(student, this.pose(player));
      if (player.done) player.fate = player.reward <= -100 ? "fell" : player.terminated ? "arrived" : "out of time";
    }
  }

  get done() {
    return [...this.players.values()].every((player) => player.done);
  }

  /** The corners of all parts, as the engine tells them. */
  pose(player) {
    this.arena.fn("scene")(player.state, this.scene);
    return { parts: this.scene.hull.slice(), legs: this.scene.legs.slice(), eye: this.scene.eye.slice(), rays: this.scene.rays.slice() };
  }

  /** A walker's corners, `share` of the way from its last step to the next. */
  at(student, share) {
    const [from, to] = [this.before.get(student), this.now.get(student)];
    const mixed = {};
    for (const name of Object.keys(to)) mixed[name] = to[name].map((v, n) => from[name][n] + (v - from[name][n]) * share);
    return mixed;
  }

  /** How far a walker has come, in metres. */
  distance(student) {
    return this.now.get(student).eye[0];
  }

  /** Gives all records back. */
  close() {
    for (const player of this.players.values()) player.close();
    this.arena.free(this.scene);
  }
}
