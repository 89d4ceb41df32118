// The rose of a setting: a petal for each parameter, as long as its share of the full range; and how hard that is.

import { shade } from "../base/dom.js";
import { Sheet } from "../base/sheet.js";
import { GENES } from "./level.js";

const SHORT = ["rough", "pit low", "pit high", "stump low", "stump high", "stair low", "stair high", "steps"];

/** POET's: at least this rough, pits so wide, stumps so high. */
export const CHALLENGES = [[0, 4.5], [2, 6.0], [4, 2.4]];
export const DIFFICULTIES = ["easy", "challenging", "very challenging", "extremely challenging"];

export class Rose {
  constructor(parameters) {
    this.parameters = parameters;
    this.genes = null;
    this.sheet = new Sheet((pen, width) => this.paint(pen, width), { ratio: 0.76, class: "rose", role: "img", "aria-label": "rose of the parameters" });
  }

  show(genes) {
    this.genes = genes;
    this.sheet.ask();
  }

  paint(pen, width) {
    if (!this.genes) return;
    const [x, y, radius] = [width / 2, 0.38 * width, 0.28 * width];
    const n = this.parameters;
    const ray = (k, share) => {
      const turn = (2 * Math.PI * k) / n - Math.PI / 2;
      return [x + radius * share * Math.cos(turn), y + radius * share * Math.sin(turn)];
    };
    const ring = (share) => {
      pen.beginPath();
      for (let k = 0; k < n; k++) pen.lineTo(...ray(k, share(k)));
      pen.closePath();
    };
    pen.strokeStyle = shade("line");
    pen.lineWidth = 1;
    for (const level of [0.25, 0.5, 0.75, 1]) (ring(() => level), pen.stroke());
    this.limits(pen, ray);
    ring((k) => Math.max(0.015, (this.genes[k] - (GENES[k].low ?? 0)) / (GENES[k].high - (GENES[k].low ?? 0))));
    pen.fillStyle = pen.strokeStyle = shade("accent");
    pen.lineWidth = 2;
    pen.lineJoin = "round";
    pen.stroke();
    pen.globalAlpha = 0.22;
    pen.fill();
    pen.globalAlpha = 1;
    this.letter(pen, ray, width);
  }

  /** Where POET's challenges begin. */
  limits(pen, ray) {
    pen.strokeStyle = shade("bad");
    pen.lineWidth = 2;
    for (const [k, limit] of CHALLENGES) {
      const [px, py] = ray(k, limit / GENES[k].high);
      pen.beginPath();
      pen.arc(px, py, 3, 0, 2 * Math.PI);
      pen.stroke();
    }
  }

  /** Names at the ends of the rays, none beyond the edge. */
  letter(pen, ray, width) {
    pen.fillStyle = shade("muted");
    pen.font = "11.5px system-ui, sans-serif";
    pen.textBaseline = "middle";
    for (let k = 0; k < this.parameters; k++) {
      const [px, py] = ray(k, 1.12);
      const [cx] = ray(k, 0);
      pen.textAlign = Math.abs(px - cx) < 6 ? "center" : px > cx ? "left" : "right";
      const room = pen.measureText(SHORT[k]).width + 1;
      const at = pen.textAlign === "right" ? Math.max(px, room) : pen.textAlign === "left" ? Math.min(px, width - room) : px;
      pen.fillText(SHORT[k], at, py);
    }
  }
}
