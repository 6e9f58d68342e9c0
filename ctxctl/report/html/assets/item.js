// One item of a frame: what it says, how that differs from what it said before, and what is known of it.

async function showItem(ordinal, at) {
  const step = await stepAt(ordinal);
  const p = step.frame[at];
  if (p === undefined) return [heading(step), el('p', { class: 'notice' }, 'There is no such item in this step.')];
  const [now, before] = await Promise.all([content(p[P.text]), content(p[P.beforeText])]);
  const made = [el('div', { class: 'heading' },
    el('a', { class: 'up', href: place(ordinal, '/items') }, `← turn ${address(step.row)}`),
    el('h2', {}, say(named(p), 200)), el('p', { class: 'flags' }, signsOf(p)))];
  made.push(facts([['item', say(p[P.item])], ['version', p[P.version] && say(p[P.version])], ['kind', say(p[P.kind] ?? '')],
    ['source', p[P.source] && say(p[P.source])], ['segment', say(p[P.segment] ?? '')], ['role', p[P.role] && say(p[P.role])],
    ['tokens', p[P.method] === 'uncounted' ? 'uncounted' : `${number(p[P.tokens])} (${visible(p[P.method])})`],
    ['position', `${number(at + 1)} of ${number(step.frame.length)}`], ['in the window since', sinceOf(p)],
    ['recorded at', p[P.line] ? `line ${number(p[P.line])}` : null], ['digest', p[P.digest] && say(p[P.digest])]]));
  made.push(...changeOf(step, p), ...differenceOf(p, now, before));
  made.push(el('h3', {}, 'Text'));
  if (now === null) made.push(el('p', { class: 'notice' }, lackOf(p)));
  else {
    if (p[P.opens]) made.push(el('pre', { class: 'text quiet', dir: 'ltr' }, visibleLines(p[P.opens])));
    made.push(...whole(now));
    if (p[P.closes]) made.push(el('pre', { class: 'text quiet', dir: 'ltr' }, visibleLines(p[P.closes])));
  }
  return made;
}

function changeOf(step, p) {
  const change = (step.told.changes ?? []).find((one) => one.item === p[P.item]);
  if (change === undefined) return [el('p', { class: 'quiet' }, '= unchanged in this step')];
  return [el('p', {}, status(change.status), ' ', whyOf(change))];
}

function differenceOf(p, now, before) {
  if (p[P.beforeText] === null) return [];
  const name = p[P.beforeVersion] ? [' ', say(p[P.beforeVersion], 40)] : [];
  const made = [el('h3', {}, 'Against the version before', el('span', { class: 'quiet' }, name))];
  if (now === null || before === null) made.push(el('p', { class: 'quiet' }, 'One of the two texts is not here.'));
  else if (now[3] || before[3]) made.push(el('p', { class: 'quiet' }, 'Not compared: a text was cut (--max-content).'));
  else if (now[0].length + before[0].length > 4000000) made.push(el('p', { class: 'quiet' }, 'Not compared: too long for a browser.'));
  else made.push(diffView(before[0], now[0]));
  return made;
}

// The item of a name in a frame: where a removed one stood.
async function showNamed(ordinal, name) {
  const step = await stepAt(ordinal);
  const at = step.frame.findLastIndex((p) => p[P.item] === name);
  return showItem(ordinal, at);
}
