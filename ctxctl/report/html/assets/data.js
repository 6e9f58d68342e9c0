// The blocks of this file: opened one by one, the last few kept.

const KEPT = 48;
const opened = new Map();
let index = null;
const rows = [];
const threads = [];
let C = {};

async function inflated(id) {
  const block = $(id);
  if (block === null) throw new Error(`the report has no block ${id}: it is incomplete`);
  const packed = atob(block.textContent);
  const bytes = new Uint8Array(packed.length);
  for (let n = 0; n < packed.length; n += 1) bytes[n] = packed.charCodeAt(n);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return JSON.parse(await new Response(stream).text());
}

function block(id) {
  let found = opened.get(id);
  if (found === undefined) {
    found = inflated(id);
    found.catch(() => opened.delete(id));
    if (opened.size >= KEPT) opened.delete(opened.keys().next().value);
  } else {
    opened.delete(id);
  }
  opened.set(id, found);
  return found;
}

async function load() {
  index = await inflated('index');
  C = Object.fromEntries(index.columns.map((name, n) => [name, n]));
  index.threads.forEach(([session, name, origin], n) =>
    threads.push({ number: n, session, name, origin, steps: [], runs: [] }));
  const parts = Array.from({ length: index.row_blocks }, (_, n) => inflated(`r${n}`));
  for (const part of parts) for (const row of await part) rows.push(row);
  rows.forEach((row, ordinal) => {
    const thread = threads[row[C.thread]];
    row.place = thread.steps.length;
    thread.steps.push(ordinal);
  });
  index.runs.forEach(([thread, first, count], n) => threads[thread].runs.push({ first, count, id: `s${n}` }));
  index.titles = new Map(index.titles);
  let title = null;
  let last = null;
  index.turnTitles = new Map();
  for (const [ordinal, row] of rows.entries()) {
    const key = `${row[C.thread]}/${row[C.turn]}`;
    if (key !== last) title = index.titles.get(ordinal) ?? index.turnTitles.get(key) ?? null;
    last = key;
    if (title !== null && !index.turnTitles.has(key)) index.turnTitles.set(key, title);
  }
}

const titleOf = (row) => index.turnTitles.get(`${row[C.thread]}/${row[C.turn]}`) ?? null;

// Last entry whose `first` is not above n, of a list in order.
function lastBelow(list, n, first) {
  let low = 0;
  let high = list.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (first(list[middle]) <= n) low = middle; else high = middle - 1;
  }
  return low;
}

const P = Object.fromEntries(['item', 'version', 'kind', 'title', 'source', 'segment', 'role', 'tokens', 'method',
  'text', 'flags', 'redaction', 'opens', 'closes', 'line', 'digest', 'since', 'beforeVersion', 'beforeText', 'head',
].map((name, n) => [name, n]));
// What an item is called: its title, else its first words, else its id (as in ctxctl/item_names.py).
const toldAs = (title, head, item) => title ?? (head ? `“${head}”` : item);
const named = (p) => toldAs(p[P.title], p[P.head], p[P.item]);
const PLACEMENT_FLAGS = ['stale', 'derived identity', 'simulated', 'truncated', 'carried in', 'own text'];

function spliced(frame, edits) {
  const made = [];
  let at = 0;
  for (const [start, removed, fresh] of edits) {
    for (; at < start; at += 1) made.push(frame[at]);
    for (const one of fresh) made.push(one);
    at = start + removed;
  }
  for (; at < frame.length; at += 1) made.push(frame[at]);
  return made;
}

// A step as it was recorded, with its frame: placements in order.
async function stepAt(ordinal) {
  const row = rows[ordinal];
  const thread = threads[row[C.thread]];
  const run = thread.runs[lastBelow(thread.runs, row.place, (one) => one.first)];
  const { p, s } = await block(run.id);
  let frame = [];
  for (let n = 0; n <= row.place - run.first; n += 1) frame = spliced(frame, s[n].e);
  return { ordinal, row, told: s[row.place - run.first], frame: frame.map((n) => p[n]) };
}

// [text, first step, item, characters left out, where]; null where there is none.
async function content(n) {
  if (n === null || n === undefined || n < 0) return null;
  const at = lastBelow(index.texts.blocks, n, (first) => first);
  return (await block(`c${at}`))[n - index.texts.blocks[at]];
}

function lackOf(placement) {
  if (placement[P.text] === -2) return 'withheld: it says what was redacted';
  return placement[P.redaction] ? `withheld: ${placement[P.redaction]}` : 'text not recorded';
}

const main = () => threads.length && threads.every((t) => t.session === threads[0].session);
function threadName(thread) {
  const session = main() || thread.session === null ? '' : `${thread.session}/`;
  return session + thread.name;
}

// What `ctxctl show` calls the step, with its thread where that is not the first one; and its place in the
// address line of the browser.
const address = (row) => `${row[C.turn]}.${row[C.step]}`;
const called = (row) => (row[C.thread] ? visible(threadName(threads[row[C.thread]])).slice(0, 60) + ':' : '') + address(row);
function place(ordinal, rest = '') {
  const row = rows[ordinal];
  const thread = row[C.thread] ? `t${row[C.thread]}-` : '';
  return `#${thread}turn-${address(row)}${rest}`;
}
