"""What the diff screen is told."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from textual.message import Message

from ctxctl.tui.answers.desk import Desk
from ctxctl.tui.diff import gather, texts, wants
from ctxctl.tui.diff.sheet import Sheet
from ctxctl.tui.diff.values import FrameDiff, Pair

if TYPE_CHECKING:
    from ctxctl.tui.answers.desk import Answer
    from ctxctl.tui.messages import Want

_HELD: Final = 1 << 23
"""Characters of all sheets that are kept for coming back to them; the newest is kept at any size."""

_RECENT: Final = 6


class Shelf:
    """Sheets by what they are made of, the least lately used ones dropped."""

    def __init__(self) -> None:
        self._held: OrderedDict[object, Sheet] = OrderedDict()
        self._size = 0

    def kept(self, name: object, make: Callable[[], Sheet]) -> Sheet:
        """The sheet of this name, made now if it is not there."""
        found = self._held.get(name)
        if found is not None:
            self._held.move_to_end(name)
            return found
        found = self._held[name] = make()
        self._size += _size(found)
        while self._size > _HELD and len(self._held) > 1:
            self._size -= _size(self._held.popitem(last=False)[1])
        return found


class Recent:
    """The last few frames and their comparison: of large windows, more would cost more than reading them."""

    def __init__(self) -> None:
        self._held: OrderedDict[object, Any] = OrderedDict()

    def kept(self, name: object, make: Callable[[], Any]) -> Any:
        """What is known by this name, made now if it is not there."""
        if name not in self._held:
            self._held[name] = make()
        self._held.move_to_end(name)
        if len(self._held) > _RECENT:
            self._held.popitem(last=False)
        return self._held[name]


def _size(sheet: Sheet) -> int:
    return sum(len(column.text) for column in sheet.columns)


def _comparison(desk: Desk, want: wants.WantComparison) -> Message:
    pair = want.pair(desk.inspector)
    first = _frames(desk, pair, causes=False)
    if first.complete:
        return wants.Compared(pair, first)
    desk.tell(wants.Compared(pair, first))
    return wants.Compared(pair, _frames(desk, pair, causes=True))


def _frames(desk: Desk, pair: Pair, *, causes: bool) -> FrameDiff:
    def made() -> FrameDiff:
        return gather.compared(desk.inspector, pair, desk.check, causes=causes)

    recent: Recent = desk.kept("recent", Recent)
    found: FrameDiff = recent.kept(("frames", pair, causes), made)
    return found


def _text(desk: Desk, want: wants.WantText) -> Message:
    key = want.key
    recent: Recent = desk.kept("recent", Recent)
    sides: gather.Ends = recent.kept(("ends", key.pair), lambda: gather.ends(desk.inspector, key.pair))
    diff = _frames(desk, key.pair, causes=False)
    shelf: Shelf = desk.kept("shelf", Shelf)
    if key.item is None:
        return wants.TextCompared(texts.all_texts(sides, diff, key, desk.check))
    entry = next((entry for entry in diff.entries if entry.item == key.item), None)
    return wants.TextCompared(texts.item_diff(sides, entry, key, shelf.kept))


ANSWERS: Final[dict[type[Want], Answer[Any]]] = {
    wants.WantComparison: _comparison,
    wants.WantText: _text,
}
