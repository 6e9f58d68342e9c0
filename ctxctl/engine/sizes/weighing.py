"""What a thread's texts come to: each is weighed when it first enters, and keeps that size."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, MutableMapping
from typing import NamedTuple

from ctxctl.engine.sizes.scales import RAW
from ctxctl.model.content import Content

Count = Callable[[Content], tuple[int, bool]]
"""Tokens of a content in the replay's encoding, and whether that count is exact for the encoding."""


class Size(NamedTuple):
    """What a text comes to."""

    tokens: int
    method: str
    counted: int
    """Before any calibration."""


class Weigher:
    """The scale of one thread, and what was weighed with it; copies of a replay share that."""

    def __init__(self, count: Count) -> None:
        self._count = count
        self.scale = RAW
        """What texts that enter now are counted at."""
        self.keeps = False
        """Whether the scale may change: then every text's size is kept, also where no scale was applied."""
        self.aside = False
        """Whether it weighs only for a look at what may still change."""
        self._sizes: MutableMapping[int, tuple[int, str]] = {}
        """By key, what a text was counted at when it first entered."""
        self._others: dict[str | None, MutableMapping[int, tuple[int, str]]] = {}
        """Such sizes by encoding, for encodings that are not in use."""
        self.encoding: str | None = None
        """What is counted with; None: whatever the replay counts with, and always that."""

    def copy(self) -> Weigher:
        """Another that weighs alike from here on."""
        twin = Weigher(self._count)
        twin.__dict__.update(self.__dict__)
        return twin

    def counts_with(self, encoding: str, count: Count) -> None:
        """From here on count with another encoding; what was counted with it before keeps that size."""
        others = {**self._others, self.encoding: self._sizes}
        self._sizes = others.pop(encoding, {})
        self._others, self.encoding, self._count = others, encoding, count

    def brought(self, count: Count) -> None:
        """What counts in this run, for one that an earlier run has begun."""
        self._count = count

    def look(self) -> None:
        """From here on weigh for a look only: what of it stays is weighed anew when it really comes."""
        self.aside = self.keeps
        if self.aside:
            known = self._sizes
            self._sizes = ChainMap({}, dict(known) if isinstance(known, ChainMap) else known)

    def size(self, content: Content | None, estimate: int | None, kind: str, key: int) -> Size:
        """A size and how it was had: counted where there is text, else declared, else not at all.

        What has a key was counted at the scale that held when it first entered, and stays so.
        """
        if content is not None:
            counted, exact = self._count(content)
            if not self.keeps:
                return Size(*self.scale.weigh(kind, content, counted, exact), counted)
            found = self._sizes.get(key)
            if found is None:
                found = self._sizes.setdefault(key, self.scale.weigh(kind, content, counted, exact))
            return Size(*found, counted)
        if estimate is not None:
            return Size(estimate, "declared", estimate)
        return Size(0, "uncounted", 0)
