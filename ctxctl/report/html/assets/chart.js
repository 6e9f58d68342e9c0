// The window step by step: what was sent, what of it is recorded, its cap, what came and went, compactions and cache breaks.

const WIDTH = 1000;
const HIGH = 100;
const LOW = 24;
const BAND = 28;
const COLUMNS_MOST = 400;

// One column for each step, or for several where there are more steps than columns.
function columns(steps) {
  const count = Math.min(steps.length, COLUMNS_MOST);
  return Array.from({ length: count }, (_, n) => {
    const from = Math.floor((n * steps.length) / count);
    const to = Math.floor(((n + 1) * steps.length) / count);
    const made = { from, to, used: 0, recorded: 0, cap: null, line: null, fresh: 0, freed: 0, compacted: 0, broken: 0, over: 0, warned: 0 };
    for (let at = from; at < to; at += 1) {
      const row = rows[steps[at]];
      if (row[C.used] >= made.used) {
        made.used = row[C.used];
        made.recorded = Math.min(row[C.recorded], row[C.used]);
      }
      if (row[C.threshold] !== null) made.line = Math.max(made.line ?? 0, row[C.threshold]);
      if (row[C.cap] !== null) made.cap = Math.max(made.cap ?? 0, row[C.cap]);
      made.fresh += row[C.new];
      made.freed += row[C.freed];
      made.compacted += row[C.marks] & 1;
      made.broken += row[C.marks] & 66 ? 1 : 0;
      made.over += (row[C.marks] >> 2) & 1;
      made.warned += (row[C.marks] >> 3) & 1;
    }
    return made;
  });
}

function drawn(list, peak, top) {
  const step = WIDTH / list.length;
  const wide = Math.max(step - (step > 4 ? 1 : 0), 0.5);
  const flow = Math.max(1, ...list.map((c) => Math.max(c.fresh, c.freed)));
  const parts = [];
  list.forEach((c, n) => {
    const x = n * step;
    const height = (c.used / top) * HIGH;
    const low = ((c.used - c.recorded) / top) * HIGH;
    parts.push(svg('rect', { class: 'beside', x, y: HIGH - low, width: wide, height: low }));
    parts.push(svg('rect', { class: c.over ? 'used over' : 'used', x, y: HIGH - height, width: wide, height: height - low }));
    const up = (c.fresh / flow) * LOW;
    const down = (c.freed / flow) * LOW;
    parts.push(svg('rect', { class: 'fresh', x, y: HIGH + BAND + LOW - up, width: wide, height: up }));
    parts.push(svg('rect', { class: 'gone', x, y: HIGH + BAND + LOW, width: wide, height: down }));
    const middle = x + wide / 2;
    if (c.compacted) {
      parts.push(svg('path', { class: 'compacted', d: `M${middle} ${HIGH + 2}l5 5l-5 5l-5 -5z` }));
    }
    if (c.broken) {
      parts.push(svg('path', { class: 'broken', d: `M${middle + 3} ${HIGH + 14}l-6 6h5l-4 6` }));
    }
  });
  for (const name of ['cap', 'line']) {
    const path = levelPath(list.map((c) => (c[name] === null || c[name] > top ? null : c[name])), step, top);
    if (path) parts.push(svg('path', { class: name === 'line' ? 'compacts' : name, d: path }));
  }
  return parts;
}

// A line at a height for each column, broken where it is not known.
function levelPath(levels, step, top) {
  return levels.map((level, n) => (level === null ? ''
    : `${n && levels[n - 1] !== null ? 'L' : 'M'}${n * step} ${HIGH - (level / top) * HIGH}h${step}`)).join('');
}

