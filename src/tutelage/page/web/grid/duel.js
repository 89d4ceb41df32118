// A small board on which two students play at the same time, over and over.

import { Clock } from "../base/clock.js";
import { calm, el, shade } from "../base/dom.js";
import { Board } from "./board.js";
import { fromJson, writeLevel } from "./level.js";
import { Troupe } from "./troupe.js";

const RATE = 6; // steps a second
const REST = 900; // milliseconds

export class Duel {
  constructor(room) {
    this.room = room;
    this.clock = new Clock(() => this.step(), (share) => this.frame(share));
    this.clock.rate = RATE;
    this.node = el("div", { class: "easel small" });
  }

  /** Another level and other students; gives what a helper needs to play the same. */
  async show(json, students) {
    const level = fromJson(json, this.room.dialect);
    const arena = await this.room.arenaOf(level);
    this.troupe?.close();
    this.troupe = null;
    const record = writeLevel(level, arena.make("level"), this.room.dialect);
    if (!this.board) {
      this.board = new Board(this.room.dialect, level, null);
      this.node.replaceChildren(this.board.node);
    }
    this.board.show(level);
    this.troupe = new Troupe(arena, record, this.room.dialect);
    this.troupe.cast(students, { greedy: false });
    this.frame(1);
    return { rules: arena.rules, bytes: record.save() };
  }

  play(yes) {
    if (yes) this.clock.start();
    else this.clock.stop();
  }

  step() {
    if (!this.troupe) return;
    if (!this.troupe.done) return void this.troupe.step();
    this.ended ??= performance.now();
    if (performance.now() - this.ended < REST) return;
    this.ended = null;
    this.troupe.again();
  }

  frame(share) {
    if (!this.troupe) return;
    const walkers = [...this.troupe.players.keys()].map((student) => ({ pose: this.troupe.at(student, calm() ? 1 : share), colour: shade(student.colour) }));
    this.board.stage({ walkers });
  }
}
