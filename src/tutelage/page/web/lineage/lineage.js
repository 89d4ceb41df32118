// Where a level came from: its ancestry as a strip to walk along, with the student of then and of now.

import { button, menu } from "../base/controls.js";
import { el, fill } from "../base/dom.js";
import { count, decimal } from "../base/format.js";
import { Gallery } from "../evolve/gallery.js";
import { chance } from "../play/arena.js";

const EPISODES = 16;

export class Lineage {
  /** `room`: facts, students, house, marks of a verdict, duel() → a stage for two, thumb(json), openJson(json). */
  constructor(room) {
    this.room = room;
    this.strip = new Gallery("strip", {
      picture: (member) => room.thumb(member.level),
      words: (member) => [`generation ${member.generation}`, `update ${count(member.birth)}`],
      choose: (member) => this.choose(member),
    });
    this.strip.node.addEventListener("keydown", (event) => this.keyed(event));
    this.told = el("div", { class: "thennow" });
    this.spoken = el("p", { class: "unseen", role: "status" });
    this.duel = room.duel();
    this.node = this.layout();
    new IntersectionObserver(([seen]) => this.watch(seen.isIntersecting)).observe(this.node);
  }

  layout() {
    const lines = this.room.facts.lineages.map((line, n) => [String(n), `${line.name}: ${count(line.levels.at(-1).generation)} generations`]);
    const pick = lines.length > 1 ? el("div", { class: "bar" }, menu("Of", [["", lines]], (n) => this.open(Number(n)))) : null;
    const open = button("Open it above", () => this.room.openJson(this.member.level), { drawing: "up" });
    this.lead = el("p", { class: "lead" }, story(this.room.facts.lineages[0]));
    return el("section", { class: "evolve" },
      el("h2", {}, "Where a level came from"),
      this.lead,
      pick,
      this.strip.node,
      el("div", { class: "duel" }, this.duel.node, el("div", {}, this.told, this.spoken, el("div", { class: "bar" }, open))));
  }

  /** It plays while it is looked at. */
  watch(seen) {
    if (seen && !this.line) this.open(0);
    this.duel.play(seen);
    if (!seen) this.helper?.rest();
  }

  open(n) {
    this.line = this.room.facts.lineages[n];
    fill(this.lead, story(this.line));
    this.choose(this.line.levels.at(-1));
  }

  keyed(event) {
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const next = way && this.line.levels[this.line.levels.indexOf(this.member) + way];
    if (!next) return;
    event.preventDefault();
    this.choose(next);
    this.strip.items.get(next.id).button.focus();
  }

  async choose(member) {
    this.member = member;
    this.strip.show(this.line.levels, member);
    this.pair = this.thenAndNow(member);
    this.verdicts = new Map();
    this.tell();
    const { rules, bytes } = await this.duel.show(member.level, this.pair.map(([, student]) => student));
    this.helper ??= this.room.house.employ(this.room.students);
    await this.room.house.open(rules.engine, this.helper);
    const numbers = this.pair.map(([, student]) => student.number);
    this.helper.ask("judge", { rules, level: bytes, numbers, episodes: EPISODES, seed: chance() }, ({ number, verdict, done }) => {
      if (done) return fill(this.spoken, this.inWords());
      this.verdicts.set(number, verdict);
      return this.tell();
    });
  }

  /** The student at the checkpoint nearest to the level's birth, and the one at the end. */
  thenAndNow(member) {
    const own = this.room.students.filter((student) => student.run === this.line.run && student.seed === this.line.seed);
    const now = own.reduce((a, b) => (b.updates > a.updates ? b : a));
    const apart = (student) => Math.abs(student.updates - member.birth);
    const then = own.reduce((a, b) => (apart(b) < apart(a) ? b : a));
    return then === now ? [["now", now]] : [["then", then], ["now", now]];
  }

  tell() {
    const { member, room } = this;
    const heads = room.marks.map(([, heading, meaning]) => el("th", { scope: "col" }, el("abbr", { title: meaning }, heading)));
    fill(this.told,
      el("p", {}, birth(member)),
      el("table", { class: "roster" },
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, `${EPISODES} episodes`), ...heads)),
        el("tbody", {}, ...this.pair.map(([when, student]) => this.row(when, student)))));
  }

  /** The table, for those who do not see it. */
  inWords() {
    const marks = (verdict) => this.room.marks.map(([name, heading, , say]) => `${heading} ${say(verdict[name])}`).join(", ");
    const rows = this.pair.map(([when, student]) => `The student of ${when}: ${marks(this.verdicts.get(student.number))}.`);
    return [birth(this.member), ...rows].join(" ");
  }

  row(when, student) {
    const verdict = this.verdicts.get(student.number);
    const dot = el("span", { class: "dot", style: { background: `var(--${student.colour})` } });
    const words = el("span", {}, `The student of ${when}`, el("small", {}, `update ${count(student.updates)}`));
    return el("tr", {}, el("th", { scope: "row" }, el("div", { class: "who" }, dot, words)), ...this.room.marks.map(([name, , , say]) => el("td", {}, verdict ? say(verdict[name]) : "–")));
  }
}

/** Where on the line a level stands. */
function birth(member) {
  return `Generation ${member.generation}, born at update ${count(member.birth)} with score ${decimal(member.score, 3)}.`;
}

/** What a strip shows, in words. */
function story({ levels }) {
  const reach = levels[0].generation === 0 ? "from the generator's on" : "as far back as the run still has them";
  return `A level of training, and its ancestors ${reach}. Each was kept for the regret of the student of its day.`;
}
