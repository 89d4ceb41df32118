// Where levels are taken from: empty rooms of every size, the suites, the best of the buffers.

import { menu } from "../base/controls.js";
import { decimal, count } from "../base/format.js";
import { emptyLevel, fromJson, sameLevel } from "./level.js";

export class Shelf {
  /** `take(level)` is called with what the person has chosen. */
  constructor(facts, dialect, take) {
    const sizes = Object.keys(facts.sizes).map(Number).sort((a, b) => a - b);
    this.levels = new Map(sizes.map((size) => [`empty ${size}`, () => emptyLevel(size)]));
    const groups = [["Empty rooms", sizes.map((size) => [`empty ${size}`, `${size} × ${size}`])]];
    for (const suite of facts.suites) groups.push([`Suite ${suite.name}`, this.keep(`suite ${suite.name}`, suite.levels, (x) => (x.draw ? `${x.name}, drawn anew` : x.name), dialect)]);
    for (const buffer of facts.buffers) {
      const said = (x) => `score ${decimal(x.score, 3)}, generation ${count(x.generation)}`;
      groups.push([`Buffer of ${buffer.name}`, this.keep(`buffer ${buffer.name}`, buffer.levels, said, dialect)]);
    }
    this.node = menu("Level", [["", [["", "as drawn"]]], ...groups], (value) => this.levels.has(value) && take(this.levels.get(value)()));
  }

  /** Names the level that is shown, if it is one of those here. */
  mark(level) {
    const select = this.node.querySelector("select");
    const is = (value) => {
      const kept = this.levels.get(value)?.();
      return kept && (level.anew ? kept.anew === level.anew : sameLevel(kept, level));
    };
    if (!is(select.value)) select.value = [...this.levels.keys()].find(is) ?? "";
  }

  keep(prefix, levels, say, dialect) {
    return levels.map((found, n) => {
      let level;
      this.levels.set(`${prefix} ${n}`, () => (level ??= { ...fromJson(found.level, dialect), rules: found.rules, anew: found.draw ? found.of : undefined }));
      return [`${prefix} ${n}`, say(found)];
    });
  }
}
