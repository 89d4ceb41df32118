// What the student sees, what it is about to do, and how good it thinks its position is.

import { el, fill, shade } from "../base/dom.js";
import { decimal, percent } from "../base/format.js";
import { Sheet } from "../base/sheet.js";

// MiniGrid's kinds of tile, and NetHack's glyphs.
const KINDS = { 0: "unseen", 1: "maze-floor", 2: "maze-stone", 8: "goal", 9: "lava-fire" };
const GLYPHS = { 337: "self", 2359: "lava-stone", 2378: "lava-floor", 2382: "start", 2383: "goal", 2393: "lava-fire" };

/** The tiles in view, row by row: names of colours. */
export function inView(obs) {
  if (obs.layout.leaves.has("crop")) return Array.from(obs.crop, (glyph) => GLYPHS[glyph] ?? "unseen");
  const image = obs.image;
  const side = Math.sqrt(image.length / 3);
  return Array.from({ length: side * side }, (_, n) => KINDS[image[3 * ((n % side) * side + Math.floor(n / side))]] ?? "unseen");
}

export class Eyes {
  constructor(dialect) {
    this.dialect = dialect;
    this.tiles = [];
    this.sheet = new Sheet((pen, width) => this.paint(pen, width), { class: "view", role: "img", "aria-label": "what the student sees" });
    this.facts = el("p", { class: "note" });
    const bars = [...dialect.moves, ...(dialect.kind === "maze" ? ["wait"] : [])].map((move) => [move, el("span", { class: "meter" }), el("output", { "aria-live": "off" })]);
    this.bars = bars;
    this.list = el("dl", { class: "odds" }, ...bars.flatMap(([move, meter, output]) => [el("dt", {}, move), el("dd", {}, meter, output)]));
    this.node = el("div", { class: "eyes" }, this.sheet.canvas, el("div", {}, this.list, this.facts));
  }

  /** Looks through a player's eyes. */
  look(player) {
    this.colour = player.student ? player.student.colour : "you";
    this.tiles = inView(player.obs);
    this.sheet.ask();
    this.list.hidden = !player.mind; // a person tells nobody
    const odds = player.mind ? Array.from(player.mind.thoughts.probabilities) : [];
    const known = this.dialect.moves.length;
    const shares = odds.length > known ? [...odds.slice(0, known), odds.slice(known).reduce((a, b) => a + b, 0)] : odds;
    this.bars.forEach(([, meter, output], n) => {
      meter.style.setProperty("--share", shares[n] ?? 0);
      output.textContent = shares.length ? percent(shares[n]) : "";
    });
    const value = player.mind ? `, value ${decimal(player.value)}` : "";
    fill(this.facts, `Step ${player.steps}, return ${decimal(player.return)}${value}`);
  }

  paint(pen, width) {
    const side = Math.sqrt(this.tiles.length);
    const tile = width / side;
    this.tiles.forEach((name, n) => {
      const [x, y] = [(n % side) * tile, Math.floor(n / side) * tile];
      pen.fillStyle = shade(name === "self" ? "lava-floor" : name);
      pen.fillRect(x, y, tile + 0.5, tile + 0.5);
      if (name === "self") this.dot(pen, x + tile / 2, y + tile / 2, tile);
    });
    pen.strokeStyle = shade("maze-line");
    pen.globalAlpha = 0.5;
    pen.lineWidth = 1;
    for (let k = 1; k < side; k++) pen.strokeRect(-1, -1, Math.round(k * tile) + 1.5, width + 2), pen.strokeRect(-1, -1, width + 2, Math.round(k * tile) + 1.5);
    pen.globalAlpha = 1;
    if (this.dialect.hidden && side) this.arrow(pen, width / 2, width - tile / 2, tile);
  }

  dot(pen, x, y, tile) {
    pen.fillStyle = shade(this.colour);
    pen.beginPath();
    pen.arc(x, y, 0.3 * tile, 0, 2 * Math.PI);
    pen.fill();
  }

  arrow(pen, x, y, tile) {
    pen.fillStyle = shade(this.colour);
    pen.beginPath();
    for (const [u, v] of [[0, -0.36], [0.31, 0.3], [0, 0.16], [-0.31, 0.3]]) pen.lineTo(x + u * tile, y + v * tile);
    pen.fill();
  }
}
