// Small line drawings, 20 by 20.

import { svg } from "./dom.js";

const STROKES = {
  play: "M6 4.5v11l9-5.5z",
  pause: "M6.5 4.5v11M13.5 4.5v11",
  step: "M5 4.5v11l7-5.5zM15 4.5v11",
  again: "M15.5 10a5.5 5.5 0 1 1-1.8-4.1M15.8 3v3.6h-3.6",
  undo: "M7 4 3.5 7.5 7 11M4 7.5h7.5a4.5 4.5 0 0 1 0 9H8",
  redo: "M13 4l3.5 3.5L13 11M16 7.5H8.5a4.5 4.5 0 0 0 0 9H12",
  dice: "M4 4h12v12H4zM7.5 7.5v.01M12.5 7.5v.01M10 10v.01M7.5 12.5v.01M12.5 12.5v.01",
  edit: "M4 16l.8-3.4L13.2 4.2l2.6 2.6-8.4 8.4zM11.5 6l2.6 2.6",
  wall: "M3.5 4.5h13v11h-13zM3.5 10h13M10 4.5V10M6.5 10v5.5M13.5 10v5.5",
  erase: "M8 15.5 4 11.5l7.5-7.5 5 5-6.5 6.5zM7.5 8l5 5M8 15.5h8",
  goal: "M5.5 17V3.5M5.5 4h9l-2 3 2 3h-9",
  start: "M10 3.5v9M6.5 9.5 10 13l3.5-3.5M4 16.5h12",
  walk: "M4 10h12M10 4v12M4 10l2.2-2M4 10l2.2 2M16 10l-2.2-2M16 10l-2.2 2M10 4 8 6.2M10 4l2 2.2M10 16l-2-2.2M10 16l2-2.2",
  link: "M8.5 11.5l3-3M9 6.5l1.8-1.8a3.2 3.2 0 0 1 4.5 4.5L13.5 11M11 13.5l-1.8 1.8a3.2 3.2 0 0 1-4.5-4.5L6.5 9",
  save: "M10 3.5v8.5M6.5 8.5 10 12l3.5-3.5M4 16.5h12",
  open: "M10 12.5V4M6.5 7.5 10 4l3.5 3.5M4 16.5h12",
  left: "M12.5 4.5 7 10l5.5 5.5",
  right: "M7.5 4.5 13 10l-5.5 5.5",
  up: "M4.5 12.5 10 7l5.5 5.5",
  down: "M4.5 7.5 10 13l5.5-5.5",
};

/** A drawing by its name; what it means is said beside it. */
export function icon(name) {
  return svg("svg", { class: "icon", viewBox: "0 0 20 20", "aria-hidden": "true" }, svg("path", { d: STROKES[name] }));
}
