// Steps at a fixed rate, drawn in between.

const MOST = 12; // milliseconds of steps in one frame: where they take longer, time goes slower than asked for

export class Clock {
  /** `step()` is one step; `frame(share)` draws, the share of the way to the next step being gone. */
  constructor(step, frame) {
    this.step = step;
    this.frame = frame;
    this.rate = 8; // steps a second
    this.running = false;
    this.owed = 0;
  }

  start() {
    if (this.running) return;
    this.running = true;
    this.last = performance.now();
    requestAnimationFrame((now) => this.tick(now));
  }

  stop() {
    this.running = false;
  }

  tick(now) {
    if (!this.running) return;
    this.owed += (Math.min(Math.max(now - this.last, 0), 250) * this.rate) / 1000;
    this.last = now;
    const until = performance.now() + MOST;
    for (; this.owed >= 1 && performance.now() < until; this.owed -= 1) this.step();
    this.owed = Math.min(this.owed, 1);
    this.frame(Math.min(this.owed, 1));
    requestAnimationFrame((later) => this.tick(later));
  }
}
