// One step: what changed, what the window held, the assembled text, and the record of every stage.

const TABS = [['changes', 'Changes'], ['items', 'Items'], ['text', 'Text'], ['record', 'Record']];
const LONG = 60;

async function showStep(ordinal, tab) {
  const step = await stepAt(ordinal);
  const { row } = step;
  const tabs = TABS.map(([name, label]) => {
    const count = name === 'items' ? step.frame.length : name === 'changes' ? (step.told.changes ?? []).length : null;
    return el('a', { href: place(ordinal, '/' + name), role: 'tab', 'aria-selected': name === tab ? 'true' : 'false' },
      label, count === null ? null : el('span', { class: 'quiet' }, ` ${number(count)}`));
  });
  const panel = el('div', { role: 'tabpanel', class: 'panel' });
  if (tab === 'items') panel.append(...itemsPanel(step));
  else if (tab === 'text') panel.append(...textPanel(step));
  else if (tab === 'record') panel.append(...recordPanel(step));
  else panel.append(...changesPanel(step));
  return [heading(step), el('div', { role: 'tablist', class: 'tabs', 'aria-label': 'Of this step' }, tabs), panel];
}

function heading(step) {
  const { row, told } = step;
  const title = titleOf(row);
  const thread = threads[row[C.thread]];
  return el('div', { class: 'heading' },
    el('a', { class: 'back', href: '#' }, '← steps'),
    el('h2', {}, `Turn ${row[C.turn]}, step ${row[C.step]}`,
      threads.length > 1 ? [el('span', { class: 'quiet' }, ' of '), say(threadName(thread), 60)] : null,
      title === null ? null : [' · ', say(title, 160)]),
    ledger(told, row),
    row[C.marks] ? el('p', { class: 'noted' }, marksOf(row)) : null,
    (told.flags ?? []).length ? el('p', { class: 'flags' }, told.flags.map((flag) => el('span', { class: 'flag' }, say(flag, 60)))) : null);
}

function ledger(told, row) {
  const l = told.ledger ?? {};
  const w = told.window ?? {};
  const extra = [];
  if (l.stale) extra.push(`${number(l.stale)} in stale copies`);
  if (l.saved) extra.push(`${number(l.saved)} saved`);
  if (l.uncounted) extra.push(`${plural(l.uncounted, 'item')} uncounted`);
  if (row[C.billed] !== null) extra.push(`${row[C.marks] & 32 ? '≈' : ''}${row[C.billed]} billed`);
  if (row[C.counted] !== null) extra.push(`${row[C.counted]} of it for what is recorded`);
  return [sentLine(row, w), el('p', { class: 'ledger' },
    `${number(l.window_before)} before `, el('span', { class: 'fresh' }, `+ ${number(l.new)} new `),
    el('span', { class: 'gone' }, `− ${number(l.freed)} freed `),
    `= ${number(l.window_after)} recorded`, besideText(w),
    extra.length ? el('span', { class: 'quiet' }, ' · ' + extra.join(' · ')) : null)];
}

// What was sent, of how much, how that is known, and who says the limit.
function sentLine(row, w) {
  const known = LABELS.knownBy[row[C.method]] + (w.used_error === undefined ? '' : `, nine of ten within ${number(w.used_error)}`);
  const room = w.cap === undefined ? ' · limit unknown'
    : ` of ${number(w.cap)}${w.cap ? ` (${shareOf(row[C.used], w.cap)})` : ''}, ` + (w.over ? `over by ${number(w.over)}` : `${number(w.free)} free`);
  const source = own(LABELS.limits, w.limit_source) ? `limit ${LABELS.limits[w.limit_source]}` : null;
  const line = w.threshold === undefined ? null : ` · compacts at ${number(w.threshold)}`;
  return el('p', { class: 'ledger' }, el('strong', {}, row[C.method] === 2 ? `${number(row[C.used])} tokens recorded` : `${sized(row)} tokens sent`), room,
    el('span', { class: 'quiet' }, ` · ${known}${source && w.cap !== undefined ? ` · ${source}` : ''}`,
      line ? el('span', { title: w.threshold_source ?? '' }, line) : null));
}

function besideText(w) {
  if (!w.unrecorded) return null;
  return w.unrecorded > 0 ? ` + ${number(w.unrecorded)} not recorded`
    : ` · ${number(-w.unrecorded)} more than was sent`;
}

function provenance(name) {
  return name === 'native' || !name ? null : el('span', { class: 'flag' }, say(name, 20));
}