function chart(steps, choose) {
  const list = columns(steps);
  const peak = Math.max(0, ...list.map((c) => c.used));
  const cap = list.reduce((found, c) => (c.cap === null ? found : Math.max(found ?? 0, c.cap)), null);
  const near = cap !== null && cap <= peak * 4;
  const top = Math.max(1, peak, near ? cap : 0);
  const sum = (name) => list.reduce((total, c) => total + c[name], 0);
  const line = list.reduce((found, c) => (c.line === null ? found : Math.max(found ?? 0, c.line)), null);
  const beside = list.some((c) => c.used > c.recorded);
  const said = `What was sent over ${plural(steps.length, 'step')}: at most ${number(peak)} tokens`
    + (cap === null ? ', cap unknown' : `, cap ${number(cap)}`)
    + `; ${plural(sum('compacted'), 'compaction')}, ${number(sum('broken'))} with a cache break or miss`
    + `, ${number(sum('over'))} over the cap`;
  const picture = svg('svg', {
    viewBox: `0 0 ${WIDTH} ${HIGH + BAND + 2 * LOW}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': said,
    on: {
      click: (event) => {
        const box = picture.getBoundingClientRect();
        const n = Math.floor(((event.clientX - box.left) / box.width) * list.length);
        const column = list[Math.min(Math.max(n, 0), list.length - 1)];
        const marked = steps.slice(column.from, column.to).find((at) => rows[at][C.marks] & 71);
        choose(marked ?? steps[column.from]);
      },
    },
  }, drawn(list, peak, top));
  const cursor = svg('rect', { class: 'cursor', y: 0, width: 2, height: HIGH + BAND + 2 * LOW, x: -9 });
  picture.append(cursor);
  const point = (at) => {
    cursor.setAttribute('x', at < 0 ? -9 : ((at + 0.5) / steps.length) * WIDTH - 1);
  };
  const legend = el('p', { class: 'legend' },
    beside ? [el('span', { class: 'key beside' }), 'sent, not recorded'] : null,
    el('span', { class: 'key used' }), beside ? 'recorded' : 'sent',
    sum('over') ? [el('span', { class: 'key over' }), 'over the cap'] : null, el('span', { class: 'key cap' }), 'cap',
    cap !== null && !near ? ` (${number(cap)}, far above the chart)` : null,
    line === null ? null : [el('span', { class: 'key compacts' }), `compacts at ${number(line)}`],
    el('span', { class: 'key fresh' }), 'new', el('span', { class: 'key gone' }), 'freed',
    ' ◇ compaction ↯ cache break or miss', el('span', { class: 'quiet' }, ` · highest ${number(peak)} tokens`));
  return { node: el('div', { class: 'chart' }, picture, legend, alternative(steps)), point };
}

const TABLE_MOST = 200;

// The same as a table; made when it is opened.
function alternative(steps) {
  const details = el('details', {}, el('summary', {}, 'The chart as a table'));
  details.addEventListener('toggle', () => {
    if (!details.open || details.children.length > 1) return;
    const noted = steps.length <= TABLE_MOST ? steps
      : steps.filter((at) => rows[at][C.marks] & 79).slice(0, TABLE_MOST);
    const heads = [{ name: 'step' }, { name: 'sent', right: true }, { name: 'recorded', right: true }, { name: 'cap', right: true },
      { name: 'new', right: true }, { name: 'freed', right: true }, { name: 'of note' }];
    const name = steps.length <= TABLE_MOST ? 'Every step'
      : `Steps of note (${number(noted.length)} of ${number(steps.length)} steps)`;
    details.append(table(name, heads, noted.map((at) => {
      const row = rows[at];
      return [el('a', { href: place(at) }, called(row)), sized(row), number(row[C.recorded]), number(row[C.cap]),
        number(row[C.new]), number(row[C.freed]), marksOf(row)];
    })));
  });
  return details;
}

function marksOf(row) {
  const marks = row[C.marks];
  const said = [];
  if (marks & 1) said.push('◇ compaction');
  if (marks & 2) said.push('↯ cache break');
  if (marks & 64) said.push('↯ cache miss');
  if (marks & 4) said.push('! over the cap');
  else if (marks & 8) said.push('! warning');
  if (marks & 16) said.push('≈ simulated');
  if (marks & 32) said.push('≈ output as counted: it was logged before the answer\u2019s end');
  return said.join(', ');
}
