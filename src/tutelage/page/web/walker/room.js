// The room of walkers: a terrain that a person shapes, and the students who walk it side by side.

import { Clock } from "../base/clock.js";
import { button, menu, tick } from "../base/controls.js";
import { el, fill, settled, shade } from "../base/dom.js";
import { decimal, percent, plural } from "../base/format.js";
import { History } from "../base/history.js";
import { Evolve } from "../evolve/evolve.js";
import { card } from "../room/card.js";
import { Lineage } from "../lineage/lineage.js";
import { MARKS, Roster } from "../room/roster.js";
import { Transport } from "../room/transport.js";
import { Arena, chance } from "../play/arena.js";
import { Cast } from "./cast.js";
import { WalkerDuel } from "./duel.js";
import { plain, readWalker, SEEDS, walkerAddress, walkerFromAddress, walkerFromJson, walkerJson, writeWalker } from "./level.js";
import { CHALLENGES, DIFFICULTIES, Rose } from "./rose.js";
import { FINISH, terrainOf } from "./scenery.js";
import { Sliders } from "./sliders.js";
import { profile, Stage } from "./stage.js";

const SECOND = 50; // steps
const SPEEDS = [0.25, 0.5, 1, 2, 4];
const EPISODES = 8;
const REST = 1500; // milliseconds between episodes

/** What is said of each walker: of the episode that is under way, and of the episodes that a helper plays. */
const TRACKS = [
  ["now", "return", "Return of the episode under way", (x) => decimal(x, 0), 300],
  ["distance", "distance", "How far it has come, of 88.7 m", (x) => `${decimal(x, 1)} m`, FINISH],
  ["return", "mean", `Mean return of ${EPISODES} episodes on this terrain`, (x) => decimal(x, 0), 300],
  ["solved", "solved", "Share of these episodes with a return of more than 230", percent, 1],
];

const JUDGED = MARKS.filter(([name]) => name === "solved" || name === "return");

export class WalkerRoom {
  constructor(facts, house) {
    this.facts = facts;
    this.house = house;
    this.arenas = new Map();
    this.verdicts = new Map();
    this.greedy = false;
    this.lidar = true;
  }

  async open(address) {
    this.students = await this.house.admit(this.facts.students);
    this.helper = this.house.employ(this.students);
    const level = this.addressed(address) ?? plain();
    this.history = new History(level);
    this.own = await this.arenaOf("own");
    await this.enter(level);
    this.build();
    this.show(level);
    this.transport.set(true);
    return this.node;
  }

  addressed(address) {
    try {
      return address ? walkerFromAddress(address, Object.keys(this.facts.rules)) : null;
    } catch (error) {
      this.house.say(error.message);
      return null;
    }
  }

  /** Where levels of these rules are walked. */
  async arenaOf(rules) {
    if (!this.arenas.has(rules)) {
      const engine = await this.house.open(this.facts.rules[rules].engine, this.helper);
      this.arenas.set(rules, new Arena(engine, this.facts.rules[rules]));
    }
    return this.arenas.get(rules);
  }

  /** Goes there. */
  async enter({ rules }) {
    const arena = await this.arenaOf(rules);
    if (this.arena === arena) return;
    this.walkers?.close();
    this.arena = arena;
    this.record = arena.make("level");
    this.child = arena.make("level");
    this.ground = arena.make("terrain");
    this.walkers = null;
  }

  build() {
    this.stage = new Stage();
    this.roster = new Roster(this.students, TRACKS, { follow: () => this.recast(), show: () => this.recast() });
    this.sliders = new Sliders(this.facts.parameters, (genes, lasting) => this.drawn(genes, lasting));
    this.rose = new Rose(this.facts.parameters);
    this.hardness = el("p", { "aria-live": "polite" });
    this.rules = el("p", { class: "note" });
    this.seed = el("input", { type: "number", min: 0, max: SEEDS - 1, step: 1, onchange: () => this.reseed(Number(this.seed.value)) });
    this.clock = new Clock(() => this.step(), (share) => this.frame(share));
    this.clock.rate = SECOND;
    this.transport = new Transport({
      play: (yes) => (yes ? this.clock.start() : this.clock.stop()),
      step: () => this.single(),
      again: () => this.again(),
      speed: (speed) => (this.clock.rate = SECOND * speed),
    }, SPEEDS, 1, (speed) => `${speed}×`);
    this.progress = el("span", { class: "note" });
    this.judgeSoon = settled(400, () => this.judge());
    this.keys = { r: () => this.sample(), e: () => this.edit(), z: () => this.turnBack("undo"), y: () => this.turnBack("redo"), n: () => this.reseed(chance()[0]), ...this.transport.keys };
    this.node = this.layout();
  }

