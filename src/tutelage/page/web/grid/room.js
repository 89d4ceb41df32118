// The room of mazes, and of lava grids: a level that a person draws, and the students who walk it at once.

import { Clock } from "../base/clock.js";
import { button, choice, menu, tick } from "../base/controls.js";
import { calm, el, fill, settled, shade } from "../base/dom.js";
import { count, plural, rounded } from "../base/format.js";
import { History } from "../base/history.js";
import { Evolve } from "../evolve/evolve.js";
import { Lineage } from "../lineage/lineage.js";
import { card } from "../room/card.js";
import { MARKS, Roster } from "../room/roster.js";
import { Transport } from "../room/transport.js";
import { Arena, chance } from "../play/arena.js";
import { Board } from "./board.js";
import { DIALECTS } from "./dialect.js";
import { Duel } from "./duel.js";
import { Eyes } from "./eyes.js";
import { emptyLevel, fromAddress, fromJson, readLevel, sameLevel, toAddress, toJson, writeLevel } from "./level.js";
import { Person } from "./person.js";
import { Shelf } from "./shelf.js";
import { thumbnail } from "./thumbnail.js";
import { Troupe } from "./troupe.js";

const EPISODES = 32;
const REST = 900; // milliseconds between episodes
const RATES = [1, 2, 4, 8, 15, 30, 60, 240, 1000, Infinity]; // steps a second
const HURRY = 200; // steps a second from which on episodes follow each other without a rest

export class GridRoom {
  /** `facts` are the room's part of the contents; `house` opens engines, employs helpers and keeps the address. */
  constructor(facts, house) {
    this.facts = facts;
    this.house = house;
    this.dialect = DIALECTS[facts.kind];
    this.arenas = new Map();
    const held = facts.suites.flatMap((suite) => suite.levels).filter(({ draw }) => draw);
    this.draws = new Map(held.map(({ of: name, draw, level }) => [name, { draw, size: level.rows.length }]));
    this.greedy = false;
    this.layers = { path: false, heat: false, view: true };
    this.verdicts = new Map();
  }

  /** Builds the room around a level; resolves when it can be played in. */
  async open(address) {
    this.students = await this.house.admit(this.facts.students);
    this.helper = this.house.employ(this.students);
    const level = this.addressed(address) ?? this.first();
    this.history = new History(level);
    await this.enter(level);
    this.build();
    this.show(level);
    return this.node;
  }

  /** The level of an address, if there is one in it. */
  addressed(address) {
    if (!address?.has("start")) return null;
    try {
      return this.fitting(fromAddress(address, this.dialect));
    } catch (error) {
      this.house.say(error.message);
      return null;
    }
  }

  /** A held-out level of the students' own size, or an empty room. */
  first() {
    const { suites, size } = this.facts;
    const held = suites.flatMap((suite) => suite.levels).find(({ level }) => level.rows.length === size);
    return held ? { ...fromJson(held.level, this.dialect), rules: held.rules, anew: held.draw ? held.of : undefined } : emptyLevel(size);
  }

  /** Refuses levels for whose size the page has no engine, and rules and draws that it does not know. */
  fitting(level) {
    const { sizes, rules } = this.facts;
    if (!(level.width in sizes)) throw new Error(`This page has no ${this.dialect.kind} of ${level.width} × ${level.width} tiles.`);
    const known = !level.rules || (Object.hasOwn(rules, level.rules) && rules[level.rules].size === level.width);
    if (!known || (level.anew && this.draws.get(level.anew)?.size !== level.width)) throw new Error("The address names rules that this page does not have.");
    return level;
  }

  /** How a level is played: by the rules of a suite, or by the room's own for levels of its size. */
  rulesOf({ width, rules }) {
    return rules ? this.facts.rules[rules] : this.facts.sizes[width];
  }

  /** Where a level is played. */
  async arenaOf(level) {
    const rules = this.rulesOf(level);
    if (!this.arenas.has(rules)) {
      const engine = await this.house.open(rules.engine, this.helper);
      this.arenas.set(rules, new Arena(engine, rules));
    }
    return this.arenas.get(rules);
  }

  /** Goes there. */
  async enter(level) {
    const arena = await this.arenaOf(level);
    if (arena === this.arena) return;
    this.troupe?.close();
    this.arena = arena;
    this.record = arena.make("level");
    this.child = arena.make("level");
    writeLevel(level, this.record, this.dialect);
    this.troupe = new Troupe(arena, this.record, this.dialect);
  }

