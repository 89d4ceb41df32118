// Helpers beside the page: workers that play episodes while it goes on painting.

export class Helper {
  /** `source` is the worker's script, `engines` and `students` what it works with. */
  constructor(source) {
    this.worker = new Worker(address(source));
    this.worker.onmessage = ({ data }) => this.told?.(data);
    this.worker.onerror = (event) => console.error(event.message);
    this.known = new Set();
  }

  /** Lets the helper know an engine. */
  engine(name, bytes, manifest) {
    if (!this.known.has(name)) this.worker.postMessage({ what: "engine", name, bytes, manifest });
    this.known.add(name);
  }

  /** Lets the helper know a student. */
  student({ number, params, engine, discount, lambda, scale, bootstrap }) {
    this.worker.postMessage({ what: "student", number, engine: engine.manifest.name, params: params.save(), discount, lambda, scale, bootstrap });
  }

  /** Asks for something else than before; `told` hears what comes of it, and nothing of what was asked before. */
  ask(what, request, told) {
    const task = (this.task = (this.task ?? 0) + 1);
    this.told = (answer) => answer.task === task && told(answer);
    this.worker.postMessage({ what, task, ...request });
  }

  /** Holds what is being done, or lets it go on. */
  pause(on) {
    this.worker.postMessage({ what: "pause", on });
  }

  /** Ends what is being done. */
  rest() {
    this.ask("rest", {}, () => {});
  }
}

let policy;

/** A script as an address that only this page knows. Where browsers check what becomes a script, this is the one door. */
function address(source) {
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  if (!globalThis.trustedTypes) return url;
  policy ??= trustedTypes.createPolicy("helper", { createScriptURL: (own) => own });
  return policy.createScriptURL(url);
}
