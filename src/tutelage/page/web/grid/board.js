// The board: a level that can be drawn on with pointer and keyboard, and on it those who walk.

import { el, onTheme, shade } from "../base/dom.js";
import { Sheet } from "../base/sheet.js";
import { turned, withBlock, withPlace } from "./level.js";
import { Geometry, paintCursor, paintEnds, paintGround, paintHeat, paintPath, paintSeen, paintTrail, paintWalker } from "./paint.js";

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Board {
  /** `on.draft(level)` is called while a line is drawn, `on.commit(level)` at its end, `on.key(event)` for keys in walking.
   * Without `on` the board is to be looked at alone.
   */
  constructor(dialect, level, on) {
    this.dialect = dialect;
    this.level = level;
    this.on = on;
    this.tool = "draw";
    this.cursor = level.start;
    this.scene = { walkers: [], heat: null, path: null, seen: null, trail: [], fog: false };
    const drawn = { class: "board", tabindex: "0", role: "application", "aria-label": `${dialect.kind} to draw on`, "aria-description": "Arrow keys go from tile to tile, Enter changes one" };
    const shown = { role: "img", "aria-label": `students on a ${dialect.kind}` };
    this.sheet = new Sheet((pen, width) => this.paint(pen, width), on ? drawn : shown);
    this.told = el("p", { class: "unseen", "aria-live": "polite" });
    this.node = el("div", { class: "easel" }, this.sheet.canvas, this.told);
    onTheme(() => (this.ground = null));
    if (on) this.listen();
  }

  /** Shows another level. */
  show(level) {
    if (level.width !== this.level.width) this.cursor = level.start;
    this.level = level;
    this.ground = null;
    this.sheet.ask();
  }

  /** Shows other walkers, heat, path, view or trail on the level. */
  stage(scene) {
    Object.assign(this.scene, scene);
    this.sheet.ask();
  }

  listen() {
    const { canvas } = this.sheet;
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.drag(event));
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => this.release());
    canvas.addEventListener("keydown", (event) => this.keyed(event));
    canvas.addEventListener("focus", () => this.sheet.ask());
    canvas.addEventListener("blur", () => this.sheet.ask());
  }

  tileOf(event) {
    const box = this.sheet.canvas.getBoundingClientRect();
    return new Geometry(this.level, box.width).at(event.clientX - box.left, event.clientY - box.top);
  }

  press(event) {
    const tile = this.tileOf(event);
    if (tile < 0 || this.tool === "walk" || event.button !== 0) return;
    event.preventDefault();
    this.sheet.canvas.setPointerCapture(event.pointerId);
    this.sheet.canvas.focus({ preventScroll: true, focusVisible: false });
    this.cursor = this.last = tile;
    this.began = this.level;
    const { start, goal, blocks } = this.level;
    const held = tile === start ? "start" : tile === goal ? "goal" : this.tool;
    this.stroke = held === "draw" ? { block: !blocks[tile] } : { place: held, moved: false };
    if (tile !== start && tile !== goal) this.touch(tile);
  }

  drag(event) {
    if (!this.stroke) return;
    for (const each of event.getCoalescedEvents?.() ?? [event]) {
      const tile = this.tileOf(each);
      if (tile < 0 || tile === this.last) continue;
      for (const between of this.line(this.last, tile)) this.touch(between);
      this.last = this.cursor = tile;
    }
  }

  /** The tiles from one to another, without gaps. */
  line(from, to) {
    const { width } = this.level;
    const [x0, y0, x1, y1] = [from % width, Math.floor(from / width), to % width, Math.floor(to / width)];
    const steps = Math.max(Math.abs(x1 - x0), Math.abs(y1 - y0));
    return Array.from({ length: steps }, (_, k) => {
      const share = (k + 1) / steps;
      return Math.round(y0 + (y1 - y0) * share) * width + Math.round(x0 + (x1 - x0) * share);
    });
  }

  touch(tile) {
    const { block, place } = this.stroke;
    const next = place ? withPlace(this.level, place, tile) : withBlock(this.level, tile, block);
    this.stroke.moved = true;
    if (next === this.level) return;
    this.show(next);
    this.on.draft(next);
  }

  release() {
    if (!this.stroke) return;
    const { place, moved } = this.stroke;
    this.stroke = null;
    if (place === "start" && !moved && this.dialect.facing) this.show(turned(this.level));
    if (this.level !== this.began) this.on.commit(this.level);
  }

  keyed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (this.tool === "walk") return void this.on.key(event);
    if (event.key in ARROWS) this.move(...ARROWS[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.apply();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  move(dx, dy) {
    const { width, height } = this.level;
    const x = Math.min(Math.max((this.cursor % width) + dx, 0), width - 1);
    const y = Math.min(Math.max(Math.floor(this.cursor / width) + dy, 0), height - 1);
    this.cursor = y * width + x;
    this.tell();
    this.sheet.ask();
  }

  apply() {
    const { cursor, level, tool } = this;
    const same = tool === "start" && cursor === level.start && this.dialect.facing;
    const next = same ? turned(level) : tool === "draw" ? withBlock(level, cursor, !level.blocks[cursor]) : withPlace(level, tool, cursor);
    if (next === level) return;
    this.show(next);
    this.on.commit(next);
    this.tell();
  }

  /** Says what is at the cursor. */
  tell() {
    const { cursor, level, dialect } = this;
    const what = cursor === level.start ? "start" : cursor === level.goal ? "goal" : level.blocks[cursor] ? dialect.block : "floor";
    this.told.textContent = `row ${Math.floor(cursor / level.width) + 1}, column ${(cursor % level.width) + 1}: ${what}`;
  }

  paint(pen, width) {
    const { level, dialect, scene } = this;
    const geometry = new Geometry(level, width);
    pen.drawImage(this.backdrop(geometry, width), 0, 0, width, width);
    if (scene.heat && !scene.fog) paintHeat(pen, geometry, scene.heat.visits, scene.heat.colour);
    paintEnds(pen, geometry, dialect);
    if (scene.path && !scene.fog) paintPath(pen, geometry, scene.path);
    if (scene.seen) paintSeen(pen, geometry, scene.seen, scene.fog ? shade("fog") : scene.colour, { fog: scene.fog });
    if (!scene.fog) paintTrail(pen, geometry, scene.trail, scene.colour);
    for (const { pose, colour, faint, ringed } of scene.walkers) paintWalker(pen, geometry, pose, colour, { facing: dialect.facing, faint, ringed });
    if (document.activeElement === this.sheet.canvas && this.tool !== "walk" && this.sheet.canvas.matches(":focus-visible")) {
      paintCursor(pen, geometry, this.cursor);
    }
  }

  /** The ground is painted once for each level. */
  backdrop(geometry, width) {
    if (this.ground?.for !== width) {
      this.ground = { for: width, canvas: this.sheet.picture((pen) => paintGround(pen, geometry, this.dialect)) };
    }
    return this.ground.canvas;
  }
}