  build() {
    const level = this.history.now;
    this.board = new Board(this.dialect, level, {
      draft: (drawn) => this.drafted(drawn),
      commit: (drawn) => this.commit(drawn),
      key: (event) => this.person.key(event),
    });
    this.roster = new Roster(this.students, MARKS, { follow: () => this.followed(), show: () => this.recast() });
    this.eyes = new Eyes(this.dialect);
    this.person = new Person(this);
    this.shelf = new Shelf(this.facts, this.dialect, (chosen) => this.commit(chosen));
    this.clock = new Clock(() => this.step(), (share) => this.frame(share), (rate) => this.clock.rate > HURRY && this.transport.tell(`${count(rounded(rate))}/s`));
    this.transport = new Transport({
      play: (yes) => this.play(yes),
      step: () => this.single(),
      again: () => this.again(),
      speed: (rate) => (this.clock.rate = rate),
    }, RATES, 8, (rate) => (rate === Infinity ? "top" : `${count(rate)}/s`));
    this.known = el("p", { class: "facts", "aria-live": "polite" });
    this.rules = el("div", { class: "rules" });
    this.progress = el("span", { class: "note" });
    this.judgeSoon = settled(180, () => this.judge());
    this.node = this.layout();
    this.recast();
  }

  layout() {
    this.keys = { r: () => this.sample(), e: () => this.edit(), z: () => this.turnBack("undo"), y: () => this.turnBack("redo"), ...this.transport.keys };
    const tools = el("div", { class: "tools" }, this.toolbox(), this.person.node, this.transport.node, this.layerTicks());
    const left = el("div", { class: "stage desk" }, el("div", { class: "bar" }, this.shelf.node, ...this.makers()), this.board.node, tools);
    const right = el("div", { class: "side" },
      card("Students", this.roster.node, this.progress),
      card("Through its eyes", this.eyes.node),
      card("This level", this.known, this.rules, this.words()));
    this.evolve = new Evolve(this);
    this.keys.v = () => this.evolve.set(!this.evolve.running);
    const lineage = this.facts.lineages.length ? new Lineage(this).node : null;
    return el("div", {}, el("div", { class: "room" }, left, right), this.evolve.node, lineage);
  }

  /** What the pointer does on the board. */
  toolbox() {
    const { block } = this.dialect;
    const tools = [["draw", block === "wall" ? "Wall" : "Lava", "wall"], ["goal", "Goal", "goal"], ["start", "Start", "start"], ["walk", "Walk", "walk"]];
    return choice("What the pointer does", "tool", tools, "draw", (tool) => this.wield(tool));
  }

  makers() {
    const edits = plural(this.facts.edits, "edit");
    return [
      button("Random", () => this.sample(), { drawing: "dice", key: "r", title: "A new level from the run's generator (r)" }),
      button("Edit", () => this.edit(), { drawing: "edit", key: "e", title: `${edits} of the library's own operator (e)` }),
      button("Undo", () => this.turnBack("undo"), { drawing: "undo", key: "z", kind: "brief" }),
      button("Redo", () => this.turnBack("redo"), { drawing: "redo", key: "y", kind: "brief" }),
    ];
  }

  layerTicks() {
    const view = tick("View", true, (on) => this.layer("view", on), { title: "Light what the followed student sees" });
    return el("div", { class: "bar ticks" },
      this.dialect.hidden ? view : null,
      tick("Shortest path", false, (on) => this.layer("path", on)),
      tick("Heat map", false, (on) => this.layer("heat", on), { title: `Where the followed student goes in ${EPISODES} episodes` }),
      tick("Most probable action", false, (on) => this.becomeGreedy(on), { title: "Instead of one drawn by its probability" }));
  }

  /** The level as text, which may be changed as well. */
  words() {
    this.text = el("textarea", { rows: 8, spellcheck: "false", "aria-label": "the level as rows of characters" });
    this.text.addEventListener("change", () => this.read());
    const { mark, block } = this.dialect;
    const note = el("p", { class: "note" }, `${mark} ${block}, . floor, S start, G goal`);
    return el("details", {}, el("summary", {}, "As text"), this.text, note);
  }

  read() {
    try {
      const rows = this.text.value.trim().split(/\s+/);
      const { direction, width, rules } = this.history.now;
      const level = this.fitting(fromJson({ rows, direction }, this.dialect));
      this.commit(level.width === width ? { ...level, rules } : level);
    } catch (error) {
      this.house.say(error.message);
    }
  }

  // What a person does to the level.

  drafted(level) {
    this.show(level, { lasting: false });
  }

