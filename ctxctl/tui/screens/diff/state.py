"""What the diff screen shows: one immutable value, and the functions that lead from one to the next.

Plain Python: no widget, no event loop, no file.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Literal

from ctxctl.tui.screens.diff.values import Entry, FrameDiff, ItemDiff, Listing, Pair, TextKey

Level = Literal["items", "text"]

SPLIT: Final = 100
"""Columns of the text from which its two versions stand side by side."""
BESIDE: Final = 160
"""Columns of the screen from which the item's text stands beside the table."""


@dataclass(frozen=True, slots=True)
class DiffState:
    """The state of the whole screen."""

    pair: Pair | None = None
    """None until the traces are open."""
    swapped: bool = False
    """The sides have changed places since the screen was opened."""
    listing: Listing = field(default_factory=Listing)
    row: int = 0
    item: str | None = None
    """Item that the cursor stays on when rows come or go."""
    level: Level = "items"
    together: bool = False
    """The texts of all changed items are shown, one after the other."""
    unified: bool = False
    """Asked for by the user; where there is no room for two columns it is unified anyway."""
    whole: bool = False
    """Unchanged lines are shown too."""
    beside: bool = False
    """There is room for the text beside the table."""
    roomy: bool = False
    """There is room for two columns of text."""
    text: ItemDiff | None = None
    land: int = 1
    """Which change a text opens at: 1 the first, -1 the last."""
    error: str = ""

    @property
    def entry(self) -> Entry | None:
        """The item under the cursor."""
        return self.listing.at(self.row)

    @property
    def split(self) -> bool:
        """Whether the text has two columns; of an item that only one frame has, one would be empty."""
        return self.roomy and not self.unified and not self.one_sided

    @property
    def one_sided(self) -> bool:
        """Whether the text in view is of an item that only one of the frames has."""
        entry = None if self.together else self.entry
        return entry is not None and None in entry.places

    @property
    def wanted(self) -> TextKey | None:
        """The text to show; None where none is in view."""
        if self.pair is None or self.listing.diff is None or not (self.beside or self.level == "text"):
            return None
        if self.together:
            return TextKey(self.pair, None, self.split, self.whole)
        entry = self.entry
        return None if entry is None else TextKey(self.pair, entry.item, self.split, self.whole)

    @property
    def shown(self) -> ItemDiff | None:
        """The text, if it is the one that is wanted."""
        return self.text if self.text is not None and self.text.key == self.wanted else None


def compared(state: DiffState, pair: Pair, diff: FrameDiff) -> DiffState:
    """The two frames are there; the cursor stays on its item, or goes to the first change."""
    if state.pair is not None and pair != state.pair:
        return state
    listing = replace(state.listing, diff=diff)
    state = replace(state, pair=pair, listing=listing, error="")
    row = None if state.item is None else listing.find(state.item)
    if row is None:
        first = listing.row_of(diff.changed[0]) if diff.changed else 0
        row = first if state.item is None else _clamped(state.row, listing.count)
    return _at(state, row)


def failed(state: DiffState, why: str) -> DiffState:
    """The state where the frames cannot be compared."""
    return replace(state, error=why)


def texted(state: DiffState, text: ItemDiff) -> DiffState:
    """The state with a text that has arrived; a late one is ignored."""
    return replace(state, text=text) if text.key == state.wanted else state


def arranged(state: DiffState, width: int, text_width: int) -> DiffState:
    """The screen has this many columns, and the text would have so many."""
    return replace(state, beside=width >= BESIDE, roomy=text_width >= SPLIT)


def to_row(state: DiffState, row: int) -> DiffState:
    """Move the cursor in the table, to a row or to the nearest there is."""
    return replace(_at(state, row), land=1)


def next_change(state: DiffState, by: int) -> DiffState:
    """Go to the next item that changed, or to the one before; opened, its text begins at its near end."""
    row = state.listing.change(state.row, by)
    return state if row is None else replace(_at(state, row), land=by)


def toggle_unchanged(state: DiffState) -> DiffState:
    """In the table list the unchanged items too, or only changes; in a text, its unchanged lines."""
    if state.level == "text":
        return replace(state, whole=not state.whole)
    entry = state.listing.entry_of(state.row)
    listing = replace(state.listing, everything=not state.listing.everything)
    return _at(replace(state, listing=listing), listing.row_of(entry))


def toggle_unified(state: DiffState) -> DiffState:
    """Show the text side by side, or unified."""
    return replace(state, unified=not state.unified)


def toggle_together(state: DiffState) -> DiffState:
    """Show all changed items as one text, or one item's text."""
    if state.listing.diff is None:
        return state
    together = not state.together
    return replace(state, together=together, level="text" if together else "items", land=1)


def swapped(state: DiffState) -> DiffState:
    """Put each side in the place of the other; the cursor stays on its item."""
    if state.pair is None:
        return state
    return replace(state, pair=state.pair.swapped(), swapped=not state.swapped)


def enter(state: DiffState) -> DiffState:
    """Go from an item to its text."""
    if state.level == "text" or state.entry is None:
        return state
    return replace(state, level="text", together=False, land=1)


def back(state: DiffState) -> DiffState | None:
    """Go from a text back to the table; None leaves the screen."""
    if state.level == "items":
        return None
    return replace(state, level="items", together=False)


def focused(state: DiffState, level: Level) -> DiffState:
    """The table or the text has the focus."""
    if level == state.level or (level == "text" and state.listing.diff is None):
        return state
    return replace(state, level=level)


def _at(state: DiffState, row: int) -> DiffState:
    state = replace(state, row=_clamped(row, state.listing.count))
    entry = state.entry
    return state if entry is None else replace(state, item=entry.item)


def _clamped(row: int, count: int) -> int:
    return min(max(row, 0), max(count - 1, 0))
