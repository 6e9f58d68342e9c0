"""What the diff screen is told: two frames item by item, and texts at both ends.  Runs in a thread."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from ctxctl.labels import SIGNS, number
from ctxctl.model.content import Content
from ctxctl.model.results import Frame, Placement
from ctxctl.text import preview
from ctxctl.tui.answers.desk import Desk
from ctxctl.tui.answers.frame_diff import Check, Ends, compared, ends, withheld
from ctxctl.tui.screens.diff import requests
from ctxctl.tui.screens.diff.sheet import Section, Sheet, make
from ctxctl.tui.screens.diff.values import Entry, FrameDiff, ItemDiff, Pair, TextKey

if TYPE_CHECKING:
    from ctxctl.engine.textdiff.unified import TextDiff
    from ctxctl.session import Inspector
    from ctxctl.tui.answers.desk import Answer
    from ctxctl.tui.requests import Request

Kept = Callable[[object, Callable[[], Sheet]], Sheet]
"""Gives back a sheet made before under the same name, else makes it."""

_PRETTY: Final = 1 << 20
"""Bytes of JSON up to which structured content is compared indented."""
_TOGETHER: Final = 1 << 25
"""Characters of all texts up to which the diffs of all items are put into one."""
_WHOLE: Final = 1 << 40
"""Context lines of a diff that shows everything."""

_LATE = "too large for the shortest diff: some equal lines may be shown as changed"


class Texts(NamedTuple):
    """The texts of one item's two versions, and how they are told apart from others."""

    before: Content | None
    after: Content | None
    note: str = ""
    """Why a text is not there, or not shown."""


def texts(sides: Ends, entry: Entry) -> Texts:
    """What an item says at both ends; of one that left, or came, nothing at the other."""
    item = entry.item
    if item in withheld(sides):
        return Texts(None, None, "It was redacted: what it said before is not shown.")
    a = None if entry.status == "added" else _current(sides.a, item)
    b = None if entry.status == "removed" else _current(sides.b, item)
    lacking = [name for name, p in (("first", a), ("second", b)) if p is not None and p.content is None]
    note = f"The trace holds no text of it in the {' and in the '.join(lacking)} frame." if lacking else ""
    if a is None and b is None:
        note = "It is in neither frame: it was named and left out."
    return Texts(None if a is None else a.content, None if b is None else b.content, note)


def _current(frame: Frame, item: str) -> Placement | None:
    """The last current copy of an item, else its last one."""
    copies = [p for p in frame.placements if p.item == item]
    return next((p for p in reversed(copies) if not p.stale), copies[-1] if copies else None)


def shown(inspector: Inspector, content: Content | None) -> str:
    """A content's text; structured content indented."""
    if content is None:
        return ""
    text = inspector.text(content)
    if content.form == "json" and content.size <= _PRETTY:
        try:
            return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
        except (ValueError, RecursionError):
            return text
    return text


def text_diff(sides: Ends, found: Texts, *, whole: bool) -> TextDiff:
    """Two texts line by line; one that is not there has no lines."""
    from ctxctl.engine.textdiff.unified import unified_diff

    if found.before is not None and found.after is not None:
        old, new = shown(sides.one, found.before), shown(sides.two, found.after)
        if old == new:
            return _plain(" ", new)
        return unified_diff(old, new, context=_WHOLE if whole else 3)
    if found.before is not None:
        return _plain("-", shown(sides.one, found.before))
    return _plain("+", shown(sides.two, found.after))


def _plain(sign: Literal[" ", "-", "+"], text: str) -> TextDiff:
    """A text that is all new, all gone, or all as it was."""
    from ctxctl.engine.textdiff.unified import DiffLine, TextDiff

    lines = tuple(DiffLine(sign, line) for line in text.split("\n"))
    return TextDiff(lines, False, len(lines) if sign == "+" else 0, len(lines) if sign == "-" else 0)


def item_diff(
    sides: Ends, entry: Entry | None, key: TextKey, kept: Callable[[object, Callable[[], Sheet]], Sheet]
) -> ItemDiff:
    """The text level of one item.  `kept` gives back a sheet made before under the same name."""
    if key.item is None or entry is None:
        return ItemDiff(key, None, "It is in neither frame.")
    found = texts(sides, entry)
    facts = tuple(_facts(entry))
    if found.before is None and found.after is None:
        return _absent(sides, entry, key, found, facts)
    if found.note and entry.status == "updated":
        return ItemDiff(key, None, found.note + " There is nothing to compare with.", facts=facts)
    diff: list[TextDiff] = []

    def made() -> Sheet:
        diff.append(text_diff(sides, found, whole=key.whole))
        remarks = [_LATE] if diff[0].degraded else []
        remarks += [found.note] if found.note else []
        remarks += _sameness(found, diff[0])
        return make([Section(None, diff[0], remarks)], split=key.split, whole=key.whole)

    digests = (found.before and found.before.digest, found.after and found.after.digest)
    sheet = kept((digests, found.note, entry.status, key.split, key.whole), made)
    return ItemDiff(
        key, sheet, "",
        added=_lines_of(sheet, 1), removed=_lines_of(sheet, 0), facts=facts,
    )  # fmt: skip


