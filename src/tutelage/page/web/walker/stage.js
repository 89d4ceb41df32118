// The walkers in their landscape: a camera that follows one of them, and the whole way in small above it.

import { onTheme, shade } from "../base/dom.js";
import { Sheet } from "../base/sheet.js";
import { Camera, CELL, FINISH, paintSky, paintTerrain } from "./scenery.js";

const ACROSS = 22; // metres in view on a wide screen
const [BELOW, FLAGS] = [5, 16]; // pixels of a profile under its lowest point, and for a flag over its highest
const LEGS = [2, 3, 0, 1]; // the far leg first; upper and lower parts in turn

export class Stage {
  constructor() {
    this.terrain = null;
    this.figures = [];
    this.left = 0;
    this.bottom = this.small = null;
    onTheme(() => (this.small = null));
    this.sheet = new Sheet((pen, width, height) => this.paint(pen, width, height), {
      ratio: (width) => (width < 560 ? 0.72 : 0.5),
      class: "landscape",
      role: "img",
      "aria-label": "walkers on the terrain",
    });
    this.map = new Sheet((pen, width, height) => this.paintMap(pen, width, height), { ratio: (width) => Math.max(0.09, 54 / width), class: "profile", role: "img", "aria-label": "profile of the whole terrain" });
  }

  /** Another terrain: copies of its arrays. */
  set(terrain) {
    this.terrain = terrain;
    this.bottom = this.small = null;
    this.sheet.ask();
    this.map.ask();
  }

  /** Figures `{ pose, colour, followed, lidar }`, the one that is followed last. */
  show(figures) {
    this.figures = figures;
    this.sheet.ask();
    this.map.ask();
  }

  paint(pen, width, height) {
    if (!this.terrain) return;
    const camera = this.camera(width, height);
    paintSky(pen, camera);
    paintTerrain(pen, camera, this.terrain);
    for (const figure of this.figures) {
      if (figure.lidar) paintRays(pen, camera, figure.pose);
      paintFigure(pen, camera, figure);
    }
  }

  /** A third of the view lies behind the walker; up and down the camera moves gently. */
  camera(width, height) {
    const scale = width / Math.min(ACROSS, Math.max(11, width / 36));
    const last = this.terrain.x.at(-1);
    const [x, y] = this.figures.at(-1)?.pose.eye ?? [0, this.terrain.y[0] + 1.3];
    this.left = Math.min(Math.max(x - width / scale / 3, 0), Math.max(0, last - width / scale));
    const goal = y - (0.46 * height) / scale;
    this.bottom = this.bottom === null || Math.abs(goal - this.bottom) > 6 ? goal : this.bottom + (goal - this.bottom) * 0.06;
    return new Camera(this.left, this.bottom, scale, width, height);
  }

  /** The whole way, painted once for each terrain, and its camera. */
  profile(width, height) {
    if (this.small?.camera.width !== width || this.small.camera.height !== height) {
      const camera = overview(this.terrain, width, height);
      this.small = { camera, picture: this.map.picture((pen) => paintTerrain(pen, camera, this.terrain)) };
    }
    return this.small;
  }

  paintMap(pen, width, height) {
    if (!this.terrain) return;
    const { camera, picture } = this.profile(width, height);
    pen.drawImage(picture, 0, 0, width, height);
    for (const { pose, colour, followed } of this.figures) {
      pen.fillStyle = colour;
      pen.strokeStyle = shade("halo");
      pen.lineWidth = 1.5;
      pen.beginPath();
      const [x] = pose.eye;
      pen.arc(camera.x(x), camera.y(this.terrain.y[Math.round(x / CELL)] ?? 0) - 6, followed ? 5 : 3.5, 0, 2 * Math.PI);
      pen.stroke();
      pen.fill();
    }
  }
}

/** A camera that has the whole way in view; heights are drawn twice as steep where there is room. */
function overview({ x, y, box, box_id: ids }, width, height) {
  const tops = Array.from(ids, (id, k) => (id >= 0 ? box[4 * k + 2] : y[k]));
  const [low, high] = [Math.min(...y), Math.max(...y, ...tops)];
  const scale = width / x.at(-1);
  const stretch = Math.min(2, (height - BELOW - FLAGS) / Math.max((high - low) * scale, 1));
  return new Camera(0, low - BELOW / (scale * stretch), scale, width, height, stretch);
}

/** A small picture of a whole terrain. */
export function profile(terrain) {
  const paint = (pen, width, height) => paintTerrain(pen, overview(terrain, width, height), terrain);
  return new Sheet(paint, { ratio: 0.4, class: "profile", role: "img", "aria-label": "profile of a terrain" }).canvas;
}

function paintRays(pen, camera, { eye, rays }) {
  pen.strokeStyle = pen.fillStyle = shade("ray");
  pen.lineWidth = 1;
  for (let k = 0; k < rays.length; k += 2) {
    const [x, y] = [camera.x(rays[k]), camera.y(rays[k + 1])];
    pen.globalAlpha = 0.55;
    pen.beginPath();
    pen.moveTo(camera.x(eye[0]), camera.y(eye[1]));
    pen.lineTo(x, y);
    pen.stroke();
    pen.globalAlpha = 1;
    pen.beginPath();
    pen.arc(x, y, 2.2, 0, 2 * Math.PI);
    pen.fill();
  }
}

function paintFigure(pen, camera, { pose, colour, followed }) {
  pen.save();
  pen.globalAlpha = followed ? 1 : 0.5;
  pen.lineJoin = "round";
  pen.lineWidth = Math.max(1, 0.05 * camera.scale);
  pen.strokeStyle = shade("outline");
  LEGS.forEach((part, n) => {
    corners(pen, camera, pose.legs.subarray(8 * part, 8 * part + 8));
    pen.fillStyle = colour;
    pen.fill();
    if (n < 2) (pen.fillStyle = shade("shadow"), pen.fill());
    pen.stroke();
  });
  corners(pen, camera, pose.parts);
  pen.fillStyle = colour;
  pen.fill();
  pen.stroke();
  pen.restore();
}

function corners(pen, camera, points) {
  pen.beginPath();
  for (let k = 0; k < points.length; k += 2) pen.lineTo(camera.x(points[k]), camera.y(points[k + 1]));
  pen.closePath();
}

/** How much of the way is done. */
export function shareOfWay(metres) {
  return Math.min(Math.max(metres / FINISH, 0), 1);
}
