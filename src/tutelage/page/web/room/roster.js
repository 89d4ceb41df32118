// The students in a table: what each makes of the level, which of them are shown, and which one is followed.

import { el, fill, unseen } from "../base/dom.js";
import { decimal, percent } from "../base/format.js";

/** Columns: the verdict's name, its heading, what it means, how its number is written, the number of a full bar. */
export const MARKS = [
  ["solved", "solved", "Share of episodes that were solved", percent, 1],
  ["return", "return", "Mean return of an episode", (x) => decimal(x, 2), 1],
  ["pvl", "PVL", "Positive value loss: the regret that ACCEL goes by", (x) => decimal(x, 3), null],
  ["maxmc", "MaxMC", "Best return known of the level, less the values on the way", (x) => decimal(x, 3), null],
];

export class Roster {
  /** `on.follow(student)` and `on.show(students)` are called when the person chooses. */
  constructor(students, marks, on) {
    this.students = students;
    this.marks = marks;
    this.on = on;
    this.followed = students[0];
    this.shown = new Set(students);
    this.verdicts = new Map();
    this.rows = new Map(students.map((student) => [student, this.row(student)]));
    this.person = el("tr", { hidden: true, style: { "--own": "var(--you)" } });
    const heads = marks.map(([, heading, meaning]) => el("th", { scope: "col" }, el("abbr", { title: meaning }, heading)));
    this.node = el("div", { class: "scroll" }, el("table", { class: "roster" },
      el("caption", { class: "unseen" }, "What each student makes of this level"),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "student"), ...heads)),
      el("tbody", {}, ...this.rows.values(), this.person)));
    this.follow(this.followed);
  }

  row(student) {
    const alone = this.students.length === 1;
    const choose = el("input", { type: "radio", name: "followed", class: "unseen", onchange: () => this.chosen(student) });
    const show = el("input", { type: "checkbox", checked: true, title: "On the board", "aria-label": `${student.name} on the board`, onchange: (event) => this.tick(student, event.target.checked) });
    const label = el("label", {}, choose, el("span", { title: student.name }, student.label), student.detail ? el("small", {}, student.detail) : null);
    const cells = this.marks.map(() => el("td", {}, "–"));
    return el("tr", { style: { "--own": `var(--${student.colour})` } }, el("th", { scope: "row" }, el("div", { class: "who" }, alone ? null : show, label)), ...cells);
  }

  chosen(student) {
    this.follow(student);
    this.on.follow(student);
  }

  tick(student, on) {
    if (on) this.shown.add(student);
    else this.shown.delete(student);
    this.on.show([...this.shown]);
  }

  /** Marks the student that is followed. */
  follow(student) {
    this.followed = student;
    for (const [other, row] of this.rows) {
      row.classList.toggle("followed", other === student);
      row.querySelector("input[type=radio]").checked = other === student;
    }
  }

  /** Says what a student makes of the level; nothing while it is not known. */
  tell(student, verdict) {
    this.verdicts.set(student, verdict);
    this.write([...this.rows.get(student).querySelectorAll("td")], verdict);
  }

  /** Says how the person did. */
  tellPerson(verdict) {
    this.person.hidden = !verdict;
    if (!verdict) return;
    const cells = this.marks.map(() => el("td", {}, "–"));
    this.write(cells, verdict);
    fill(this.person, el("th", { scope: "row" }, el("div", { class: "who" }, el("span", { class: "you" }), el("span", {}, "You", el("small", {}, verdict.detail)))), ...cells);
  }

  write(cells, verdict) {
    const most = Math.max(0.02, ...[...this.verdicts.values()].map((v) => Math.max(v?.pvl ?? 0, v?.maxmc ?? 0)));
    this.marks.forEach(([name, , , say, full], n) => {
      const value = verdict?.[name];
      fill(cells[n], value === undefined ? unseen("not known yet") : say(value));
      cells[n].style.setProperty("--share", value === undefined ? 0 : Math.min(Math.max(value / (full ?? most), 0), 1));
    });
  }

  /** Forgets what is known of a level that is there no more. */
  clear() {
    for (const student of this.students) this.tell(student, undefined);
  }
}
