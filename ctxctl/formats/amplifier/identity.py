"""Identity of messages that have no ids, over requests whose views leave messages out and take them back."""

from __future__ import annotations

from ctxctl.formats.amplifier.parts import stub_of
from ctxctl.formats.kit.parts import Part

_PREFIX = 50
"""Characters of a user message that its stub repeats."""


class Names:
    """Remembers what messages were called: the history only grows, and a view shows parts of it in order.

    The n-th message of one text in a request is the n-th one of that text that was ever seen.  A stub is the
    message that it abbreviates.  Holds digests and names, no texts.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str], list[str]] = {}
        self._seen: set[str] = set()
        self._stubs: dict[str, str] = {}

    def give(self, parts: list[Part]) -> None:
        """Name those parts of a request that were seen before."""
        used: dict[tuple[str, str, str], int] = {}
        for part in parts:
            if part.item or part.source is not None:
                continue
            start = stub_of(part.text) if part.kind == "user_message" and part.text is not None else None
            if start is not None and start in self._stubs:
                part.item = self._stubs[start]
                continue
            key = (part.kind, part.role, part.mark)
            at = used[key] = used.get(key, -1) + 1
            names = self._known.get(key, [])
            if at < len(names):
                part.item = names[at]

    def learn(self, parts: list[Part]) -> None:
        """Remember the names that the parts of a request have got."""
        for part in parts:
            name = f"{part.mark}/{part.item}"
            if name not in self._seen:
                self._seen.add(name)
                self._known.setdefault((part.kind, part.role, part.mark), []).append(part.item)
            if part.kind == "user_message" and part.text is not None and stub_of(part.text) is None:
                self._stubs.setdefault(part.text[:_PREFIX], part.item)
