// A person in the student's place: the same level, the same view, the same actions.

import { button, tick } from "../base/controls.js";
import { el, fill, shade } from "../base/dom.js";
import { decimal, plural } from "../base/format.js";
import { written } from "../play/arena.js";

const MAZE_KEYS = { ArrowLeft: 0, ArrowRight: 1, ArrowUp: 2 };
const LAVA_KEYS = { ArrowUp: 0, ArrowRight: 1, ArrowDown: 2, ArrowLeft: 3, PageUp: 4, PageDown: 5, End: 6, Home: 7 };
const LAVA_ARROWS = ["↑", "→", "↓", "←", "↗", "↘", "↙", "↖"];

export class Person {
  constructor(room) {
    this.room = room;
    this.walking = false;
    this.fog = room.dialect.hidden;
    this.keys = room.dialect.kind === "maze" ? MAZE_KEYS : LAVA_KEYS;
    this.said = el("p", { "aria-live": "polite" });
    const fog = room.dialect.hidden ? tick("See only what the student sees", true, (on) => ((this.fog = on), this.frame())) : null;
    this.node = el("div", { class: "person", hidden: true }, this.said, this.pad(), el("div", { class: "bar ticks" }, fog, button("Begin again", () => this.anew(), { drawing: "again" })));
  }

  /** Buttons for those without arrow keys. */
  pad() {
    if (this.room.dialect.kind === "maze") {
      const turns = [["left", "Turn left", 0], ["up", "Forward", 2], ["right", "Turn right", 1]];
      return el("div", { class: "steer" }, ...turns.map(([drawing, words, action]) => button(words, () => this.take(action), { drawing })));
    }
    const order = [7, 0, 4, 3, null, 1, 6, 2, 5];
    const { moves } = this.room.dialect;
    return el("div", { class: "compass" }, ...order.map((action) => (action === null ? el("span") : el("button", { type: "button", "aria-label": moves[action], onclick: () => this.take(action) }, LAVA_ARROWS[action]))));
  }

  /** Takes the student's place, or leaves it. */
  play(yes) {
    this.walking = yes;
    this.node.hidden = !yes;
    this.room.transport.set(false);
    this.room.transport.node.hidden = yes;
    if (!yes) return;
    this.begin();
    this.room.board.sheet.canvas.focus({ preventScroll: true });
  }

  /** Another episode, on another level where each has its own. */
  anew() {
    this.room.redraw();
    this.begin();
  }

  /** A new episode. */
  begin() {
    this.room.roster.tellPerson(null);
    if (!this.walking) return;
    const { arena, record } = this.room;
    if (this.arena !== arena) {
      this.arena = arena;
      Object.assign(this, { state: arena.make("state"), obs: arena.make("obs"), action: arena.make("action"), outcome: arena.make("outcome"), episodeKey: arena.make("key") });
    }
    arena.fn("reset")(written(this.episodeKey, ...crypto.getRandomValues(new Uint32Array(2))), record, this.state, this.obs);
    Object.assign(this, { steps: 0, return: 0, done: false, trail: [this.tile()] });
    fill(this.said, this.room.dialect.kind === "maze" ? "Arrow keys or these buttons turn and walk. You see what the student sees." : "Arrow keys or these buttons walk; Home, End and the page keys go diagonally.");
    this.room.frame(1);
  }

  key(event) {
    if (!(event.key in this.keys)) return;
    event.preventDefault();
    event.stopPropagation();
    const action = this.keys[event.key];
    this.take(action);
  }

  take(action) {
    if (!this.walking || this.done) return;
    const { arena, state, outcome, obs } = this;
    this.action.value = action;
    arena.fn("step")(this.episodeKey, state, this.action, arena.limit, state, obs, outcome);
    this.steps += 1;
    this.return += outcome.reward;
    this.done = outcome.terminated === 1 || outcome.truncated === 1;
    this.trail.push(this.tile());
    if (this.done) this.end();
    this.frame();
  }

  end() {
    const solved = this.arena.solved(this.return);
    const what = solved ? `There in ${plural(this.steps, "step")}, return ${decimal(this.return)}.` : `Over after ${plural(this.steps, "step")}.`;
    const student = this.room.verdicts.get(this.room.roster.followed);
    const compared = student ? ` ${this.room.roster.followed.name}: ${decimal(student.length, 1)} steps and ${decimal(student.return)} on average.` : "";
    fill(this.said, what + compared);
    this.room.roster.tellPerson({ detail: plural(this.steps, "step"), solved: solved ? 1 : 0, return: this.return });
  }

  tile() {
    return this.state.y * this.room.board.level.width + this.state.x;
  }

  frame() {
    const { room, state } = this;
    const pose = { x: state.x, y: state.y, turn: room.dialect.facing ? state.direction : 0 };
    const colour = shade("you");
    const fog = this.fog && room.dialect.hidden && !this.done;
    room.board.stage({ walkers: [{ pose, colour, ringed: true }], seen: fog || room.layers.view ? room.sight(this) : null, fog, trail: this.trail, colour: shade(room.dialect.trail) });
    room.eyes.look(this);
  }
}
