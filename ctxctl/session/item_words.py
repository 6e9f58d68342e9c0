"""The first words of items without a title, read on demand, and the names of a trace's items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from ctxctl.engine.replay.frames import entered_between
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.item_names import NAMELESS, ItemNames
from ctxctl.session.params import working_directory
from ctxctl.text import visible

if TYPE_CHECKING:
    from ctxctl.engine.replay.cursor import StepAt
    from ctxctl.model.content import Content
    from ctxctl.model.results import Frame, Placement, Step
    from ctxctl.session.facade import Inspector

_MAX_HEAD: Final = 1000
"""Characters of a text that are cached."""
_MAX_CACHED: Final = 4000
"""Most texts whose beginnings are cached. A dropped one is read again."""
_TAIL: Final = 16
"""Number of placements at the end of a frame that are checked first for new ones."""
_BREAKER_CELLS: Final = 60
"""Cells of the name of what broke a prefix."""


class ItemWords:
    """Finds the texts of items without a title, as far as frames have shown them.

    Redacted texts, and texts that repeat redacted content, have no words.
    """

    def __init__(self, inspector: Inspector) -> None:
        self._inspector = inspector
        self._contents: dict[ThreadKey, dict[str, Content]] = {}
        self._here: dict[str, Content] = {}
        """Texts of the last thread."""
        self._frames: dict[ThreadKey, list[Placement]] = {}
        """The last frame of each thread."""
        self._withheld: set[str] = set()
        self._added: frozenset[str] = frozenset()
        """The texts that were added last."""
        self._heads: dict[Content, str] = {}

    def see(self, at: StepAt) -> None:
        """Add what a step brought. Call this for each step of a replay, in order."""
        self._enter(at.step)
        wanted = {
            change.item for change in at.step.changes if not change.title and change.status != "removed"
        }
        key = ThreadKey(at.step.session, at.step.thread)
        before, self._frames[key] = self._frames.get(key, []), at.placements
        for places in _likely(before, at.placements):
            for placement in reversed(places):
                if not wanted:
                    return
                if placement.item in wanted:
                    wanted.discard(placement.item)
                    self._learn(placement)

    def see_frame(self, step: Step, placements: Iterable[Placement]) -> None:
        """Add a whole frame."""
        self._enter(step)
        for placement in placements:
            if not placement.title:
                self._learn(placement)

    def of(self, item: str) -> str:
        """Return the beginning of an item's text; empty if unknown or not to be shown."""
        content = self._here.get(item)
        if content is None:
            content = next((held[item] for held in self._contents.values() if item in held), None)
        if content is None or item in self._withheld:
            return ""
        found = self._heads.get(content)
        if found is None:
            if len(self._heads) >= _MAX_CACHED:
                self._heads.clear()
            inspector = self._inspector
            found = "" if inspector.redactor.touches(content) else inspector.text(content)[:_MAX_HEAD]
            self._heads[content] = found
        return found

    def names(self, *, ids: bool = False) -> ItemNames:
        """Return the names of the trace's items; `ids` adds their ids."""
        return ItemNames(directory_of(self._inspector), self.of, ids)

    def _enter(self, step: Step) -> None:
        if step.annotations.withheld is not self._added:
            self._added = step.annotations.withheld
            self._withheld.update(self._added)
        self._here = self._contents.setdefault(ThreadKey(step.session, step.thread), {})

    def _learn(self, placement: Placement) -> None:
        if placement.content is not None:
            self._here[placement.item] = placement.content


def _likely(before: list[Placement], after: list[Placement]) -> Iterator[list[Placement]]:
    """Yield parts of a frame that may hold new copies: its end, its changed part, and all of it."""
    yield [placement for placement in after[-_TAIL:] if not placement.stale]
    yield entered_between(before, after)
    yield after


def names_in_frames(*frames: tuple[Inspector, Frame], ids: bool = False) -> ItemNames:
    """Return the names of the items of some frames. The last frame with an item gives its words."""
    found = []
    for inspector, frame in reversed(frames):
        words = ItemWords(inspector)
        words.see_frame(frame.step, frame.placements)
        found.append(words)
    withheld = {item for _, frame in frames for item in frame.step.annotations.withheld}

    def of(item: str) -> str:
        return "" if item in withheld else next(filter(None, (words.of(item) for words in found)), "")

    return ItemNames(directory_of(frames[-1][0]), of, ids)


def broken_name(step: Step, names: ItemNames = NAMELESS) -> str:
    """Return the list name of what ended the possible prefix, or its id without a title and words.

    Empty if nothing ended it.
    """
    broken = step.cache.broken_by
    if broken is None or broken.item is None:
        return visible(broken.name) if broken is not None else ""
    title = next((change.title for change in step.changes if change.item == broken.item), None)
    return names.of(broken.item, title, _BREAKER_CELLS)


def names_at(inspector: Inspector, ordinal: int, *, ids: bool = False) -> ItemNames:
    """Return the names of a step's items: of its frame, and of what it removed from the previous one."""
    before = inspector.previous(ordinal)
    ordinals = [ordinal] if before is None else [before, ordinal]
    return names_in_frames(*((inspector, inspector.frame(one)) for one in ordinals), ids=ids)


def directory_of(inspector: Inspector) -> str | None:
    """Return the session's directory; None if it is not recorded or contains redacted text."""
    found = working_directory(inspector.trace)
    return None if found is None or inspector.redactor.words(found) != found else found
