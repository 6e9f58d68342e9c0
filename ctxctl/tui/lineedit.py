"""One line of typed text, its cursor, and what was typed before.  Plain Python.

Textual's `Input` is not used: it sends control characters of a pasted text to the terminal as they are, stops
its cursor inside joined characters, has no history, and has keys of its own that `ctxctl.tui.keymap` could
neither change nor list.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ctxctl.text import cells, visible

LONGEST: Final = 1000
"""Characters that a line takes at most; the rest of what is pasted is left out."""

_KEPT: Final = 100
_JOINERS: Final = "\u200d\ufe0f"


@dataclass(frozen=True, slots=True)
class Line:
    """A text and the cursor in it, 0 ≤ `at` ≤ length."""

    text: str = ""
    at: int = 0

    @classmethod
    def of(cls, text: str) -> Line:
        """A text with the cursor at its end."""
        return cls(text[:LONGEST], len(text[:LONGEST]))

    def insert(self, text: str) -> Line:
        """Insert what was typed or pasted; line ends and tabs become blanks."""
        text = " ".join(text.replace("\t", " ").splitlines())[: LONGEST - len(self.text)]
        return Line(self.text[: self.at] + text + self.text[self.at :], self.at + len(text))

    def move(self, by: int) -> Line:
        """Move the cursor by characters, never into the middle of a joined one."""
        at = min(max(self.at + by, 0), len(self.text))
        while 0 < at < len(self.text) and _joined(self.text, at):
            at += 1 if by > 0 else -1
        return replace(self, at=at)

    def edge(self, end: bool) -> Line:
        """Move the cursor to the beginning or the end."""
        return replace(self, at=len(self.text) if end else 0)

    def word(self, by: int) -> Line:
        """Move the cursor over a word."""
        at = self.at
        step = 1 if by > 0 else -1

        def beside() -> str:
            return self.text[at : at + 1] if step > 0 else self.text[max(at - 1, 0) : at]

        while beside() and not beside().isalnum():
            at += step
        while beside() and beside().isalnum():
            at += step
        return replace(self, at=at)

    def delete(self, to: Line) -> Line:
        """Delete what lies between the cursor and where `to` has it."""
        first, last = sorted((self.at, to.at))
        return Line(self.text[:first] + self.text[last:], first)

    def painted(self, width: int) -> tuple[str, str, str]:
        """What is seen of it in `width` cells: before the cursor, under it, and after it."""
        end = self.move(1).at
        before, under, after = self.text[: self.at], self.text[self.at : end], self.text[end:]
        under = _shown(under) or " "
        room = max(width - cells(under), 0)
        keep = _fitting(list(before)[::-1], room)
        left = _shown(before[len(before) - keep :]) if keep else ""
        room -= cells(left)
        return left, under, _shown(after[: _fitting(list(after), room)])


def _shown(text: str) -> str:
    return visible(text, newline=True).replace("\n", "␊")


def _joined(text: str, at: int) -> bool:
    return bool(unicodedata.combining(text[at])) or text[at] in _JOINERS or text[at - 1] == _JOINERS[0]


def _fitting(characters: Sequence[str], room: int) -> int:
    """How many of the characters fit into so many cells."""
    for n, character in enumerate(characters):
        room -= cells(_shown(character))
        if room < 0:
            return n
    return len(characters)


class History:
    """What was accepted before, the newest last; moving through it begins at the text being typed."""

    def __init__(self) -> None:
        self.entries: list[str] = []
        self._at: int | None = None
        self._typed = ""

    def add(self, text: str) -> None:
        """Remember a text that was accepted; each is kept once, where it was used last."""
        if text:
            self.entries = [*(entry for entry in self.entries if entry != text), text][-_KEPT:]
        self.leave()

    def leave(self) -> None:
        """End the move through older texts: what is in the line counts as typed."""
        self._at = None

    @property
    def browsing(self) -> bool:
        """Whether the line shows an older text."""
        return self._at is not None

    def older(self, typed: str) -> str | None:
        """The text before the one shown; None where there is none."""
        at = len(self.entries) if self._at is None else self._at
        if at == 0:
            return None
        if self._at is None:
            self._typed = typed
        self._at = at - 1
        return self.entries[self._at]

    def newer(self) -> str | None:
        """The text after the one shown, at last what was being typed; None where none is shown."""
        if self._at is None:
            return None
        self._at += 1
        if self._at < len(self.entries):
            return self.entries[self._at]
        self._at = None
        return self._typed
