"""A session as it had been without some items, or with other texts in their place: edits of a what-if.

Both are edits of what was recorded, and come before any policy: what is dropped was never there for it, and
what is set has its other text from the first frame on.  All else stays as the trace has it.
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
    """What stands in the place of an item's text."""

    content: Content
    version: str | None
    """What the version is called from now on: versions of one text are one version, and no update."""


Texts = Mapping[str, Mapping[str | None, EditText]]
"""By item, by its version."""
_UNSET: Texts = {}


class Edits(msgspec.Struct, frozen=True):
    """What is dropped and what is set, by thread: an id means something in its own thread only."""

    dropped: Mapping[ThreadKey, frozenset[str]] = msgspec.field(default_factory=dict)
    """Items that were never there."""
    texts: Mapping[ThreadKey, Texts] = msgspec.field(default_factory=dict)

    def of(self, key: ThreadKey) -> ThreadEdits:
        """The edits at work on one thread."""
        return ThreadEdits(self.dropped.get(key, _NOBODY), self.texts.get(key, _UNSET))


class PartialFrame:
    """A recorded frame and the part of it that is shown; the work of a step grows with what changed."""

    def __init__(self) -> None:
        self.recorded: list[Placement] = []
        """The whole frame."""
        self._shown: list[Placement] = []
        self._hidden = 0
        """Placements of the recorded frame that are not shown."""
        self._counted = (0, 0)
        """A place in the recorded frame, and how many placements before it are shown."""

    def hides(self, placement: Placement) -> bool:
        """Whether a placement is not shown."""
        raise NotImplementedError

    def frame(self, delta: FrameDelta) -> FrameDelta:
        """How the shown frame differs from the last shown one, given the recorded frame's difference."""
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
        """Shown placements before the delta's middle; `ends`: how many there are before and behind it.

        Counted from the beginning, from the end, or from where the middle was last: what is nearest.
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
        """How many of them are shown."""
        return sum(not self.hides(p) for p in placements)

    def recount(self, anew: Callable[[list[Placement]], list[Placement]]) -> None:
        """Count the texts anew, because sizes differ from here on."""
        self.recorded, self._shown = anew(self.recorded), anew(self._shown)


class SentPart(PartialFrame):
    """A thread's frame without what, by the bills, was not sent (DESIGN section 3, the bill is right)."""

    def __init__(self, frame: list[Placement]) -> None:
        super().__init__()
        self.recorded = self._shown = frame
        self._unsent: set[Placement] = set()
        self._sent: set[Placement] | None = None
        """Placements that the last request is known to have sent; None: all that are shown."""

    def copy(self) -> SentPart:
        """An independent copy, for a snapshot of a replay; frames are shared, they never change."""
        twin = SentPart(self.recorded)
        twin.__dict__.update(self.__dict__)
        twin._unsent = set(self._unsent)
        return twin

    def hides(self, placement: Placement) -> bool:
        """Whether it left the window.  Content that enters again is another placement, or was removed
        before."""
        return placement in self._unsent

    def keep(self, sent: set[Placement]) -> None:
        """Show, from the next frame on, only what the last request is known to have sent."""
        self._sent = sent

    def frame(self, delta: FrameDelta) -> FrameDelta:
        """As in any partial frame; after a cut it begins from what is known to have been sent."""
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
        """Count the texts anew, those that are not shown as well."""
        super().recount(anew)
        self._unsent = set(anew(list(self._unsent)))
        self._sent = None if self._sent is None else set(anew(list(self._sent)))


class ThreadEdits(PartialFrame):
    """The edits of one thread, and its recorded frame beside the edited one."""

    def __init__(self, dropped: frozenset[str], texts: Texts) -> None:
        super().__init__()
        self.dropped = dropped
        self.texts = texts

    def copy(self) -> ThreadEdits:
        """An independent copy, for a snapshot of a replay; frames are shared, they never change."""
        twin = ThreadEdits(self.dropped, self.texts)
        twin.__dict__.update(self.__dict__)
        return twin

    def hides(self, placement: Placement) -> bool:
        """Whether its item is dropped."""
        return placement.item in self.dropped

    def changes(self, held: Mapping[str, int]) -> bool:
        """Whether the frame is another one than the recorded one; `held`: current copies by item."""
        return self._hidden > 0 or any(item in held for item in self.texts)

    def named(self, named: Iterable[NamedItem]) -> tuple[NamedItem, ...]:
        """What a step names without having it in its frame; nobody names what was never there."""
        return tuple(one for one in named if one.item not in self.dropped)