  layout() {
    const make = el("div", { class: "bar" },
      this.presets(),
      button("Random", () => this.sample(), { drawing: "dice", key: "r" }),
      button("Edit", () => this.edit(), { drawing: "edit", key: "e", title: `${plural(this.facts.edits, "edit")} of the library's own operator (e)` }),
      button("Undo", () => this.turnBack("undo"), { drawing: "undo", key: "z", kind: "brief" }),
      button("Redo", () => this.turnBack("redo"), { drawing: "redo", key: "y", kind: "brief" }));
    const seed = el("div", { class: "bar" }, el("label", { class: "menu" }, el("span", {}, "Seed"), this.seed), button("Another seed", () => this.reseed(chance()[0]), { drawing: "dice", key: "n" }));
    const ticks = el("div", { class: "bar ticks" },
      tick("Lidar", true, (on) => ((this.lidar = on), this.frame(1))),
      tick("Most probable action", false, (on) => this.becomeGreedy(on)));
    const left = el("div", { class: "stage" }, make, el("div", { class: "scenery" }, this.stage.map.canvas, this.stage.sheet.canvas),
      el("div", { class: "bar" }, this.transport.node, ticks),
      el("div", { class: "setting" },
        card("This terrain", this.sliders.node, seed, this.rules),
        card("Its rose", this.rose.sheet.canvas, this.hardness)));
    const right = el("div", { class: "side" }, card("Students", this.roster.node, this.progress));
    this.evolve = new Evolve(this);
    this.keys.v = () => this.evolve.set(!this.evolve.running);
    const lineage = this.facts.lineages.length ? new Lineage(this).node : null;
    return el("div", {}, el("div", { class: "room walkers" }, left, right), this.evolve.node, lineage);
  }

  /** Suites, and the best of the buffers. */
  presets() {
    this.shelf = new Map();
    const groups = [["", [["", "as set below"]]]];
    const keep = (heading, levels, say) => groups.push([heading, levels.map((found, n) => {
      this.shelf.set(`${heading} ${n}`, { ...walkerFromJson(found.level), rules: found.rules ?? "own" });
      return [`${heading} ${n}`, say(found)];
    })]);
    for (const suite of this.facts.suites) keep(`Suite ${suite.name}`, suite.levels, (x) => x.name);
    for (const buffer of this.facts.buffers) keep(`Buffer of ${buffer.name}`, buffer.levels, (x) => `score ${decimal(x.score, 2)}, generation ${x.generation}`);
    this.menu = menu("Terrain", groups, (value) => this.shelf.has(value) && this.commit((this.taken = this.shelf.get(value))));
    return this.menu;
  }

  // What a person does to the terrain.

  drawn(genes, lasting) {
    const level = { ...this.history.now, genes, rules: "own" };
    if (lasting) this.commit(level);
    else this.show(level, { lasting: false });
  }

  async commit(level) {
    await this.enter(level);
    this.history.push(level);
    this.show(level);
  }

  async turnBack(way) {
    const level = this.history[way]();
    await this.enter(level);
    this.show(level);
  }

  reseed(seed) {
    if (!Number.isInteger(seed) || seed < 0 || seed >= SEEDS) {
      this.seed.value = this.history.now.seed;
      return this.house.say(`A seed is a whole number from 0 to ${SEEDS - 1}.`);
    }
    return this.commit({ ...this.history.now, seed });
  }

  async sample() {
    await this.enter({ rules: "own" });
    this.arena.fn("sample")(this.arena.key(...chance()), this.child);
    this.commit(readWalker(this.child, "own"));
  }

  async edit() {
    const level = this.history.now;
    await this.enter({ rules: "own" });
    writeWalker(level, this.record);
    this.arena.fn(`edit_${this.facts.edits}`)(this.arena.key(...chance()), this.record, this.child);
    this.commit(readWalker(this.child, "own"));
  }

  // What follows from another terrain.

