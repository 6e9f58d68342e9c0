"""What `ctxctl.linear` offers of RE2, on Python's own `re`: for platforms that RE2 has no wheel for (musl).

Finds the same, held to RE2 by `tests/unit/test_backtracking.py`: patterns are translated, so that classes,
ends and cases mean what they mean there, and texts are matched by characters, as RE2 reads UTF-8.  `re`
backtracks: what this project searches with repeats within bounds, and a pattern of the user's in which a
repeat without a bound stands within another is refused.  It is slower (docs/recording.md says by how much).
"""

from __future__ import annotations

import re
import re._parser as _parser  # type: ignore[import-not-found]
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from re import error
from typing import Any, Final

__all__ = ["Options", "Pattern", "any_of", "compile", "error", "escape"]

_BLANKS: Final = r"\t\n\f\r "
_RAW: Final = r"\udc80-\udcff"
"""Bytes that are no UTF-8, as `surrogateescape` has them: RE2 takes them for no character."""
_CLASSES: Final = {
    "s": _BLANKS, "d": "0-9", "w": "0-9A-Za-z_",
    "S": r"\x00-\x08\x0b\x0e-\x1f!-\udc7f\ud800-\udc7f\ue000-\U0010ffff",
    "D": r"\x00-/:-\udc7f\ue000-\U0010ffff", "W": r"\x00-/:-@\[-^`{-\udc7f\ue000-\U0010ffff",
}  # fmt: skip
_FOLDS: Final = {"k": "\u212a", "s": "\u017f"}
"""Letters outside of ASCII that are the same as these, where case does not count."""
_TOKEN: Final = re.compile(
    r"\\x\{[0-9A-Fa-f]+\}|\\x[0-9A-Fa-f]{2}|\\.|\(\?P?<[A-Za-z_]\w*>|\(\?[imsU-]*[:)]|\(|\)"
    r"|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\{\d+(?:,\d*)?\}|.",
    re.DOTALL,
)
_BEFORE: Final = 8192
_BEHIND: Final = 256
"""Characters of a text before and behind what a match that begins with an endless repeat ends around."""
_SPARED: Final = frozenset("bBnrtfvaAz")


class Options:
    """The options that are asked of RE2; of these, `longest_match` is kept for patterns of literals."""

    def __init__(self) -> None:
        self.max_mem = 0
        self.log_errors = False
        self.longest_match = False


escape: Final = re.escape


def compile(pattern: str | bytes, options: Options | None = None) -> Any:  # noqa: A001 - as RE2's package has it
    """A pattern of RE2's syntax; raises `error` if it is none, or has what only RE2 knows."""
    text = pattern if isinstance(pattern, str) else pattern.decode()
    if options is not None and options.longest_match:
        text = "|".join(sorted(text.split("|"), key=len, reverse=True))
    made = re.compile(_Translation(text).made(), re.ASCII)
    if isinstance(pattern, str):
        return made
    return Pattern(made, _needed(text).decode() if _begins_endless(made.pattern) else "")


def check_bounded(pattern: str) -> None:
    """Raise `error` for a pattern that may be searched without end: an endless repeat within another."""
    translation = _Translation(pattern)
    translation.made()
    if translation.nests:
        raise error("a repeat without bounds within another needs google-re2, which is not installed")


