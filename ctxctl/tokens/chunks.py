"""Counting a long text piece by piece, with the same result as counting it whole, or saying so.

tiktoken first splits a text by a pattern into pre-tokens, then merges byte pairs inside each.  Two things
go wrong with long texts: a run of a million blanks makes its pattern engine panic (not an Exception, and it
writes to stderr), and a pre-token of millions of letters takes n log n time and hundreds of megabytes.  So
nothing longer than `LIMIT` is ever handed to it, and less than that wherever a cut can be shown to change
nothing:

- *Hard* cuts (`cuts.Cuts.hard`) lie where a pre-token always ends: both sides count as before.
- *Soft* cuts (`cuts.Cuts.soft`) lie inside a pre-token, where the halves are one pre-token each.  Merging
  takes the lowest rank first, leftmost among equals, so on either side of a place that no merge crosses it
  proceeds as if the other side were not there.  Hence the tokens up to a boundary between two are those of
  the text up to there.  And the tokens of the whole are those of the left and then those of the right, if
  the last on the left and the first on the right stay apart when merged on their own: the first merge across
  the cut would join a tail of the one with a head of the other, after the very same merges inside the two.
- Any other cut makes the count an estimate, off by a token or so for each of them.

After a hard or soft cut the rest of the text is a problem of its own, in which what was before plays no part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ctxctl.tokens.cuts import Cuts
from ctxctl.tokens.ranks import ranks

if TYPE_CHECKING:
    import tiktoken

DIRECT: Final = 131_072
"""Characters; a text up to this long is counted whole."""

STRIDE: Final = 65_536
"""Characters that are counted at a time in a longer text."""

LIMIT: Final = 524_288
"""Characters; a stretch without any cut is counted whole up to this length, and estimated beyond it.

tiktoken gets nothing longer, so the 999,999 blanks at which its pattern engine panics never reach it.
"""

_OVERLAP: Final = 512
"""Characters between a soft cut and the end of the text that chose it: merges near that end are not final."""


def count_tokens(encoding: tiktoken.Encoding, base: str, text: str) -> tuple[int, bool]:
    """(tokens, exact) of a text without surrogates, under an encoding that uses the ranks called `base`."""
    if len(text) <= DIRECT:
        return len(encoding.encode_ordinary(text)), True
    return _Long(encoding, base, Cuts(base, text)).count()


class _Long:
    """One pass over one long text."""

    def __init__(self, encoding: tiktoken.Encoding, base: str, cuts: Cuts) -> None:
        self._encoding = encoding
        self._base = base
        self._cuts = cuts
        self._text = cuts.text
        self._total = 0
        self._exact = True
        self._beside: tuple[int, int] | None = None
        """After a soft cut: the last token before it, and the one that followed there."""

    def count(self) -> tuple[int, bool]:
        at = 0
        while len(self._text) - at > DIRECT:
            at = self._advance(at)
        self._take(at, len(self._text))
        return self._total, self._exact

    def _advance(self, at: int) -> int:
        """Count from `at` up to some later cut, and return that."""
        end = self._cuts.hard(at, at + STRIDE)
        if end is not None:
            return self._take(at, end)
        end = next(
            (each for each in range(at + STRIDE, at + STRIDE - 64, -1) if self._cuts.soft(at, each)), None
        )
        if end is not None:
            return self._take_softly(at, end)
        end = self._cuts.next_hard(at, min(at + LIMIT, len(self._text)))
        if end is None and len(self._text) - at <= LIMIT:
            end = len(self._text)
        if end is not None:
            return self._take(at, end)
        self._exact = False
        return self._take(at, at + STRIDE)

    def _take(self, at: int, end: int) -> int:
        """Count all of text[at:end]."""
        self._total += len(self._encode(at, end))
        return end

    def _take_softly(self, at: int, end: int) -> int:
        """Count text[at:end] up to a boundary between two tokens that is a soft cut, well before `end`."""
        tokens = self._encode(at, end)
        chars = 0
        # The overlap is longer than any token, so no half was looked up whole instead of being merged.
        for index in range(len(tokens) - 1, 0, -1):
            token = self._encoding.decode_single_token_bytes(tokens[index])
            chars += sum(byte & 0xC0 != 0x80 for byte in token)
            if chars < _OVERLAP or token[0] & 0xC0 == 0x80:
                continue
            if chars > 2 * _OVERLAP:
                break
            if self._cuts.soft(at, end - chars):
                self._total += index
                self._beside = tokens[index - 1], tokens[index]
                return end - chars
        self._exact = False
        self._total += len(tokens)
        return end

    def _encode(self, at: int, end: int) -> list[int]:
        tokens = self._encoding.encode_ordinary(self._text[at:end])
        if self._beside is not None and tokens:
            before, after = self._beside
            if tokens[0] != after and not self._stay_apart(before, tokens[0]):
                self._exact = False
        self._beside = None
        return tokens

    def _stay_apart(self, left: int, right: int) -> bool:
        """Whether merging the bytes of two tokens on their own gives these two again."""
        pair = [self._encoding.decode_single_token_bytes(each) for each in (left, right)]
        return merge(b"".join(pair), ranks(self._base)) == pair


def merge(piece: bytes, ranks: dict[bytes, int]) -> list[bytes]:
    """Byte pair encoding by its definition: lowest rank first, leftmost among equals; quadratic."""
    parts = [piece[i : i + 1] for i in range(len(piece))]
    while True:
        best: tuple[int, int] | None = None
        for i in range(len(parts) - 1):
            rank = ranks.get(parts[i] + parts[i + 1])
            if rank is not None and (best is None or rank < best[0]):
                best = rank, i
        if best is None:
            return parts
        i = best[1]
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
