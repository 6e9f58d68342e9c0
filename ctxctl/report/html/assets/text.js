// What draws nothing or turns text around is made visible, as the command line does it.

const HIDDEN = '\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5' +
  '\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\u{d800}-\\u{dfff}\\ufdd0-\\ufdef' +
  '\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb\\ufffe\\uffff\\u{13430}-\\u{1343f}\\u{1bca0}-\\u{1bca3}' +
  '\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}' +
  Array.from({ length: 16 }, (_, n) => {
    const plane = (n + 1) * 0x10000;
    return `\\u{${(plane + 0xfffe).toString(16)}}\\u{${(plane + 0xffff).toString(16)}}`;
  }).join('');
const PLAIN = /^[\x20-\x7e]*$/;
const PLAIN_LINES = /^[\x20-\x7e\n]*$/;
const PICTURE = '\\p{Extended_Pictographic}\\ufe0f?[\\u{1f3fb}-\\u{1f3ff}]?';
const EMOJI = `(?:${PICTURE})(?:\\u200d(?:${PICTURE})){0,7}|[#*0-9]\\ufe0f\\u20e3`;
const LINE = new RegExp(`(${EMOJI})|[\\t\\n${HIDDEN}]`, 'gu');
const LINES = new RegExp(`(${EMOJI})|[\\t${HIDDEN}]`, 'gu');

function picture(found, emoji) {
  if (emoji !== undefined) return found;
  const code = found.codePointAt(0);
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return '␡';
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
}

// One line: tabs and line ends are pictures too.
const visible = (text) => (PLAIN.test(text) ? text : text.replace(LINE, picture));

// Many lines: line ends stay, tabs are drawn as tabs by the style sheet.
const visibleLines = (text) => (PLAIN_LINES.test(text) ? text
  : text.replace(LINES, (found, emoji) => (found === '\t' ? found : picture(found, emoji))));

const SHOWN_AT_FIRST = 100000;

// A long text in a box; what would make the browser slow is shown on demand.
function body(text, classes = 'text') {
  const pre = el('pre', { class: classes, dir: 'ltr', tabindex: '0' });
  let shown = 0;
  const more = el('button', { type: 'button', on: { click: () => grow() } });
  const holder = el('div', {}, pre, more);
  function grow() {
    let end = Math.min(text.length, shown + SHOWN_AT_FIRST * (shown ? 10 : 1));
    if (end < text.length && /[\ud800-\udbff]/.test(text[end - 1])) end += 1;
    pre.append(document.createTextNode(visibleLines(text.slice(shown, end))));
    shown = end;
    const left = text.length - shown;
    more.hidden = left <= 0;
    more.textContent = `Show more: ${number(left)} characters left`;
  }
  grow();
  return holder;
}
