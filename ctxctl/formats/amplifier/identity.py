"""Identity of messages that have no ids, over requests whose views leave messages out and take them back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from ctxctl.formats.amplifier.parts import preview_of, stub_of
from ctxctl.formats.kit.parts import Part
from ctxctl.model.vocab import ANSWERS

_Like = tuple[str, str, str]
_HISTORY = ANSWERS | {"user_message", "tool_result"}
"""Kinds that stand where they stood before."""


class Names:
    """Remembers what messages were called: the history only grows, and a view shows parts of it in order.

    Of equal texts the one is meant that stands in the history where it stands in the request, between what
    is around it; of several such the newest, as compaction takes the oldest.  A stub is likewise a message
    that it may abbreviate.  Holds digests, names and the beginnings of prompts, no texts.
    """

    def __init__(self) -> None:
        self._known: dict[_Like, list[str]] = {}
        self._seen: set[str] = set()
        self._stubs: dict[str, list[str]] = {}
        """By what a stub repeats, the messages that it may stand for, the oldest first."""
        self._order: dict[str, int] = {}
        """By item, its place in the history."""

    def give(
        self, parts: list[Part], entered: Sequence[Part] = (), *, held: Collection[str] = ()
    ) -> list[Part]:
        """Name those parts of a request that were seen before.

        Returns those that are new, and equal to one that was seen before.

        Args:
            parts: In order; those that have names keep them.
            entered: What is known to have come since the last request; of equal texts these are the last.
            held: Names of what stands in front of the parts.
        """
        new = Counter(like(part) for part in entered if not part.item)
        found: list[tuple[int, Sequence[str]]] = []
        again: list[Part] = []
        old = False
        """What is left of the request was there before: it is in front of something that was."""
        for at in range(len(parts) - 1, -1, -1):
            part = parts[at]
            if part.item or part.source is not None:
                old = old or (part.item in self._order and part.kind in _HISTORY)
                continue
            start = stub_of(part.text) if part.kind == "user_message" and part.text is not None else None
            if start is not None and start in self._stubs:
                found.append((at, self._stubs[start]))
            elif new[like(part)] and not old:
                new[like(part)] -= 1
                again += [part] if part.kind == "user_message" and like(part) in self._known else []
            else:
                known = self._known.get(like(part), ())
                found.append((at, known))
                old = old or bool(known)
        taken = {*held, *(part.item for part in parts if part.item)}
        # The sure ones first: they say between what the others stand.
        for at, names in sorted(found, key=lambda one: len(one[1]) > 1):
            parts[at].item = self._fitting(parts, at, [name for name in names if name not in taken])
            taken.add(parts[at].item)
        return again

    def _fitting(self, parts: list[Part], at: int, names: list[str]) -> str:
        """The newest that stands between what is around a part, else the newest; empty: there is none."""
        if len(names) < 2:
            return names[0] if names else ""
        order = self._order
        before = next((order[p.item] for p in reversed(parts[:at]) if p.item in order), -1)
        behind = next((order[p.item] for p in parts[at + 1 :] if p.item in order), len(order))
        between = [name for name in names if before < order.get(name, -1) < behind]
        return (between or names)[-1]

    def learn(self, parts: list[Part]) -> None:
        """Remember the names that the parts of a request have got, in the order of the history."""
        for part in parts:
            self._order.setdefault(part.item, len(self._order))
            name = f"{part.mark}/{part.item}"
            if name in self._seen:
                continue
            self._seen.add(name)
            self._known.setdefault(like(part), []).append(part.item)
            if part.kind == "user_message" and part.text is not None and stub_of(part.text) is None:
                self._stubs.setdefault(preview_of(part.text), []).append(part.item)


def like(part: Part) -> _Like:
    """What equal messages have in common."""
    return part.kind, part.role, part.mark
