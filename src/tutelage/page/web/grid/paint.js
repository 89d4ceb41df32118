// What is painted on a board: the ground with its blocks, start and goal, and those who walk on it.

import { shade } from "../base/dom.js";

const RIM = 0.5; // tiles of stone around the level that are shown

/** Where tiles are on a canvas of some width. */
export class Geometry {
  constructor(level, width) {
    this.level = level;
    this.tile = width / (level.width + 2 * RIM);
    this.left = RIM * this.tile;
  }

  /** The upper left corner of a tile. */
  corner(tile) {
    return [this.left + (tile % this.level.width) * this.tile, this.left + Math.floor(tile / this.level.width) * this.tile];
  }

  /** The middle of a tile, whole or in between. */
  middle(x, y) {
    return [this.left + (x + 0.5) * this.tile, this.left + (y + 0.5) * this.tile];
  }

  /** The tile at a point; −1 where there is none. */
  at(px, py) {
    const x = Math.floor((px - this.left) / this.tile);
    const y = Math.floor((py - this.left) / this.tile);
    return x >= 0 && y >= 0 && x < this.level.width && y < this.level.height ? y * this.level.width + x : -1;
  }
}

/** The level, but for its start and its goal. */
export function paintGround(pen, geometry, dialect) {
  const { level, tile, left } = geometry;
  pen.fillStyle = shade(`${dialect.kind}-stone`);
  pen.beginPath();
  pen.roundRect(0, 0, level.width * tile + 2 * left, level.height * tile + 2 * left, 0.6 * left);
  pen.fill();
  pen.fillStyle = shade(`${dialect.kind}-floor`);
  pen.fillRect(left, left, level.width * tile, level.height * tile);
  if (tile > 6) paintLines(pen, geometry, dialect);
  paintBlocks(pen, geometry, dialect);
}

/** Start and goal. */
export function paintEnds(pen, geometry, dialect) {
  paintStart(pen, geometry, dialect);
  paintGoal(pen, geometry);
}

function paintLines(pen, { level, tile, left }, dialect) {
  pen.strokeStyle = shade(`${dialect.kind}-line`);
  pen.lineWidth = 1;
  pen.beginPath();
  for (let k = 1; k < level.width; k++) {
    const at = Math.round(left + k * tile) + 0.5;
    pen.moveTo(at, left);
    pen.lineTo(at, left + level.height * tile);
    pen.moveTo(left, at);
    pen.lineTo(left + level.width * tile, at);
  }
  pen.stroke();
}

/** Blocks that touch are one piece; a corner is round where nothing touches it. */
function paintBlocks(pen, geometry, dialect) {
  const { level, tile } = geometry;
  const isMaze = dialect.kind === "maze";
  const solid = (x, y) => (x < 0 || y < 0 || x >= level.width || y >= level.height ? isMaze : !!level.blocks[y * level.width + x]);
  pen.fillStyle = shade(isMaze ? "maze-stone" : "lava-fire");
  pen.beginPath();
  level.blocks.forEach((block, n) => {
    if (!block) return;
    const [x, y] = [n % level.width, Math.floor(n / level.width)];
    const [px, py] = geometry.corner(n);
    const round = (dx, dy) => (solid(x + dx, y) || solid(x, y + dy) ? 0 : 0.28 * tile);
    const overlap = 0.4; // against seams between neighbours
    pen.roundRect(px - overlap, py - overlap, tile + 2 * overlap, tile + 2 * overlap, [round(-1, -1), round(1, -1), round(1, 1), round(-1, 1)]);
  });
  pen.fill();
  if (!isMaze) paintRipples(pen, geometry);
}

function paintRipples(pen, geometry) {
  const { level, tile } = geometry;
  pen.strokeStyle = shade("lava-glow");
  pen.lineWidth = Math.max(1, 0.06 * tile);
  pen.lineCap = "round";
  pen.beginPath();
  level.blocks.forEach((block, n) => {
    if (!block) return;
    const [x, y] = geometry.corner(n);
    for (const height of [0.3, 0.54, 0.78]) {
      const phase = 7 * height + n;
      for (let k = 0; k <= 12; k++) {
        const [along, across] = [0.16 + (0.68 * k) / 12, height + 0.05 * Math.sin(9 * (k / 12) + phase)];
        if (k === 0) pen.moveTo(x + along * tile, y + across * tile);
        else pen.lineTo(x + along * tile, y + across * tile);
      }
    }
  });
  pen.stroke();
}

