"""The sizes of a thread's texts. A text is weighed when it first enters, and keeps that size."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, MutableMapping
from typing import NamedTuple

from ctxctl.engine.sizes.scales import RAW
from ctxctl.model.content import Content

Count = Callable[[Content], tuple[int, bool]]
"""Returns a content's tokens in the replay's encoding, and whether the count is exact for it."""


class Size(NamedTuple):
    """A text's size in tokens."""

    tokens: int
    method: str
    counted: int
    """Counted tokens, before any calibration."""


class Weigher:
    """The scale of one thread, and the sizes it has given. Copies of a replay share the sizes."""

    def __init__(self, count: Count) -> None:
        self._count = count
        self.scale = RAW
        """The scale for texts that enter now."""
        self.keeps = False
        """Whether the scale may change. If so, every text's size is kept, even without a scale."""
        self.aside = False
        """Whether this copy only previews what may still change."""
        self._sizes: MutableMapping[int, tuple[int, str]] = {}
        """Each text's size at its first entry, by key."""
        self._others: dict[str | None, MutableMapping[int, tuple[int, str]]] = {}
        """Such sizes by encoding, for encodings not in use."""
        self.encoding: str | None = None
        """The encoding in use; None if the replay's one is used throughout."""

    def copy(self) -> Weigher:
        """Return a copy that weighs alike from here on."""
        twin = Weigher(self._count)
        twin.__dict__.update(self.__dict__)
        return twin

    def counts_with(self, encoding: str, count: Count) -> None:
        """Count with another encoding from here on. Texts counted with it before keep that size."""
        others = {**self._others, self.encoding: self._sizes}
        self._sizes = others.pop(encoding, {})
        self._others, self.encoding, self._count = others, encoding, count

    def brought(self, count: Count) -> None:
        """Set this run's counter, for a weigher from an earlier run."""
        self._count = count

    def look(self) -> None:
        """Keep no new sizes from here on: texts are weighed again when they really enter."""
        self.aside = self.keeps
        if self.aside:
            known = self._sizes
            self._sizes = ChainMap({}, dict(known) if isinstance(known, ChainMap) else known)

    def size(self, content: Content | None, estimate: int | None, kind: str, key: int) -> Size:
        """Return a size and its method: counted if there is text, else declared, else uncounted.

        A text with a known key keeps the size of its first entry.
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
