// Keys, and the list of them.

const KEYS = [
  ['j', 'the next step', () => go(1)], ['k', 'the step before', () => go(-1)],
  ['n', 'the next step of note: compaction, cache break or miss, warning', () => goNoted(1)],
  ['p', 'the step of note before', () => goNoted(-1)],
  ['g', 'the first step', () => go(-Infinity)], ['G', 'the last step', () => go(Infinity)],
  ['Enter', 'to the details of the step', () => $('detail').focus()],
  ['1', 'changes', () => tab('changes')], ['2', 'items', () => tab('items')],
  ['3', 'assembled text', () => tab('text')], ['4', 'the record of every stage', () => tab('record')],
  ['/', 'search', () => $('query').focus()], ['t', 'light or dark', () => turnTheme()],
  ['?', 'this help', () => $('keys').showModal()], ['Esc', 'back', () => back()],
];

function tab(name) {
  if (steps.at >= 0) location.hash = place(steps.at, '/' + name);
}

function back() {
  const now = location.hash;
  if (/\/(item|named)\//.test(now)) location.hash = now.replace(/\/(item|named)\/.*$/, '/items');
  else if (document.activeElement && $('detail').contains(document.activeElement)) $('scroll').focus();
  else location.hash = steps.at >= 0 && !now.includes('turn-') ? place(steps.at) : '';
}

function listenToKeys() {
  const meanings = [
    `${SIGNS.added} added`, `${SIGNS.updated} updated`, `${SIGNS.removed} removed`, `${SIGNS.skipped} unchanged`,
    `${SIGNS.omitted} left out`, `${LABELS.compaction} compaction`, `${LABELS.cacheBreak} cache break or miss`,
    `${LABELS.warning} warning`,
  ];
  clear($('keys'), el('h2', {}, 'Keys'), facts(KEYS.map(([key, does]) => [el('kbd', {}, key), does])),
    el('p', { class: 'quiet' }, `Signs: ${meanings.join(', ')}.`),
    el('form', { method: 'dialog' }, el('button', {}, 'Close')));
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || $('keys').open) return;
    const typing = ['INPUT', 'SELECT', 'TEXTAREA'].includes(event.target.tagName);
    if (typing) {
      if (event.key === 'Escape') event.target.blur();
      return;
    }
    let key = event.key === 'Escape' ? 'Esc' : event.key;
    const listed = document.activeElement === $('scroll');
    if (listed) key = { ArrowDown: 'j', ArrowUp: 'k', Home: 'g', End: 'G' }[key] ?? key;
    if (key === 'Enter' && !listed && document.activeElement !== document.body) return;
    const found = KEYS.find(([name]) => name === key);
    if (found === undefined) return;
    event.preventDefault();
    found[2]();
  });
}

function turnTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
  try { localStorage.setItem('ctxctl-theme', root.dataset.theme); } catch { /* not kept: storage is off */ }
}

function theme() {
  try {
    const kept = localStorage.getItem('ctxctl-theme');
    if (kept === 'dark' || kept === 'light') document.documentElement.dataset.theme = kept;
  } catch { /* storage is off */ }
}