  show(level, { lasting = true } = {}) {
    writeWalker(level, this.record);
    this.arena.fn("terrain")(this.record, this.ground);
    this.stage.set(terrainOf(this.ground));
    this.sliders.show(level.genes);
    this.rose.show(level.genes);
    this.seed.value = level.seed;
    const met = CHALLENGES.filter(([k, limit]) => level.genes[k] >= limit).length;
    const { shaped, limit } = this.facts.rules[level.rules];
    const poet = [el("b", {}, DIFFICULTIES[met]), `, by ${met} of POET's 3 thresholds (the red rings)`];
    fill(this.hardness, shaped ? poet : el("b", {}, "gymnasium's own obstacles, whatever the sliders say"));
    const whose = level.rules === "own" ? "the run's rules" : `the rules of the held-out ${level.rules}`;
    fill(this.rules, `By ${whose}, an episode ends after ${plural(limit, "step")}.`);
    this.walkers ??= new Cast(this.arena, this.record);
    this.recast();
    this.again();
    this.roster.clear();
    this.verdicts.clear();
    this.judgeSoon();
    if (level !== this.taken) this.menu.querySelector("select").value = "";
    if (lasting) this.house.address(walkerAddress(level, this.facts.kind));
  }

  judge() {
    const { followed } = this.roster;
    const numbers = [followed, ...this.students.filter((s) => s !== followed)].map((s) => s.number);
    fill(this.progress, "playing …");
    const request = { rules: this.arena.rules, level: this.record.save(), numbers, episodes: EPISODES, seed: chance(), greedy: this.greedy };
    this.helper.ask("judge", request, ({ number, verdict, done }) => {
      if (done) return fill(this.progress, `mean of ${EPISODES} episodes each`);
      return this.verdicts.set(this.students[number], verdict);
    });
  }

  // Who walks.

  recast() {
    if (!this.walkers) return;
    const { followed, shown } = this.roster;
    this.walkers.cast(this.students.filter((student) => student === followed || shown.has(student)), { greedy: this.greedy });
    this.frame(1);
  }

  becomeGreedy(on) {
    this.greedy = on;
    this.recast();
    this.again();
    this.judge();
  }

  // Time.

  step() {
    if (!this.walkers.done) return this.walkers.step();
    this.ended ??= performance.now();
    if (performance.now() - this.ended > REST) this.again();
    return null;
  }

  /** What a person asks for by hand does not wait. */
  single() {
    if (this.walkers.done) return this.again();
    this.walkers.step();
    return this.frame(1);
  }

  again() {
    this.ended = null;
    this.walkers.again();
    this.frame(1);
  }

  frame(share) {
    const { followed } = this.roster;
    const gone = this.clock.running ? share : 1;
    const order = [...this.walkers.players.keys()].sort((a, b) => (a === followed) - (b === followed));
    this.stage.show(order.map((student) => ({ pose: this.walkers.at(student, gone), colour: shade(student.colour), followed: student === followed, lidar: this.lidar && student === followed })));
    if (performance.now() - (this.told ?? 0) > 150) this.tell();
  }

  tell() {
    this.told = performance.now();
    for (const student of this.students) {
      const player = this.walkers.players.get(student);
      const now = player ? { now: player.return, distance: this.walkers.distance(student) } : {};
      this.roster.tell(student, { ...this.verdicts.get(student), ...now });
    }
  }

  // What evolution asks for.

  get measures() {
    const genes = [["roughness", "roughness"], ["pit_gap_high", "widest pits"], ["stump_height_high", "highest stumps"]];
    return [...genes, ["generation", "generation"]];
  }

  picture(arena, bytes) {
    arena.fn("terrain")(arena.scratch.level.load(bytes), this.ground);
    return profile(terrainOf(this.ground));
  }

  openBytes(arena, bytes) {
    this.commit(readWalker(arena.scratch.level.load(bytes), "own"));
  }

  // What a lineage asks for.

  duel() {
    return new WalkerDuel(this);
  }

  get marks() {
    return JUDGED;
  }

  thumb(json) {
    const level = writeWalker(walkerFromJson(json), this.own.scratch.level);
    return this.picture(this.own, level.save());
  }

  openJson(json) {
    this.commit(walkerFromJson(json));
  }

  // Files and addresses.

  save() {
    return { level: walkerJson(this.history.now, this.facts.parameters) };
  }

  load(data) {
    this.commit(walkerFromJson(data));
  }

  visit(address) {
    const level = this.addressed(address);
    if (level) this.commit(level);
  }

  close() {
    this.clock.stop();
    this.helper.rest();
  }
}
