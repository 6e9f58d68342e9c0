"""Answers for the diff screen: two frames item by item, and texts at both ends.

Asks one inspector or two, and runs in a thread: no widget, no view state.
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from ctxctl.item_names import told
from ctxctl.model.content import Content
from ctxctl.model.results import Change, Frame, Placement
from ctxctl.model.vocab import STATUSES
from ctxctl.session.item_words import directory_of
from ctxctl.text import clip
from ctxctl.tui.answers.context import AnswerContext
from ctxctl.tui.screens.diff import requests
from ctxctl.tui.screens.diff.sheet import Section, Sheet, make
from ctxctl.tui.screens.diff.values import Entry, FrameDiff, FrameName, ItemDiff, Pair, SideHead, TextKey
from ctxctl.tui.sizes import method_of
from ctxctl.wording import SIGNS, methods, number

if TYPE_CHECKING:
    from ctxctl.engine.textdiff.unified import TextDiff
    from ctxctl.session import Inspector
    from ctxctl.session.results import FrameDiff as Found
    from ctxctl.tui.answers.context import Answer
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


class _BothHeld(NamedTuple):
    """What both frames hold, by item: gone through once, however many items are asked for."""

    a: Mapping[str, Placement]
    b: Mapping[str, Placement]
    withheld: Collection[str]

    @classmethod
    def of(cls, sides: FramesOfPair, item: str | None = None) -> _BothHeld:
        return cls(_current_copies(sides.a, item), _current_copies(sides.b, item), withheld(sides))


def item_texts(held: _BothHeld, entry: Entry) -> Texts:
    """What an item says at both ends; of one that left, or came, nothing at the other."""
    item = entry.item
    if item in held.withheld:
        return Texts(None, None, "It was redacted: what it said before is not shown.")
    a = None if entry.status == "added" else held.a.get(item)
    b = None if entry.status == "removed" else held.b.get(item)
    lacking = [name for name, p in (("first", a), ("second", b)) if p is not None and p.content is None]
    note = f"The trace holds no text of it in the {' and in the '.join(lacking)} frame." if lacking else ""
    if a is None and b is None:
        note = "It is in neither frame: it was named and left out."
    return Texts(None if a is None else a.content, None if b is None else b.content, note)


def _current_copies(frame: Frame, item: str | None) -> dict[str, Placement]:
    """By item, its last current copy, else its last one; of one item alone, or of all."""
    found = [placement for placement in frame.placements if item is None or placement.item == item]
    last = {placement.item: placement for placement in found}
    return last | {placement.item: placement for placement in found if not placement.stale}


def text_of(inspector: Inspector, content: Content | None) -> str:
    """The text of a content; structured content is indented."""
    if content is None:
        return ""
    text = inspector.text(content)
    if content.form == "json" and content.size <= _PRETTY:
        try:
            return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
        except (ValueError, RecursionError):
            return text
    return text


def text_diff(sides: FramesOfPair, found: Texts, *, whole: bool) -> TextDiff:
    """The diff of two texts, line by line; a text that is not there has no lines."""
    from ctxctl.engine.textdiff.unified import unified_diff

    if found.before is not None and found.after is not None:
        old, new = text_of(sides.one, found.before), text_of(sides.two, found.after)
        if old == new:
            return _plain(" ", new)
        return unified_diff(old, new, context=_WHOLE if whole else 3)
    if found.before is not None:
        return _plain("-", text_of(sides.one, found.before))
    return _plain("+", text_of(sides.two, found.after))


def _plain(sign: Literal[" ", "-", "+"], text: str) -> TextDiff:
    """The diff of a text that is all new, all gone, or all as it was."""
    from ctxctl.engine.textdiff.unified import DiffLine, TextDiff

    lines = tuple(DiffLine(sign, line) for line in text.split("\n"))
    return TextDiff(lines, False, len(lines) if sign == "+" else 0, len(lines) if sign == "-" else 0)


def item_diff(
    sides: FramesOfPair,
    entry: Entry | None,
    key: TextKey,
    kept: Callable[[object, Callable[[], Sheet]], Sheet],
) -> ItemDiff:
    """The text level of one item.  `kept` gives back a sheet made before under the same name."""
    if key.item is None or entry is None:
        return ItemDiff(key, None, "It is in neither frame.")
    found = item_texts(_BothHeld.of(sides, entry.item), entry)
    facts = tuple(_facts(entry))
    if found.before is None and found.after is None:
        return _unheld_item(sides, entry, key, found, facts)
    if found.note and entry.status == "updated":
        return ItemDiff(key, None, found.note + " There is nothing to compare with.", facts=facts)
    diff: list[TextDiff] = []

    def made() -> Sheet:
        diff.append(text_diff(sides, found, whole=key.whole))
        remarks = [_LATE] if diff[0].degraded else []
        remarks += [found.note] if found.note else []
        remarks += _same_text_remark(found, diff[0])
        return make([Section(None, diff[0], remarks)], split=key.split, whole=key.whole)

    digests = (found.before and found.before.digest, found.after and found.after.digest)
    sheet = kept((digests, found.note, entry.status, key.split, key.whole), made)
    return ItemDiff(
        key, sheet, "",
        added=_lines_of(sheet, 1), removed=_lines_of(sheet, 0), facts=facts,
    )  # fmt: skip


def _unheld_item(
    sides: FramesOfPair, entry: Entry, key: TextKey, found: Texts, facts: tuple[str, ...]
) -> ItemDiff:
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


def _same_text_remark(found: Texts, diff: TextDiff) -> list[str]:
    both = found.before is not None and found.after is not None
    return ["the same text at both ends"] if both and not diff.added and not diff.removed else []


def _lines_of(sheet: Sheet, side: int) -> int:
    """The changed lines of one side."""
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


def all_texts(sides: FramesOfPair, diff: FrameDiff, key: TextKey, check: Check) -> ItemDiff:
    """The diffs of all changed items one after the other, each under its name."""
    left = _TOGETHER
    held, directory = _BothHeld.of(sides), directory_of(sides.two)

    def sections() -> Iterable[Section]:
        nonlocal left
        for done, n in enumerate(diff.changed):
            check()
            entry = diff.entries[n]
            if left <= 0:
                rest = len(diff.changed) - done
                yield Section(None, None, [f"and {number(rest)} more changed items: open them one by one"])
                return
            found = item_texts(held, entry)
            left -= sum(content.size for content in (found.before, found.after) if content is not None)
            yield _section(sides, entry, found, directory, whole=key.whole)

    sheet = make(sections(), split=key.split, whole=key.whole)
    if not sheet.lines:
        return ItemDiff(key, None, "Nothing changed.")
    return ItemDiff(key, sheet, "", _lines_of(sheet, 1), _lines_of(sheet, 0))


def _section(
    sides: FramesOfPair, entry: Entry, found: Texts, directory: str | None, *, whole: bool
) -> Section:
    name = told(entry.title, entry.words, entry.item, directory)
    heading = f"{SIGNS[entry.status]} {entry.kind}  {clip(name, 200)}"
    if found.before is None and found.after is None:
        return Section(heading, None, [found.note or "The trace holds no text of it."])
    if found.note and entry.status == "updated":
        return Section(heading, None, [found.note])
    if entry.status == "skipped" and found.before is not None and found.after is not None:
        facts = ", ".join((*entry.flags, *_facts(entry)))
        if text_of(sides.one, found.before) == text_of(sides.two, found.after):
            return Section(heading, None, [f"the same text: {facts}"])
    diff = text_diff(sides, found, whole=whole)
    return Section(heading, diff, [_LATE] if diff.degraded else [])


_HELD: Final = 1 << 23
"""Characters of all sheets that are kept for coming back to them; the newest is kept at any size."""

_RECENT: Final = 6


class SheetCache:
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


class RecentFrames:
    """The last few frames and their comparison: of large windows, more would cost more than reading them."""

    def __init__(self) -> None:
        self._held: OrderedDict[object, Any] = OrderedDict()

    def kept(self, name: object, make: Callable[[], Any]) -> Any:
        """The value of this name, made now if it is not there."""
        if name not in self._held:
            self._held[name] = make()
        self._held.move_to_end(name)
        if len(self._held) > _RECENT:
            self._held.popitem(last=False)
        return self._held[name]


def _size(sheet: Sheet) -> int:
    return sum(len(column.text) for column in sheet.columns)


def _comparison(context: AnswerContext, request: requests.ComparisonRequest) -> requests.FramesCompared:
    pair = request.pair(context.inspector)
    first = _frames(context, pair, causes=False)
    if first.complete:
        return requests.FramesCompared(pair, first)
    context.tell(requests.FramesCompared(pair, first))
    return requests.FramesCompared(pair, _frames(context, pair, causes=True))


def _frames(context: AnswerContext, pair: Pair, *, causes: bool) -> FrameDiff:
    def made() -> FrameDiff:
        return compare_frames(context.inspector, pair, context.check, causes=causes)

    recent: RecentFrames = context.kept("recent", RecentFrames)
    found: FrameDiff = recent.kept(("frames", pair, causes), made)
    return found


def _text(context: AnswerContext, request: requests.TextRequest) -> ItemDiff:
    key = request.key
    recent: RecentFrames = context.kept("recent", RecentFrames)
    sides: FramesOfPair = recent.kept(("ends", key.pair), lambda: frames_of_pair(context.inspector, key.pair))
    diff = _frames(context, key.pair, causes=False)
    shelf: SheetCache = context.kept("shelf", SheetCache)
    if key.item is None:
        return all_texts(sides, diff, key, context.check)
    entry = next((entry for entry in diff.entries if entry.item == key.item), None)
    return item_diff(sides, entry, key, shelf.kept)


Check = Callable[[], None]
"""To be called every few milliseconds of work; raises to give up."""

_LABELS: Final = 300
_LONG: Final = 400
"""Items whose first words are read for the list, and characters of each."""

_STALE: Final = "stale copies only"
"""Of an item that is current in neither frame."""


class FramesOfPair(NamedTuple):
    """Both frames and where their texts are read."""

    one: Inspector
    a: Frame
    two: Inspector
    b: Frame


def frames_of_pair(inspector: Inspector, pair: Pair) -> FramesOfPair:
    """The frames of a pair."""
    one, two = _of(inspector, pair.a), _of(inspector, pair.b)
    return FramesOfPair(one, one.frame(pair.a.ordinal), two, two.frame(pair.b.ordinal))


def _of(inspector: Inspector, name: FrameName) -> Inspector:
    return inspector if name.other is None else name.other


# The items --------------------------------------------------------------------------------------------------


def compare_frames(inspector: Inspector, pair: Pair, check: Check, *, causes: bool) -> FrameDiff:
    """Both frames item by item; with `causes`, the steps in between are replayed for why items left."""
    from ctxctl.analysis.frame_pair import explained_changes, frame_changes

    sides = frames_of_pair(inspector, pair)
    found = explained_changes(sides.two.compare(sides.a, sides.b), {})
    late = sides.one is sides.two and any(change.status == "removed" for change in found.changes)
    if causes and late:
        found = frame_changes(sides.one, pair.a.ordinal, sides.two, pair.b.ordinal, check)
    entries = list(_entries(sides, found, check))
    counts = dict.fromkeys(STATUSES, 0)
    for entry in entries:
        counts[entry.status] += _STALE not in entry.flags
    return FrameDiff.of(
        side_head(sides.one, sides.a),
        side_head(sides.two, sides.b),
        entries,
        (found.new, found.freed),
        counts,
        complete=causes or not late,
        directory=directory_of(sides.two),
    )


def side_head(inspector: Inspector, frame: Frame) -> SideHead:
    """The head of one side: which frame it is, and what it holds."""
    from ctxctl.analysis.frame_pair import address, several_sessions

    step = frame.step
    return SideHead(
        trace=os.path.basename(inspector.name) or inspector.name,
        address=address(frame, several_sessions(inspector)),
        layer=step.layer,
        basis=step.basis,
        target=step.target,
        model=step.model,
        limit=step.window.limit,
        cap=step.window.cap,
        used=step.window.used,
        uncounted=step.window.uncounted,
        counting=methods(step.window.by_method),
        segments=step.segments,
        policy=inspector.params.policy,
        items=len(frame.placements),
        recorded=step.window.recorded,
        method=method_of(step.window),
        error=step.window.used_error,
    )


class _Held(NamedTuple):
    """One item in one frame."""

    placement: Placement
    """Its last current copy, else its last one."""
    place: int
    """1-based position of that copy."""


def _held(frame: Frame, check: Check) -> tuple[dict[str, _Held], dict[str, int]]:
    """Every item of a frame in its order, and the tokens of all its copies."""
    found: dict[str, _Held] = {}
    tokens: dict[str, int] = {}
    for n, placement in enumerate(frame.placements):
        if not n & 1023:
            check()
        item = placement.item
        tokens[item] = tokens.get(item, 0) + placement.tokens
        if item not in found or not placement.stale or found[item].placement.stale:
            found[item] = _Held(placement, n + 1)
    return dict(sorted(found.items(), key=lambda entry: entry[1].place)), tokens


def _entries(sides: FramesOfPair, found: Found, check: Check) -> Iterator[Entry]:
    """The items in the order of the second frame; what left stands after what it came after in the first."""
    was, before = _held(sides.a, check)
    now, after = _held(sides.b, check)
    changes = {change.item: change for change in found.changes}
    gone: dict[str | None, list[str]] = {}
    anchor: str | None = None
    for item in was:
        if item in now:
            anchor = item
        else:
            gone.setdefault(anchor, []).append(item)
    words = _Words(sides)
    twins = _same_texts(found.changes, was, now)
    order: list[str] = list(gone.get(None, ()))
    for item in now:
        order.append(item)
        order += gone.get(item, ())
    order += [
        change.item for change in found.changes if change.status == "omitted" and change.item not in was
    ]
    for n, item in enumerate(order):
        if not n & 255:
            check()
        entry = _entry(item, changes.get(item), was.get(item), now.get(item), before, after, sides, words)
        yield replace(entry, flags=(*entry.flags, twins[item])) if item in twins else entry


def _same_texts(changes: Iterable[Change], was: dict[str, _Held], now: dict[str, _Held]) -> dict[str, str]:
    """Items that came with the very text of one that left, and the other way round.

    Runtimes name items anew with each session: without this, two runs would seem to share nothing.
    """
    left: dict[str, list[str]] = {}
    came: dict[str, list[str]] = {}
    for change in changes:
        side, held = (left, was) if change.status == "removed" else (came, now)
        if change.status in ("removed", "added") and change.item in held:
            content = held[change.item].placement.content
            if content is not None:
                side.setdefault(content.digest, []).append(change.item)
    found: dict[str, str] = {}
    for digest in left.keys() & came.keys():
        found.update(dict.fromkeys(left[digest], "same text comes"))
        found.update(dict.fromkeys(came[digest], "same text left"))
    return found


def _entry(
    item: str,
    change: Change | None,
    was: _Held | None,
    now: _Held | None,
    before: dict[str, int],
    after: dict[str, int],
    sides: FramesOfPair,
    words: _Words,
) -> Entry:
    here = now or was
    held = (before.get(item, 0), after.get(item, 0))
    if change is None:
        assert here is not None
        p = here.placement
        # Copies that are not current any more have no status; what they hold is in the sums all the same.
        flags: tuple[str, ...] = (_STALE,) if p.stale else ()
        return Entry(
            "skipped", item, p.kind, p.title, *held,
            new=max(held[1] - held[0], 0), freed=max(held[0] - held[1], 0), flags=flags,
            provenance="simulated" if p.simulated else "derived" if p.derived else "native",
            words=words.of(item, p, changed=held[0] != held[1]), places=_places(was, now),
            scores=_scores(sides, item), versions=_versions(was, now), line=p.line,
            uncounted=_unsized(was, now),
        )  # fmt: skip
    flags = tuple(flag for flag in change.flags if flag not in ("derived-identity", change.cause))
    if change.status == "removed" and held[1]:
        flags = (*(flag for flag in flags if flag != "stale"), "stale copies stay")
    return Entry(
        change.status, item, change.kind, change.title, *held,
        new=change.new, freed=change.freed, cause=change.cause, reason=change.reason, into=change.into,
        flags=flags, provenance=change.provenance,
        words="" if here is None else words.of(item, here.placement, changed=True),
        places=_places(was, now), scores=_scores(sides, item), versions=_versions(was, now), line=change.line,
        uncounted=_unsized(was, now),
    )  # fmt: skip


def _places(was: _Held | None, now: _Held | None) -> tuple[int | None, int | None]:
    return None if was is None else was.place, None if now is None else now.place


def _unsized(was: _Held | None, now: _Held | None) -> tuple[bool, bool]:
    one, two = (held is not None and held.placement.method == "uncounted" for held in (was, now))
    return one, two


def _versions(was: _Held | None, now: _Held | None) -> tuple[str | None, str | None]:
    return None if was is None else was.placement.version, None if now is None else now.placement.version


def _scores(sides: FramesOfPair, item: str) -> tuple[float | None, float | None]:
    return sides.a.step.scores.get(item), sides.b.step.scores.get(item)


class _Words:
    """The first words of items without a title: of the first few hundred, those that changed first of all."""

    def __init__(self, sides: FramesOfPair) -> None:
        self._sides = sides
        self._left = {True: _LABELS, False: _LABELS}
        self._hidden = withheld(sides)
        self._ours = {id(p) for p in sides.b.placements}

    def of(self, item: str, placement: Placement, *, changed: bool) -> str:
        if placement.title or placement.content is None or item in self._hidden or not self._left[changed]:
            return ""
        self._left[changed] -= 1
        inspector = self._sides.two if id(placement) in self._ours else self._sides.one
        if inspector.redactor.touches(placement.content):
            return ""
        return inspector.text(placement.content)[:_LONG]


def withheld(sides: FramesOfPair) -> frozenset[str]:
    """Items that were redacted at either end: what they said before is not shown any more."""
    return frozenset(sides.a.step.annotations.withheld) | frozenset(sides.b.step.annotations.withheld)


ANSWERS: Final[dict[type[Request], Answer[Any]]] = {
    requests.ComparisonRequest: _comparison,
    requests.TextRequest: _text,
}
