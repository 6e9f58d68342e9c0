"""Secret stretches of text, as many as there are, and which of them a text holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final, NamedTuple

LEAST: Final = 6
"""Characters of the shortest one: shorter ones come about by chance."""
_FEW: Final = 32
"""Up to so many are looked for one by one, until they are put together with others."""
_HEAD: Final = 128
"""Characters by which a longer one is looked for; the rest is compared."""
_TIER: Final = 1 << 19
"""Characters of the heads in one automaton."""
_MEMORY: Final = 256 << 20
_LONE: Final = re.compile("[\ud800-\udfff]")
"""What the automata do not read; replaced one by one, so that places stay."""


class Held(NamedTuple):
    """A secret that stands in a text."""

    start: int
    end: int
    secret: str


class Secrets:
    """Stretches with what they are of, in the order in which they were added.

    Looking for them costs time linear in the text, however many there are: they are put together in automata,
    each some times larger than the next, so that adding one costs little too.
    """

    def __init__(self) -> None:
        self._of: dict[str, str] = {}
        self._order: dict[str, int] = {}
        self._young: dict[str, None] = {}
        """Those in no automaton yet."""
        self._tiers: list[_Tier] = []

    def __len__(self) -> int:
        return len(self._of)

    def add(self, secret: str, name: str) -> None:
        """Remember one; a shorter one than `LEAST` is none."""
        if len(secret) < LEAST:
            return
        if secret not in self._of:
            self._order.setdefault(secret, len(self._order) + 1)
            self._young[secret] = None
            self._of[secret] = name
            if len(self._young) > _FEW:
                self._settle()

    def discard(self, secrets: Collection[str]) -> None:
        """Forget some, where they are there; they keep their numbers."""
        gone = [secret for secret in secrets if self._of.pop(secret, None) is not None]
        old = [secret for secret in gone if secret not in self._young]
        for secret in gone:
            self._young.pop(secret, None)
        if old:
            self._tiers = [tier.without(old) for tier in self._tiers]

    def number(self, secret: str) -> int:
        """Which one it is, from 1."""
        return self._order[secret]

    def of(self, secret: str) -> str:
        """What it is of."""
        return self._of[secret]

    def held_by(self, text: str) -> list[Held]:
        """Those that stand in a text, in order; of two that overlap the first, else the longer."""
        if len(text) < LEAST or not self._of:
            return []
        if not text.isascii():
            text = _LONE.sub("\ufffd", text)
        found = [Held(at, at + len(one), one) for one in self._young for at in _places(text, one)]
        for tier in self._tiers:
            found += tier.held_by(text)
        if len(found) < 2:
            return found
        found.sort(key=lambda held: (held.start, -held.end))
        kept: list[Held] = []
        for held in found:
            if not kept or held.start >= kept[-1].end:
                kept.append(held)
        return kept

    def first(self, text: str) -> str | None:
        """What the first of those is of; None if the text holds none."""
        held = self.held_by(text)
        return self._of[held[0].secret] if held else None

    def masked(self, text: str, mask: Callable[[str], str]) -> str:
        """A text with `mask(secret)` in the place of each."""
        pieces, end = [], 0
        for held in self.held_by(text):
            pieces += [text[end : held.start], mask(held.secret)]
            end = held.end
        return "".join([*pieces, text[end:]]) if pieces else text

    def _settle(self) -> None:
        """Put the young ones into an automaton, together with those that are not much larger."""
        secrets, self._young = list(self._young), {}
        size = _size(secrets)
        while self._tiers and (self._tiers[-1].size <= 2 * size and self._tiers[-1].size + size <= _TIER):
            secrets += self._tiers[-1].secrets
            size += self._tiers.pop().size
        self._tiers.append(_Tier(secrets))


class _Tier:
    """Secrets in one automaton; made when it is first asked."""

    def __init__(self, secrets: list[str]) -> None:
        self.secrets = dict.fromkeys(secrets)
        self.size = _size(secrets)
        self._by_head: dict[str, list[str]] = {}
        self._find: Any = None

    def without(self, secrets: Collection[str]) -> _Tier:
        """A tier that lacks these secrets; itself where it holds none of them."""
        if self.secrets.keys().isdisjoint(secrets):
            return self
        gone = set(secrets)
        return _Tier([secret for secret in self.secrets if secret not in gone])

    def held_by(self, text: str) -> Iterator[Held]:
        """Its secrets in a text, in order and without overlaps."""
        if self._find is None:
            self._find = self._made()
        at: int | None = 0
        while at is not None:
            at, before = None, at
            end = before
            for match in self._find(text[before:] if before else text):
                start, stop = before + match.start(), before + match.end()
                if start < end:
                    if stop > end:  # it may have swallowed the beginning of another one
                        at = end
                        break
                    continue
                secret = self._longest(text, start, stop)
                if secret is None:
                    at = start + 1
                    break
                end = start + len(secret)
                yield Held(start, end, secret)

    def _longest(self, text: str, start: int, stop: int) -> str | None:
        """The longest secret at a place where the longest head ends at `stop`."""
        for end in range(stop, start + LEAST - 1, -1):
            for secret in self._by_head.get(text[start:end], ()):
                if text.startswith(secret, start):
                    return secret
        return None

    def _made(self) -> Any:
        import re2

        if not self.secrets:
            return lambda text: ()
        for secret in sorted(self.secrets, key=len, reverse=True):
            self._by_head.setdefault(secret[:_HEAD], []).append(secret)
        options = re2.Options()
        options.max_mem = _MEMORY
        options.longest_match = True
        options.log_errors = False
        return re2.compile("|".join(map(re2.escape, self._by_head)), options).finditer


def _size(secrets: list[str]) -> int:
    return sum(min(len(secret), _HEAD) for secret in secrets)


def _places(text: str, secret: str) -> Iterator[int]:
    at = text.find(secret)
    while at >= 0:
        yield at
        at = text.find(secret, at + len(secret))
