// A small landscape in which two students walk at the same time, over and over.

import { Clock } from "../base/clock.js";
import { el, shade } from "../base/dom.js";
import { Cast } from "./cast.js";
import { walkerFromJson, writeWalker } from "./level.js";
import { terrainOf } from "./scenery.js";
import { Stage } from "./stage.js";

const SECOND = 50; // steps
const REST = 1500; // milliseconds

export class WalkerDuel {
  constructor(room) {
    this.room = room;
    this.stage = new Stage();
    this.clock = new Clock(() => this.step(), (share) => this.frame(share));
    this.clock.rate = SECOND;
    this.node = el("div", { class: "scenery" }, this.stage.map.canvas, this.stage.sheet.canvas);
  }

  /** Another level and other students; gives what a helper needs to play the same. */
  async show(json, students) {
    const arena = await this.room.arenaOf("own");
    this.cast?.close();
    this.level ??= arena.make("level");
    this.ground ??= arena.make("terrain");
    arena.fn("terrain")(writeWalker(walkerFromJson(json), this.level), this.ground);
    this.stage.set(terrainOf(this.ground));
    this.cast = new Cast(arena, this.level);
    this.cast.cast(students, { greedy: false });
    this.frame(1);
    return { rules: arena.rules, bytes: this.level.save() };
  }

  play(yes) {
    if (yes) this.clock.start();
    else this.clock.stop();
  }

  step() {
    if (!this.cast) return;
    if (!this.cast.done) return void this.cast.step();
    this.ended ??= performance.now();
    if (performance.now() - this.ended < REST) return;
    this.ended = null;
    this.cast.again();
  }

  frame(share) {
    if (!this.cast) return;
    const students = [...this.cast.players.keys()];
    this.stage.show(students.map((student, n) => ({ pose: this.cast.at(student, share), colour: shade(student.colour), followed: n === students.length - 1 })));
  }
}