  async commit(level) {
    if (sameLevel(level, this.history.now)) return this.show(level);
    await this.enter(level);
    this.history.push(level);
    this.show(level);
  }

  async turnBack(way) {
    const level = this.history[way]();
    await this.enter(level);
    this.show(level);
  }

  sample() {
    if (!this.arena.can("sample")) return this.house.say("Levels of this size are drawn by hand: the run's generator makes others.");
    this.arena.fn("sample")(this.arena.key(...chance()), this.child);
    this.commit(readLevel(this.child, this.dialect));
  }

  edit() {
    const role = `edit_${this.facts.edits}`;
    if (!this.arena.can(role)) return this.house.say("Levels of this size are not edited: the run's are of another.");
    this.arena.fn(role)(this.arena.key(...chance()), this.record, this.child);
    this.commit({ ...readLevel(this.child, this.dialect), rules: this.history.now.rules });
  }

  // What follows from another level.

  show(level, { lasting = true } = {}) {
    writeLevel(level, this.record, this.dialect);
    this.board.show(level);
    this.troupe.again(this.record);
    if (lasting) this.recast();
    this.describe();
    this.roster.clear();
    this.verdicts.clear();
    this.board.stage({ heat: null });
    this.judgeSoon();
    this.frame(1);
    if (!lasting) return;
    this.person.begin();
    this.text.value = toJson(level, this.dialect).rows.join("\n");
    this.shelf.mark(level);
    this.offerRules(level);
    this.house.address(toAddress(level, this.dialect));
  }

  /** Another draw of a held-out level, where each episode has its own. */
  redraw() {
    const { rules, anew } = this.history.now;
    if (!anew) return;
    this.arena.engine.fn(this.draws.get(anew).draw)(this.arena.key(...chance()), this.record);
    const level = { ...readLevel(this.record, this.dialect), rules, anew };
    this.history.replace(level);
    this.board.show(level);
    this.untold = true;
  }

  /** Says in words what has been drawn anew. */
  retell() {
    this.untold = false;
    this.text.value = toJson(this.history.now, this.dialect).rows.join("\n");
    this.describe();
  }

  /** The rules that there are for levels of this size. */
  offerRules(level) {
    const held = Object.entries(this.facts.rules).filter(([, rules]) => rules.size === level.width);
    const steps = ({ limit }) => plural(limit, "step");
    const options = [["", `the run's, ${steps(this.facts.sizes[level.width])}`], ...held.map(([name, rules]) => [name, `the suite's, ${steps(rules)}`])];
    const list = menu("Rules", [["", options]], (rules) => this.commit({ ...this.history.now, rules: rules || undefined }));
    list.querySelector("select").value = level.rules ?? "";
    fill(this.rules, held.length ? list : [], el("p", { class: "note" }, manner(this.rulesOf(level), level.anew)));
  }

  describe() {
    const { [this.dialect.blocks === "walls" ? "blocks" : "lava"]: blocks, path_length: length } = this.arena.describe(this.record);
    const what = this.dialect.block === "wall" ? plural(blocks, "wall") : plural(blocks, "tile of lava", "tiles of lava");
    const way = Number.isNaN(length) ? "no way to the goal" : `shortest path ${plural(length, "move")}`;
    fill(this.known, `${this.board.level.width} × ${this.board.level.width}, ${what}, `, el("b", { class: Number.isNaN(length) ? "bad" : "" }, way));
    this.drawPath();
  }

  drawPath() {
    if (!this.layers.path) return this.board.stage({ path: null });
    this.path ??= new Map();
    if (!this.path.has(this.arena)) this.path.set(this.arena, this.arena.make("path"));
    const path = this.path.get(this.arena);
    this.arena.fn("path")(this.record, path);
    this.board.stage({ path: path.value.slice() });
  }

  judge() {
    const numbers = [this.roster.followed, ...this.students.filter((s) => s !== this.roster.followed)].map((s) => s.number);
    const size = this.board.level.width;
    const request = { rules: this.arena.rules, level: this.record.save(), numbers, episodes: EPISODES, seed: chance(), greedy: this.greedy, width: size, places: size * size, draw: this.draws.get(this.history.now.anew)?.draw };
    fill(this.progress, "playing …");
    this.helper.ask("judge", request, (news) => this.judged(news));
  }

  judged({ number, verdict, done }) {
    if (done) return fill(this.progress, `${EPISODES} episodes each`);
    const student = this.students[number];
    this.verdicts.set(student, verdict);
    this.roster.tell(student, verdict);
    if (student === this.roster.followed) this.drawHeat();
    return null;
  }

