// A family tree that grows to the right: a line for each level from its birth until it is given up, a branch to each child.

import { calm, shade } from "../base/dom.js";
import { Sheet } from "../base/sheet.js";

const SHOWN = 40; // of the best, with their ancestors
const MARGIN = 12;
const [GAP, RUNG] = [26, 4]; // pixels between lines at most; lines by which it grows taller
const NEAR = 14; // pixels within which a line can be touched

export class Tree {
  /** `choose(member)` is called when a line is touched. */
  constructor(choose) {
    this.family = null;
    this.chosen = new Set();
    this.sheet = new Sheet((pen, width, height) => this.paint(pen, width, height), {
      ratio: (width) => this.tall(width) / width,
      class: "tree",
      role: "img",
      "aria-label": "family tree of the levels that were kept; the best of them are listed below",
    });
    this.sheet.canvas.addEventListener("click", (event) => {
      const found = this.at(event.offsetX, event.offsetY);
      if (found) choose(found);
    });
  }

  /** Shows another state of a family, some of its members marked. */
  show(family, marked = []) {
    this.family = family;
    this.chosen = new Set(marked);
    this.rows = family.inOrder(SHOWN);
    this.sheet.resize();
    this.sheet.ask();
  }

  /** As tall as its lines at most, in whole rungs, so that it does not grow all the time. */
  tall(width) {
    const most = Math.max(190, width / 2);
    const needed = 2 * MARGIN + GAP * RUNG * Math.ceil((this.rows?.length ?? 0) / RUNG);
    return Math.min(Math.max(needed, width < 500 ? 120 : 380), most);
  }

  at(x, y) {
    const rows = this.rows ?? [];
    const near = rows.filter((m) => x >= m.x - NEAR && x <= m.end + NEAR && Math.abs(m.y - y) < NEAR);
    return near.sort((a, b) => Math.abs(a.y - y) - Math.abs(b.y - y))[0];
  }

  paint(pen, width, height) {
    const { family } = this;
    if (!family || !family.members.size) return;
    const { rows } = this;
    const restless = this.place(rows, width, height);
    const most = Math.max(1e-6, ...rows.map((m) => m.score));
    pen.lineCap = "round";
    for (const member of rows) this.line(pen, member, most);
    for (const member of rows) this.dot(pen, member, most, rows.length);
    if (restless) this.sheet.ask();
  }

  /** Everyone glides to its place; true while someone is under way. */
  place(rows, width, height) {
    const gap = Math.min((height - 2 * MARGIN) / Math.max(rows.length - 1, 1), GAP);
    const across = (birth) => MARGIN + ((width - 2 * MARGIN - 6) * birth) / Math.max(this.family.tried, 20);
    this.gap = gap;
    let restless = false;
    rows.forEach((member, n) => {
      const goal = MARGIN + n * gap;
      member.y ??= member.parent?.y ?? goal;
      member.y += (goal - member.y) * (calm() ? 1 : 0.2);
      restless ||= Math.abs(goal - member.y) > 0.3;
      member.x = across(member.birth);
      member.end = across(member.death ?? this.family.tried);
    });
    return restless;
  }

  line(pen, member, most) {
    const marked = this.chosen.has(member);
    pen.strokeStyle = marked ? shade("ink") : shade("accent");
    pen.globalAlpha = marked ? 1 : 0.12 + 0.6 * Math.max(0, member.score / most) * (member.death === null ? 1 : 0.4);
    pen.lineWidth = marked ? Math.min(2.5, Math.max(1.5, 0.5 * this.gap)) : Math.min(1.5, 0.5 * this.gap);
    pen.beginPath();
    if (member.parent) {
      pen.moveTo(member.x, member.parent.y);
      pen.lineTo(member.x, member.y);
    } else pen.moveTo(member.x, member.y);
    pen.lineTo(Math.max(member.end, member.x), member.y);
    pen.stroke();
    pen.globalAlpha = 1;
  }

  dot(pen, member, most, count) {
    const marked = this.chosen.has(member);
    pen.fillStyle = marked ? shade("ink") : shade("accent");
    pen.globalAlpha = marked ? 1 : 0.25 + 0.75 * Math.max(0, member.score / most);
    pen.beginPath();
    pen.arc(member.x, member.y, marked ? Math.min(4.5, Math.max(2.5, 0.6 * this.gap)) : count > 60 ? 2 : 3, 0, 2 * Math.PI);
    pen.fill();
    pen.globalAlpha = 1;
  }
}
