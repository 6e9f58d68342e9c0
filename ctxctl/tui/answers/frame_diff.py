"""What the diff screen shows, asked of one inspector or two.  Runs in a thread; no widget, no state."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from ctxctl.labels import methods
from ctxctl.model.results import Change, Frame, Placement
from ctxctl.model.vocab import STATUSES
from ctxctl.text import preview
from ctxctl.tui.screens.diff.values import Entry, FrameDiff, FrameName, Pair, SideHead
from ctxctl.tui.sizes import method_of

if TYPE_CHECKING:
    from ctxctl.session import Inspector
    from ctxctl.session.results import FrameDiff as Found

Check = Callable[[], None]
"""To be called every few milliseconds of work; raises to give up."""

_LABELS: Final = 300
_WORDS: Final = 200
"""Items whose first words are read for the list, and characters of each."""

_STALE: Final = "stale copies only"
"""Of an item that is current in neither frame."""


class Ends(NamedTuple):
    """Both frames and where their texts are read."""

    one: Inspector
    a: Frame
    two: Inspector
    b: Frame


def ends(inspector: Inspector, pair: Pair) -> Ends:
    """The frames of a pair."""
    one, two = _of(inspector, pair.a), _of(inspector, pair.b)
    return Ends(one, one.frame(pair.a.ordinal), two, two.frame(pair.b.ordinal))


def _of(inspector: Inspector, name: FrameName) -> Inspector:
    return inspector if name.other is None else name.other


# The items --------------------------------------------------------------------------------------------------


def compared(inspector: Inspector, pair: Pair, check: Check, *, causes: bool) -> FrameDiff:
    """Both frames item by item; with `causes`, the steps in between are replayed for why items left."""
    from ctxctl.analysis.frame_pair import explained_changes, frame_changes

    sides = ends(inspector, pair)
    found = explained_changes(sides.two.compare(sides.a, sides.b), {})
    late = sides.one is sides.two and any(change.status == "removed" for change in found.changes)
    if causes and late:
        found = frame_changes(sides.one, pair.a.ordinal, sides.two, pair.b.ordinal, check)
    entries = list(_entries(sides, found, check))
    counts = dict.fromkeys(STATUSES, 0)
    for entry in entries:
        counts[entry.status] += _STALE not in entry.flags
    return FrameDiff.of(
        head(sides.one, sides.a),
        head(sides.two, sides.b),
        entries,
        (found.new, found.freed),
        counts,
        complete=causes or not late,
    )


def head(inspector: Inspector, frame: Frame) -> SideHead:
    """What one side is."""
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


def _entries(sides: Ends, found: Found, check: Check) -> Iterator[Entry]:
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
    labels = _Labels(sides)
    twins = _twins(found.changes, was, now)
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
        entry = _entry(item, changes.get(item), was.get(item), now.get(item), before, after, sides, labels)
        yield replace(entry, flags=(*entry.flags, twins[item])) if item in twins else entry


def _twins(changes: Iterable[Change], was: dict[str, _Held], now: dict[str, _Held]) -> dict[str, str]:
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
    sides: Ends,
    labels: _Labels,
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
            label=labels.of(item, p, changed=held[0] != held[1]), places=_places(was, now),
            scores=_scores(sides, item), versions=_versions(was, now), line=p.line,
        )  # fmt: skip
    flags = tuple(flag for flag in change.flags if flag not in ("derived-identity", change.cause))
    if change.status == "removed" and held[1]:
        flags = (*(flag for flag in flags if flag != "stale"), "stale copies stay")
    return Entry(
        change.status, item, change.kind, change.title, *held,
        new=change.new, freed=change.freed, cause=change.cause, reason=change.reason, into=change.into,
        flags=flags, provenance=change.provenance,
        label="" if here is None else labels.of(item, here.placement, changed=True),
        places=_places(was, now), scores=_scores(sides, item), versions=_versions(was, now), line=change.line,
    )  # fmt: skip


def _places(was: _Held | None, now: _Held | None) -> tuple[int | None, int | None]:
    return None if was is None else was.place, None if now is None else now.place


def _versions(was: _Held | None, now: _Held | None) -> tuple[str | None, str | None]:
    return None if was is None else was.placement.version, None if now is None else now.placement.version


def _scores(sides: Ends, item: str) -> tuple[float | None, float | None]:
    return sides.a.step.scores.get(item), sides.b.step.scores.get(item)


class _Labels:
    """The first words of items without a title: of the first few hundred, those that changed first of all."""

    def __init__(self, sides: Ends) -> None:
        self._sides = sides
        self._left = {True: _LABELS, False: _LABELS}
        self._hidden = withheld(sides)
        self._ours = {id(p) for p in sides.b.placements}

    def of(self, item: str, placement: Placement, *, changed: bool) -> str:
        if placement.title or placement.content is None or item in self._hidden or not self._left[changed]:
            return ""
        self._left[changed] -= 1
        inspector = self._sides.two if id(placement) in self._ours else self._sides.one
        return preview(inspector.text(placement.content)[: _WORDS * 2], _WORDS)


def withheld(sides: Ends) -> frozenset[str]:
    """Items that were redacted at either end: what they said before is not shown any more."""
    return frozenset(sides.a.step.told.withheld) | frozenset(sides.b.step.told.withheld)
