// Elements, made by hand: a string becomes text or the value of an attribute, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element: `el("button", { class: "wide", onclick: f }, "Play")`. */
export function el(tag, attributes = {}, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}

/** An element of a drawing. */
export function svg(tag, attributes = {}, ...children) {
  return furnish(document.createElementNS(SVG, tag), attributes, children);
}

/** Sets attributes and listeners; `true` stands for an attribute without value, `false` and `undefined` for none. */
function furnish(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, v] of Object.entries(value)) node.style.setProperty(key, v);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** Puts other children in the place of those there are. */
export function fill(node, ...children) {
  node.replaceChildren(...children.flat());
  return node;
}

/** Marks the one of several that is shown, or takes the mark away. */
export function current(node, yes) {
  if (yes) node.setAttribute("aria-current", "true");
  else node.removeAttribute("aria-current");
}

/** Text that screen readers alone are told. */
export function unseen(text) {
  return el("span", { class: "unseen" }, text);
}

/** Calls `act` once things have been quiet for so many milliseconds. */
export function settled(milliseconds, act) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...values), milliseconds);
  };
}

const shades = new Map();
onTheme(() => shades.clear());

/** A colour of the style sheet, by the name of its variable. */
export function shade(name) {
  if (!shades.has(name)) shades.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return shades.get(name);
}

/** Calls `act` whenever light and dark change places. */
export function onTheme(act) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", act);
}

/** Whether the person has asked for little motion. */
export function calm() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}