function whyOf(change) {
  const said = [];
  if (change.status === 'updated' && change.previous_version !== change.version) {
    said.push(say(`${change.previous_version ?? '?'} → ${change.version ?? '?'}`, 60));
  }
  if (change.cause) said.push(say(change.cause, 80));
  if (change.reason) said.push(say(change.reason, 300));
  if (change.into) said.push(el('span', {}, 'into ', say(change.into, 80)));
  for (const flag of change.flags ?? []) said.push(el('span', { class: 'flag' }, say(flag, 40)));
  const mark = provenance(change.provenance);
  if (mark) said.push(mark);
  return said.flatMap((one, n) => (n ? [' ', one] : [one]));
}

function calledIn(change, step) {
  const placed = change.title || change.head ? undefined : step.frame.findLast((p) => p[P.item] === change.item);
  return toldAs(change.title, change.head || placed?.[P.head], change.item);
}

// Where the item of a change stands: in this frame, or in the one before if it left.
function linkOf(change, step) {
  const at = step.frame.findLastIndex((p) => p[P.item] === change.item && (change.version === undefined || p[P.version] === change.version));
  const name = say(calledIn(change, step), 120);
  if (at >= 0) return el('a', { href: place(step.ordinal, `/item/${at}`) }, name);
  const n = step.row.place - 1;
  if (n < 0 || change.status !== 'removed') return name;
  const before = threads[step.row[C.thread]].steps[n];
  return el('a', { href: place(before, `/named/${encodeURIComponent(change.item)}`), title: 'as it was in the step before' }, name);
}

function changesPanel(step) {
  const list = step.told.changes ?? [];
  const skipped = step.row[C.skipped];
  const heads = [{ name: 'status' }, { name: 'item' }, { name: 'kind' }, { name: 'tokens', right: true },
    { name: 'new', right: true }, { name: 'freed', right: true }, { name: 'why' }];
  const made = [];
  if (!list.length) made.push(el('p', { class: 'quiet' }, 'Nothing changed in this step.'));
  else made.push(longTable('Changes', heads, list, (change) => [status(change.status),
    [linkOf(change, step), calledIn(change, step) === change.item ? null : [' ', el('span', { class: 'quiet' }, say(change.item, 60))]],
    say(change.kind ?? '', 30), number(change.tokens), change.new ? number(change.new) : '',
    change.freed ? number(change.freed) : '', whyOf(change)]));
  if (skipped) made.push(el('p', { class: 'quiet' }, `= ${plural(skipped, 'item')} unchanged`));
  return made;
}

// A table of which the first rows are shown, and the rest on demand.
function longTable(caption, heads, list, row) {
  const first = list.slice(0, LONG * 2);
  const holder = el('div', {}, table(caption, heads, first.map(row)));
  if (list.length > first.length) {
    const more = el('button', { type: 'button', on: { click: () => clear(holder, table(caption, heads, list.map(row))) } },
      `Show all ${number(list.length)}`);
    holder.append(more);
  }
  return holder;
}

function sinceOf(placement) {
  if (placement[P.flags] & 16) return 'before the trace';
  const ordinal = placement[P.since];
  return el('a', { href: place(ordinal) }, address(rows[ordinal]));
}

function signsOf(placement) {
  const made = PLACEMENT_FLAGS.filter((_, n) => placement[P.flags] & (1 << n));
  if (placement[P.redaction]) made.push(placement[P.redaction]);
  return made.map((flag) => el('span', { class: 'flag' }, say(flag, 40)));
}

function itemsPanel(step) {
  const segments = new Map();
  step.frame.forEach((p, n) => {
    if (!segments.has(p[P.segment])) segments.set(p[P.segment], []);
    segments.get(p[P.segment]).push(n);
  });
  const heads = [{ name: '#', right: true }, { name: 'item' }, { name: 'kind' }, { name: 'source' },
    { name: 'tokens', right: true }, { name: 'since' }, { name: '' }];
  if (!step.frame.length) return [el('p', { class: 'quiet' }, 'The window is empty, or nothing was recorded of it.')];
  return [...segments].map(([name, places]) => {
    const tokens = places.reduce((sum, n) => sum + step.frame[n][P.tokens], 0);
    return longTable(el('span', {}, say(name, 40), ` · ${plural(places.length, 'item')}, ${number(tokens)} tokens`),
      heads, places, (n) => {
        const p = step.frame[n];
        return [number(n + 1), [el('a', { href: place(step.ordinal, `/item/${n}`) }, say(named(p), 120)),
          named(p) === p[P.item] ? null : [' ', el('span', { class: 'quiet' }, say(p[P.item], 60))]],
        say(p[P.kind] ?? '', 30), say(p[P.source] ?? '', 60),
        p[P.method] === 'uncounted' ? 'uncounted' : number(p[P.tokens]), sinceOf(p), signsOf(p)];
      });
  });
}

