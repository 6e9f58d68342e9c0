// What is said of the whole session.

const PAGES = [['findings', 'Findings'], ['costs', 'Costs'], ['problems', 'Problems'], ['about', 'About']];

function pagesOf() {
  return PAGES.filter(([name]) => (name === 'findings' ? index.findings.length : name === 'problems' ? index.problem_count : true));
}

function showPages() {
  clear($('pages'), pagesOf().map(([name, label]) => {
    const count = name === 'findings' ? index.findings.length : name === 'problems' ? index.problem_count : null;
    return el('a', { href: '#' + name }, label, count === null ? null : ` ${number(count)}`);
  }));
}

function showPage(name) {
  const made = [el('a', { class: 'back', href: '#' }, '← steps')];
  if (name === 'costs') made.push(...costsPage());
  else if (name === 'problems') made.push(...problemsPage());
  else if (name === 'findings') made.push(...findingsPage());
  else made.push(...aboutPage());
  return made;
}

// Whether a price is known at all: an empty name stands for requests that cost nothing whatever the price.
const priced = (cost) => Object.keys(cost.prices_from).some((name) => name !== '');

function summed(money) {
  if (!money) return 'not priced';
  const parts = ['input', 'cached', 'written', 'written_1h', 'output'].filter((n) => Number(money[n])).map((n) => `${n} ${dollars(money[n])}`);
  return dollars(money.total) + (parts.length ? ` (${parts.join(', ')})` : '');
}

const tokensOf = (t) => Object.entries(t ?? {}).filter(([, n]) => n).map(([name, n]) => `${number(n)} ${name}`).join(', ') || 'none';

const partialOutputs = (some) => `output of ${plural(some.requests, 'request')} was logged before the answer's end: `
  + `${number(some.reported)} reported, ${number(some.counted)} counted`;

function costsPage() {
  const cost = index.cost;
  const known = priced(cost);
  const reported = cost.steps - cost.unreported_steps;
  const counted = cost.partial_outputs?.requests || cost.unreported_steps > cost.unsized_steps;
  const bound = (money) => least(cost, summed(money), money?.total);
  const made = [el('h2', {}, 'Costs'), facts([
    ['billed', reported ? `${known ? bound(cost.billed) : 'not priced'}; ${tokensOf(cost.billed_tokens)}; ${number(reported)} of ${plural(cost.steps, 'step')}`
      : 'no usage was read'],
    ['estimated', counted ? `${cost.sent ? `${cost.lower_bound ? '' : '≈'}${bound(cost.sent)}` : 'not priced'}; ${tokensOf(cost.sent_tokens)}` : null],
    ['outputs', cost.partial_outputs ? partialOutputs(cost.partial_outputs) : null],
    ['not known', cost.unsized_steps ? `what ${plural(cost.unsized_steps, 'request')} cost: no bill tells how much was sent besides what is recorded` : null],
    ['recorded', `${known ? summed(cost.counted) : 'not priced'}; ${tokensOf(cost.counted_tokens)}`],
    ['cache breaks', Number(cost.cache_breaks) ? `${dollars(cost.cache_breaks)}, derived` : null],
    ['cache misses', Object.entries(cost.cache_misses.by_cause).map(([cause, sum]) =>
      el('div', {}, `${cause} ${number(sum.count)}: ${sum.unpriced < sum.count ? dollars(sum.usd) : 'not priced'}, ${number(sum.tokens)} tokens, derived`))],
    ['saved', Number(cost.saved) ? `${dollars(cost.saved)}, derived` : null],
    ['prices from', Object.entries(cost.prices_from).filter(([name]) => name).map(([name, n]) => `${name} (${plural(n, 'step')})`).join(', ') || 'none are known'],
    ['unpriced', Object.entries(cost.unpriced_steps).map(([why, n]) => el('div', {}, `${plural(n, 'step')}: `, say(why)))],
    ['assumed', [...Object.entries(cost.assumed).map(([what, n]) => el('div', {}, `${plural(n, 'step')}: `, say(what))),
      ...cost.notes.map((note) => el('div', {}, say(note)))]]].filter(([, v]) => !Array.isArray(v) || v.length))];
  if (index.spent.length) {
    made.push(table('What the context was spent on, by kind', [{ name: 'kind' }, { name: 'steps', right: true }, { name: 'tokens', right: true },
      { name: 'cost', right: true }], index.spent.map((one) => [say(one.name, 60), number(one.steps), one.tokens === null ? '-' : least(one, number(one.tokens)),
      known && one.cost !== null ? least(one, dollars(one.cost), one.cost) : '-'])));
  }
  return made;
}

