"""Where a long text may be cut without changing its tokens: facts about the two embedded patterns.

The patterns look ahead only behind white space and look behind nowhere, so a place where a pre-token is sure to end
separates two independent texts unless it has white space before it.  Every rule says in a comment why it holds;
`tests/unit/test_tokens_cuts.py` holds each of them against tiktoken.  They hold for ordinary text (no special
tokens), for these two patterns only, and use only characters whose Unicode class has been settled for long.
"""

from __future__ import annotations

import re
from typing import Final

_HORIZONTAL: Final = "\t\x0b\x0c \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_WHITE: Final = "\t\x0b\x0c \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000\r\n"
_FULL_WIDTH: Final = "\u3001\u3002\uff0c\uff1a\uff1b\uff1f\uff01"
_LO: Final = "\u3041-\u3096\u30a1-\u30fa\u3400-\u4db5\u4e00-\u9fd5\uac00-\ud7a3"
_SYMBOLS: Final = (
    "!-.:-@\\[-`{-~" + _FULL_WIDTH + "\u200d\ufffd\u2190-\u22ff\u2500-\u26ff\U0001f300-\U0001f64f\U0001f680-\U0001f6c5"
)
"""No white space, letter, number or mark among them, and no slash, which may follow line ends in a pre-token."""

BLANKS: Final = re.compile(f"[{_HORIZONTAL}]{{400000}}")
_RUN: Final = re.compile(f"[{_HORIZONTAL}\r\n]*")
_BLANK: Final = re.compile(f"[{_HORIZONTAL}]")
_LO_RUN: Final = re.compile(f"[{_LO}]*")
_DIGITS: Final = "0123456789"
_UPPER: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

_HARD: Final = (
    # White space other than line ends only ever begins a pre-token, or is in one of nothing but white space.
    r"(?<=\S)(?=[ \t])"
    # No alternative continues a number with something else, or anything else with a number.
    r"|(?<=[0-9])(?=[!-/:-~])|(?<=[!-/:-~])(?=[0-9])"
    # Letters are followed by nothing but letters and contractions.
    r"|(?<=[A-Za-z])(?=[!-&(-/:-@\[-`{-~])"
    rf"|(?<=[{_LO}])(?=[{_FULL_WIDTH}])"
    # A line end is followed by white space or line ends, or by slashes; one that ends a text ends a pre-token.
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
    "cl100k_base": re.compile(rf"(?<=[A-Za-z{_LO}]{{4}})(?=[A-Za-z{_LO}])" + _SOFT_SYMBOLS),
    "o200k_base": re.compile(r"(?<=[a-z]{4})(?=[a-z])" + _SOFT_SYMBOLS),
}
_CAPITALS: Final = re.compile(r"(?<=[A-Z]{4})(?=[A-Z])")
_PLAIN_AFTER_LO: Final = re.compile(rf"[\x00-@\[-\x7f{_FULL_WIDTH}]|\Z")

_NEAR: Final = 4_096


class Cuts:
    """The cuts of one text.  In every method the text is taken to begin at `at`, which is 0 or an earlier cut."""

    def __init__(self, base: str, text: str) -> None:
        self.text = text
        self._capitals_end_words = base == "o200k_base"
        self._hard = _HARD_IN[base]
        self._soft = _SOFT_IN[base]
        self._white = (0, 0, -1)
        self._lo = (0, 0)

    def hard(self, at: int, limit: int) -> int | None:
        """A hard cut not far below `limit` (which is inside the text), if there is one; always beyond `at`."""
        found = None
        for match in self._hard.finditer(self.text, max(at + 1, limit - _NEAR), limit):
            found = match.start()
        return found or self._among_digits(at, limit) or self._before_blanks(at, limit)

    def next_hard(self, at: int, limit: int) -> int | None:
        """The first hard cut worth having from `at` on, if there is one before `limit`."""
        match = self._hard.search(self.text, at + _NEAR, limit)
        return match.start() if match else None

    def _among_digits(self, at: int, limit: int) -> int | None:
        # Numbers are taken by threes from where their run begins.
        if self.text[limit - 1] not in _DIGITS:
            return None
        start = at + len(self.text[at:limit].rstrip(_DIGITS))
        if start > at and not self.text[start - 1].isascii():
            return None
        cut = limit - (limit - start) % 3
        return cut if cut > at else None

    def _before_blanks(self, at: int, limit: int) -> int | None:
        # After the last line end of a run of white space; at the end of a text cl100k_base takes the run whole.
        if limit >= len(self.text) or self.text[limit] not in _WHITE:
            return None
        _, end, last = self._white_run(limit)
        start = at + len(self.text[at:limit].rstrip(_WHITE))
        if last >= limit or (end == len(self.text) and not self._capitals_end_words):
            return None
        cut = max(self.text.rfind("\n", start, limit), self.text.rfind("\r", start, limit)) + 1
        return cut if cut > at else None

    def soft(self, at: int, cut: int) -> bool:
        """Whether `cut`, inside the text and beyond `at`, parts one pre-token into two texts of one each."""
        if self._soft.match(self.text, cut):
            return True
        if self.text[cut - 1] in _WHITE and self.text[cut] in _WHITE:
            return self._soft_in_white(at, cut)
        return self._capitals_end_words and (self._soft_in_capitals(at, cut) or self._soft_in_lo(cut))

    def _soft_in_capitals(self, at: int, cut: int) -> bool:
        # A letter that is neither small nor capital may end a pre-token earlier once the small ones are cut off.
        if not _CAPITALS.match(self.text, cut):
            return False
        start = at + len(self.text[at:cut].rstrip(_UPPER))
        return start == at or self.text[start - 1].isascii()

    def _soft_in_lo(self, cut: int) -> bool:
        # Capitals after such letters belong to them only if no small letter came before: the rest could not know.
        run, end = self._lo
        if not run <= cut - 1 < end:
            match = _LO_RUN.match(self.text, cut - 1)
            run, end = self._lo = (cut - 1, match.end() if match else cut - 1)
        return cut < end and _PLAIN_AFTER_LO.match(self.text, end) is not None

    def _soft_in_white(self, at: int, cut: int) -> bool:
        text = self.text
        _, end, last = self._white_run(cut)
        start = at + len(text[at:cut].rstrip(_WHITE))
        at_end = end == len(text)
        line_end_before = text.find("\n", start, cut) >= 0 or text.find("\r", start, cut) >= 0
        if not line_end_before:
            # Blanks up to the last one before a word, or with all that follows up to the run's last line end.
            return cut <= end - 2 or at_end
        if text[cut - 1] not in "\r\n":
            # Blanks after the run's last line end; the text before would have both in one under cl100k_base.
            return self._capitals_end_words and last < cut and (cut <= end - 2 or at_end) and text[cut - 1] != "\n"
        if last < cut:
            return False
        if start == at or text[start - 1] in _ALNUM or _BLANK.search(text, start, cut):
            # No symbol before the run can have taken these line ends, so all is one up to the last of them.
            return True
        return not _BLANK.search(text, cut, end) and (at_end or text[end] != "/")

    def _white_run(self, index: int) -> tuple[int, int, int]:
        """(where looked from, end, last line end or -1) of the run of white space that `index` is in."""
        start, end, _ = self._white
        if not start <= index < end:
            match = _RUN.match(self.text, index)
            end = match.end() if match else index
            last = max(self.text.rfind("\n", index, end), self.text.rfind("\r", index, end))
            self._white = (index, end, last)
        return self._white


_ALNUM: Final = frozenset(_DIGITS + _UPPER + _UPPER.lower())
