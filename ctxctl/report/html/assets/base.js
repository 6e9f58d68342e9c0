// Elements are made of text nodes only: no text of the trace is ever parsed as markup.

const $ = (id) => document.getElementById(id);
const SVG = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'on') {
      for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
    } else if (name === 'href') {
      if (value.startsWith('#')) node.setAttribute('href', value);
    } else {
      node.setAttribute(name, value === true ? '' : String(value));
    }
  }
  for (const child of children.flat(2)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const clear = (node, ...children) => { node.replaceChildren(...children.flat(2).filter(Boolean)); return node; };

// Text of the trace in a line: made visible, cut, and kept from turning its neighbours around.
function say(text, most = 300) {
  const shown = visible(String(text));
  const cut = shown.length > most ? shown.slice(0, most) + '…' : shown;
  return el('bdi', shown.length > most ? { title: shown.slice(0, 2000) } : {}, cut);
}

const commas = new Intl.NumberFormat('en-US');
const number = (n) => (n === null || n === undefined ? '-' : commas.format(n).replace('-', '−'));
const signed = (n) => (n > 0 ? '+' + number(n) : number(n));
const plural = (n, word) => `${number(n)} ${word}${n === 1 ? '' : 's'}`;
const cents = new Intl.NumberFormat('en-US', { minimumFractionDigits: 4, maximumFractionDigits: 4 });

// The wording of ctxctl/wording.py; LABELS are its tables.
function dollars(amount) {
  if (amount === null || amount === undefined) return '-';
  const sign = Number(amount) < 0 ? '−' : '', size = Math.abs(Number(amount));
  if (size && size < 0.0001) return `${sign ? 'above' : 'under'} ${sign}$0.0001`;
  return sign + '$' + cents.format(size);
}

// A lower bound; of a tiny amount its first digit, because "at least under" says nothing.
function atLeast(text, amount) {
  if (!text.startsWith('under')) return `≥${text}`;
  const [digits, power] = Number(amount).toExponential().split('e');
  return `≥$0.${'0'.repeat(-power - 1)}${digits[0]}${text.slice('under $0.0001'.length)}`;
}

function short(n) {
  const size = Math.abs(n);
  const sign = n < 0 ? '−' : '';
  for (const [unit, letter] of [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']]) {
    if (size >= unit) return sign + (size >= 100 * unit ? Math.floor(size / unit) : (Math.floor((size * 10) / unit) / 10).toFixed(1)) + letter;
  }
  return sign + size;
}


// A size with how it is known: about so much where it was not billed.
function sized(row) {
  return (row[C.method] === 1 ? 'about ' : '') + number(row[C.used]) + (row[C.method] === 2 ? ' recorded' : '');
}

function shareOf(part, whole) {
  if (!whole) return '-';
  const value = (100 * part) / whole, size = Math.abs(value), sign = value < 0 ? '−' : '';
  if (!value) return '0%';
  if (size < 0.05) return `${sign ? 'above' : 'under'} ${sign}0.1%`;
  let text = size.toFixed(1);
  if (Number(text) >= 10) text = size.toFixed(0);
  if (Number(text) === 100 && size !== 100) text = size.toFixed(1);
  if (Number(text) === 100 && size !== 100) text = size > 100 ? '100.1' : '99.9';
  return `${sign}${Number(text) >= 1000 ? commas.format(Number(text)) : text}%`;
}

const SIGNS = LABELS.signs;
const own = (object, key) => Object.prototype.hasOwnProperty.call(object, key);

function status(name) {
  const known = own(SIGNS, name);
  return el('span', { class: 'status ' + (known ? name : 'other') }, (known ? SIGNS[name] : '?') + ' ', say(name, 20));
}

// A table that scrolls in itself when it is too wide; cells are texts or nodes.
function table(caption, heads, rows, classes = '') {
  const head = heads.map((h) => el('th', { scope: 'col', class: h.right ? 'right' : null }, h.name));
  const body = rows.map((row) => el('tr', {}, row.map((cell, n) =>
    el('td', { class: heads[n].right ? 'right' : null }, cell))));
  const name = caption instanceof Node ? caption.textContent : caption;
  return el('div', { class: 'wide', tabindex: '0', role: 'region', 'aria-label': name },
    el('table', { class: classes }, el('caption', {}, caption), el('thead', {}, el('tr', {}, head)),
      el('tbody', {}, body)));
}

function facts(pairs) {
  const list = el('dl', { class: 'pairs' });
  for (const [name, value] of pairs) {
    if (value === null || value === undefined || value === '') continue;
    list.append(el('dt', {}, name), el('dd', {}, value));
  }
  return list;
}

// Any JSON value of the trace as a tree of text.
function tree(value, depth = 0) {
  if (value === null || typeof value !== 'object') return say(value === null ? 'null' : value, 600);
  const entries = Array.isArray(value) ? value.map((v, n) => [n, v]) : Object.entries(value);
  if (depth > 12) return el('span', { class: 'quiet' }, '…');
  if (!entries.length) return el('span', { class: 'quiet' }, Array.isArray(value) ? '[]' : '{}');
  if (Array.isArray(value) && value.every((v) => v === null || typeof v !== 'object') && value.length <= 40) {
    return el('span', {}, value.map((v, n) => [n ? ', ' : '', say(v === null ? 'null' : v, 300)]));
  }
  const shown = entries.slice(0, 200).map(([name, one]) =>
    el('li', {}, el('span', { class: 'quiet' }, say(name, 80), ': '), tree(one, depth + 1)));
  if (entries.length > 200) shown.push(el('li', { class: 'quiet' }, `… and ${number(entries.length - 200)} more`));
  return el('ul', { class: 'tree' }, shown);
}
