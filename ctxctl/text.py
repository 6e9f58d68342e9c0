"""Showing untrusted text: everything from a trace passes through `visible` on its way to a terminal.

The character classes are those of the Unicode categories (Cc, Cf, Cs, Zl, Zp) and of the code points that
Unicode lists as default-ignorable; ``tests/unit/test_text.py`` holds them against `unicodedata`.  They are
written out because walking all of Unicode at start-up costs more than a whole small replay.
"""

from __future__ import annotations

import codecs
import re
import sys
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

TAB: Final = 4
"""Tab stops, in cells."""

ELLIPSIS: Final = "…"
"""What `clip` puts where it cut; one cell."""

_ZWJ: Final = "\u200d"
_VS16: Final = "\ufe0f"
_LONGEST_JOIN: Final = 7
"""Joiners in one emoji sequence; the longest registered ones have four."""

# Everything that moves the cursor, turns text around or draws nothing.  Left out on purpose: the Cf number
# signs of Arabic and Kaithi (U+0600 ...), which are drawn.
_HIDDEN: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufdd0-\ufdef\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufffb\ufffe\uffff\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
    + "".join(f"{chr(p + 0xFFFE)}{chr(p + 0xFFFF)}" for p in range(0x10000, 0x110000, 0x10000))
)

# Emoji that U+FE0F turns from one cell to two (emoji-variation-sequences with a narrow base).
_WIDENED: Final = (
    "\xa9\xae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u2328\u23cf\u23ed-\u23ef\u23f1\u23f2"
    "\u23f8-\u23fa\u24c2\u25aa\u25ab\u25b6\u25c0\u25fb\u25fc\u2600-\u2604\u260e\u2611\u2618\u261d\u2620"
    "\u2622\u2623\u2626\u262a\u262e\u262f\u2638-\u263a\u2640\u2642\u265f\u2660\u2663\u2665\u2666\u2668"
    "\u267b\u267e\u2692\u2694-\u2697\u2699\u269b\u269c\u26a0\u26a7\u26b0\u26b1\u26c8\u26cf\u26d1\u26d3"
    "\u26e9\u26f0\u26f1\u26f4\u26f7-\u26f9\u2702\u2708\u2709\u270c\u270d\u270f\u2712\u2714\u2716\u271d"
    "\u2721\u2733\u2734\u2744\u2747\u2763\u2764\u27a1\u2934\u2935\u2b05-\u2b07\U0001f170\U0001f171"
    "\U0001f17e\U0001f17f\U0001f321\U0001f324-\U0001f32c\U0001f336\U0001f37d\U0001f396\U0001f397"
    "\U0001f399-\U0001f39b\U0001f39e\U0001f39f\U0001f3cb-\U0001f3ce\U0001f3d4-\U0001f3df\U0001f3f3"
    "\U0001f3f5\U0001f3f7\U0001f43f\U0001f441\U0001f4fd\U0001f549\U0001f54a\U0001f56f\U0001f570"
    "\U0001f573-\U0001f579\U0001f587\U0001f58a-\U0001f58d\U0001f590\U0001f5a5\U0001f5a8\U0001f5b1"
    "\U0001f5b2\U0001f5bc\U0001f5c2-\U0001f5c4\U0001f5d1-\U0001f5d3\U0001f5dc-\U0001f5de\U0001f5e1"
    "\U0001f5e3\U0001f5e8\U0001f5ef\U0001f5f3\U0001f5fa\U0001f6cb\U0001f6cd-\U0001f6cf"
    "\U0001f6e0-\U0001f6e5\U0001f6e9\U0001f6f0\U0001f6f3"
)
_WIDE_EMOJI: Final = (
    "\u231a\u231b\u23e9-\u23ec\u23f0\u23f3\u25fd\u25fe\u2614\u2615\u2648-\u2653\u267f\u2693\u26a1\u26aa\u26ab"
    "\u26bd\u26be\u26c4\u26c5\u26ce\u26d4\u26ea\u26f2\u26f3\u26f5\u26fa\u26fd\u2705\u270a\u270b\u2728\u274c"
    "\u274e\u2753-\u2755\u2757\u2795-\u2797\u27b0\u27bf\u2b1b\u2b1c\u2b50\u2b55\u3030\u303d\u3297\u3299"
    "\U0001f004\U0001f0cf\U0001f18e-\U0001f19a\U0001f201-\U0001f265\U0001f300-\U0001f3fa"
    "\U0001f400-\U0001faff"
)