  drawHeat() {
    const verdict = this.verdicts.get(this.roster.followed);
    this.board.stage({ heat: this.layers.heat && verdict ? { visits: verdict.visits, colour: shade(this.dialect.heat ?? this.roster.followed.colour) } : null });
  }

  // Who is on the board.

  recast() {
    const { followed, shown } = this.roster;
    const cast = this.students.filter((student) => student === followed || shown.has(student));
    this.troupe.cast(cast, { greedy: this.greedy });
    this.frame(1);
  }

  followed() {
    this.recast();
    this.drawHeat();
  }

  layer(name, on) {
    this.layers[name] = on;
    this.drawPath();
    this.drawHeat();
    this.frame(1);
  }

  becomeGreedy(on) {
    this.greedy = on;
    this.recast();
    this.again();
    this.judge();
  }

  wield(tool) {
    this.board.tool = tool;
    this.person.play(tool === "walk");
    this.frame(1);
  }

  // Time.

  play(yes) {
    if (yes) this.clock.start();
    else this.clock.stop();
  }

  /** A step of all who are under way, or part of the rest between two episodes; gives whether it was a step. */
  step() {
    if (this.troupe.done && this.clock.rate > HURRY) this.begin();
    if (!this.troupe.done) return this.troupe.step();
    this.ended ??= performance.now();
    if (performance.now() - this.ended > REST) this.again();
    return false;
  }

  /** What a person asks for by hand does not wait. */
  single() {
    if (this.troupe.done) this.begin();
    else this.troupe.step();
    this.frame(1);
  }

  begin() {
    this.ended = null;
    this.redraw();
    this.troupe.again(this.record);
  }

  again() {
    this.begin();
    this.frame(1);
  }

  frame(share) {
    if (this.untold) this.retell();
    if (this.person?.walking) return this.person.frame();
    const { followed } = this.roster;
    const gone = calm() || !this.clock.running ? 1 : share;
    const others = [...this.troupe.players.keys()].filter((student) => student !== followed);
    const walkers = [...others, followed].map((student) => ({
      pose: this.troupe.at(student, gone),
      colour: shade(student.colour),
      faint: student !== followed,
      ringed: student === followed,
    }));
    const player = this.troupe.players.get(followed);
    this.board.stage({ walkers, seen: this.layers.view ? this.sight(player) : null, trail: this.troupe.trails.get(followed), colour: shade(followed.colour), fog: false });
    return this.eyes.look(player);
  }

  /** The tiles that someone sees; null where all is seen, or the engine cannot say. */
  sight(player) {
    if (!this.dialect.hidden || !this.arena.can("scene")) return null;
    this.scene ??= new Map();
    if (!this.scene.has(this.arena)) this.scene.set(this.arena, this.arena.make("scene"));
    const scene = this.scene.get(this.arena);
    this.arena.fn("scene")(player.state, scene);
    return scene.view(scene.layout.leaves.has("seen") ? "seen" : "").slice();
  }

  // What evolution asks for.

  /** What is drawn of the levels that are kept. */
  get measures() {
    const first = this.dialect.kind === "maze" ? ["blocks", "walls"] : ["lava", "tiles of lava"];
    return [first, ["path_length", "shortest path"], ["generation", "generation"], ["score", "score"]];
  }

  picture(arena, bytes) {
    return thumbnail(this.levelOf(arena, bytes), this.dialect);
  }

  openBytes(arena, bytes) {
    this.commit(this.levelOf(arena, bytes));
  }

  levelOf(arena, bytes) {
    return readLevel(arena.scratch.level.load(bytes), this.dialect);
  }

  // What a lineage asks for.

  duel() {
    return new Duel(this);
  }

  get marks() {
    return MARKS;
  }

  thumb(json) {
    return thumbnail(fromJson(json, this.dialect), this.dialect);
  }

  openJson(json) {
    this.commit(fromJson(json, this.dialect));
  }

  // Files and addresses.

  save() {
    return { level: toJson(this.history.now, this.dialect) };
  }

  load(data) {
    this.commit(this.fitting(fromJson(data, this.dialect)));
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

/** Rules in words. */
function manner({ limit, blind, random }, anew) {
  const facts = [`An episode ends after ${plural(limit, "step")}.`];
  if (anew) facts.push("Each has a level of its own.");
  if (blind) facts.push("Walls block the view.");
  if (random) facts.push("It begins facing at random.");
  return facts.join(" ");
}
