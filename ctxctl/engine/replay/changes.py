"""Find which items were added, updated, removed, skipped or omitted between two frames (DESIGN section 3)."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from ctxctl.engine.replay.frames import FrameDelta, FrameState, delta_of, flow_of
from ctxctl.engine.replay.renderings import is_rendered_anew
from ctxctl.listdiff import Run, Work, solve
from ctxctl.model.results import Change, Counts, Placement


class Cause(NamedTuple):
    """The cause of an item's removal or omission."""

    cause: str | None
    reason: str | None = None
    into: str | None = None
    simulated: bool = False
    """Whether a policy removed it, not the runtime."""


NO_CAUSE: Final = Cause(None)
UNRECORDED: Final = Cause("unrecorded")


class NamedItem(NamedTuple):
    """An item that a step names and its frame does not hold."""

    item: str
    placement: Placement
    cause: Cause


class ChangeContext(NamedTuple):
    """What the facts of a step say about its changes."""

    cause_of: Callable[[str], Cause]
    truncated: frozenset[str] = frozenset()
    """Items that a budget record says were cut to fit."""
    rescored: frozenset[str] = frozenset()
    named: tuple[NamedItem, ...] = ()
    """Candidates, omitted and dropped items, as recorded."""
    simulated: bool = False
    differs: Callable[[Placement, Placement], str] = lambda _was, _now: ""
    """Returns the difference of two renderings of one version."""


class Changes(NamedTuple):
    """The changes between two frames, and the tokens that entered and left."""

    counts: Counts
    changes: tuple[Change, ...]
    new: int
    freed: int
    moved: frozenset[str]


def rescored_items(before: Mapping[str, float], after: Mapping[str, float]) -> frozenset[str]:
    """Return items whose scores before and after differ by more than rounding noise."""
    return frozenset(
        item
        for item, score in after.items()
        if item in before and abs(before[item] - score) > 1e-9 * max(1.0, abs(score))
    )


def no_cause(_item: str) -> Cause:
    """Return the cause of any removal where no facts are known."""
    return UNRECORDED


Copies = dict[str, list[Placement]]
"""Current copies by item, in order. If an item has some outside of the delta, only the last one."""


def changes_of(
    before: list[Placement],
    was: Mapping[str, int],
    after: FrameState,
    delta: FrameDelta,
    context: ChangeContext,
    *,
    list_skipped: bool = False,
) -> Changes:
    """Compare a frame with the previous one.

    `was` counts the current copies in `before` of the items that the delta or the step names (see
    `standing_copies`). `after` is the new state and `delta` the difference. The cost is proportional to the
    delta and to the named items, with two exceptions: the last copy of an item with several is searched from
    the end, and `list_skipped` scans the frame.
    """
    if not list_skipped and _is_plain_growth(was, after, delta, context):
        return _growth(after, delta, context)
    return _any_changes(before, was, after, delta, context, list_skipped=list_skipped)


def _any_changes(
    before: list[Placement],
    was: Mapping[str, int],
    after: FrameState,
    delta: FrameDelta,
    context: ChangeContext,
    *,
    list_skipped: bool = False,
) -> Changes:
    """Return the changes between any two frames."""
    flow = flow_of(delta)
    touched = dict.fromkeys([p.item for p in delta.inserted if not p.stale])
    touched.update(dict.fromkeys([p.item for p in delta.removed if not p.stale]))
    old = _side(touched, delta.removed, was, before)
    new = _side(touched, delta.inserted, after.current, after.placements)
    other = _other_copies(after, delta)
    moved = _moved(delta)
    writer = _Writer(after, flow.new_by_item, flow.freed_by_item, moved, context)
    present: list[Change] = []
    gone: list[Change] = []
    added = updated = 0
    for item in touched:
        previous, now = old.get(item), new.get(item)
        if not now:
            continue
        if now[0].carried and not previous:
            present.append(writer.change("skipped", now[-1], now[-1]))
        elif not previous:
            added += 1
            present.append(writer.change("added", now[-1], None))
        elif item in other:
            updated += 1
            present.append(writer.change("updated", now[-1], previous[-1]))
        elif flow.new_by_item.get(item) or flow.freed_by_item.get(item):
            present.append(writer.change("skipped", now[-1], previous[-1]))
    present = _in_order(present, moved | context.rescored, after, delta, writer)
    for item in dict.fromkeys([p.item for p in delta.removed if not p.stale]):
        if item not in new and old.get(item):
            gone.append(writer.gone(old[item][-1]))
    if list_skipped:
        present = _with_skipped(after.placements, present, writer)
    omitted = [
        writer.omitted(named)
        for named in _once(context.named)
        if named.item not in after.current and not was.get(named.item)
    ]
    counts = Counts(added, updated, len(gone), len(after.current) - added - updated, len(omitted))
    return Changes(counts, (*present, *gone, *omitted), flow.new, flow.freed, moved)


def unlisted_changes(delta: FrameDelta) -> Changes:
    """Return the tokens that a delta adds and frees, without listing or counting changes."""
    flow = flow_of(delta)
    return Changes(Counts(0, 0, 0, 0, 0), (), flow.new, flow.freed, frozenset())


