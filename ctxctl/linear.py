"""Patterns that are searched in time linear in the text: RE2's; without it, those of `ctxctl.backtracking`.

`re2` has `compile`, `escape`, `error` and `Options`, and patterns `search`, `match`, `fullmatch`, `finditer`,
`split` and `groups`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from ctxctl import backtracking

try:
    import re2 as _found
except ImportError:  # no wheel, as for musl
    _found = backtracking

re2: Any = _found
IS_LINEAR: Final[bool] = _found is not backtracking
"""Whether it is RE2."""


def any_of(
    literals: Iterable[str], hints: Iterable[str], patterns: Iterable[str], options: Any
) -> Callable[[bytes], bool]:
    """As `ctxctl.backtracking.any_of`, in one search."""
    if not IS_LINEAR:
        found: Callable[[bytes], bool] = re2.any_of(literals, hints, patterns)
        return found
    quoted = "|".join([*(re2.escape(literal) for literal in literals), *hints])
    return finder(
        re2.compile("|".join([f"(?i:{quoted})", *(f"(?:{one})" for one in patterns)]).encode(), options)
    )


def finder(pattern: Any) -> Callable[[bytes], bool]:
    """Return a function that says whether the pattern occurs in a text.

    The package's own `search` makes a generator and a match object, which costs four times the search of
    2 KB; so the method below it is called directly, where the package has it.
    """
    try:
        match, anchor = pattern._regexp.Match, re2._re2.RE2.Anchor.UNANCHORED
        nothing = match(anchor, b"", 0, 0)[0]
        match(anchor, b"x", 0, 1)
    except (AttributeError, TypeError, IndexError):
        return lambda data: pattern.search(data) is not None
    return lambda data: match(anchor, data, 0, len(data))[0] != nothing


def check_bounded(pattern: str) -> None:
    """Raise `re2.error` for a pattern of somebody else's that could not be searched in bounded time."""
    if not IS_LINEAR:
        re2.check_bounded(pattern)


class Literals:
    """Which of some literals a text holds, in whatever case."""

    def __init__(self, literals: Iterable[bytes], options: Any) -> None:
        self._all = list(literals)
        self._set: Any = None
        if IS_LINEAR:
            self._set = re2.Set.SearchSet(options)
            for literal in self._all:
                self._set.Add(re2.escape(literal))
            self._set.Compile()

    def held(self, data: bytes) -> list[int]:
        """The numbers of those that it holds."""
        low = data.lower()
        if self._set is not None:
            return list(self._set.Match(low) or ())
        return [n for n, literal in enumerate(self._all) if literal in low]
