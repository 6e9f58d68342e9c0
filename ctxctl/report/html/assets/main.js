// Opening the report, and going where the address says.

const meta = JSON.parse($('meta').textContent);
let going = 0;

function notice(text) {
  $('notice').textContent = text;
  $('notice').hidden = false;
}

// [ordinal, rest] of an address like #t2-turn-7.1/items; null where there is no such step.
function placeOf(hash) {
  const found = /^#(?:t(\d+)-)?turn-(\d+)(?:\.(\d+))?(?:\/(.*))?$/.exec(hash);
  if (found === null) return null;
  const thread = threads[Number(found[1] ?? 0)];
  if (thread === undefined) return null;
  const turn = Number(found[2]);
  const step = found[3] === undefined ? null : Number(found[3]);
  let low = lastBelow(thread.steps, turn - 1, (at) => rows[at][C.turn]);
  for (; low < thread.steps.length && rows[thread.steps[low]][C.turn] <= turn; low += 1) {
    const row = rows[thread.steps[low]];
    if (row[C.turn] === turn && (step === null || row[C.step] === step)) return [thread.steps[low], found[4] ?? ''];
  }
  return null;
}

async function madeFor(ordinal, rest) {
  const [what, name] = [rest.split('/')[0], rest.split('/').slice(1).join('/')];
  if (what === 'item') return showItem(ordinal, Number(name));
  if (what === 'named') return showNamed(ordinal, decodeURIComponent(name));
  return showStep(ordinal, TABS.some(([one]) => one === what) ? what : 'changes');
}

async function route() {
  going += 1;
  searching += 1;
  const mine = going;
  const hash = location.hash;
  const page = pagesOf().find(([name]) => '#' + name === hash);
  const found = placeOf(hash);
  document.body.classList.toggle('open', Boolean(page || found));
  let made;
  try {
    if (page) {
      made = showPage(page[0]);
    } else if (found) {
      select(found[0]);
      made = await madeFor(...found);
    } else if (rows.length) {
      const last = steps.at >= 0 ? steps.at : steps.shown[0];
      select(last);
      made = await madeFor(last, '');
      if (hash.length > 1) made.unshift(el('p', { class: 'notice' }, 'The report has no such place; this is ', el('a', { href: place(last) }, `turn ${address(rows[last])}`), '.'));
    } else {
      made = [el('p', { class: 'notice' }, 'The trace has no step.'), ...aboutPage()];
    }
  } catch (error) {
    made = [el('p', { class: 'notice' }, `This part of the report cannot be read: ${visible(String(error.message ?? error))}`)];
  }
  if (mine !== going) return;
  clear($('detail'), made);
  document.documentElement.dataset.shown = hash;
  $('detail').scrollTop = 0;
  if (document.body.classList.contains('open') && matchMedia('(max-width: 800px)').matches) scrollTo(0, 0);
}

function headLine() {
  const { header } = meta;
  const { summary } = index;
  const facts_ = [`${plural(summary?.turns ?? 0, 'turn')}, ${plural(rows.length + index.rest, 'step')}`];
  if (threads.length > 1) facts_.push(plural(threads.length, 'thread'));
  const cost = index.cost;
  if (priced(cost)) {
    const all = (money, sign) => cost.lower_bound ? atLeast(dollars(money.total), money.total) : sign + dollars(money.total);
    const money = cost.partial_outputs?.requests ? cost.partial_outputs.believed : cost.billed;
    const billed = cost.steps > cost.unreported_steps && money ? `${all(money, money === cost.billed ? '' : '≈')} billed` : null;
    facts_.push(billed ?? (cost.sent ? `${all(cost.sent, '')} in all` : 'cost not known'));
  }
  clear($('facts'), facts_.join(' · '), ' · format ', say(header.format, 40), ' · policy ', say(header.policy, 40),
    ' · tokens ', say(header.calibration?.method ?? header.encoding, 60),
    header.encoding_known || header.calibration ? '' : ' (assumed)', ' · target ', say(header.target, 30),
    header.learned ? [' · learned from ', say(`${header.learned.client} ${header.learned.version}`, 60)] : '',
    header.supposed ? ' · limits are supposed, so this is simulated' : '',
    index.texts.cut ? ` · ${plural(index.texts.cut, 'text')} cut` : '', index.texts.withheld ? ` · ${plural(index.texts.withheld, 'text')} withheld (redacted)` : '');
}

async function start() {
  theme();
  $('theme').addEventListener('click', turnTheme);
  if (typeof DecompressionStream === 'undefined') {
    notice('This browser cannot unpack the report: it lacks DecompressionStream (Chrome 80, Firefox 113, Safari 16.4 or later have it).');
    clear($('detail'));
    return;
  }
  try {
    await load();
  } catch (error) {
    notice(`The report cannot be read: ${visible(String(error.message ?? error))}`);
    clear($('detail'));
    return;
  }
  listenToKeys();
  $('help').addEventListener('click', () => $('keys').showModal());
  $('search').addEventListener('submit', (event) => {
    event.preventDefault();
    const words = $('query').value.trim();
    if (words) { document.body.classList.add('open'); search(words); }
  });
  headLine();
  if (index.rest) {
    const all = plural(rows.length + index.rest, 'step');
    notice(`This report holds the first ${number(rows.length)} of ${all}; sums, costs and findings are of all. `
      + 'ctxctl show TRACE@TURN.STEP shows each later step.');
  }
  showPages();
  if (rows.length) {
    $('list').hidden = false;
    showList(0);
  }
  $('scroll').addEventListener('scroll', () => requestAnimationFrame(paint), { passive: true });
  addEventListener('resize', () => requestAnimationFrame(paint));
  addEventListener('beforeprint', () => { steps.all = true; steps.range = ''; paint(); });
  addEventListener('afterprint', () => { steps.all = false; steps.range = ''; paint(); });
  addEventListener('hashchange', route);
  await route();
  document.documentElement.dataset.ready = 'true';
}

start();
