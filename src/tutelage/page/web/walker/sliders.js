// The parameters of a terrain: a slider for each number, one with two handles for each pair of ends.

import { el } from "../base/dom.js";
import { decimal } from "../base/format.js";
import { GENES, PAIRS } from "./level.js";

const LABELS = { roughness: "Roughness", pit_gap: "Pit gap", stump_height: "Stump height", stair_height: "Stair height", stair_steps: "Stair steps" };

export class Sliders {
  /** Of the first five parameters or of all eight; `change(genes, lasting)` hears of every move and of its end. */
  constructor(parameters, change) {
    this.change = change;
    this.genes = [];
    this.inputs = new Map();
    const rows = [this.row("roughness", [0]), this.row("pit_gap", PAIRS.pit_gap), this.row("stump_height", PAIRS.stump_height)];
    if (parameters === 8) rows.push(this.row("stair_height", PAIRS.stair_height), this.row("stair_steps", [7]));
    this.node = el("div", { class: "sliders" }, ...rows);
  }

  row(name, places) {
    const told = el("output", { "aria-live": "off" });
    const track = el("div", { class: "track" });
    const inputs = places.map((place, n) => this.input(place, places.length === 1 ? LABELS[name] : `${LABELS[name]}, ${n ? "high" : "low"} end`));
    track.append(...inputs);
    const row = { told, track, places };
    for (const place of places) this.inputs.get(place).row = row;
    return el("div", { class: places.length === 1 ? "range" : "range double" }, el("span", {}, LABELS[name]), track, told);
  }

  input(place, label) {
    const { low = 0, high, step } = GENES[place];
    const node = el("input", { type: "range", min: low, max: high, step, "aria-label": label });
    node.addEventListener("input", () => this.moved(place, Number(node.value), false));
    node.addEventListener("change", () => this.moved(place, Number(node.value), true));
    this.inputs.set(place, { node });
    return node;
  }

  /** One end pushes the other along. */
  moved(place, value, lasting) {
    const genes = [...this.genes];
    genes[place] = value;
    for (const [low, high] of Object.values(PAIRS)) {
      if (place === low && genes[high] < value) genes[high] = value;
      if (place === high && genes[low] > value) genes[low] = value;
    }
    this.show(genes);
    this.change(genes, lasting);
  }

  /** Shows other parameters. */
  show(genes) {
    this.genes = [...genes];
    for (const [place, { node, row }] of this.inputs) {
      node.value = genes[place];
      const { high, low = 0 } = GENES[place];
      const share = (k) => `${(100 * (genes[k] - low)) / (high - low)}%`;
      const [first, last] = row.places.length === 1 ? ["0%", share(place)] : row.places.map(share);
      row.track.style.setProperty("--from", first);
      row.track.style.setProperty("--to", last);
      row.told.textContent = row.places.map((k) => decimal(genes[k], GENES[k].step === 1 ? 0 : GENES[k].step < 0.1 ? 2 : 1)).join(" – ");
    }
  }

  /** Parameters that mean nothing under the present rules are not to be moved. */
  set disabled(yes) {
    for (const { node } of this.inputs.values()) node.disabled = yes;
  }
}
