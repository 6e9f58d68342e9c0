// Line by line, by the shortest edit script; where the texts have too little in common, one after the other.

const MOST_EDITS = 2000;

function trimmed(a, b) {
  let head = 0;
  const most = Math.min(a.length, b.length);
  while (head < most && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < most - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  return [head, tail];
}

// The same for two lines; no character is torn apart.
function trimmedLine(a, b) {
  let [head, tail] = trimmed(a, b);
  if (head && /[\ud800-\udbff]/.test(a[head - 1])) head -= 1;
  if (tail && /[\udc00-\udfff]/.test(a[a.length - tail])) tail -= 1;
  return [head, tail];
}

// Myers: pairs [kind, line]; kind is ' ', '-' or '+'.
function edits(a, b) {
  const most = Math.min(a.length + b.length, MOST_EDITS);
  const zero = most + 1;
  const v = new Int32Array(2 * most + 3);
  const traces = [];
  let d = 0;
  const down = (get, k) => k === -d || (k !== d && get(k - 1) < get(k + 1));
  search: for (; d <= most; d += 1) {
    traces.push(v.slice(zero - d - 1, zero + d + 2));
    for (let k = -d; k <= d; k += 2) {
      let x = down((n) => v[zero + n], k) ? v[zero + k + 1] : v[zero + k - 1] + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      v[zero + k] = x;
      if (x >= a.length && x - k >= b.length) break search;
    }
  }
  if (d > most) return [...a.map((line) => ['-', line]), ...b.map((line) => ['+', line])];
  const made = [];
  let x = a.length;
  let y = b.length;
  for (; d > 0; d -= 1) {
    const trace = traces[d];
    const get = (k) => trace[k + d + 1];
    const k = x - y;
    const fell = down(get, k);
    const fromX = get(fell ? k + 1 : k - 1);
    const fromY = fromX - (fell ? k + 1 : k - 1);
    while (x > fromX && y > fromY && x - 1 >= (fell ? fromX : fromX + 1)) { made.push([' ', a[x - 1]]); x -= 1; y -= 1; }
    made.push(fell ? ['+', b[fromY]] : ['-', a[fromX]]);
    x = fromX;
    y = fromY;
  }
  while (x > 0) { made.push([' ', a[x - 1]]); x -= 1; }
  return made.reverse();
}

function lineDiff(before, after) {
  const a = before.split('\n');
  const b = after.split('\n');
  const [head, tail] = trimmed(a, b);
  return [
    ...a.slice(0, head).map((line) => [' ', line]),
    ...edits(a.slice(head, a.length - tail), b.slice(head, b.length - tail)),
    ...a.slice(a.length - tail).map((line) => [' ', line]),
  ];
}

const AROUND = 3;
const MOST_LINES = 4000;

// Changed lines with those around them; parts of a line that differ are marked.
function diffView(before, after) {
  const lines = lineDiff(before, after);
  const near = new Uint8Array(lines.length);
  lines.forEach(([kind], n) => {
    if (kind !== ' ') near.fill(1, Math.max(0, n - AROUND), n + AROUND + 1);
  });
  const box = el('div', { class: 'diff', tabindex: '0', role: 'region', 'aria-label': 'Difference to the version before' });
  let gap = 0;
  let shown = 0;
  for (let n = 0; n < lines.length && shown < MOST_LINES; n += 1) {
    if (!near[n]) { gap += 1; continue; }
    if (gap) box.append(el('div', { class: 'gap' }, `… ${plural(gap, 'line')} the same`));
    gap = 0;
    const [kind, line] = lines[n];
    const mate = kind === '-' && lines[n + 1]?.[0] === '+' && lines[n - 1]?.[0] !== '-' && lines[n + 2]?.[0] !== '+'
      ? lines[n + 1][1] : kind === '+' && lines[n - 1]?.[0] === '-' && lines[n + 1]?.[0] !== '+'
        && lines[n - 2]?.[0] !== '-' ? lines[n - 1][1] : null;
    box.append(diffLine(kind, line, mate));
    shown += 1;
  }
  if (shown >= MOST_LINES) box.append(el('div', { class: 'gap' }, 'more is not shown'));
  else if (gap) box.append(el('div', { class: 'gap' }, `… ${plural(gap, 'line')} the same`));
  return box;
}

function diffLine(kind, line, mate) {
  const name = kind === '+' ? 'plus' : kind === '-' ? 'minus' : 'same';
  const most = 20000;
  const cut = line.length > most ? line.slice(0, most) : line;
  const parts = [visibleLines(cut)];
  if (mate !== null) {
    const [head, tail] = trimmedLine(cut, mate.slice(0, most));
    const end = cut.length - tail;
    parts.splice(0, 1, visibleLines(cut.slice(0, head)), el('mark', {}, visibleLines(cut.slice(head, end))),
      visibleLines(cut.slice(end)));
  }
  return el('div', { class: name }, el('span', { class: 'sign' }, kind === '-' ? '−' : kind),
    el('code', { dir: 'ltr' }, parts), line.length > most ? ' …' : null);
}