def _absent(sides: Ends, entry: Entry, key: TextKey, found: Texts, facts: tuple[str, ...]) -> ItemDiff:
    """What there is of an item without a text at either end: the record of one that was left out."""
    if entry.status == "omitted" and entry.line and entry.item not in withheld(sides):
        data = sides.two.native(entry.line).get("data")
        content = data.get("content") if isinstance(data, dict) else None
        if content is not None:
            text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=2)
            remark = "left out: it is in neither frame; this is what its record says"
            sheet = make([Section(None, _plain(" ", text), [remark])], split=key.split, whole=key.whole)
            return ItemDiff(key, sheet, facts=facts)
    return ItemDiff(key, None, found.note or "The trace holds no text of it.", facts=facts)


def _sameness(found: Texts, diff: TextDiff) -> list[str]:
    both = found.before is not None and found.after is not None
    return ["the same text at both ends"] if both and not diff.added and not diff.removed else []


def _lines_of(sheet: Sheet, side: int) -> int:
    """Changed lines of one side."""
    own = b"+" if side else b"-"
    return sheet.kinds.count(own) + sheet.kinds.count(b"~") + sheet.kinds.count(b"|")


def _facts(entry: Entry) -> Iterator[str]:
    at, to = entry.places
    if "moved" in entry.flags and at is not None and to is not None:
        yield f"place {number(at)} → {number(to)}"
    elif to is not None or at is not None:
        yield f"place {number(to or at or 0)}"
    low, high = entry.scores
    if "rescored" in entry.flags and low is not None and high is not None:
        yield f"score {low:.4g} → {high:.4g}"


def all_texts(sides: Ends, diff: FrameDiff, key: TextKey, check: Check) -> ItemDiff:
    """The diffs of all changed items one after the other, each under its name."""
    left = _TOGETHER

    def sections() -> Iterable[Section]:
        nonlocal left
        for done, n in enumerate(diff.changed):
            check()
            entry = diff.entries[n]
            if left <= 0:
                rest = len(diff.changed) - done
                yield Section(None, None, [f"and {number(rest)} more changed items: open them one by one"])
                return
            found = texts(sides, entry)
            left -= sum(content.size for content in (found.before, found.after) if content is not None)
            yield _section(sides, entry, found, whole=key.whole)

    sheet = make(sections(), split=key.split, whole=key.whole)
    if not sheet.lines:
        return ItemDiff(key, None, "Nothing changed.")
    return ItemDiff(key, sheet, "", _lines_of(sheet, 1), _lines_of(sheet, 0))


def _section(sides: Ends, entry: Entry, found: Texts, *, whole: bool) -> Section:
    name = entry.title or (f"“{preview(entry.label, 60)}”" if entry.label else entry.item)
    heading = f"{SIGNS[entry.status]} {entry.kind}  {preview(name, 200)}"
    if found.before is None and found.after is None:
        return Section(heading, None, [found.note or "The trace holds no text of it."])
    if found.note and entry.status == "updated":
        return Section(heading, None, [found.note])
    if entry.status == "skipped" and found.before is not None and found.after is not None:
        facts = ", ".join((*entry.flags, *_facts(entry)))
        if shown(sides.one, found.before) == shown(sides.two, found.after):
            return Section(heading, None, [f"the same text: {facts}"])
    diff = text_diff(sides, found, whole=whole)
    return Section(heading, diff, [_LATE] if diff.degraded else [])


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


def _comparison(desk: Desk, request: requests.ComparisonRequest) -> requests.FramesCompared:
    pair = request.pair(desk.inspector)
    first = _frames(desk, pair, causes=False)
    if first.complete:
        return requests.FramesCompared(pair, first)
    desk.tell(requests.FramesCompared(pair, first))
    return requests.FramesCompared(pair, _frames(desk, pair, causes=True))


def _frames(desk: Desk, pair: Pair, *, causes: bool) -> FrameDiff:
    def made() -> FrameDiff:
        return compared(desk.inspector, pair, desk.check, causes=causes)

    recent: Recent = desk.kept("recent", Recent)
    found: FrameDiff = recent.kept(("frames", pair, causes), made)
    return found


def _text(desk: Desk, request: requests.TextRequest) -> ItemDiff:
    key = request.key
    recent: Recent = desk.kept("recent", Recent)
    sides: Ends = recent.kept(("ends", key.pair), lambda: ends(desk.inspector, key.pair))
    diff = _frames(desk, key.pair, causes=False)
    shelf: Shelf = desk.kept("shelf", Shelf)
    if key.item is None:
        return all_texts(sides, diff, key, desk.check)
    entry = next((entry for entry in diff.entries if entry.item == key.item), None)
    return item_diff(sides, entry, key, shelf.kept)


ANSWERS: Final[dict[type[Request], Answer[Any]]] = {
    requests.ComparisonRequest: _comparison,
    requests.TextRequest: _text,
}
