// What there was before, and what was undone.

export class History {
  constructor(first) {
    this.past = [];
    this.now = first;
    this.future = [];
  }

  /** Goes on to something new; what was undone is forgotten. */
  push(next) {
    this.past.push(this.now);
    if (this.past.length > 500) this.past.shift();
    this.now = next;
    this.future = [];
  }

  /** Puts something else in the place of what there is now. */
  replace(other) {
    this.now = other;
  }

  /** One step back; nothing where there is none. */
  undo() {
    if (this.past.length) {
      this.future.push(this.now);
      this.now = this.past.pop();
    }
    return this.now;
  }

  /** One step forward again. */
  redo() {
    if (this.future.length) {
      this.past.push(this.now);
      this.now = this.future.pop();
    }
    return this.now;
  }
}