def _is_plain_growth(
    was: Mapping[str, int], after: FrameState, delta: FrameDelta, context: ChangeContext
) -> bool:
    """Return whether items only entered, each once and for the first time, as at most steps."""
    if delta.removed or delta.reordered or context.named or context.rescored:
        return False
    current = after.current
    return not [p for p in delta.inserted if p.stale or was.get(p.item) or current.get(p.item) != 1]


def _growth(after: FrameState, delta: FrameDelta, context: ChangeContext) -> Changes:
    """Return the result of `_any_changes` where `_is_plain_growth`."""
    inserted = delta.inserted
    tokens = {p.item: p.tokens for p in inserted}
    writer = _Writer(after, tokens, {}, _NONE, context)
    changes = tuple([
        writer.change("skipped", p, p) if p.carried else writer.change("added", p, None) for p in inserted
    ])  # fmt: skip
    added = len(inserted) - sum([p.carried for p in inserted])
    counts = Counts(added, 0, 0, len(after.current) - added, 0)
    return Changes(counts, changes, sum(tokens.values()), 0, _NONE)


def standing_copies(state: FrameState, delta: FrameDelta, named: Iterable[NamedItem]) -> dict[str, int]:
    """Return the number of current copies, before an edit, of the items that the edit or the step names."""
    current = state.current
    counts = {p.item: current.get(p.item, 0) for p in delta.removed}
    counts.update((p.item, current.get(p.item, 0)) for p in delta.inserted)
    counts.update((n.item, current.get(n.item, 0)) for n in named)
    return counts


def compare_frames(before: list[Placement], after: list[Placement], context: ChangeContext) -> Changes:
    """Return the changes between any two frames by the plain definition."""
    state = FrameState()
    state.move_to(after, delta_of([], after))
    current: dict[str, int] = {}
    for placement in before:
        if not placement.stale:
            current[placement.item] = current.get(placement.item, 0) + 1
    return _any_changes(before, current, state, delta_of(before, after), context)


def _side(
    touched: Iterable[str], middle: list[Placement], current: Mapping[str, int], frame: list[Placement]
) -> Copies:
    """Return the current copies of touched items on one side of a delta."""
    copies: Copies = {}
    for placement in middle:
        if not placement.stale:
            copies.setdefault(placement.item, []).append(placement)
    short = {item for item in touched if len(copies.get(item, ())) < current.get(item, 0)}
    if short:  # other copies are outside of the middle
        for item in short:
            copies[item] = []
        for placement in reversed(frame):
            if placement.item in short and not placement.stale:
                copies[placement.item].append(placement)
                short.discard(placement.item)
                if not short:
                    break
    return copies


def _other_copies(after: FrameState, delta: FrameDelta) -> set[str]:
    """Return items whose current copies have other versions or renderings than before."""
    balance: dict[int, int] = {}
    items: dict[int, str] = {}
    for sign, placements in ((1, delta.inserted), (-1, delta.removed)):
        for p in placements:
            if not p.stale:
                balance[p.key] = balance.get(p.key, 0) + sign
                items[p.key] = p.item
    keyed = after.keyed
    return {
        items[key]
        for key, more in balance.items()
        if (keyed.get(key, 0) > 0) != (keyed.get(key, 0) - more > 0)
    }


def _moved(delta: FrameDelta) -> frozenset[str]:
    """Return items with a kept placement that moved: to another place in the order, or to another segment.

    As many copies are kept as both frames hold. If an item has more or fewer copies than before, it is
    unknown which one is new or gone; the longest common subsequence of the two frames decides.
    """
    if not delta.reordered and not _rekept(delta):
        return frozenset()
    before, after = ([p for p in middle if not p.stale] for middle in delta.middles())
    kept = Counter(p.key for p in before) & Counter(p.key for p in after)
    stayed = Counter(after[at].key for at in _in_common(*map(_marks, (before, after))))
    return frozenset(p.item for p in after if stayed[p.key] < kept[p.key])


def _marks(placements: list[Placement]) -> list[tuple[int, str]]:
    return [(p.key, p.segment) for p in placements]


def _in_common(before: Sequence[Hashable], after: Sequence[Hashable]) -> Iterable[int]:
    """Return indices in `after` of a long common subsequence, the longest if bounded work allows."""
    rows = {mark: at for at, mark in enumerate(before)}
    shared = [at for at, mark in enumerate(after) if mark in rows]
    if len(rows) == len(before) and len(set(after)) == len(after):
        return [shared[at] for at in longest_increasing([rows[after[at]] for at in shared])]
    runs: list[Run] = []
    solve(before, after, 0, 0, Work(), runs, 0)
    return [at for run in runs for at in range(run.b, run.b + run.size)]


def _rekept(delta: FrameDelta) -> bool:
    """Return whether something left and came back as another object with the same key."""
    if not delta.removed or not delta.inserted:
        return False
    keys = {p.key for p in delta.removed if not p.stale}
    return any(p.key in keys for p in delta.inserted if not p.stale)