FITTING: Final = "ctxctl-fitting"
"""As `errors` of `str.encode`: what an encoding has no character for becomes a backslash escape, but of the
marks of `visible` the brackets become ``<`` and ``>``."""
_MARK: Final = re.compile(r"⟨U\+[0-9A-F]{4,6}⟩")
_LONGEST_MARK: Final = 10
_BYTES: Final = re.compile("[\udc80-\udcff]+")
_NAMES_ARE_UTF8: Final = sys.getfilesystemencoding() == "utf-8"

_LINE: Final = re.compile(f"[\t\n{_HIDDEN}]")
_LINES: Final = re.compile(f"[{_HIDDEN}]")
_COLONS: Final = re.compile(r"(?m)^([^\S\n]*)::")
_HASHES: Final = re.compile(r"##(?=\[|vso\[)", re.IGNORECASE)
_PRINTABLE: Final = bytes(range(0x20, 0x7F))
_FEW: Final = 16
"""Different characters that are replaced one after the other."""
_PLAIN: Final = re.compile(
    "[ -~\u00a1-\u00ac\u00ae-\u02ff\u038e-\u03a1\u03a3-\u0482\u2010-\u2027\u2030-\u205e"
    "\u2100-\u218b\u2190-\u2319\u2460-\u25fc\u27c0-\u2b1a]*"
)
"""Letters of Latin, Greek and Cyrillic, and the marks, arrows and lines that our own words are made with."""
_BLANKS: Final = re.compile(r"(?: |\t|\r?\n)+")


@lru_cache(maxsize=2)
def _with_emoji(newline: bool) -> re.Pattern[str]:
    """The same classes, but whole emoji sequences match first; compiled only for texts that have a joiner."""
    one = f"[{_WIDENED}{_WIDE_EMOJI}]{_VS16}?[\U0001f3fb-\U0001f3ff]?"
    emoji = f"{one}(?:{_ZWJ}{one}){{0,{_LONGEST_JOIN}}}|[#*0-9]{_VS16}\u20e3"
    return re.compile(f"(?P<emoji>{emoji})|[{'' if newline else chr(9) + chr(10)}{_HIDDEN}]")


@lru_cache(maxsize=1)
def _widened() -> re.Pattern[str]:
    return re.compile(f"[#*0-9{_WIDENED}]")


def _picture(match: re.Match[str]) -> str:
    """The visible stand-in of one hidden character; an emoji sequence stays as it is."""
    found = match.group()
    code = ord(found[0])
    if match.lastgroup == "emoji":
        return found
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"⟨U+{code:04X}⟩"


def visible(s: str, *, newline: bool = False) -> str:
    """The text with everything invisible or dangerous to a terminal made visible; nothing is dropped.

    C0 controls become their pictures (U+2400 ...), DEL U+2421; C1, bidi and zero-width characters, tags, lone
    surrogates and noncharacters become ``⟨U+XXXX⟩``.  A zero-width joiner or U+FE0F stays only inside an
    emoji sequence.  With `newline`, line feeds stay and tabs are expanded to stops of `TAB` cells; without,
    both are pictures and the result is one line.  The result can always be encoded as UTF-8.

    Where Python takes names of files for another encoding (``LANG=C``, ``PYTHONUTF8=0``), bytes of a name
    that are UTF-8 are shown as the characters that they are.
    """
    if s.isascii() and (s.isprintable() or (newline and s.replace("\n", "").isprintable())):
        return s
    if not _NAMES_ARE_UTF8:
        s = _BYTES.sub(_read_as_utf8, s)
    joined = _ZWJ in s or _VS16 in s
    if newline:
        shown = (_with_emoji(True) if joined else _LINES).sub(_picture, s)
        return _expand(shown) if "\t" in shown else shown
    return (_with_emoji(False) if joined else _LINE).sub(_picture, s)


def _read_as_utf8(match: re.Match[str]) -> str:
    return match[0].encode("ascii", "surrogateescape").decode("utf-8", "surrogateescape")


