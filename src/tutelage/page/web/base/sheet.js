// A canvas that is as sharp as the screen and paints itself when it has to.

import { el, onTheme } from "./dom.js";

export class Sheet {
  /** `paint(pen, width, height)` works in CSS pixels; `ratio` is height by width, or a function of the width. */
  constructor(paint, { ratio = 1, ...attributes } = {}) {
    this.paint = paint;
    this.ratio = ratio;
    const shape = typeof ratio === "number" ? { "aspect-ratio": String(1 / ratio) } : {};
    this.canvas = el("canvas", { ...attributes, style: shape });
    this.width = this.height = 0;
    this.asked = false;
    new ResizeObserver(() => requestAnimationFrame(() => this.resize())).observe(this.canvas); // not while it observes
    onTheme(() => this.ask());
  }

  /** Takes on the size that the page gives it. */
  resize() {
    const width = this.canvas.clientWidth;
    if (!width) return;
    const height = Math.round(width * (typeof this.ratio === "function" ? this.ratio(width) : this.ratio));
    const scale = Math.min(devicePixelRatio || 1, 2);
    if (this.width === width && this.height === height && this.scale === scale) return;
    Object.assign(this, { width, height, scale });
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.draw();
  }

  /** A picture of the sheet's size with what `paint(pen)` paints, on which more can be painted later. */
  picture(paint) {
    const canvas = el("canvas", { width: this.canvas.width, height: this.canvas.height });
    const pen = canvas.getContext("2d");
    pen.scale(this.scale, this.scale);
    paint(pen);
    return canvas;
  }

  /** Paints before the next frame, once however often it was asked for. */
  ask() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => this.draw());
  }

  /** Paints. */
  draw() {
    this.asked = false;
    if (!this.width) return;
    const pen = this.canvas.getContext("2d");
    pen.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    this.paint(pen, this.width, this.height);
  }
}