/** A ring, and where it opens the way that the level says to look at first. */
function paintStart(pen, geometry, dialect) {
  const { level, tile } = geometry;
  const [x, y] = geometry.middle(level.start % level.width, Math.floor(level.start / level.width));
  pen.strokeStyle = shade("start");
  pen.lineWidth = Math.max(1.5, 0.07 * tile);
  pen.lineCap = "round";
  const gap = dialect.facing ? 0.7 : 0;
  const ahead = (level.direction * Math.PI) / 2;
  pen.beginPath();
  pen.arc(x, y, 0.34 * tile, ahead + gap, ahead + 2 * Math.PI - gap);
  pen.stroke();
}

function paintGoal(pen, geometry) {
  const { level, tile } = geometry;
  const [x, y] = geometry.corner(level.goal);
  pen.fillStyle = shade("goal");
  pen.beginPath();
  pen.roundRect(x + 0.14 * tile, y + 0.14 * tile, 0.72 * tile, 0.72 * tile, 0.2 * tile);
  pen.fill();
  pen.fillStyle = shade("goal-light");
  pen.beginPath();
  pen.roundRect(x + 0.36 * tile, y + 0.36 * tile, 0.28 * tile, 0.28 * tile, 0.1 * tile);
  pen.fill();
}

/** Someone who walks: an arrowhead that looks its way, or a disc where there is no way to look. */
export function paintWalker(pen, geometry, { x, y, turn }, colour, { facing, faint = false, ringed = false }) {
  const [px, py] = geometry.middle(x, y);
  const size = geometry.tile;
  pen.save();
  pen.globalAlpha = faint ? 0.55 : 1;
  pen.translate(px, py);
  pen.rotate((turn * Math.PI) / 2);
  pen.fillStyle = colour;
  pen.strokeStyle = shade("halo");
  pen.lineJoin = "round";
  pen.lineWidth = Math.max(1.5, (ringed ? 0.12 : 0.07) * size);
  pen.beginPath();
  if (facing) for (const [u, v] of [[0.36, 0], [-0.3, 0.31], [-0.16, 0], [-0.3, -0.31]]) pen.lineTo(u * size, v * size);
  else pen.arc(0, 0, 0.29 * size, 0, 2 * Math.PI);
  pen.closePath();
  pen.stroke();
  pen.fill();
  pen.restore();
}

/** How often tiles were visited, the busiest in full colour. */
export function paintHeat(pen, geometry, visits, colour) {
  const most = Math.max(1, ...visits);
  pen.save();
  pen.fillStyle = colour;
  visits.forEach((n, tile) => {
    if (!n) return;
    const [x, y] = geometry.corner(tile);
    pen.globalAlpha = 0.08 + 0.72 * Math.sqrt(n / most);
    pen.fillRect(x, y, geometry.tile, geometry.tile);
  });
  pen.restore();
}

/** Dots along a shortest path. */
export function paintPath(pen, geometry, path) {
  const { level, tile } = geometry;
  pen.fillStyle = shade("path");
  pen.beginPath();
  path.forEach((on, n) => {
    if (!on || n === level.start || n === level.goal) return;
    const [x, y] = geometry.middle(n % level.width, Math.floor(n / level.width));
    pen.moveTo(x, y);
    pen.arc(x, y, 0.1 * tile, 0, 2 * Math.PI);
  });
  pen.fill();
}

/** What the student sees is lit; `seen` counts the rim as tiles of its own. */
export function paintSeen(pen, geometry, seen, colour, { fog = false } = {}) {
  const { level, tile, left } = geometry;
  const across = level.width + 2;
  pen.save();
  pen.beginPath();
  pen.roundRect(0, 0, level.width * tile + 2 * left, level.height * tile + 2 * left, 0.6 * left);
  pen.clip();
  pen.fillStyle = colour;
  pen.globalAlpha = fog ? 1 : 0.16;
  seen.forEach((lit, n) => {
    if (!lit === fog) pen.fillRect(left + ((n % across) - 1) * tile - 0.5, left + (Math.floor(n / across) - 1) * tile - 0.5, tile + 1, tile + 1);
  });
  pen.restore();
}

/** Where someone has been since the episode began. */
export function paintTrail(pen, geometry, tiles, colour) {
  if (tiles.length < 2) return;
  pen.save();
  pen.strokeStyle = colour;
  pen.globalAlpha = 0.4;
  pen.lineWidth = Math.max(1.5, 0.09 * geometry.tile);
  pen.lineJoin = pen.lineCap = "round";
  pen.beginPath();
  for (const tile of tiles) pen.lineTo(...geometry.middle(tile % geometry.level.width, Math.floor(tile / geometry.level.width)));
  pen.stroke();
  pen.restore();
}

/** The tile that the keyboard is on. */
export function paintCursor(pen, geometry, tile) {
  const [x, y] = geometry.corner(tile);
  pen.strokeStyle = shade("focus");
  pen.lineWidth = 3;
  pen.beginPath();
  pen.roundRect(x + 1.5, y + 1.5, geometry.tile - 3, geometry.tile - 3, 4);
  pen.stroke();
}