const BLOCKS_AT_ONCE = 150;

// The window as one text, block by block, each with what it is and since when it is there.  Blocks are made as
// the reader comes near their end, and their texts as they come near the screen.
function textPanel(step) {
  watcher?.disconnect();
  watcher = new IntersectionObserver((seen) => {
    for (const one of seen.filter((entry) => entry.isIntersecting)) {
      if (one.target === more) { grow(); continue; }
      watcher.unobserve(one.target);
      fillBlock(one.target.querySelector('.holder'));
    }
  }, { rootMargin: '600px' });
  let shown = 0;
  const blocks = el('div', {});
  const more = el('button', { type: 'button', on: { click: () => grow() } });
  function grow() {
    const end = Math.min(shown + BLOCKS_AT_ONCE, step.frame.length);
    for (; shown < end; shown += 1) {
      const block = textBlock(step, shown);
      blocks.append(block);
      watcher.observe(block);
    }
    more.textContent = `Show more: ${number(step.frame.length - shown)} items left`;
    more.hidden = shown >= step.frame.length;
  }
  grow();
  watcher.observe(more);
  const fresh = step.frame.filter((p) => p[P.since] === step.ordinal).reduce((sum, p) => sum + p[P.tokens], 0);
  const all = step.frame.reduce((sum, p) => sum + p[P.tokens], 0);
  const said = step.frame.length ? `${number(all - fresh)} tokens from before, ${number(fresh)} tokens new in this step` : 'No text.';
  return [el('p', { class: 'quiet' }, said), blocks, more];
}

function textBlock(step, n) {
  const p = step.frame[n];
  const gutter = el('div', { class: 'gutter' },
    el('a', { href: place(step.ordinal, `/item/${n}`) }, say(named(p), 60)),
    p[P.version] ? [' ', el('span', { class: 'quiet' }, say(p[P.version], 16))] : null,
    el('span', { class: 'quiet' }, ' ', say(p[P.kind] ?? '', 24), p[P.source] ? [' · ', say(p[P.source], 40)] : null),
    el('span', { class: 'quiet' }, ' since '), sinceOf(p),
    el('span', { class: 'quiet' }, p[P.method] === 'uncounted' ? ' uncounted' : ` ${plural(p[P.tokens], 'token')}`),
    signsOf(p));
  const holder = el('div', { class: 'holder' }, el('p', { class: 'quiet' }, '…'));
  holder.placement = p;
  const fresh = p[P.since] === step.ordinal ? ' fresh-block' : '';
  return el('section', { class: 'blame' + fresh, 'aria-label': `Block ${n + 1}` }, gutter, holder);
}

let watcher = null;

async function fillBlock(holder) {
  const p = holder.placement;
  const found = await content(p[P.text]);
  if (found === null) { clear(holder, el('p', { class: 'quiet' }, lackOf(p))); return; }
  clear(holder, p[P.opens] ? el('pre', { class: 'text quiet', dir: 'ltr' }, visibleLines(p[P.opens])) : null,
    ...whole(found), p[P.closes] ? el('pre', { class: 'text quiet', dir: 'ltr' }, visibleLines(p[P.closes])) : null);
}

// A text with a note in the place of what was cut out of it.
function whole([text, , , leftOut, split]) {
  if (!leftOut) return [body(text)];
  return [body(text.slice(0, split)), el('p', { class: 'notice' }, `${number(leftOut)} characters left out (--max-content)`),
    body(text.slice(split))];
}

function recordPanel(step) {
  const { told } = step;
  const made = [facts([['model', told.model && say(told.model)], ['time', told.time && say(told.time)],
    ['mode', told.mode && `${told.mode}, ${told.mode_declared ? 'declared' : 'inferred'}`], ['basis', told.basis && say(told.basis)],
    ['layer', told.layer && say(told.layer)], ['turn id', told.turn_id && say(told.turn_id)], ['step id', told.step_id && say(told.step_id)]])];
  for (const [name, stage] of Object.entries(told.stages ?? {})) {
    const { verdict, ...rest } = stage;
    made.push(el('h3', {}, say(name, 40), el('span', { class: 'quiet' }, ' ', say(verdict ?? '', 40))),
      Object.keys(rest).length ? tree(rest) : null);
  }
  for (const name of ['window', 'segments', 'usage', 'cache', 'ids', 'missing', 'compactions', 'redactions', 'envelopes']) {
    if (told[name] !== undefined) made.push(el('h3', {}, name), tree(told[name]));
  }
  return made.filter(Boolean);
}
