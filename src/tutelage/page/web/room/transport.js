// Play, step, again, and how fast.

import { el } from "../base/dom.js";
import { button, relabel, slider } from "../base/controls.js";

export class Transport {
  /** `on.play(yes)`, `on.step()`, `on.again()`, `on.speed(steps a second)`; `rates` are the speeds to choose from. */
  constructor(on, rates, rate, say) {
    this.on = on;
    this.playing = false;
    this.play = button("Play", () => this.set(!this.playing), { drawing: "play", key: "p", kind: "main" });
    const step = button("Step", () => (this.set(false), on.step()), { drawing: "step", key: "s" });
    const again = button("Again", () => on.again(), { drawing: "again", key: "a" });
    this.speed = slider("Speed", { min: 0, max: rates.length - 1, value: rates.indexOf(rate), say: (n) => say(rates[n]) }, (n) => on.speed(rates[n]));
    this.keys = { p: () => this.set(!this.playing), s: () => (this.set(false), on.step()), a: () => on.again() };
    this.node = el("div", { class: "bar" }, this.play, step, again, this.speed);
  }

  /** Says how fast it goes in truth, until another speed is chosen. */
  tell(words) {
    this.speed.querySelector("output").textContent = words;
  }

  /** Plays or rests; while it is hidden it rests. */
  set(playing) {
    if (this.playing === playing || (playing && this.node.hidden)) return;
    this.playing = playing;
    relabel(this.play, playing ? "Pause" : "Play", playing ? "pause" : "play");
    this.on.play(playing);
  }
}
