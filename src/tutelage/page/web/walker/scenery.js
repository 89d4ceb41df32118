// Sky, hills, ground and what stands on it, seen by a camera.

import { shade } from "../base/dom.js";

export const CELL = 14 / 30; // metres
export const FINISH = 190 * CELL;
const FLAG = 50 / 30;

/** Where the world is on a canvas: metres to pixels, up is up. */
export class Camera {
  constructor(left, bottom, scale, width, height, stretch = 1) {
    Object.assign(this, { left, bottom, scale, width, height, up: scale * stretch });
  }

  x(metres) {
    return (metres - this.left) * this.scale;
  }

  y(metres) {
    return this.height - (metres - this.bottom) * this.up;
  }

  get right() {
    return this.left + this.width / this.scale;
  }
}

/** A terrain's arrays, out of an engine's memory. */
export function terrainOf(ground) {
  return Object.fromEntries(["x", "y", "box", "box_id"].map((name) => [name, ground[name].slice()]));
}

/** Sky, and two ridges that move the slower the farther away they are. */
export function paintSky(pen, camera) {
  const { width, height, left } = camera;
  const sky = pen.createLinearGradient(0, 0, 0, height);
  sky.addColorStop(0, shade("sky"));
  sky.addColorStop(1, shade("horizon"));
  pen.fillStyle = sky;
  pen.fillRect(0, 0, width, height);
  for (const [colour, depth, level, phase] of [["far-hills", 0.12, 0.56, 1], ["near-hills", 0.28, 0.68, 4]]) {
    pen.fillStyle = shade(colour);
    pen.beginPath();
    pen.moveTo(0, height);
    for (let px = 0; px <= width + 8; px += 8) {
      const far = px / camera.scale + depth * left + 7 * phase;
      pen.lineTo(px, height * (level - 0.045 * Math.sin(0.55 * far) - 0.03 * Math.sin(1.3 * far + phase) - 0.012 * Math.sin(3.1 * far)));
    }
    pen.lineTo(width, height);
    pen.fill();
  }
}

/** The line of the ground with the earth below it, stones, and the flags of start and finish. */
export function paintTerrain(pen, camera, terrain) {
  const { x, y } = terrain;
  const first = Math.max(0, x.findIndex((v) => v >= camera.left) - 1);
  const beyond = x.findIndex((v) => v > camera.right);
  const last = beyond < 0 ? x.length - 1 : beyond;
  pen.beginPath();
  pen.moveTo(camera.x(x[first]), camera.height + 2);
  for (let k = first; k <= last; k++) pen.lineTo(camera.x(x[k]), camera.y(y[k]));
  pen.lineTo(camera.x(x[last]), camera.height + 2);
  const earth = pen.createLinearGradient(0, 0.3 * camera.height, 0, camera.height);
  earth.addColorStop(0, shade("earth"));
  earth.addColorStop(1, shade("deep"));
  pen.fillStyle = earth;
  pen.fill();
  pen.beginPath();
  for (let k = first; k <= last; k++) pen.lineTo(camera.x(x[k]), camera.y(y[k]));
  pen.strokeStyle = shade("turf");
  pen.lineWidth = Math.max(2, 0.16 * camera.scale);
  pen.lineJoin = "round";
  pen.stroke();
  paintStones(pen, camera, terrain);
  paintFlag(pen, camera, 3 * CELL, y[3], shade("flag"));
  paintFlag(pen, camera, FINISH, y[190], shade("goal"));
}

function paintStones(pen, camera, { box, box_id: ids }) {
  pen.fillStyle = shade("stone");
  pen.strokeStyle = shade("stone-edge");
  pen.lineWidth = Math.max(1, 0.04 * camera.scale);
  for (let k = 0; k < ids.length; k++) {
    const [left, right, top, bottom] = box.subarray(4 * k, 4 * k + 4);
    if (ids[k] !== k && (k === 0 || ids[k] === ids[k - 1])) continue;
    if (left > right || right < camera.left || left > camera.right) continue;
    pen.beginPath();
    pen.rect(camera.x(left), camera.y(top), (right - left) * camera.scale, (top - bottom) * camera.up);
    pen.fill();
    pen.stroke();
  }
}

function paintFlag(pen, camera, x, y, colour) {
  const [px, py, height] = [camera.x(x), camera.y(y), Math.max(14, FLAG * camera.scale)];
  pen.strokeStyle = shade("pole");
  pen.lineWidth = Math.max(1, 0.05 * camera.scale);
  pen.beginPath();
  pen.moveTo(px, py);
  pen.lineTo(px, py - height);
  pen.stroke();
  pen.fillStyle = colour;
  pen.beginPath();
  pen.moveTo(px, py - height);
  pen.lineTo(px + 0.55 * height, py - 0.8 * height);
  pen.lineTo(px, py - 0.6 * height);
  pen.fill();
}
