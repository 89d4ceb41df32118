// How levels of the buffer change while it evolves: a small line for each measure.

import { el, shade } from "../base/dom.js";
import { decimal } from "../base/format.js";
import { Sheet } from "../base/sheet.js";

const MOST = 400; // points of a line; twice as many are thinned out

export class Growth {
  /** `measures` are [name, heading]. */
  constructor(measures) {
    this.lines = measures.map(([name, heading]) => new Line(name, heading));
    this.node = el("div", { class: "growth" }, ...this.lines.map((line) => line.node));
  }

  /** Notes the mean of each measure over the levels that are kept. */
  note(family) {
    const { alive } = family;
    if (alive.length) for (const line of this.lines) line.note(alive);
  }

  clear() {
    for (const line of this.lines) line.points = [];
  }
}

class Line {
  constructor(name, heading) {
    this.name = name;
    this.points = [];
    this.told = el("output", { "aria-live": "off" }, "–");
    this.sheet = new Sheet((pen, width, height) => this.paint(pen, width, height), { ratio: 0.3, "aria-hidden": "true" });
    this.node = el("div", {}, el("p", { class: "note" }, `${heading} `, this.told), this.sheet.canvas);
  }

  note(levels) {
    const values = levels.map((level) => level.metrics[this.name] ?? level[this.name]).filter(Number.isFinite);
    if (!values.length) return;
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    this.points.push(mean);
    if (this.points.length > 2 * MOST) this.points = this.points.filter((_, n) => n % 2 === 0);
    this.told.textContent = decimal(mean, mean < 1 ? 3 : 1);
    this.sheet.ask();
  }

  paint(pen, width, height) {
    const { points } = this;
    if (points.length < 2) return;
    const most = Math.max(...points, 1e-6);
    pen.strokeStyle = shade("accent");
    pen.lineWidth = 1.75;
    pen.lineJoin = "round";
    pen.beginPath();
    points.forEach((value, n) => pen.lineTo(2 + ((width - 4) * n) / (points.length - 1), height - 3 - ((height - 6) * value) / most));
    pen.stroke();
  }
}
