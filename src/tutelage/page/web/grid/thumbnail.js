// Small pictures of levels.

import { Sheet } from "../base/sheet.js";
import { Geometry, paintEnds, paintGround } from "./paint.js";

/** A picture of a level, as large as the page gives it room. */
export function thumbnail(level, dialect) {
  const paint = (pen, width) => {
    const geometry = new Geometry(level, width);
    paintGround(pen, geometry, dialect);
    paintEnds(pen, geometry, dialect);
  };
  return new Sheet(paint, { role: "img", "aria-label": `a ${dialect.kind}` }).canvas;
}
