// Titles, ids and texts, block by block: nothing is opened before somebody searches.

const HITS_MOST = 300;
let searching = 0;

const pause = () => new Promise((resolve) => { setTimeout(resolve, 0); });

async function search(words) {
  searching += 1;
  const mine = searching;
  const wanted = words.toLowerCase();
  const list = el('ol', { class: 'hits' });
  const progress = el('p', { class: 'quiet', role: 'status' }, 'Searching…');
  clear($('detail'), el('a', { class: 'back', href: '#' }, '← steps'), el('h2', {}, 'Search: ', say(words, 80)), progress, list);
  let hits = 0;
  const seen = new Set();
  const hit = (key, href, kind, text, at) => {
    if (seen.has(key) || hits >= HITS_MOST) return;
    seen.add(key);
    hits += 1;
    list.append(el('li', {}, el('a', { href }, kind), ' ', excerpt(text, at, wanted.length)));
  };
  titles(wanted, hit);
  const blocks = [...threads.flatMap((t) => t.runs.map((run) => ({ thread: t, run }))),
    ...index.texts.blocks.map((first, n) => ({ first, id: `c${n}` }))];
  for (const [n, one] of blocks.entries()) {
    if (mine !== searching) return;
    if (hits >= HITS_MOST) break;
    if (one.run) await inRun(one, wanted, hit); else await inTexts(one, wanted, hit);
    progress.textContent = `${plural(hits, 'hit')}; looked through ${number(n + 1)} of ${plural(blocks.length, 'block')}`;
    await pause();
  }
  if (mine !== searching) return;
  progress.textContent = hits >= HITS_MOST ? `The first ${number(HITS_MOST)} hits.` : `${plural(hits, 'hit')} in titles, ids and texts.`;
}

function titles(wanted, hit) {
  for (const [ordinal, title] of index.titles) {
    const at = title.toLowerCase().indexOf(wanted);
    if (at >= 0) hit(`t${ordinal}`, place(ordinal), `turn ${called(rows[ordinal])}`, title, at);
  }
}

async function inRun({ thread, run }, wanted, hit) {
  const { p } = await block(run.id);
  for (const placement of p) {
    for (const name of ['title', 'item', 'source', 'kind']) {
      const value = placement[P[name]];
      if (typeof value !== 'string') continue;
      const at = value.toLowerCase().indexOf(wanted);
      if (at < 0) continue;
      const ordinal = placement[P.since];
      hit(`p${thread.number}/${placement[P.item]}`, place(ordinal, `/named/${encodeURIComponent(placement[P.item])}`),
        `turn ${called(rows[ordinal])}, ${name}`, value, at);
      break;
    }
  }
}

async function inTexts({ first, id }, wanted, hit) {
  (await block(id)).forEach(([text, ordinal, item], n) => {
    const at = text.toLowerCase().indexOf(wanted);
    if (at >= 0) {
      hit(`c${first + n}`, place(ordinal, `/named/${encodeURIComponent(item)}`), `turn ${called(rows[ordinal])}, text of ${visible(item).slice(0, 60)}`, text, at);
    }
  });
}

function excerpt(text, at, length) {
  const from = Math.max(0, at - 40);
  const part = (start, end) => say(text.slice(start, end).replace(/\s+/g, ' '), 200);
  return el('span', {}, from ? '…' : '', part(from, at), el('mark', {}, part(at, at + length)),
    part(at + length, at + length + 80));
}
