// A helper's desk: it knows engines and students, and does one task at a time until another comes.

import { Engine } from "../engine.js";
import { Arena } from "./arena.js";
import { evolution } from "./evolution.js";
import { Judge } from "./judge.js";

const SPELL = 10; // milliseconds of work between looks at what else there is
const NEWS = 60; // milliseconds between tellings

const engines = new Map();
const students = new Map();
const arenas = new Map();
let task = 0;
let paused = false;
let ready = Promise.resolve();

const TASKS = {
  engine: ({ name, bytes, manifest }) => engines.set(name, Engine.openSync(bytes, manifest)),
  student: ({ number, engine, params, ...facts }) => {
    const record = engines.get(engine).make("params").load(params);
    students.set(number, { ...facts, number, engine: engines.get(engine), params: record });
  },
  rest: () => {},
  judge: async ({ task: mine, rules, level, numbers, episodes, seed, greedy, width, places, draw }) => {
    const { arena, record } = room(rules, level);
    const where = width ? ({ state }) => state.y * width + state.x : null;
    for (const number of numbers) {
      const judge = new Judge(arena, students.get(number), episodes);
      const verdicts = judge.verdicts(record, seed, { greedy, where, places, draw });
      const finished = await through(mine, verdicts, (verdict) => postMessage({ task: mine, number, verdict }));
      judge.close();
      if (!finished) return;
    }
    postMessage({ task: mine, done: true });
  },
  evolve: async ({ task: mine, rules, level, number, ...wishes }) => {
    const { arena, record } = room(rules, level);
    const world = evolution(arena, students.get(number), record, wishes);
    await through(mine, world, (news) => postMessage({ task: mine, news }), (old, more) => [...(old ?? []), ...more]);
  },
};

/** The arena of some rules, and in it a record with the level. */
function room(rules, level) {
  const name = JSON.stringify(rules);
  if (!arenas.has(name)) arenas.set(name, new Arena(engines.get(rules.engine), rules));
  const arena = arenas.get(name);
  return { arena, record: arena.scratch.level.load(level) };
}

/** Goes through what a generator yields, and tells now and then what `merge` makes of news and older news; the newest alone,
 * if nothing else is said. False if another task has come.
 */
async function through(mine, generator, tell, merge = (old, newest) => newest) {
  let news = null;
  let [began, told] = [performance.now(), 0];
  for (const found of generator) {
    news = found ? merge(news, found) : news;
    if (performance.now() - began < SPELL) continue;
    do await breath(paused ? 50 : 0);
    while (paused && task === mine);
    if (task !== mine) return false;
    began = performance.now();
    if (news && began - told > NEWS) {
      tell(news);
      [news, told] = [null, began];
    }
  }
  if (news) tell(news);
  return true;
}

/** Lets messages in; for so many milliseconds, if that is said. */
function breath(milliseconds) {
  return new Promise((resolve) => {
    if (milliseconds) return void setTimeout(resolve, milliseconds);
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => (port1.close(), resolve());
    port2.postMessage(null);
  });
}

onmessage = ({ data }) => {
  if (data.what === "pause") return void (paused = data.on);
  if (data.task) task = data.task;
  ready = ready.then(() => TASKS[data.what](data)).catch(complain);
};

/** Errors are told by the page's own console. */
function complain(error) {
  setTimeout(() => {
    throw error;
  });
}
