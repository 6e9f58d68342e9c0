"""The first words of items without a title, read from the trace when they are shown; and how its items are
called."""

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

_HEAD: Final = 1000
"""Characters of a text that are kept at hand."""
_KEPT: Final = 4000
"""Texts whose beginnings are kept at hand; one that is dropped is read again."""
_LAST: Final = 16
"""Placements at the end of a frame among which what is new is looked for first."""
_BROKE: Final = 60
"""Cells of what broke a prefix."""


class ItemWords:
    """Where the texts of the items without a title are, as far as frames have shown them.

    What was redacted, or says what was redacted elsewhere, has no words.
    """

    def __init__(self, inspector: Inspector) -> None:
        self._inspector = inspector
        self._contents: dict[ThreadKey, dict[str, Content]] = {}
        self._here: dict[str, Content] = {}
        """Those of the thread that was seen last."""
        self._frames: dict[ThreadKey, list[Placement]] = {}
        """The last frame of each thread that was seen."""
        self._withheld: set[str] = set()
        self._added: frozenset[str] = frozenset()
        """What was added to them last."""
        self._heads: dict[Content, str] = {}

    def see(self, at: StepAt) -> None:
        """Take in what a step brought: of a replay, each step in order."""
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
        """Take in a whole frame."""
        self._enter(step)
        for placement in placements:
            if not placement.title:
                self._learn(placement)

    def of(self, item: str) -> str:
        """The beginning of an item's text; empty where it is not known or not to be shown."""
        content = self._here.get(item)
        if content is None:
            content = next((held[item] for held in self._contents.values() if item in held), None)
        if content is None or item in self._withheld:
            return ""
        found = self._heads.get(content)
        if found is None:
            if len(self._heads) >= _KEPT:
                self._heads.clear()
            inspector = self._inspector
            found = "" if inspector.redactor.touches(content) else inspector.text(content)[:_HEAD]
            self._heads[content] = found
        return found

    def names(self, *, ids: bool = False) -> ItemNames:
        """How the items of the trace are called, and whether their ids are shown beside."""
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
    """Where in a frame something new is looked for: at its end, where it differs from the one before, and
    everywhere."""
    yield [placement for placement in after[-_LAST:] if not placement.stale]
    yield entered_between(before, after)
    yield after


def names_in_frames(*frames: tuple[Inspector, Frame], ids: bool = False) -> ItemNames:
    """How the items of some frames are called; of an item that several hold, the last one tells the words."""
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
    """What ended the possible prefix, by its name in lists; by its id where no title and no words are known.

    Empty where nothing ended it.
    """
    broken = step.cache.broken_by
    if broken is None or broken.item is None:
        return visible(broken.name) if broken is not None else ""
    title = next((change.title for change in step.changes if change.item == broken.item), None)
    return names.of(broken.item, title, _BROKE)


def names_at(inspector: Inspector, ordinal: int, *, ids: bool = False) -> ItemNames:
    """How the items of a step are called: of its frame, and of what it took out of the one before."""
    before = inspector.previous(ordinal)
    ordinals = [ordinal] if before is None else [before, ordinal]
    return names_in_frames(*((inspector, inspector.frame(one)) for one in ordinals), ids=ids)


def directory_of(inspector: Inspector) -> str | None:
    """The directory in which the session ran; None where it is not recorded, or holds what was redacted."""
    found = working_directory(inspector.trace)
    return None if found is None or inspector.redactor.words(found) != found else found