class _Translation:
    """A pattern of RE2's as `re` has it.

    Args:
        pattern: Of RE2's syntax.
        folds: Whether letters outside of ASCII that are the same as one of its are put in.
    """

    def __init__(self, pattern: str, *, folds: bool = True) -> None:
        self._tokens = _TOKEN.findall(pattern)
        self._made: list[str] = []
        self._groups: list[tuple[int, bool, bool, bool]] = []
        """Of the open groups: how many to close, whether case and lines counted outside, and whether a repeat
        without bounds was there."""
        self._with_folds = folds
        self._folds = False
        self._lines = False
        self._closes = 1
        self._endless = False
        """Whether a repeat without bounds stands in the present group."""
        self._group_endless = False
        """Whether what stands before is a group with such a repeat."""
        self.nests = False
        """Whether a repeat without bounds stands within another."""

    def made(self) -> str:
        """The pattern of `re`; raises `error`."""
        before = ""
        for token in self._tokens:
            self._take(token, before)
            before = token
        if self._groups:
            raise error("a group is not closed")
        return "".join(self._made) + ")" * (self._closes - 1)

    def _take(self, token: str, before: str) -> None:
        if token in ("*", "+") or (token[0] == "{" and len(token) > 1):
            if before in ("*", "+", "?") or before[:1] == "{":
                raise error(f"{before}{token} is no repeat")
            self._repeat(token)
            return
        self._group_endless = False
        if token == "?" and before == "(":
            raise error("a look around: no pattern of RE2")
        if token[0] == "(":
            self._open(token, first=before in ("", "(") or before.startswith("(?"))
        elif token == ")":
            self._close()
        elif token[0] == "[" and len(token) > 1:
            self._made.append(self._set(token))
        elif token[0] == "\\":
            self._made.append(self._escape(token))
        elif token == ".":
            self._made.append(rf"[^\n{_RAW}]")
        elif token == "$" and not self._lines:
            self._made.append(r"\Z")
        elif self._folds and self._with_folds and token.lower() in _FOLDS:
            self._made.append(f"[{token}{_FOLDS[token.lower()]}]")
        else:
            self._made.append(token)

    def _repeat(self, token: str) -> None:
        endless = token in ("*", "+") or token.endswith(",}")
        self.nests = self.nests or (endless and self._group_endless)
        self._endless = self._endless or endless
        self._made.append(token)

    def _open(self, token: str, *, first: bool) -> None:
        if token.startswith("(?") and token.endswith(")"):
            if not first:
                raise error(f"{token} in the middle of a group needs google-re2, which is not installed")
            if set(token[2:-1]) - {"i", "m"}:
                raise error(f"{token} needs google-re2, which is not installed")
            self._made.append(f"{token[:-1]}:")
            self._folds = self._folds or "i" in token
            self._lines = self._lines or "m" in token
            self._closes += 1
            return
        if token.startswith("(?") and token not in ("(?:", "(?i:") and "<" not in token:
            raise error(f"{token} needs google-re2, which is not installed")
        self._groups.append((self._closes, self._folds, self._lines, self._endless))
        self._closes, self._endless = 1, False
        self._folds = self._folds or token == "(?i:"
        if "<" in token and not token.startswith("(?P"):
            token = "(?P" + token[2:]
        self._made.append(token)

    def _close(self) -> None:
        if not self._groups:
            raise error("a group is closed that is not open")
        self._made.append(")" * self._closes)
        self._group_endless = self._endless
        self._closes, self._folds, self._lines, endless = self._groups.pop()
        self._endless = self._endless or endless

    def _escape(self, token: str) -> str:
        sign = token[1]
        if sign == "z":
            return r"\Z"
        if sign in _CLASSES:
            return f"[{_CLASSES[sign]}]"
        if sign == "x":
            return re.escape(chr(int(token[2:].strip("{}"), 16)))
        if sign.isalnum() and sign not in _SPARED:
            raise error(f"{token} needs google-re2, which is not installed")
        return token

    def _set(self, token: str) -> str:
        """A class: never of bytes that are no UTF-8, and with what folds to its letters."""
        negated = token.startswith("[^")
        inner = token[2 if negated else 1 : -1]
        if "[:" in inner:
            raise error(f"{token} needs google-re2, which is not installed")
        inner = re.sub(r"\\(.)|\[", _in_set, inner)
        if inner[:1] in ("]", "^"):
            inner = f"\\{inner}"
        # What is put in stands in front: behind, a `-` at the end would begin a range.
        if self._folds and self._with_folds:
            plain = re.compile(f"[{inner}]", re.IGNORECASE | re.ASCII)
            inner = "".join(far for near, far in _FOLDS.items() if plain.match(near)) + inner
        return f"[^{_RAW}{inner}]" if negated else f"[{inner}]"


def _in_set(found: re.Match[str]) -> str:
    return r"\[" if found[0] == "[" else _CLASSES.get(found[1], found[0])


class _Places:
    """A text by characters, and where in its bytes each stands."""

    __slots__ = ("_at", "_bytes", "data", "text")

    def __init__(self, data: bytes) -> None:
        self.data = data
        plain = data.isascii()
        self.text = data.decode("ascii") if plain else data.decode("utf-8", "surrogateescape")
        self._at: list[int] | None = [0] if not plain else None
        self._bytes: list[int] = [0]

    def byte(self, place: int) -> int:
        """The byte at which a character begins; asked of many places in turn, each stretch is walked once."""
        at = self._at
        if at is None:
            return place
        n = bisect_left(at, place)
        if n < len(at) and at[n] == place:
            return self._bytes[n]
        n -= 1
        found = self._bytes[n] + len(self.text[at[n] : place].encode("utf-8", "surrogateescape"))
        at.insert(n + 1, place)
        self._bytes.insert(n + 1, found)
        return found


