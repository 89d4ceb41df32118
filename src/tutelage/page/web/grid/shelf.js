// Where levels are taken from: empty rooms of every size, the suites, the best of the buffers.

import { menu } from "../base/controls.js";
import { decimal, count } from "../base/format.js";
import { emptyLevel, fromJson } from "./level.js";

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
    this.node = menu("Level", [["", [["", "as drawn"]]], ...groups], (value) => this.levels.has(value) && take((this.taken = this.levels.get(value)())));
  }

  /** Names the level that is shown, if it is the one that was taken. */
  mark(level) {
    const same = level === this.taken || (level.anew && level.anew === this.taken?.anew);
    if (!same) this.node.querySelector("select").value = "";
  }

  keep(prefix, levels, say, dialect) {
    return levels.map((found, n) => {
      this.levels.set(`${prefix} ${n}`, () => ({ ...fromJson(found.level, dialect), rules: found.rules, anew: found.draw ? found.of : undefined }));
      return [`${prefix} ${n}`, say(found)];
    });
  }
}
