"""Two frames compared: what entered and left, item by item, and the updated texts line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from ctxctl.item_names import ItemNames
from ctxctl.model.addresses import prefix
from ctxctl.model.results import Change, Counts, Frame, Placement
from ctxctl.report import jsonout
from ctxctl.report.changes import changes_table, counts_line, rows, short_version
from ctxctl.report.heading import base_name
from ctxctl.report.paint import Paint
from ctxctl.report.sent import size_text
from ctxctl.report.tables import labelled
from ctxctl.text import pasted, visible
from ctxctl.wording import MINUS, signed

if TYPE_CHECKING:
    from ctxctl.engine.textdiff.unified import TextDiff
    from ctxctl.session import Inspector

Text = Callable[[Placement], str | None]
"""The text of a placement; None where the trace has none."""


_NOTED: Final = frozenset({"moved", "rescored"})
"""What can happen to an item that enters unchanged."""


class Side(msgspec.Struct, frozen=True, eq=False, dict=True):
    """One of the two frames, and how to read its texts."""

    path: str
    """The trace as it was typed."""
    frame: Frame
    text: Text
    several: bool = False
    """The trace holds several sessions, so that an address must name one."""

    @property
    def trace(self) -> str:
        """The trace's base name."""
        return base_name(self.path)

    def label(self) -> str:
        """The frame as an address that can be copied."""
        step = self.frame.step
        at = prefix(step.thread, step.session if self.several else None)
        return pasted(f"{self.path}@{at}{step.turn}.{step.step}")

    def current(self, item: str) -> Placement | None:
        """The last current copy of an item."""
        return self._current.get(item)

    @cached_property
    def _current(self) -> dict[str, Placement]:
        return {p.item: p for p in self.frame.placements if not p.stale}


class Comparison(msgspec.Struct, frozen=True, eq=False):
    """Two sides and what is between them, as `ctxctl.session.results.FrameDiff` has it."""

    under: str
    """The resolved parameters in one line; empty where nobody shows them."""
    a: Side
    b: Side
    changes: tuple[Change, ...]
    new: int
    freed: int
    before: int
    after: int
    unrecorded: int | None = None
    reweighed: int = 0

    @property
    def differs(self) -> bool:
        """Whether the frames are not the same."""
        return bool(
            self.new or self.freed or any(c.status not in ("skipped", "omitted") for c in self.changes)
        )

    def counts(self) -> Counts:
        """Items by status; skipped are those current in both and not changed."""
        found = dict.fromkeys(Counts.__struct_fields__, 0)
        for change in self.changes:
            found[change.status] += 1
        changed = {c.item for c in self.changes if c.status in ("added", "updated")}
        current = {p.item for p in self.b.frame.placements if not p.stale}
        found["skipped"] = len(current - changed)
        return Counts(**found)


def compared(
    one: Inspector, a: int, two: Inspector, b: int, *, under: str = "", canonical: bool = False
) -> Comparison:
    """Two frames by their ordinals, with what is between them.

    Args:
        one: The trace of the frame `a`.
        a: The ordinal of the frame before.
        two: The trace of the frame `b`, which may be the same.
        b: The ordinal of the frame after.
        under: The resolved parameters of both in one line.
        canonical: Whether texts have their JSON in canonical form.
    """
    from ctxctl.analysis.frame_pair import frame_changes, several_sessions

    def side(inspector: Inspector, ordinal: int) -> Side:
        read = _reader(inspector, canonical=canonical)
        return Side(inspector.name, inspector.frame(ordinal), read, several_sessions(inspector))

    left, right, found = side(one, a), side(two, b), frame_changes(one, a, two, b)
    return Comparison(
        under=under, a=left, b=right, changes=found.changes, new=found.new, freed=found.freed,
        before=found.before, after=found.after, unrecorded=found.unrecorded, reweighed=found.reweighed,
    )  # fmt: skip


def _reader(inspector: Inspector, *, canonical: bool) -> Text:
    """Reads a placement's text from its trace: as it was sent, or with its JSON in canonical form."""
    from ctxctl.session.assembly import text_of

    def read(placement: Placement) -> str | None:
        return None if placement.content is None else text_of(inspector.text, placement, canonical=canonical)

    return read


class Patch(msgspec.Struct, frozen=True, eq=False):
    """The text of one item before and after."""

    change: Change
    diff: TextDiff | None
    """None where one of the two texts is not in the trace, or withheld."""
    withheld: bool = False
    """The item was redacted: what it said before is not shown any more."""


def patches(comparison: Comparison, *, whole: bool) -> Iterator[Patch]:
    """A diff for every updated item; with `whole`, added and removed items too, whole."""
    from ctxctl.engine.textdiff.unified import unified_diff

    hidden = comparison.b.frame.step.annotations.withheld | comparison.a.frame.step.annotations.withheld
    for change in rows(comparison.changes):
        if change.item in hidden and change.status in ("updated", "added", "removed"):
            if whole or change.status == "updated":
                yield Patch(change, None, withheld=True)
        elif change.status == "updated":
            before = _text(comparison.a, change.item)
            after = _text(comparison.b, change.item)
            both = before is not None and after is not None
            yield Patch(change, unified_diff(before or "", after or "") if both else None)
        elif whole and change.status == "added":
            yield Patch(change, _whole("+", _text(comparison.b, change.item)))
        elif whole and change.status == "removed":
            yield Patch(change, _whole("-", _text(comparison.a, change.item)))


def _text(side: Side, item: str) -> str | None:
    placement = side.current(item)
    return side.text(placement) if placement is not None else None