def _fitting(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object
    return "".join(_escaped(text, at) for at in range(error.start, error.end)), error.end


def _escaped(text: str, at: int) -> str:
    """What stands in ASCII for the character at a place."""
    if text[at] == "⟨" and _MARK.match(text, at):
        return "<"
    if text[at] == "⟩":
        begin = text.rfind("⟨", max(0, at - _LONGEST_MARK), at)
        if begin >= 0 and _MARK.fullmatch(text, begin, at + 1):
            return ">"
    return text[at].encode("ascii", "backslashreplace").decode()


codecs.register_error(FITTING, _fitting)


def _expand(s: str) -> str:
    """Tabs to spaces, with stops counted in cells."""
    lines = s.split("\n")
    for n, line in enumerate(lines):
        if line.isascii():
            lines[n] = line.expandtabs(TAB)
        elif "\t" in line:
            parts = line.split("\t")
            width = 0
            for k, part in enumerate(parts[:-1]):
                width += cells(part)
                gap = TAB - width % TAB
                parts[k] = part + " " * gap
                width += gap
            lines[n] = "".join(parts)
    return "\n".join(lines)


@lru_cache(maxsize=8192)
def _width(char: str) -> int:
    """Cells of one character on its own: 0, 1 or 2."""
    code = ord(char)
    category = unicodedata.category(char)
    if category == "Cn":  # unassigned in this Python: later emoji and ideographs are wide
        return 2 if 0x1F300 <= code <= 0x1FAFF or 0x20000 <= code <= 0x3FFFD else 1
    if category[0] == "M" or 0x1160 <= code <= 0x11FF or 0xD7B0 <= code <= 0xD7FB:
        return 0
    if category in ("Cc", "Cs") or 0x1F3FB <= code <= 0x1F3FF or _LINES.match(char):
        return 0
    if (
        0x2630 <= code <= 0x2637
        or 0x268A <= code <= 0x268F
        or 0x4DC0 <= code <= 0x4DFF
        or 0x1D300 <= code <= 0x1D376
    ):
        return 2  # wide since Unicode 16, whatever this Python's table says
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _widths(s: str) -> Iterator[int]:
    """Cells that each character of `s` adds, in its place."""
    last = ""
    joined = False
    for char in s:
        if joined:
            joined = False
            yield 0
        elif char == _ZWJ:
            joined = True
            yield 0
        elif char == _VS16:
            yield 1 if last and _widened().match(last) else 0
            last = ""
        else:
            width = _width(char)
            last = char if width else last
            yield width


def is_plain(s: str) -> bool:
    """Whether each character takes one cell, whatever stands beside it; of some that do, nobody knows it."""
    return s.isprintable() if s.isascii() else _PLAIN.fullmatch(s) is not None


def cells(s: str) -> int:
    """Terminal cells that one line of shown text takes (what `visible` returned; other controls count 0)."""
    return len(s) if is_plain(s) else sum(_widths(s))


def clip(s: str, width: int) -> str:
    """The text cut to at most `width` cells, the last of them an ellipsis where something was cut.

    `s` is shown text.  Work is proportional to `width`, not to the text.
    """
    if width <= 0:
        return ""
    if len(s) <= width and s.isascii():
        return s
    if is_plain(s[: width + 1]):
        return s if len(s) <= width else s[: width - 1] + ELLIPSIS
    total = 0
    keep = 0
    for n, w in enumerate(_widths(s)):
        total += w
        if total > width:
            return s[:keep].rstrip(_ZWJ) + ELLIPSIS
        if total < width:
            keep = n + 1
    return s


def pad(s: str, width: int, *, right: bool = False) -> str:
    """Shown text clipped and filled with blanks to exactly `width` cells; `right` aligns it to the right."""
    s = clip(s, width)
    gap = " " * (width - cells(s))
    return gap + s if right else s + gap


def preview(s: str, width: int) -> str:
    """One line that stands for a raw text: blanks and line ends run together, made visible, clipped.

    Looks at a bounded beginning of `s` only.
    """
    head = s[: max(width, 0) * 4 + 256]
    line = visible(_BLANKS.sub(" ", head).strip(" "))
    if len(head) < len(s) and cells(line) < width:
        line += ELLIPSIS
    return clip(line, width)


def pasted(word: str) -> str:
    """A word as it can be copied into a shell: in quotes where those are needed, and made visible."""
    from shlex import quote

    return visible(quote(word))


def inert(s: str) -> str:
    """Shown text without anything that a CI system takes for a command when it stands in a log.

    ``::`` works at the start of a line (blanks before it or not), ``##[`` and ``##vso[`` anywhere; one
    character of each becomes its ``⟨U+XXXX⟩``.
    """
    if "::" in s:
        s = _COLONS.sub("\\1⟨U+003A⟩:", s)
    return _HASHES.sub("#⟨U+0023⟩", s) if "##" in s else s


def json_safe(line: bytes) -> bytes:
    """The same JSON, in UTF-8, with what `visible` and `inert` would change as ``\\uXXXX`` escapes."""
    # Most of a line is printable ASCII, which need not go through the pattern of all that is hidden; what
    # else is ASCII JSON escapes, but for DEL.
    plain = line.isascii() and b"\x7f" not in line
    hidden = set() if plain else set(_LINES.findall(line.translate(None, _PRINTABLE).decode()))
    if len(hidden) <= _FEW:
        for char in hidden:
            line = line.replace(char.encode(), _escape(char).encode())
    else:
        line = _LINES.sub(lambda match: _escape(match.group()), line.decode()).encode()
    return _HASHES.sub("#\\\\u0023", line.decode()).encode() if b"##" in line else line


def _escape(char: str) -> str:
    code = ord(char)
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