// A sum without the items of unknown size.
function least(one, text, amount) {
  return one.lower_bound ? atLeast(text, amount) : text;
}

function problemsPage() {
  const made = [el('h2', {}, 'Problems in the trace')];
  if (index.problem_count > index.problems.length) {
    made.push(el('p', { class: 'quiet' }, `The first ${number(index.problems.length)} of ${number(index.problem_count)}.`));
  }
  made.push(longTable('Problems', [{ name: 'line', right: true }, { name: 'problem' }, { name: 'message' }], index.problems,
    (one) => [one.line ? number(one.line) : '', say(one.slug, 60), say(one.message, 600)]));
  return made;
}

function aboutPage() {
  const { header } = meta;
  const { summary, texts } = index;
  const made = [el('h2', {}, 'About this report'), facts([['trace', say(header.trace)], ['format', say(header.format)], ['policy', say(header.policy)],
    ['model', header.model ? say(header.model) : 'as recorded'], ['encoding', [say(header.encoding), header.encoding_known ? '' : ' (assumed)']],
    ['assumed', header.assumed ? say(header.assumed) : 'nothing'], ['target', say(header.target)], ['supposed', header.supposed && tree(header.supposed)],
    ['learned', header.learned && tree(header.learned)],
    ['ctxctl', say(header.ctxctl)], ['models in the trace', index.models.length ? index.models.flatMap((m, n) => [n ? ', ' : '', say(m, 60)]) : 'none is named'],
    ['texts', `${number(texts.count)} different ones, ${number(texts.characters)} characters`],
    ['cut', texts.cut ? `${plural(texts.cut, 'text')}, ${number(texts.left_out)} characters left out: more than --max-content` : null],
    ['withheld', texts.withheld ? `${plural(texts.withheld, 'text')} that say what was redacted` : null]])];
  if (summary) {
    made.push(el('h3', {}, 'Totals'), facts([['sessions', number(summary.sessions)], ['threads', number(summary.threads)],
      ['turns', number(summary.turns)], ['steps', number(summary.steps)], ['events', number(summary.events)],
      ['tokens by method', summary.by_method && tree(summary.by_method)]]));
  }
  for (const one of index.fidelity ?? []) {
    made.push(el('h3', {}, 'What the capture told: ', say(one.format ?? 'unknown format', 60)));
    const levels = [...new Set(Object.values(one.facts).flatMap((found) => Object.keys(found)))];
    made.push(table(`Of ${plural(one.requests, 'request')}`, [{ name: 'fact' }, ...levels.map((name) => ({ name: visible(name).replace('_', ' '), right: true }))],
      Object.entries(one.facts).map(([fact, found]) => [say(fact.replaceAll('_', ' '), 60), ...levels.map((name) => number(found[name] ?? 0))])));
  }
  return made;
}

function findingsPage() {
  const made = [el('h2', {}, 'Findings')];
  for (const one of index.findings) {
    const known = [one.ordinal, ...one.more].filter((n) => n !== null && rows[n] !== undefined);
    const at = known.length === 0 ? (one.line ? `line ${number(one.line)}` : null)
      : known.map((n, k) => [k ? ', ' : '', el('a', { href: one.item ? place(n, `/named/${encodeURIComponent(one.item)}`) : place(n) }, `turn ${called(rows[n])}`)]);
    made.push(el('article', { class: 'finding ' + (['error', 'warning', 'info'].includes(one.severity) ? one.severity : 'info') },
      el('h3', {}, say(one.code, 20), ' ', say(one.severity, 20), ' ', el('span', { class: 'quiet' }, say(one.name, 60))),
      el('p', {}, say(one.message, 1000)), el('p', { class: 'quiet' }, say(one.fix, 1000)),
      facts([[one.count > 1 ? 'first at' : 'at', at], ['places', one.count > 1 ? number(one.count) : null], ['item', one.item && say(one.item)],
        ['tokens', one.tokens === null ? null : number(one.tokens)], ['cost', one.money === null ? null : one.money],
        ['reckoned', one.note && say(one.note)]])));
  }
  return made;
}
