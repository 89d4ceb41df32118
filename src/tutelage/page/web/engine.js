// Engines: WebAssembly modules of the library's own functions, and the records that they read and write.
//
//   const engine = await Engine.open(bytes, manifest);
//   const [key, level, state, obs, action, limit, outcome] = engine.make("key level state obs action limit outcome");
//   key.view()[1] = 7;
//   engine.fn("sample")(key, level);
//   engine.fn("reset")(key, level, state, obs);
//   action.value = 2; limit.value = 250;
//   engine.fn("step")(key, state, action, limit, state, obs, outcome);
//   outcome.reward, state.walls

const VIEWS = {
  float32: Float32Array, int32: Int32Array, uint32: Uint32Array, int16: Int16Array, uint16: Uint16Array,
  int8: Int8Array, uint8: Uint8Array, bool: Uint8Array,
};
const PAGE = 65536;
const ALIGNED = 16;

/** Where each leaf of a record lies. */
class Layout {
  constructor(name, { size, leaves }) {
    this.name = name;
    this.size = size;
    this.leaves = new Map();
    for (const [path, shape, dtype, offset] of leaves) {
      const length = shape.reduce((a, b) => a * b, 1);
      this.leaves.set(path, { shape, dtype, offset, length, single: shape.length === 0 });
    }
    this.text = JSON.stringify(leaves);
    this.Record = recordClass(this);
  }
}

/** A class of records with a property for each leaf whose path is a plain name. */
function recordClass(layout) {
  const Own = class extends Record {};
  for (const [path, leaf] of layout.leaves) {
    const name = path || "value";
    if (name in Record.prototype && name !== "value") continue;
    Object.defineProperty(Own.prototype, name, leaf.single
      ? { get() { return this.view(path)[0]; }, set(x) { this.view(path)[0] = x; } }
      : { get() { return this.view(path); }, set(x) { this.view(path).set(x); } });
  }
  return Own;
}

/** A struct in an engine's memory. Its views hold until the engine makes more records: ask for them anew. */
class Record {
  constructor(engine, layout, at) {
    this.engine = engine;
    this.layout = layout;
    this.at = at;
    this.views = new Map();
    this.buffer = null;
  }

  /** The leaf with this path as a typed array; of a single leaf its path need not be said. */
  view(path = "") {
    const buffer = this.engine.memory.buffer;
    if (buffer !== this.buffer) {
      this.buffer = buffer;
      this.views.clear();
    }
    let view = this.views.get(path);
    if (!view) {
      const leaf = this.layout.leaves.get(path);
      if (!leaf) throw new RangeError(`A record of ${this.layout.name} has no ${JSON.stringify(path)}.`);
      view = new VIEWS[leaf.dtype](buffer, this.at + leaf.offset, leaf.length);
      this.views.set(path, view);
    }
    return view;
  }

  /** All of it. */
  get bytes() {
    return new Uint8Array(this.engine.memory.buffer, this.at, this.layout.size);
  }

  /** Takes over what another record holds, of this engine or of another; the two must have the same leaves. */
  set(other) {
    if (other.layout !== this.layout && other.layout.text !== this.layout.text) {
      throw new TypeError(`A record of ${this.layout.name} cannot hold one of ${other.layout.name}.`);
    }
    this.bytes.set(other.bytes);
    return this;
  }

  /** Takes over bytes that `save` gave. */
  load(bytes) {
    if (bytes.length !== this.layout.size) {
      throw new RangeError(`A record of ${this.layout.name} has ${this.layout.size} bytes, not ${bytes.length}.`);
    }
    this.bytes.set(bytes);
    return this;
  }

  /** A copy of all of it. */
  save() {
    return this.bytes.slice();
  }
}

export class Engine {
  /** An engine of the bytes of its module and its manifest. */
  static async open(bytes, manifest) {
    return new Engine(await WebAssembly.instantiate(await WebAssembly.compile(bytes), {}), manifest);
  }

  /** The same without waiting; browsers may refuse that for large modules outside of workers. */
  static openSync(bytes, manifest) {
    return new Engine(new WebAssembly.Instance(new WebAssembly.Module(bytes), {}), manifest);
  }

  constructor(instance, manifest) {
    this.manifest = manifest;
    this.memory = instance.exports.memory;
    this.top = instance.exports.__heap_base.value;
    this.freed = new Map();
    this.layouts = new Map(Object.entries(manifest.records).map(([name, r]) => [name, new Layout(name, r)]));
    this.functions = new Map(
      Object.entries(manifest.functions).map(([name, f]) => [name, this.#bound(name, f, instance.exports[f.symbol])]));
  }

  /** The function with this name; its arguments are records, those that it reads and then those that it writes. */
  fn(name) {
    const found = this.functions.get(name);
    if (!found) throw new RangeError(`The engine ${this.manifest.name} has no function ${JSON.stringify(name)}.`);
    return found;
  }

  /** A record of zeros; with a count, an array of them; with several names between spaces, one of each. */
  make(name, count) {
    if (name.includes(" ")) return name.split(" ").map((one) => this.make(one));
    if (count !== undefined) return Array.from({ length: count }, () => this.make(name));
    const layout = this.layouts.get(name);
    if (!layout) throw new RangeError(`The engine ${this.manifest.name} has no records of ${JSON.stringify(name)}.`);
    const record = new layout.Record(this, layout, this.#room(layout.size));
    record.bytes.fill(0);
    return record;
  }

  /** Gives the room of a record back; the record must not be used after. */
  free(record) {
    const free = this.freed.get(record.layout.size) ?? [];
    free.push(record.at);
    this.freed.set(record.layout.size, free);
    record.at = NaN;
  }

  #room(size) {
    const free = this.freed.get(size);
    if (free?.length) return free.pop();
    const at = Math.ceil(this.top / ALIGNED) * ALIGNED;
    const missing = at + size - this.memory.buffer.byteLength;
    if (missing > 0) this.memory.grow(Math.ceil(missing / PAGE));
    this.top = at + size;
    return at;
  }

  #bound(name, { in: takes, out: gives }, call) {
    const layouts = [...takes, ...gives].map(([, record]) => this.layouts.get(record));
    const bound = (...records) => {
      if (records.length !== layouts.length) {
        throw new TypeError(`${name} takes ${layouts.length} records, not ${records.length}.`);
      }
      for (let k = 0; k < layouts.length; k++) {
        if (records[k].layout !== layouts[k] || records[k].engine !== this) {
          throw new TypeError(`Record ${k + 1} of ${name} is one of ${layouts[k].name} in this engine.`);
        }
      }
      call(...records.map((record) => record.at));
    };
    return Object.assign(bound, { takes, gives });
  }
}

const halves = new Float32Array(65536);
let filled = false;

/** Floats of half precision, given by their bits, as floats of single precision. */
export function fromHalf(bits) {
  if (!filled) {
    for (let h = 0; h < 65536; h++) {
      const sign = h & 0x8000 ? -1 : 1, exponent = (h >> 10) & 31, fraction = h & 1023;
      halves[h] = exponent === 31 ? (fraction ? NaN : sign * Infinity)
        : exponent ? sign * 2 ** (exponent - 15) * (1 + fraction / 1024) : sign * 2 ** -14 * (fraction / 1024);
    }
    filled = true;
  }
  return Float32Array.from(bits, (h) => halves[h]);
}
