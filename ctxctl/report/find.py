"""Steps at which a query holds, one line each, with the changes that it holds of.

The limits that the query was held against are told in words and as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ctxctl.engine.sizes.prefix import breaks_cache
from ctxctl.item_names import ItemNames
from ctxctl.model.results import Change, Step, Window
from ctxctl.report import jsonout
from ctxctl.report.bill_notes import miss_text
from ctxctl.report.changes import cause_text, titles_of, tokens_text
from ctxctl.report.paint import Paint
from ctxctl.report.tables import wrap
from ctxctl.session.item_words import broken_name
from ctxctl.session.results import Ceiling
from ctxctl.text import cells, clip, pad, visible
from ctxctl.wording import LIMIT_SOURCES, MINUS, SIGNS, flag_words, number, plural, share

_ADDRESS: Final = 24
_KIND: Final = 12
_NAME: Final = 20
"""Cells that a name has at least."""
_CHANGES: Final = 10
"""Changes of one step that are listed, unless all are asked for."""


def step_lines(
    address: str, step: Step, changes: Sequence[Change], width: int, paint: Paint, names: ItemNames,
    *, everything: bool = False,
) -> Iterator[str]:  # fmt: skip
    """The line of one step, and under it the changes that fit."""
    window, ledger = step.window, step.ledger
    said = f"{_size(window)}  +{number(ledger.new)} {MINUS}{number(ledger.freed)}"
    flags = ", ".join(visible(flag_words(flag)) for flag in step.flags)
    if step.cache.broken_by is not None and breaks_cache(step):
        flags += f"{', ' * bool(flags)}cache broken by {broken_name(step, names)}"
    if step.cache.miss is not None:
        flags += f"{', ' * bool(flags)}{miss_text(step.cache.miss)}"
    lead = pad(address, max(_ADDRESS, cells(address)))
    whole = f"{lead}  {said}" + (f"  {flags}" if flags else "")
    if cells(whole) <= width:
        yield paint("head", address) + whole[len(address) :]
    else:  # the address is to be copied, and the numbers are what was asked for: neither is cut
        parts = [said, flags] if flags else [said]
        if cells(f"{lead}  {said}") <= width:
            address, parts = f"{lead}  {said}", parts[1:]
        yield paint("head", address)
        for part in parts:
            yield from (f"      {line}" for line in wrap(part, max(width - 6, 20)))
    listed = changes if everything else changes[:_CHANGES]
    named = [names.row(c.item, c.title, f"{c.status} {c.kind}") for c in listed]
    titles = titles_of(step.changes)
    texts = [_size_and_cause(change, names, titles) for change in listed]
    rooms = [_room(change, text, width - 4) for change, text in zip(listed, texts, strict=True)]
    for change, text, name in zip(listed, texts, names.listed(named, rooms), strict=True):
        yield "    " + _change(change, name, text, width - 4, paint, ids=names.ids)
    if len(listed) < len(changes):
        yield f"    ... {len(changes) - len(listed):,} more changes (--all lists them)"


def _size(window: Window) -> str:
    """What was sent, how that is known where it is no bill, and which part of the cap it is."""
    said = "recorded" if window.used_method == "recorded" else "sent"
    about = "about " if window.used_method == "expected" else ""
    # One digit more than elsewhere: a query such as window>80% is about just that border.
    part = f" ({share(window.used, window.cap, fine=True)})" if window.cap else ""
    return f"{said} {about}{window.used:,}{part}"


def _room(change: Change, said: str, width: int) -> int:
    """Cells for the name of an item."""
    return max(width - cells(_change_head(change)) - cells(said) - 2, _NAME)


def _change_head(change: Change) -> str:
    sign = SIGNS.get(change.status, " ")
    return f"{sign} {pad(visible(change.status), 8)}{pad(visible(change.kind), _KIND + 6)} "


def _size_and_cause(change: Change, names: ItemNames, titles: Mapping[str, str | None]) -> str:
    reason = cause_text(change, names, titles)
    return tokens_text(change) + (f"  {reason}" if reason else "")


def _change(change: Change, name: str, said: str, width: int, paint: Paint, *, ids: bool) -> str:
    head = _change_head(change)
    if ids:
        name = f"{name}  ({visible(change.item)})"
    return paint(change.status, head) + clip(f"{name}  {said}", max(width - cells(head), _NAME))


class Narrowed(NamedTuple):
    """What a query leaves of a replay."""

    query: str
    shown: int
    hidden: int
    """Steps that are not shown."""
    undecided: int
    """Of these, steps of which the trace does not say enough to tell."""

    def text(self) -> str:
        """How many steps are not shown and not decided, in words."""
        said = f"{plural(self.shown, 'step')} where {visible(self.query)}; {self.hidden:,} hidden"
        if self.undecided:
            said += f", {self.undecided:,} of them undecided: the trace does not say enough"
        return said


def sum_line(steps: int, changes: int, of: int, undecided: int) -> str:
    """What was found, and what could not be decided."""
    said = f"{plural(steps, 'step')} of {of:,}"
    if changes:
        said += f", {plural(changes, 'change')}"
    if undecided:
        said += f"; {plural(undecided, 'step')} undecided: the trace does not say enough"
    return said


def hit_json(trace: str, ordinal: int, step: Step, changes: Sequence[Change]) -> dict[str, Any]:
    """One `hit` line."""
    return {
        "type": "hit",
        "trace": trace,
        "session": step.session,
        "thread": step.thread,
        "turn": step.turn,
        "step": step.step,
        "ordinal": ordinal,
        "used": step.window.used,
        "used_method": step.window.used_method,
        "recorded": step.window.recorded,
        "unrecorded": step.window.unrecorded,
        "cap": step.window.cap,
        "limit_source": step.window.limit_source,
        "new": step.ledger.new,
        "freed": step.ledger.freed,
        "flags": step.flags,
        "changes": jsonout.changes(changes, skipped=True),
    }


def found_json(
    trace: str,
    query: str,
    counts: tuple[int, int, int, int],
    limits: Sequence[Ceiling] = (),
    *,
    complete: bool,
) -> dict[str, Any]:
    """The `found` line of one trace."""
    steps, changes, of, undecided = counts
    return {
        "type": "found",
        "trace": trace,
        "query": query,
        "steps": steps,
        "changes": changes,
        "of": of,
        "undecided": undecided,
        "limits": ceilings_json(limits),
        "complete": complete,
    }


_LISTED: Final = 4
"""Limits that are named; a trace whose limits change at every step has as many as steps."""


def ceilings_text(rows: Sequence[Ceiling]) -> str:
    """``200,000 from the model table (models.dev as of …) at 146 steps; not known at 3 steps``."""
    said = [_one(row) for row in rows[:_LISTED]]
    more = sum(row.steps for row in rows[_LISTED:])
    return "; ".join(said + [f"others at {plural(more, 'step')}"] * bool(more))


def _one(row: Ceiling) -> str:
    note = f" ({visible(row.note.rstrip('.'))})" if row.note else ""
    if row.cap is None:
        return f"not known at {plural(row.steps, 'step')}{note}"
    who = f" {LIMIT_SOURCES[row.source]}" if row.source is not None else ""
    return f"{row.cap:,}{who}{note} at {plural(row.steps, 'step')}"


def ceilings_json(rows: Sequence[Ceiling]) -> list[dict[str, Any]]:
    """The limits as JSON."""
    return [
        {"cap": row.cap, "limit_source": row.source, "limit_note": row.note, "steps": row.steps}
        for row in rows
    ]