def longest_increasing(rows: list[int]) -> set[int]:
    """Return indices of one longest strictly increasing subsequence, by patience sorting."""
    tails: list[int] = []
    ends: list[int] = []
    back: list[int] = []
    for index, row in enumerate(rows):
        at = bisect_left(tails, row)
        back.append(ends[at - 1] if at else -1)
        if at == len(tails):
            tails.append(row)
            ends.append(index)
        else:
            tails[at] = row
            ends[at] = index
    stay: set[int] = set()
    at = ends[-1] if ends else -1
    while at >= 0:
        stay.add(at)
        at = back[at]
    return stay


def _in_order(
    present: list[Change], noted: frozenset[str], after: FrameState, delta: FrameDelta, writer: _Writer
) -> list[Change]:
    """Return the changes in frame order, with unchanged items that moved or were rescored."""
    listed = {change.item for change in present}
    unchanged = {item for item in noted if item not in listed and item in after.current}
    if not unchanged and listed <= {p.item for p in delta.inserted}:
        return present
    found: dict[str, Placement] = {}
    wanted = listed | unchanged
    for placement in after.placements:
        if placement.item in wanted and not placement.stale and placement.item not in found:
            found[placement.item] = placement
    made = {change.item: change for change in present}
    return [made.get(item) or writer.change("skipped", p, p) for item, p in found.items()]


def _once(named: tuple[NamedItem, ...]) -> Iterable[NamedItem]:
    seen: set[str] = set()
    for entry in named:
        if entry.item not in seen:
            seen.add(entry.item)
            yield entry


def _with_skipped(frame: list[Placement], present: list[Change], writer: _Writer) -> list[Change]:
    """Return all items of the frame in its order, with the unchanged ones as skipped."""
    changed = {change.item: change for change in present}
    listed: list[Change] = []
    seen: set[str] = set()
    for placement in frame:
        if placement.stale or placement.item in seen:
            continue
        seen.add(placement.item)
        change = changed.get(placement.item)
        listed.append(change if change is not None else writer.change("skipped", placement, placement))
    return listed


_NONE: Final[frozenset[str]] = frozenset()


class _Writer:
    """Makes the `Change` values between two frames of a thread."""

    def __init__(
        self, after: FrameState, new: dict[str, int], freed: dict[str, int],
        moved: frozenset[str], context: ChangeContext,
    ) -> None:  # fmt: skip
        self._after = after
        self._new = new
        self._freed = freed
        self._moved = moved
        self._context = context
        self._any_noted = bool(moved or context.rescored or context.truncated or after.stale_copies)

    def change(self, status: str, now: Placement, was: Placement | None) -> Change:
        if was is None:
            return self._make(status, now, now.version, None, NO_CAUSE)
        cause, anew = NO_CAUSE, status == "updated" and is_rendered_anew(was, now)
        if anew:
            cause = Cause(None, self._context.differs(was, now) or None)
        made = self._make(status, now, now.version, was.version, cause)
        if anew:
            made = msgspec.structs.replace(made, flags=(*made.flags, "rendering"))
        if was.segment != now.segment and "moved" not in made.flags:
            made = msgspec.structs.replace(made, flags=("moved", *made.flags))
        return made

    def gone(self, was: Placement) -> Change:
        return self._make("removed", was, None, was.version, self._context.cause_of(was.item))

    def omitted(self, named: NamedItem) -> Change:
        return self._make("omitted", named.placement, named.placement.version, None, named.cause)

    def _make(
        self, status: str, p: Placement, version: str | None, previous: str | None, cause: Cause
    ) -> Change:
        item = p.item
        provenance = "derived" if p.derived else "native"
        if p.simulated or cause.simulated or self._context.simulated:
            provenance = "simulated"
        return Change(
            status=status,  # type: ignore[arg-type]
            item=item, kind=p.kind, title=p.title, version=version, previous_version=previous,
            tokens=p.tokens, in_window=self._after.held.get(item, 0),
            new=self._new.get(item, 0), freed=self._freed.get(item, 0),
            cause=cause.cause, reason=cause.reason, into=cause.into,
            flags=self._flags(status, p), source=p.source,
            provenance=provenance,  # type: ignore[arg-type]
            line=p.line, unsized=p.method == "uncounted",
        )  # fmt: skip

    def _flags(self, status: str, p: Placement) -> tuple[str, ...]:
        if not (self._any_noted or p.truncated or p.derived or p.carried or p.redaction):
            return ()
        flags = []
        if p.item in self._moved:
            flags.append("moved")
        if p.item in self._context.rescored:
            flags.append("rescored")
        if status != "removed" and (p.truncated or p.item in self._context.truncated):
            flags.append("truncated")
        if self._after.stale_copies.get(p.item):
            flags.append("stale")
        if p.derived:
            flags.append("derived-identity")
        if p.carried:
            flags.append("carried-in")
        if p.redaction:
            flags.append("redacted")
        return tuple(flags)
