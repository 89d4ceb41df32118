// The levels that evolution kept, and who descends from whom.

export class Family {
  constructor() {
    this.members = new Map();
    this.tried = 0;
  }

  /** Takes in a list of what happened. */
  learn(news) {
    for (const one of news) {
      if (one.renewed !== undefined) this.rescore(one);
      else this.tried = one.tried;
      if (one.admitted) this.welcome(one);
    }
  }

  rescore({ renewed, score }) {
    const member = this.members.get(renewed);
    if (member) member.score = score;
  }

  welcome(one) {
    const gone = this.members.get(one.gone);
    if (gone) gone.death = one.tried;
    const parent = this.members.get(one.parent) ?? null;
    const member = { ...one, parent, birth: one.tried, death: null, children: [] };
    this.members.set(one.id, member);
    parent?.children.push(member);
    if (gone) this.forget(gone);
  }

  /** Those who are neither kept nor have kept descendants are no longer told of. */
  forget(member) {
    for (let at = member; at && at.death !== null && at.children.length === 0; at = at.parent) {
      this.members.delete(at.id);
      if (at.parent) at.parent.children = at.parent.children.filter((child) => child !== at);
    }
  }

  /** Those who are in the buffer. */
  get alive() {
    return [...this.members.values()].filter((member) => member.death === null);
  }

  /** The best of the buffer. */
  best(n) {
    return this.alive.sort((a, b) => b.score - a.score).slice(0, n);
  }

  /** A member's ancestors, the first ancestor first, itself last. */
  line(member) {
    const line = [];
    for (let at = member; at; at = at.parent) line.unshift(at);
    return line;
  }

  /** The best and their ancestors, in such an order that no branch crosses another: the later child the nearer. */
  inOrder(n) {
    const shown = new Set(this.best(n).flatMap((member) => this.line(member)));
    const found = [];
    const visit = (member) => {
      if (!shown.has(member)) return;
      found.push(member);
      for (const child of [...member.children].reverse()) visit(child);
    };
    for (const member of this.members.values()) if (!member.parent) visit(member);
    return found;
  }
}