class _Match:
    """A match by bytes."""

    __slots__ = ("_match", "_places")

    def __init__(self, match: re.Match[str], places: _Places) -> None:
        self._match, self._places = match, places

    def span(self, group: int = 0) -> tuple[int, int]:
        start, end = self._match.span(group)
        return (self._places.byte(start), self._places.byte(end)) if start >= 0 else (-1, -1)

    def start(self, group: int = 0) -> int:
        return self.span(group)[0]

    def end(self, group: int = 0) -> int:
        return self.span(group)[1]

    def group(self, group: int = 0) -> bytes | None:
        start, end = self.span(group)
        return self._places.data[start:end] if start >= 0 else None

    __getitem__ = group


class Pattern:
    """A pattern that is searched for in bytes."""

    __slots__ = ("_end", "_pattern", "groups")

    def __init__(self, pattern: re.Pattern[str], end: str) -> None:
        self._pattern = pattern
        self._end = end
        """What a match that begins with a repeat without bounds ends around, in lower case: such a pattern is
        looked for in front of it alone, as each place of a text may begin one."""
        self.groups = pattern.groups

    def _one(self, how: Callable[[str], re.Match[str] | None], data: bytes) -> _Match | None:
        places = _Places(data)
        found = how(places.text)
        return _Match(found, places) if found is not None else None

    def search(self, data: bytes) -> _Match | None:
        """The first match."""
        return self._one(self._pattern.search, data)

    def match(self, data: bytes) -> _Match | None:
        """The match at the beginning."""
        return self._one(self._pattern.match, data)

    def fullmatch(self, data: bytes) -> _Match | None:
        """The match of all."""
        return self._one(self._pattern.fullmatch, data)

    def finditer(self, data: bytes) -> Iterator[_Match]:
        """The matches, in order."""
        places = _Places(data)
        for start, end in self._stretches(places.text):
            for found in self._pattern.finditer(places.text, start, end):
                yield _Match(found, places)

    def _stretches(self, text: str) -> Iterator[tuple[int, int]]:
        """Where to look for matches."""
        if not self._end:
            yield 0, len(text)
            return
        folded = text.lower() if text.isascii() else re.sub("[A-Z]", lambda found: found[0].lower(), text)
        done, at = 0, folded.find(self._end)
        while at >= 0:
            end = min(len(text), at + len(self._end) + _BEHIND)
            yield max(done, at - _BEFORE), end
            done = end
            at = folded.find(self._end, done)

    def split(self, data: bytes) -> list[bytes]:
        """What stands between the matches."""
        spans = [found.span() for found in self.finditer(data)]
        starts, ends = [0, *(end for _, end in spans)], [*(start for start, _ in spans), len(data)]
        return [data[start:end] for start, end in zip(starts, ends, strict=True)]


def any_of(literals: Iterable[str], hints: Iterable[str], patterns: Iterable[str]) -> Callable[[bytes], bool]:
    """Whether a text holds one of these literals or hints, in whatever case, or matches one of the patterns.

    Literals are looked for one by one, which takes a tenth of what `re` takes for all of them at once; a hint
    or pattern is searched where the longest literal that it cannot do without is there.
    """
    low = [literal.lower().encode() for literal in literals]
    searched = [(_needed(f"(?i:{hint})"), compile(f"(?i:{hint})".encode())) for hint in hints]
    searched += [(_needed(pattern), compile(pattern.encode())) for pattern in patterns]

    def occurs(data: bytes) -> bool:
        folded = data.lower()
        if not data.isascii():
            folded = folded.replace("\u212a".encode(), b"k").replace("\u017f".encode(), b"s")
        for literal in low:
            if literal in folded:
                return True
        return any(needed in folded and found.search(data) is not None for needed, found in searched)

    return occurs


def _begins_endless(pattern: str) -> bool:
    """Whether a pattern begins with a repeat without bounds."""
    parsed: Any = _parser.parse(pattern)
    while len(parsed):
        kind, value = parsed[0]
        if str(kind) == "SUBPATTERN":
            parsed = value[3]
        else:
            return str(kind) in ("MAX_REPEAT", "MIN_REPEAT") and value[1] == _parser.MAXREPEAT
    return False


def _needed(pattern: str) -> bytes:
    """The longest literal, in lower case, without which a pattern does not match; may be empty."""
    runs = [b""]

    def walk(parsed: Any) -> None:
        for kind, value in parsed:
            name = str(kind)
            if name == "LITERAL" and value < 128:
                runs[-1] += bytes((value,)).lower()
                continue
            if name == "SUBPATTERN":
                walk(value[3])
                continue
            runs.append(b"")
            if name == "MAX_REPEAT" and value[0] > 0:
                walk(value[2])
                runs.append(b"")

    walk(_parser.parse(_Translation(pattern, folds=False).made()))
    return max(runs, key=len)
