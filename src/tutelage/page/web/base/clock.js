// Steps at a fixed rate, drawn in between.

const MOST = 10; // milliseconds of steps in one frame: where they take longer, time goes slower than asked for
const SPELL = 500; // milliseconds over which steps are counted

export class Clock {
  /** `step()` is one step, and gives whether there was one; `frame(share)` draws, the share of the way to the next step
   * being gone; `counted(rate)` hears how many steps a second there were.
   */
  constructor(step, frame, counted = () => {}) {
    Object.assign(this, { step, frame, counted });
    this.rate = 8; // steps a second; Infinity for as many as there is time for
    this.running = false;
    this.owed = 0;
  }

  start() {
    if (this.running) return;
    this.running = true;
    this.last = this.since = performance.now();
    this.taken = 0;
    requestAnimationFrame((now) => this.tick(now));
  }

  stop() {
    this.running = false;
  }

  tick(now) {
    if (!this.running) return;
    const gone = Math.min(Math.max(now - this.last, 0), 250);
    this.owed = this.rate === Infinity ? Infinity : this.owed + (gone * this.rate) / 1000;
    this.last = now;
    const until = performance.now() + MOST;
    for (; this.owed >= 1 && performance.now() < until; this.owed -= 1) this.taken += this.step() ? 1 : 0;
    this.owed = Math.min(this.owed, 1);
    this.count(now);
    this.frame(this.owed);
    requestAnimationFrame((later) => this.tick(later));
  }

  count(now) {
    if (now - this.since < SPELL) return;
    this.counted((1000 * this.taken) / (now - this.since));
    [this.since, this.taken] = [now, 0];
  }
}