def _whole(sign: Literal["+", "-"], text: str | None) -> TextDiff | None:
    """A text that is all new or all gone."""
    from ctxctl.engine.textdiff.unified import DiffLine, TextDiff

    if text is None:
        return None
    found = text.split("\n")
    size = len(found)
    span = "1" if size == 1 else f"1,{size}"
    head = DiffLine("@", f"-0,0 +{span}" if sign == "+" else f"-{span} +0,0")
    lines = (head, *(DiffLine(sign, line) for line in found))
    return TextDiff(lines, False, size if sign == "+" else 0, size if sign == "-" else 0)


def head_lines(comparison: Comparison, width: int) -> Iterator[str]:
    """Which frames, and the arithmetic between them."""
    # Whole, however narrow it is: they are there to be pasted.
    yield f"from      {comparison.a.label()}"
    yield f"to        {comparison.b.label()}"
    yield from labelled("under", comparison.under, width)
    yield from labelled("sent", _sent(comparison), width)
    again = f" {signed(comparison.reweighed)} counted anew" if comparison.reweighed else ""
    sums = (
        f"{comparison.before:,} before + {comparison.new:,} new {MINUS} {comparison.freed:,} freed{again}"
        f" = {comparison.after:,} recorded ({signed(comparison.after - comparison.before)})"
    )
    yield from labelled("window", sums, width)
    yield from labelled("changes", counts_line(comparison.counts(), comparison.b.frame.step.mode), width)


def _sent(comparison: Comparison) -> str:
    """Both sizes, and how much of the difference is recorded."""
    a, b = comparison.a.frame.step.window, comparison.b.frame.step.window
    said = f"{size_text(a)} -> {size_text(b)}"
    if comparison.unrecorded is None:
        alone = a.unrecorded is None, b.unrecorded is None
        which = "either frame" if all(alone) else "the first frame" if alone[0] else "the second frame"
        return f"{said}; what was sent besides the content of {which} is not known"
    recorded = comparison.after - comparison.before
    return (
        f"{said} ({signed(b.used - a.used)}): {signed(recorded)} recorded,"
        f" {signed(comparison.unrecorded)} not recorded"
    )


def stat_lines(
    comparison: Comparison, width: int, paint: Paint, names: ItemNames, *, skipped: bool = False
) -> Iterator[str]:
    """Head and table of changes."""
    yield from head_lines(comparison, width)
    changed = rows(listed(comparison.changes, skipped), skipped=True)
    if changed:
        yield ""
        yield from changes_table(changed, width, paint, names, indent=0)


def listed(changes: Sequence[Change], skipped: bool) -> list[Change]:
    """The changes; of the skipped items, if not all are asked for, those that moved or have another score."""
    return [c for c in changes if skipped or c.status != "skipped" or _NOTED.intersection(c.flags)]


def patch_lines(found: Sequence[Patch] | Iterator[Patch], paint: Paint) -> Iterator[str]:
    """Unified diffs, each under the two names of its item; lines are shown text, never clipped."""
    for n, patch in enumerate(found):
        change = patch.change
        item = visible(change.item)
        old = (
            "/dev/null" if change.status == "added" else f"a/{item}@{short_version(change.previous_version)}"
        )
        new = "/dev/null" if change.status == "removed" else f"b/{item}@{short_version(change.version)}"
        if n:
            yield ""
        if patch.diff is None:
            why = "redacted, so neither text is shown" if patch.withheld else "a text is not in the trace"
            yield f"{old} and {new}: {why}"
            continue
        if not patch.diff.lines:
            what = (
                f"not the same: {visible(change.reason)}" if change.reason else "another rendering or version"
            )
            yield f"{old} and {new}: same text, {what}"
            continue
        yield paint("head", f"--- {old}")
        yield paint("head", f"+++ {new}")
        for kind, text in patch.diff.lines:
            yield _diff_line(kind, text, paint)
        if patch.diff.degraded:
            yield paint("dim", "(bounded work: this diff may not be the shortest)")


def _diff_line(kind: str, text: str, paint: Paint) -> str:
    if kind == "@":
        return paint("hunk", f"@@ {text} @@")
    shown = visible(text, newline=True).replace("\n", "")
    role = {"+": "added", "-": "removed"}.get(kind)
    return paint(role, kind + shown) if role else kind + shown


def to_json(comparison: Comparison, found: Sequence[Patch] | None, *, skipped: bool) -> dict[str, Any]:
    """The `diff` line; `patches` is null where none were asked for."""
    before, after = comparison.a.frame.step.window, comparison.b.frame.step.window
    return {
        "type": "diff",
        "a": _side(comparison.a),
        "b": _side(comparison.b),
        "before": comparison.before,
        "new": comparison.new,
        "freed": comparison.freed,
        "after": comparison.after,
        "reweighed": comparison.reweighed,
        "sent_before": before.used,
        "sent_after": after.used,
        "unrecorded_before": before.unrecorded,
        "unrecorded_after": after.unrecorded,
        "unrecorded": comparison.unrecorded,
        "counts": comparison.counts(),
        "changes": jsonout.changes(listed(comparison.changes, skipped), skipped=True),
        "patches": None if found is None else patches_json(found),
    }


def patches_json(found: Sequence[Patch]) -> list[dict[str, Any]]:
    """Diffs as data: each line is a pair of its kind (`@`, ` `, `-`, `+`) and its text."""
    return [
        {
            "item": patch.change.item,
            "status": patch.change.status,
            "previous_version": patch.change.previous_version,
            "version": patch.change.version,
            "degraded": patch.diff.degraded if patch.diff is not None else False,
            "lines": [list(line) for line in patch.diff.lines] if patch.diff is not None else None,
        }
        for patch in found
    ]


def _side(side: Side) -> dict[str, Any]:
    step = side.frame.step
    return {
        "trace": side.trace,
        "session": step.session,
        "thread": step.thread,
        "turn": step.turn,
        "step": step.step,
    }
