"""Secret stretches of text, as many as there are, and which of them a text holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

LEAST: Final = 6
"""Characters of the shortest one: shorter ones come about by chance."""
_FEW: Final = 64
"""Up to so many are looked for one by one, which is the quickest; of more, by how they begin."""


class Secrets:
    """Stretches with what they are of, in the order in which they were added.

    Looking for them costs one pass over the text, however many there are.
    """

    def __init__(self) -> None:
        self._of: dict[str, str] = {}
        self._order: dict[str, int] = {}
        self._begin: dict[str, dict[str, None]] = {}
        """By the first characters."""
        self._added = 0

    def __len__(self) -> int:
        return len(self._of)

    def add(self, secret: str, name: str) -> None:
        """Remember one; a shorter one than `LEAST` is none."""
        if len(secret) < LEAST:
            return
        if secret not in self._of:
            self._added += 1
            self._order[secret] = self._added
            self._begin.setdefault(secret[:LEAST], {})[secret] = None
        self._of[secret] = name

    def discard(self, secret: str) -> None:
        """Forget one, if it is there."""
        if self._of.pop(secret, None) is None:
            return
        del self._order[secret]
        begin = self._begin[secret[:LEAST]]
        del begin[secret]
        if not begin:
            del self._begin[secret[:LEAST]]

    def held_by(self, text: str) -> list[str]:
        """Those that a text holds, in their order."""
        if len(self._of) <= _FEW:
            return [secret for secret in self._of if secret in text]
        return sorted(set(self._found(text)), key=self._order.__getitem__)

    def first(self, text: str) -> str | None:
        """What the first of those is of; None if the text holds none."""
        held = self.held_by(text)
        return self._of[held[0]] if held else None

    def masked(self, text: str, mask: str) -> str:
        """A text with all of them masked, the longest first, so that none leaves a piece of another one."""
        for secret in sorted(self.held_by(text), key=len, reverse=True):
            text = text.replace(secret, mask)
        return text

    def _found(self, text: str) -> Iterator[str]:
        begin = self._begin
        for at in range(len(text) - LEAST + 1):
            for secret in begin.get(text[at : at + LEAST], ()):
                if text.startswith(secret, at):
                    yield secret
