// The list of steps: only the rows in sight are in the document.

const steps = { shown: [], at: -1, thread: -1, high: 44, range: '', all: false };

function stepsOf(thread) {
  return thread < 0 ? rows.map((_, ordinal) => ordinal) : threads[thread].steps;
}

function listRow(n) {
  const ordinal = steps.shown[n];
  const row = rows[ordinal];
  const before = n > 0 ? rows[steps.shown[n - 1]] : null;
  const fresh = before === null || before[C.turn] !== row[C.turn] || before[C.thread] !== row[C.thread];
  const title = fresh ? titleOf(row) : null;
  const thread = steps.thread < 0 && threads.length > 1 && fresh ? threadName(threads[row[C.thread]]) : null;
  const whole = row[C.cap] ?? steps.peak;
  const share = whole ? Math.min(1, row[C.used] / whole) : 0;
  const meter = svg('svg', { class: 'meter', viewBox: '0 0 100 6', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    svg('rect', { class: 'track', width: 100, height: 6 }),
    svg('rect', { class: row[C.marks] & 4 ? 'used over' : 'used', width: share * 100, height: 6 }),
    svg('rect', { class: 'beside', width: row[C.used] ? share * 100 * Math.max(0, 1 - row[C.recorded] / row[C.used]) : 0, height: 6 }));
  const flow = [];
  if (row[C.new]) flow.push(el('span', { class: 'fresh' }, '+' + short(row[C.new])));
  if (row[C.freed]) flow.push(el('span', { class: 'gone' }, ' ' + short(-row[C.freed])));
  const counts = ['added', 'updated', 'removed', 'omitted'].filter((name) => row[C[name]])
    .map((name) => SIGNS[name] + number(row[C[name]])).join(' ');
  const marks = (row[C.marks] & 1 ? '◇' : '') + (row[C.marks] & 66 ? '↯' : '') + (row[C.marks] & 12 ? '!' : '');
  const node = el('div', {
    class: 'row' + (fresh ? ' fresh-turn' : ''), role: 'option', id: `row-${n}`, 'aria-posinset': n + 1,
    'aria-setsize': steps.shown.length, 'aria-selected': ordinal === steps.at ? 'true' : 'false',
    on: { click: () => { location.hash = place(ordinal); } },
  },
    el('div', { class: 'line' }, el('span', { class: 'address' }, address(row)),
      el('span', { class: 'title' }, thread ? [say(thread, 40), ' · '] : null,
        title !== null ? say(title, 120) : el('span', { class: 'quiet' }, fresh ? 'no title' : '↳ next step')),
      el('span', { class: 'marks', title: marksOf(row) }, marks, marks ? el('span', { class: 'unseen' }, marksOf(row)) : null)),
    el('div', { class: 'line figures' }, meter,
      el('span', { class: 'window', title: LABELS.knownBy[row[C.method]] }, (row[C.method] === 1 ? '≈' : '') + short(row[C.used])),
      el('span', { class: 'flow' }, flow), el('span', { class: 'counts' }, counts)));
  node.style.top = `${n * steps.high}px`;
  return node;
}

function paint() {
  const box = $('scroll');
  const from = steps.all ? 0 : Math.max(0, Math.floor(box.scrollTop / steps.high) - 8);
  const to = Math.min(steps.shown.length,
    steps.all ? PRINTED : Math.ceil((box.scrollTop + box.clientHeight) / steps.high) + 8);
  const key = `${from} ${to} ${steps.at} ${steps.thread} ${steps.all}`;
  if (key === steps.range) return;
  steps.range = key;
  const inner = el('div', { class: 'inner', role: 'presentation' });
  inner.style.height = `${(steps.all ? to : steps.shown.length) * steps.high}px`;
  for (let n = from; n < to; n += 1) inner.append(listRow(n));
  clear(box, inner);
  const at = steps.shown.indexOf(steps.at);
  if (at >= from && at < to) box.setAttribute('aria-activedescendant', `row-${at}`);
  else box.removeAttribute('aria-activedescendant');
}

const PRINTED = 500;

function showList(thread) {
  steps.thread = thread;
  steps.shown = stepsOf(thread);
  steps.peak = steps.shown.reduce((most, at) => Math.max(most, rows[at][C.used]), 1);
  steps.range = '';
  const made = chart(steps.shown, (ordinal) => { location.hash = place(ordinal); });
  steps.point = made.point;
  clear($('overview'), chooser(), made.node);
  $('overview').hidden = false;
  clear($('listhead'), `${plural(steps.shown.length, 'step')}`,
    el('span', { class: 'quiet' }, ' · window, new, freed, items'));
  paint();
}

function chooser() {
  if (threads.length < 2) return null;
  const select = el('select', { id: 'thread', on: { change: () => choose(Number(select.value)) } },
    el('option', { value: -1 }, `all ${threads.length} threads`),
    threads.slice(0, 2000).map((t) => el('option', { value: t.number },
      `${visible(threadName(t)).slice(0, 80)} (${plural(t.steps.length, 'step')})`)));
  select.value = String(steps.thread);
  return el('p', { class: 'chooser' }, el('label', { for: 'thread' }, 'Thread '), select);
}

function choose(thread) {
  showList(thread);
  if (steps.shown.length && !steps.shown.includes(steps.at)) location.hash = place(steps.shown[0]);
  else select(steps.at);
}

// Mark a step and bring it into sight.
function select(ordinal) {
  steps.at = ordinal;
  let n = steps.shown.indexOf(ordinal);
  if (n < 0 && ordinal >= 0) {
    showList(rows[ordinal][C.thread]);
    n = steps.shown.indexOf(ordinal);
  }
  steps.point(n);
  const box = $('scroll');
  const top = n * steps.high;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (top + steps.high > box.scrollTop + box.clientHeight) {
    box.scrollTop = top + steps.high * 2 - box.clientHeight;
  }
  paint();
}

function go(by) {
  const n = steps.shown.indexOf(steps.at);
  const next = Math.min(Math.max(n + by, 0), steps.shown.length - 1);
  if (next >= 0 && next !== n) location.hash = place(steps.shown[next]);
}

// The next step with a compaction, a cache break or miss, a warning, or over its cap.
function goNoted(by) {
  for (let n = steps.shown.indexOf(steps.at) + by; n >= 0 && n < steps.shown.length; n += by) {
    if (rows[steps.shown[n]][C.marks] & 79) { location.hash = place(steps.shown[n]); return; }
  }
}
