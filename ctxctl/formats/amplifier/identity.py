"""Identity of messages that have no ids, over requests whose views leave messages out and take them back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ctxctl.formats.amplifier.parts import preview_of, stub_of
from ctxctl.formats.kit.parts import Part


class Names:
    """Remembers what messages were called: the history only grows, and a view shows parts of it in order.

    Of one text the first message in a request is the first one of that text that was ever seen, and so on.  A
    stub is the first message that it may abbreviate and that is not there itself.  Holds digests, names and
    the beginnings of prompts, no texts.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str], list[str]] = {}
        self._seen: set[str] = set()
        self._stubs: dict[str, list[str]] = {}
        """By what a stub repeats, the messages that it may stand for, the oldest first."""

    def give(self, parts: list[Part], entered: Sequence[Part] = ()) -> None:
        """Name those parts of a request that were seen before.

        `entered`: what is known to have come since the last request; of equal texts these are the last.
        """
        taken = {part.item for part in parts if part.item}
        stubs: list[tuple[Part, list[str]]] = []
        new = Counter(_key(part) for part in entered if not part.item)
        found: list[tuple[Part, Sequence[str]]] = []
        for part in reversed(parts):
            if part.item or part.source is not None:
                continue
            key = _key(part)
            start = stub_of(part.text) if part.kind == "user_message" and part.text is not None else None
            if start is not None and start in self._stubs:
                stubs.append((part, self._stubs[start]))
            elif new[key]:
                new[key] -= 1
            else:
                found.append((part, self._known.get(key, ())))
        for part, names in (*reversed(found), *reversed(stubs)):
            part.item = next((name for name in names if name not in taken), "")
            taken.add(part.item)

    def learn(self, parts: list[Part]) -> None:
        """Remember the names that the parts of a request have got."""
        for part in parts:
            name = f"{part.mark}/{part.item}"
            if name in self._seen:
                continue
            self._seen.add(name)
            self._known.setdefault(_key(part), []).append(part.item)
            if part.kind == "user_message" and part.text is not None and stub_of(part.text) is None:
                self._stubs.setdefault(preview_of(part.text), []).append(part.item)


def _key(part: Part) -> tuple[str, str, str]:
    return part.kind, part.role, part.mark
