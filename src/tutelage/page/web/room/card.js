// A part of a room's side, with its heading.

import { el } from "../base/dom.js";

export function card(title, ...children) {
  return el("section", { class: "card" }, el("h2", {}, title), ...children);
}
