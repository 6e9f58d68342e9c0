"""Compare two frames, of one trace or two, with the causes that the steps between them record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from ctxctl.engine.replay.renderings import rendering_difference
from ctxctl.model.records import Fidelity
from ctxctl.model.results import Change, Frame, Placement

if TYPE_CHECKING:
    from ctxctl.model.outline import Row
    from ctxctl.session.facade import Inspector
    from ctxctl.session.results import FrameDiff
    from ctxctl.trace.index import Span


def frame_changes(
    one: Inspector, a: int, two: Inspector, b: int, check: Callable[[], None] | None = None
) -> FrameDiff:
    """Return the changes from frame `a` of `one` to frame `b` of `two`.

    Frames alone show no cause of a removal. Within one thread, the steps in between are replayed for it;
    `check` is called at each of them and may raise to cancel.
    """
    left, right = one.frame(a), two.frame(b)
    found = two.compare(left, right)
    found = found._replace(changes=tuple(_rendered(c, one, left, two, right) for c in found.changes))
    if one is not two or not any(change.status == "removed" for change in found.changes):
        return explained_changes(found, {})
    return explained_changes(found, removals(one, a, b, check))


def _rendered(change: Change, one: Inspector, left: Frame, two: Inspector, right: Frame) -> Change:
    """Return the change with the difference of two renderings of one version."""
    if "rendering" not in change.flags:
        return change
    was, now = (
        next(p for p in reversed(frame.placements) if p.item == change.item and not p.stale)
        for frame in (left, right)
    )
    what = rendering_difference(
        was, now, lambda content: (one if content is was.content else two).text(content)
    )
    return msgspec.structs.replace(change, reason=what or None)


def removals(
    inspector: Inspector, a: int, b: int, check: Callable[[], None] | None = None
) -> dict[str, Change]:
    """Return how each item left between two frames of one thread, by the steps in between."""
    known = inspector.known
    rows: Sequence[Row | Span] = known if max(a, b) < len(known) else inspector.places().spans
    found: dict[str, Change] = {}
    if (rows[a].session, rows[a].thread) != (rows[b].session, rows[b].thread):
        return found
    for ordinal in range(a + 1, b + 1):
        if check is not None:
            check()
        if (rows[ordinal].session, rows[ordinal].thread) == (rows[a].session, rows[a].thread):
            found.update({c.item: c for c in inspector.step(ordinal).changes if c.status == "removed"})
    return found


def explained_changes(found: FrameDiff, known: dict[str, Change]) -> FrameDiff:
    """Return the diff with the causes recorded in between, and no cause where none was recorded."""
    changes = []
    for change in found.changes:
        if change.status == "removed":
            left = known.get(change.item)
            cause = (left.cause, left.reason, left.into) if left is not None else (None, None, None)
            change = msgspec.structs.replace(change, cause=cause[0], reason=cause[1], into=cause[2])
        changes.append(change)
    return found._replace(changes=tuple(changes))


def several_sessions(inspector: Inspector) -> bool:
    """Return whether the trace has several sessions, so that an address must name one. During reading, only
    the known ones count."""
    rows: Sequence[Row | Span] = inspector.known or inspector.places().spans
    return len({row.session for row in rows}) > 1


def address(frame: Frame, several: bool) -> str:
    """``[SESSION/][THREAD:]TURN.STEP`` of a frame, raw."""
    from ctxctl.analysis.where import address as of

    return of(frame.step, several=several)


def with_skipped(changes: Iterable[Change], frame: Iterable[Placement]) -> tuple[Change, ...]:
    """Return the changes, with a `skipped` one for every other current item of the frame."""
    placements = list(frame)
    present = {c.item: c for c in changes if c.status in ("added", "updated", "skipped")}
    held: dict[str, int] = {}
    stale: set[str] = set()
    for p in placements:
        held[p.item] = held.get(p.item, 0) + p.tokens
        if p.stale:
            stale.add(p.item)
    ordered: dict[str, Change] = {}
    for p in placements:
        if not p.stale and p.item not in ordered:
            ordered[p.item] = present.get(p.item) or _skipped(p, held[p.item], p.item in stale)
    rest = [c for c in changes if c.item not in ordered]
    return (*ordered.values(), *rest)


def _skipped(p: Placement, held: int, stale: bool) -> Change:
    flags = ("stale",) * stale + ("derived-identity",) * p.derived + ("carried-in",) * p.carried
    return Change(
        status="skipped", item=p.item, kind=p.kind, title=p.title, version=p.version,
        previous_version=p.version, tokens=p.tokens, in_window=held, new=0, freed=0, cause=None,
        reason=None, into=None, flags=flags, source=p.source,
        provenance="simulated" if p.simulated else "derived" if p.derived else "native", line=p.line,
        unsized=p.method == "uncounted",
    )  # fmt: skip


def fidelity_of(inspector: Inspector) -> tuple[Fidelity, ...]:
    """Return what the imports of a trace measured: from its complete replay, else from its last lines.

    An import ends with its measure, so the last step's lines have that of a trace with one session. Empty if
    nothing was measured, or for several sessions before a replay.
    """
    if inspector.summary is not None:
        return inspector.summary.fidelity
    spans = inspector.places().spans
    if not spans or several_sessions(inspector):
        return ()
    last = max(spans, key=lambda span: span.start)
    events = inspector.trace.events(last.start, last.line, None)
    return tuple(event.record for event in events if isinstance(event.record, Fidelity))
