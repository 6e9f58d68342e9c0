"""Edits of a what-if: a session without some items, or with other texts in their place.

Edits apply to the record before any policy: a dropped item was never there, and a set text holds from the
first frame on. Nothing else changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from ctxctl.engine.replay.changes import NamedItem
from ctxctl.engine.replay.frames import FrameDelta, delta_of
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.model.content import Content
from ctxctl.model.results import Placement

_NOBODY: frozenset[str] = frozenset()


class EditText(NamedTuple):
    """A text that replaces an item's text."""

    content: Content
    version: str | None
    """The name of the replaced version. Versions with one text are one version, so no update."""


Texts = Mapping[str, Mapping[str | None, EditText]]
"""Replacement texts by item, then by version."""
_UNSET: Texts = {}


class Edits(msgspec.Struct, frozen=True):
    """The dropped items and set texts, by thread. An id is valid only in its own thread."""

    dropped: Mapping[ThreadKey, frozenset[str]] = msgspec.field(default_factory=dict)
    """Items dropped from the session."""
    texts: Mapping[ThreadKey, Texts] = msgspec.field(default_factory=dict)

    def of(self, key: ThreadKey) -> ThreadEdits:
        """Return the edits of one thread."""
        return ThreadEdits(self.dropped.get(key, _NOBODY), self.texts.get(key, _UNSET))


class PartialFrame:
    """A recorded frame and its shown part. The cost of a step is proportional to its changes."""

    def __init__(self) -> None:
        self.recorded: list[Placement] = []
        """The whole recorded frame."""
        self._shown: list[Placement] = []
        self._hidden = 0
        """Number of recorded placements that are not shown."""
        self._counted = (0, 0)
        """A position in the recorded frame, and the number of shown placements before it."""

    def hides(self, placement: Placement) -> bool:
        """Return whether a placement is not shown."""
        raise NotImplementedError

    def frame(self, delta: FrameDelta) -> FrameDelta:
        """Return how the shown frame changes, given the recorded frame's change."""
        shown, hides = self._shown, self.hides
        self.recorded = after = delta.after
        came = sum(map(hides, delta.inserted))
        if not came and not self._hidden:
            self._shown, self._counted = after, (0, 0)
            return delta
        self._hidden += came - sum(map(hides, delta.removed))
        if not self._hidden:
            self._shown, self._counted = after, (0, 0)
            return delta_of(shown, after)
        old, new = ([p for p in middle if not hides(p)] for middle in delta.middles())
        head = self._head(delta, len(shown) - len(old))
        tail = len(shown) - len(old) - head
        self._shown = made = shown[:head] + new + shown[len(shown) - tail :]
        return delta_of(shown, made, head, tail)

    def _head(self, delta: FrameDelta, ends: int) -> int:
        """Return the number of shown placements before the delta's middle; `ends`: those before and after it.

        They are counted from the start, the end or the last middle, whichever is nearest.
        """
        front, behind, (place, before) = delta.prefix, delta.suffix, self._counted
        if abs(front - place) < min(front, behind):
            found = before + self._number(delta.after[place:front]) - self._number(delta.before[front:place])
        elif front <= behind:
            found = self._number(delta.after[:front])
        else:
            found = ends - self._number(delta.after[len(delta.after) - behind :])
        self._counted = (front, found)
        return found

    def _number(self, placements: list[Placement]) -> int:
        """Return how many placements are shown."""
        return sum(not self.hides(p) for p in placements)

    def recount(self, anew: Callable[[list[Placement]], list[Placement]]) -> None:
        """Recount the texts after sizes have changed."""
        self.recorded, self._shown = anew(self.recorded), anew(self._shown)


class SentPart(PartialFrame):
    """A thread's frame without what the bills show was not sent (DESIGN section 3, the bill is right)."""

    def __init__(self, frame: list[Placement]) -> None:
        super().__init__()
        self.recorded = self._shown = frame
        self._unsent: set[Placement] = set()
        self._sent: set[Placement] | None = None
        """Placements that the last request is known to have sent; None if all shown ones were."""

    def copy(self) -> SentPart:
        """Return an independent copy, for a snapshot of a replay. Frames are immutable and are shared."""
        twin = SentPart(self.recorded)
        twin.__dict__.update(self.__dict__)
        twin._unsent = set(self._unsent)
        return twin

    def hides(self, placement: Placement) -> bool:
        """Return whether a placement left the window. Content that enters again is another placement."""
        return placement in self._unsent

    def keep(self, sent: set[Placement]) -> None:
        """From the next frame on, show only what the last request is known to have sent."""
        self._sent = sent

    def frame(self, delta: FrameDelta) -> FrameDelta:
        """Return how the shown frame changes. After a cut, it begins from what is known to have been sent."""
        before, sent, self._sent = self._shown, self._sent, None
        if sent is not None:
            cut = [p for p in before if p not in sent]
            self._unsent.update(cut)
            self._hidden += len(cut)
            self._shown, self._counted = [p for p in before if p in sent], (0, 0)
        made, known = super().frame(delta), len(self._unsent)
        self._unsent.difference_update(delta.removed)
        if (
            known > len(self._unsent) != self._hidden
        ):  # the frame holds a placement twice, and one copy remains
            self._unsent = set(delta.after).difference(made.after)
        return made if sent is None else delta_of(before, made.after)

    def recount(self, anew: Callable[[list[Placement]], list[Placement]]) -> None:
        """Recount the texts after sizes have changed, those not shown too."""
        super().recount(anew)
        self._unsent = set(anew(list(self._unsent)))
        self._sent = None if self._sent is None else set(anew(list(self._sent)))


class ThreadEdits(PartialFrame):
    """The edits of one thread, with its recorded and its edited frame."""

    def __init__(self, dropped: frozenset[str], texts: Texts) -> None:
        super().__init__()
        self.dropped = dropped
        self.texts = texts

    def copy(self) -> ThreadEdits:
        """Return an independent copy, for a snapshot of a replay. Frames are immutable and are shared."""
        twin = ThreadEdits(self.dropped, self.texts)
        twin.__dict__.update(self.__dict__)
        return twin

    def hides(self, placement: Placement) -> bool:
        """Return whether its item is dropped."""
        return placement.item in self.dropped

    def changes(self, held: Mapping[str, int]) -> bool:
        """Return whether the edited frame differs from the recorded one; `held`: current copies by item."""
        return self._hidden > 0 or any(item in held for item in self.texts)

    def named(self, named: Iterable[NamedItem]) -> tuple[NamedItem, ...]:
        """Return what a step names outside its frame, without dropped items."""
        return tuple(one for one in named if one.item not in self.dropped)
