"""Where a long text may be cut without changing its tokens: facts about the two embedded patterns.

The patterns look ahead only behind white space and look behind nowhere, so a place where a pre-token is
sure to end separates two independent texts, unless white space other than a line end is before it.  Every
rule says in a comment why it holds; `tests/unit/tokens/test_tokens_cuts.py` holds each against tiktoken.
They hold for ordinary text (no special tokens) and these two patterns only, and use characters whose
Unicode class was settled long ago.
"""

from __future__ import annotations

import re
from typing import Final

_BLANKS: Final = (
    "\t\x0b\x0c \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)
_WHITE: Final = _BLANKS + "\r\n"
_DIGITS: Final = "0123456789"
_UPPER: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ALNUM: Final = frozenset(_DIGITS + _UPPER + _UPPER.lower())

# Ranges for character classes.
_SMALL: Final = "a-z\xdf-\xf6\xf8-\xff\u03b1-\u03c9\u0430-\u045f"
_LETTERS: Final = "A-Za-z\xc0-\xd6\xd8-\xf6\xf8-\u024f\u0391-\u03a1\u03a3-\u03c9\u0400-\u0481"
_NO_CASE: Final = "\u3041-\u3096\u30a1-\u30fa\u3400-\u4db5\u4e00-\u9fd5\uac00-\ud7a3"
_FULL_WIDTH: Final = "\u3001\u3002\uff0c\uff1a\uff1b\uff1f\uff01"
_SYMBOLS: Final = (
    r"!-.:-@\[-`{-~"
    + _FULL_WIDTH
    + "\u200d\u2190-\u22ff\u2500-\u26ff\ufffd\U0001f300-\U0001f64f\U0001f680-\U0001f6c5"
)
"""No white space, letters, numbers or marks; no slash, which may follow line ends in a pre-token."""

_HARD: Final = (
    # White space other than line ends only ever begins a pre-token, or is in one of nothing but white space.
    r"(?<=\S)(?=[ \t])"
    # No alternative continues a number with something else, or anything else with a number.
    r"|(?<=[0-9])(?=[!-/:-~])|(?<=[!-/:-~])(?=[0-9])"
    # Letters are followed by nothing but letters and contractions.
    r"|(?<=[A-Za-z])(?=[!-&(-/:-@\[-`{-~])"
    rf"|(?<=[{_NO_CASE}])(?=[{_FULL_WIDTH}])"
    # A line end is followed by white space or by slashes; one that ends a text ends a pre-token.
    r"|(?<=\n)(?=[!-.0-~])"
)
_HARD_IN: Final = {
    "cl100k_base": re.compile(_HARD),
    # Small letters are not followed by capitals, except in a contraction.
    "o200k_base": re.compile(_HARD + r"|(?<=[A-Za-z][a-z])(?=[A-Z])"),
}

# Four letters: a contraction may end after the second.  Two symbols: a single one may begin a word.
_SOFT_SYMBOLS: Final = rf"|(?<=[{_SYMBOLS}])(?=[/{_SYMBOLS}]{{2}})"
_SOFT_IN: Final = {
    "cl100k_base": re.compile(rf"(?<=[{_LETTERS}{_NO_CASE}]{{4}})(?=[{_LETTERS}{_NO_CASE}])" + _SOFT_SYMBOLS),
    "o200k_base": re.compile(rf"(?<=[{_SMALL}]{{4}})(?=[{_SMALL}])" + _SOFT_SYMBOLS),
}
_RUN: Final = re.compile(f"[{_WHITE}]*")
_BLANK: Final = re.compile(f"[{_BLANKS}]")
_SLASHES: Final = re.compile("(?<=/)(?=//)")
_CAPITALS: Final = re.compile(r"(?<=[A-Z]{4})(?=[A-Z])")
_NO_CASE_RUN: Final = re.compile(f"[{_NO_CASE}]*")
_NO_CAPITAL: Final = re.compile(rf"[\x00-@\[-\x7f{_FULL_WIDTH}]|\Z")

_NEXT: Final = 64
"""Characters before a limit among which most texts have a hard cut."""
_NEAR: Final = 4_096


class Cuts:
    """The cuts of one text.  Every method takes the text to begin at `at`, which is 0 or an earlier cut."""

    def __init__(self, base: str, text: str) -> None:
        self.text = text
        self._o200k = base == "o200k_base"
        self._hard = _HARD_IN[base]
        self._soft = _SOFT_IN[base]
        self._none_before = 0
        self._white = (0, 0, -1)
        self._no_case = (0, 0)

    def hard(self, at: int, limit: int) -> int | None:
        """A hard cut beyond `at` and not far below `limit` (which is inside the text), if there is one."""
        for near in (_NEXT, _NEAR):
            found = [m.start() for m in self._hard.finditer(self.text, max(at + 1, limit - near), limit)]
            if found:
                return found[-1]
        return self._among_digits(at, limit) or self._before_blanks(at, limit)

    def next_hard(self, at: int, limit: int) -> int | None:
        """The first hard cut worth having from `at` on, if there is one before `limit`."""
        match = self._hard.search(self.text, max(at + _NEAR, self._none_before), limit)
        self._none_before = match.start() if match else limit
        return match.start() if match else None

    def _among_digits(self, at: int, limit: int) -> int | None:
        # Numbers are taken by threes from where their run begins.
        if self.text[limit - 1] not in _DIGITS:
            return None
        start = at + len(self.text[at:limit].rstrip(_DIGITS))
        if start > at and not self.text[start - 1].isascii():
            return None
        cut = limit - (limit - start) % 3
        return cut if cut > start else None

    def _before_blanks(self, at: int, limit: int) -> int | None:
        # After a run's last line end, though at the end of a text cl100k_base takes the run whole.
        if limit >= len(self.text) or self.text[limit] not in _WHITE:
            return None
        _, end, last = self._white_run(limit)
        start = at + len(self.text[at:limit].rstrip(_WHITE))
        if last >= limit or (end == len(self.text) and not self._o200k):
            return None
        cut = max(self.text.rfind("\n", start, limit), self.text.rfind("\r", start, limit)) + 1
        return cut if cut > at else None

    def soft(self, at: int, cut: int) -> bool:
        """Whether `cut`, inside the text and beyond `at`, parts one pre-token into two texts of one each."""
        if self._soft.match(self.text, cut):
            return True
        if self.text[cut - 1] in _WHITE:
            return self.text[cut] in _WHITE and self._soft_in_white(at, cut)
        if self.text[cut - 1] == "/":
            return self._soft_in_slashes(at, cut)
        return self._o200k and (self._soft_in_capitals(at, cut) or self._soft_without_case(cut))

    def _soft_in_slashes(self, at: int, cut: int) -> bool:
        # Slashes after line ends are one with them and with the symbols before; other slashes are symbols.
        if not _SLASHES.match(self.text, cut):
            return False
        start = at + len(self.text[at:cut].rstrip("/"))
        return start == at or self.text[start - 1] not in "\r\n"

    def _soft_in_capitals(self, at: int, cut: int) -> bool:
        # With letters that are neither before the capitals, the small ones after them decide where it ends.
        if not _CAPITALS.match(self.text, cut):
            return False
        start = at + len(self.text[at:cut].rstrip(_UPPER))
        return start == at or self.text[start - 1].isascii()

    def _soft_without_case(self, cut: int) -> bool:
        # Capitals after such letters belong to them only if no small letter came before: the right half
        # could not know.
        run, end = self._no_case
        if not run <= cut - 1 < end:
            match = _NO_CASE_RUN.match(self.text, cut - 1)
            run, end = self._no_case = (cut - 1, match.end() if match else cut - 1)
        return cut < end and _NO_CAPITAL.match(self.text, end) is not None

    def _soft_in_white(self, at: int, cut: int) -> bool:
        text = self.text
        _, end, last = self._white_run(cut)
        start = at + len(text[at:cut].rstrip(_WHITE))
        at_end = end == len(text)
        line_end_before = text.find("\n", start, cut) >= 0 or text.find("\r", start, cut) >= 0
        if not line_end_before:
            # Blanks up to the last one before a word, or with all up to the run's last line end.
            return cut <= end - 2 or at_end
        if text[cut - 1] not in "\r\n":
            # Blanks after the last line end stand alone.  cl100k_base takes all white space at the end of a
            # text: there all is one, but anywhere else the left half would have become so.
            return at_end if not self._o200k else last < cut and (cut <= end - 2 or at_end)
        if last < cut:
            return False
        if start == at or text[start - 1] in _ALNUM or _BLANK.search(text, start, cut):
            # No symbol before the run can have taken these line ends, so all is one up to the last of them.
            return True
        return not _BLANK.search(text, cut, end) and (at_end or text[end] != "/" or not self._o200k)

    def _white_run(self, index: int) -> tuple[int, int, int]:
        """(where looked from, end, last line end or -1) of the white space around `index`."""
        start, end, _ = self._white
        if not start <= index < end:
            match = _RUN.match(self.text, index)
            end = match.end() if match else index
            last = max(self.text.rfind("\n", index, end), self.text.rfind("\r", index, end))
            self._white = (index, end, last)
        return self._white
