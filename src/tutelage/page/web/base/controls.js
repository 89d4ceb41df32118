// Buttons, choices and sliders.

import { el } from "./dom.js";
import { icon } from "./icons.js";

/** A button with a drawing and a word. `key` is the shortcut that `aria-keyshortcuts` names. */
export function button(words, act, { drawing, key, kind = "", title } = {}) {
  const label = el("span", {}, words);
  const attributes = { type: "button", class: kind, onclick: act, "aria-keyshortcuts": key, title: title ?? (key && `${words} (${key})`) };
  return el("button", attributes, drawing ? icon(drawing) : null, label);
}

/** Another drawing and another word on a button. */
export function relabel(node, words, drawing) {
  node.replaceChildren(icon(drawing), el("span", {}, words));
}

/** One of several, side by side: radio buttons that look like a row of keys. `options` are [value, words, drawing]. */
export function choice(legend, name, options, chosen, act) {
  const keys = options.map(([value, words, drawing]) => {
    const input = el("input", { type: "radio", name, value, checked: value === chosen, onchange: () => act(value) });
    return el("label", {}, input, el("span", {}, drawing ? icon(drawing) : null, words));
  });
  return el("fieldset", { class: "choice" }, el("legend", { class: "unseen" }, legend), ...keys);
}

/** Marks another value of a choice as the chosen one. */
export function choose(fieldset, value) {
  for (const input of fieldset.querySelectorAll("input")) input.checked = input.value === value;
}

/** Yes or no. */
export function tick(words, on, act, { title } = {}) {
  const input = el("input", { type: "checkbox", checked: on, onchange: () => act(input.checked) });
  return el("label", { class: "tick", title }, input, el("span", {}, words));
}

/** A slider; `say` puts its value into words. */
export function slider(words, { min, max, step = 1, value, say = String }, act) {
  const told = el("output", { "aria-live": "off" }, say(value)); // the slider itself says it
  const input = el("input", { type: "range", min, max, step, value, "aria-valuetext": say(value) });
  input.addEventListener("input", () => {
    told.textContent = say(Number(input.value));
    input.setAttribute("aria-valuetext", say(Number(input.value)));
    act(Number(input.value));
  });
  return el("label", { class: "slider" }, el("span", {}, words), input, told);
}

/** A list to choose from; `groups` are [heading, [[value, words], …]], a heading of "" for none. */
export function menu(words, groups, act) {
  const lists = groups.map(([heading, options]) => {
    const items = options.map(([value, text]) => el("option", { value }, text));
    return heading ? el("optgroup", { label: heading }, items) : items;
  });
  const select = el("select", { onchange: () => act(select.value) }, ...lists);
  return el("label", { class: "menu" }, el("span", {}, words), select);
}
