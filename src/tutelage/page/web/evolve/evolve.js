// Levels evolve for the student that is followed: ACCEL's loop, with the family tree growing beside it.

import { button, menu, relabel } from "../base/controls.js";
import { el, fill } from "../base/dom.js";
import { count, decimal, plural } from "../base/format.js";
import { chance } from "../play/arena.js";
import { Family } from "./family.js";
import { Gallery } from "./gallery.js";
import { Growth } from "./growth.js";
import { Tree } from "./tree.js";

const SHOWN = 12; // of the best levels
const EPISODES = 8; // of a trial
const BREATH = 10_000; // milliseconds between what screen readers are told

export class Evolve {
  /** `room`: arena, record, facts, roster, employ(), picture(bytes) → an element, open(bytes), measures. */
  constructor(room) {
    this.room = room;
    this.running = false;
    this.wishes = { score: "pvl", generator: true };
    this.tree = new Tree((member) => this.choose(member));
    this.growth = new Growth(room.measures);
    this.family = new Family();
    this.go = button("Evolve", () => this.set(!this.running), { drawing: "play", key: "v", kind: "main" });
    this.told = el("p", { class: "note" });
    this.spoken = el("p", { class: "unseen", role: "status" });
    const common = { picture: (member) => this.room.picture(this.arena, member.level), choose: (member) => this.choose(member) };
    this.best = new Gallery("shelf", { ...common, words: (m) => [`score ${decimal(m.score, 3)}`, `generation ${m.generation}`] });
    this.line = new Gallery("strip", { ...common, words: (m) => [`generation ${m.generation}`] });
    this.lineTitle = el("h3", { hidden: true });
    this.grown = el("div", { class: "grown", hidden: true },
      el("div", { class: "twofold" }, this.tree.sheet.canvas, this.growth.node),
      el("h3", {}, "Highest scores"), this.best.node, this.lineTitle, this.line.node);
    this.node = this.layout();
    this.tell();
  }

  layout() {
    const scores = menu("Keep by", [["", [["pvl", "PVL, the regret of ACCEL"], ["maxmc", "MaxMC"]]]], (score) => this.wish({ score }));
    const begins = menu("Begin with", [["", [["generator", "the run's generator"], ["level", "the level above, alone"]]]], (from) => this.wish({ generator: from === "generator" }));
    const again = button("Start over", () => this.reset(), { drawing: "again" });
    return el("section", { class: "evolve", id: "evolve" },
      el("h2", {}, "Evolve levels"),
      el("p", { class: "lead" }, "Take a level that is kept, edit it a little, let the student play the child, keep it if there is regret. Nobody asks for hard levels: they come. Touch a level to open it above."),
      el("div", { class: "bar" }, this.go, again, begins, scores),
      this.told,
      this.spoken,
      this.grown);
  }

  wish(change) {
    Object.assign(this.wishes, change);
    this.reset();
  }

  /** Runs, or rests; what has evolved stays until it starts over. */
  set(running) {
    if (this.running === running) return;
    this.running = running;
    relabel(this.go, running ? "Pause" : "Evolve", running ? "pause" : "play");
    if (!running) return void (this.worker?.pause(true), this.tell());
    if (this.started) return this.worker.pause(false);
    return this.start();
  }

  async start() {
    const { room } = this;
    const student = room.roster.followed;
    const why = this.hindrance(student);
    if (why) {
      this.set(false);
      room.house.say(why);
      return;
    }
    this.started = true;
    this.grown.hidden = false;
    this.arena = room.arena;
    this.who = student.name;
    this.worker ??= room.house.employ(room.students);
    this.worker.pause(false);
    await room.house.open(room.arena.rules.engine, this.worker);
    const request = { rules: room.arena.rules, level: room.record.save(), number: student.number, seed: chance(), edits: room.facts.edits, episodes: EPISODES, replay: 0.8, ...this.wishes };
    this.worker.ask("evolve", request, ({ news }) => this.learn(news));
  }

  /** Why levels cannot evolve, if so. */
  hindrance(student) {
    if (student.scale === null) return `Levels do not evolve for ${student.name}: what its rewards were divided by was not kept, and its regret hangs on that.`;
    return this.room.arena.can("insert") ? "" : "Levels of this size do not evolve here: choose a smaller one.";
  }

  reset() {
    this.set(false);
    this.worker?.rest();
    this.started = false;
    this.family = new Family();
    this.growth.clear();
    this.marked = null;
    this.refresh();
  }

  learn(news) {
    this.family.learn(news);
    this.growth.note(this.family);
    this.refresh();
  }

  refresh() {
    const line = this.marked && this.family.members.has(this.marked.id) ? this.family.line(this.marked) : [];
    this.tree.show(this.family, line);
    this.tell();
    this.best.show(this.family.best(SHOWN), this.marked);
    this.lineTitle.hidden = !line.length;
    this.lineTitle.textContent = `The ancestors of this level: ${plural(line.length - 1, "generation")}`;
    this.line.show(line, this.marked);
  }

  tell() {
    const { alive, tried } = this.family;
    const deepest = Math.max(0, ...alive.map((member) => member.generation));
    const words = this.started ? `For ${this.who}: ${plural(tried, "level")} tried, ${count(alive.length)} kept, the deepest after ${plural(deepest, "generation")} of edits.` : "Nothing has evolved yet.";
    fill(this.told, words);
    if (this.running && performance.now() - (this.spokenAt ?? -Infinity) < BREATH) return;
    fill(this.spoken, this.started ? words : "");
    this.spokenAt = performance.now();
  }

  choose(member) {
    this.marked = member;
    this.room.openBytes(this.arena, member.level);
    this.refresh();
  }
}
