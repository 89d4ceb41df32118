// Pictures of levels side by side, each a button; a level that stays keeps its picture.

import { current, el } from "../base/dom.js";

export class Gallery {
  /** `picture(member)` gives an element, `words(member)` lines of text, `choose(member)` is called when one is pressed. */
  constructor(kind, { picture, words, choose }) {
    Object.assign(this, { picture, words, choose });
    this.items = new Map();
    this.node = el("ol", { class: kind });
  }

  /** Shows these levels in this order; `marked` is the one that is chosen. */
  show(members, marked = null) {
    const items = new Map(members.map((member) => [member.id, this.items.get(member.id) ?? this.item(member)]));
    this.items = items;
    members.forEach((member, n) => {
      const { node, button, lines } = items.get(member.id);
      if (this.node.children[n] !== node) this.node.insertBefore(node, this.node.children[n] ?? null);
      current(button, member === marked);
      this.words(member).forEach((line, k) => line !== lines[k].textContent && (lines[k].textContent = line));
    });
    while (this.node.children.length > members.length) this.node.lastChild.remove();
    if (marked && marked !== this.marked) this.reveal(items.get(marked.id));
    this.marked = marked;
  }

  /** Scrolls along the strip, not the page. */
  reveal(item) {
    if (!item) return;
    const { offsetLeft: left, offsetWidth: width } = item.node;
    const { node } = this;
    const from = left - node.offsetLeft;
    if (from < node.scrollLeft || from + width > node.scrollLeft + node.clientWidth) node.scrollLeft = from - (node.clientWidth - width) / 2;
  }

  item(member) {
    const lines = this.words(member).map((line, n) => el(n ? "span" : "b", {}, line));
    const button = el("button", { type: "button", onclick: () => this.choose(member) }, this.picture(member), ...lines);
    return { node: el("li", {}, button), button, lines };
  }
}
