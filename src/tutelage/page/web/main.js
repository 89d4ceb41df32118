// The page: a house with a room for each kind of level it carries.

import { bytesOf, contents } from "./base/bundle.js";
import { button } from "./base/controls.js";
import { current, el, fill } from "./base/dom.js";
import { Engine } from "./engine.js";
import { GridRoom } from "./grid/room.js";
import { admit } from "./room/students.js";
import { WalkerRoom } from "./walker/room.js";
import { Helper } from "./play/crew.js";

const ROOMS = { maze: GridRoom, lava: GridRoom, bipedal: WalkerRoom, "bipedal-poet": WalkerRoom };
const TITLES = { maze: "Mazes", lava: "Lava", bipedal: "Walkers", "bipedal-poet": "Walkers of POET" };

/** Where letters are letters. */
const TYPING = "input:not([type=radio], [type=checkbox], [type=range]), textarea, select";

class House {
  constructor(held) {
    this.held = held;
    this.engines = new Map();
    this.bytes = new Map();
  }

  /** The engine of a name; a helper that is named gets it too. */
  async open(name, ...helpers) {
    if (!this.engines.has(name)) this.engines.set(name, this.load(name));
    const engine = await this.engines.get(name);
    for (const helper of helpers) helper.engine(name, this.bytes.get(name), this.held.engines[name]);
    return engine;
  }

  async load(name) {
    this.bytes.set(name, await bytesOf(name));
    return Engine.open(this.bytes.get(name), this.held.engines[name]);
  }

  admit(listed) {
    return admit(listed, (name) => this.open(name));
  }

  /** A helper who knows these students. */
  employ(students) {
    const helper = new Helper(document.getElementById("helper").textContent);
    for (const student of students) {
      const { name } = student.engine.manifest;
      helper.engine(name, this.bytes.get(name), this.held.engines[name]);
      helper.student(student);
    }
    return helper;
  }

  /** Puts what is shown into the address, so that a link shows it again. */
  address(facts) {
    history.replaceState(null, "", `#${facts}`);
    this.shown = facts.toString();
  }

  /** Says something for a while, for eyes and ears. */
  say(text) {
    const note = document.getElementById("said");
    fill(note, text);
    note.classList.add("there");
    clearTimeout(this.saying);
    this.saying = setTimeout(() => note.classList.remove("there"), 6000);
  }

  async start() {
    this.nav = document.getElementById("rooms");
    if (this.held.rooms.length > 1) fill(this.nav, ...this.held.rooms.map((room) => el("a", { href: `#room=${room.kind}`, "data-kind": room.kind }, TITLES[room.kind])));
    fill(document.getElementById("files"), ...this.fileButtons());
    document.querySelector(".skip").addEventListener("click", (event) => (event.preventDefault(), document.getElementById("room").focus()));
    addEventListener("hashchange", () => this.route());
    addEventListener("keydown", (event) => this.keyed(event));
    await this.route();
  }

  /** Goes where the address says. */
  async route() {
    const address = new URLSearchParams(location.hash.slice(1));
    if (address.toString() === this.shown) return;
    const facts = this.held.rooms.find((room) => room.kind === address.get("room")) ?? this.room?.facts ?? this.held.rooms[0];
    if (this.room?.facts === facts) return this.room.visit(address);
    this.room?.close();
    for (const link of this.nav.children) current(link, link.dataset.kind === facts.kind);
    this.room = new ROOMS[facts.kind](facts, this);
    fill(document.getElementById("room"), await this.room.open(address));
    document.documentElement.dataset.ready = facts.kind;
  }

  keyed(event) {
    if (event.altKey || event.target.matches?.(TYPING)) return;
    const key = event.key.toLowerCase();
    if ((event.ctrlKey || event.metaKey) && key === "z") return void (event.preventDefault(), this.room.keys[event.shiftKey ? "y" : "z"]());
    if (event.ctrlKey || event.metaKey || !(key in (this.room?.keys ?? {}))) return;
    event.preventDefault();
    this.room.keys[key]();
  }

  fileButtons() {
    const file = el("input", { type: "file", accept: ".json,application/json", hidden: true, onchange: () => this.read(file) });
    return [
      button("Copy link", () => this.share(), { drawing: "link" }),
      button("Save", () => this.save(), { drawing: "save" }),
      button("Open", () => file.click(), { drawing: "open" }),
      file,
    ];
  }

  async share() {
    try {
      await navigator.clipboard.writeText(location.href);
      this.say("The link to this level is in the clipboard.");
    } catch {
      this.say("The address of this page is the link to this level.");
    }
  }

  /** A file as `tutelage levels --json` writes them. */
  save() {
    const text = `${JSON.stringify([this.room.save()], null, 1)}\n`;
    const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    el("a", { href: url, download: `${this.room.facts.kind}.json` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }

  async read(file) {
    try {
      const data = JSON.parse(await file.files[0].text());
      const [first] = Array.isArray(data) ? data : [data];
      this.room.load(first?.level ?? first);
    } catch (error) {
      this.say(error instanceof SyntaxError ? "The file is not JSON." : error.message);
    }
    file.value = "";
  }
}

/** Says why nobody can play here, and lets the console know all of it. */
function refuse(error) {
  fill(document.getElementById("room"), el("p", { class: "lead bad", role: "alert" }, `This browser cannot open the rooms: ${error.message}`));
  throw error;
}

new House(contents()).start().catch(refuse);
