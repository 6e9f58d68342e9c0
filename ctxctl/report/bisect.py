"""Where a query turns true, and where two traces part ways, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ctxctl.analysis.bisect import Parted, Parting, QueryTurns
from ctxctl.analysis.where import address
from ctxctl.engine.replay.cursor import StepAt
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.item_names import NAMELESS, ItemNames
from ctxctl.model.blame import Moment
from ctxctl.model.results import Step
from ctxctl.report import jsonout
from ctxctl.report.changes import rows
from ctxctl.report.find import ceilings_json, ceilings_text, step_lines
from ctxctl.report.paint import Paint
from ctxctl.report.sessions import item_lines
from ctxctl.report.tables import labelled
from ctxctl.text import pasted, visible
from ctxctl.wording import plural

_FLIPS: Final = 20
_CHANGES: Final = 5


def thread_name(key: ThreadKey | None, several: bool) -> str:
    """A thread as it is shown: with its session where a trace has several."""
    if key is None:
        return "(none)"
    session = f"{visible(key.session)}/" if several and key.session is not None else ""
    return f"{session}{visible(key.thread)}"


def turned_lines(
    found: QueryTurns,
    name: str,
    several: bool,
    width: int,
    paint: Paint,
    names: ItemNames,
    *,
    everything: bool = False,
    limits: bool = False,
) -> Iterator[str]:
    """One thread of one trace; with `limits`, what its steps were held against."""
    yield paint("head", thread_name(found.key, several))
    first = found.first
    if first is None:
        yield from labelled(
            "first", f"none: it matches none of {plural(found.steps, 'step')}", width, indent=2
        )
    else:
        at = pasted(f"{name}@{address(first, several=several)}")
        changes = found.changes or _largest(first)
        lines = step_lines(at, first, changes, width - 12, paint, names, everything=everything)
        for n, line in enumerate(lines):
            yield ("  first     " if not n else " " * 8) + line
        yield from labelled("before", _before(found), width, indent=2)
        yield from labelled("then", _then(found), width, indent=2)
        if not found.monotone:
            yield from labelled("changes", _flips(found, everything=everything), width, indent=2)
    if limits:
        yield from labelled("limit", ceilings_text(found.ceilings.rows), width, indent=2)
    if found.undecided:
        said = f"{plural(found.undecided, 'step')} undecided: the trace does not say enough"
        yield from labelled("unknown", said, width, indent=2)


def _largest(step: Step) -> list[Any]:
    """What happened there, by size, where the query speaks of the step as a whole."""
    found = [change for change in rows(step.changes) if change.status != "omitted"]
    return sorted(found, key=lambda change: -max(change.new, change.freed))[:_CHANGES]


def _before(found: QueryTurns) -> str:
    if found.before is None:
        return "nothing: it matches from the thread's first step on"
    return f"no match at {_moment(found.before)}, nor at any step before"


def _then(found: QueryTurns) -> str:
    held = f"it matches {found.held:,} of {plural(found.steps, 'step')}"
    if found.monotone:
        return f"{held}, from there to the end"
    more = found.turns - 1
    times = "once more" if more == 1 else f"{more:,} more times"
    return f"{held}; it changes {times} after that"


def _flips(found: QueryTurns, *, everything: bool) -> str:
    listed = found.flips if everything else found.flips[:_FLIPS]
    said = ", ".join(f"{_moment(flip.at)} {'yes' if flip.truth else 'no'}" for flip in listed)
    more = found.turns - len(listed)
    return said + (f", {more:,} more" if more else "")


def _moment(moment: Moment) -> str:
    return f"{moment.turn}.{moment.step}"


# Two traces -------------------------------------------------------------------------------------------------


def parted_lines(
    found: Parted,
    names: Sequence[str],
    several: Sequence[bool],
    query: str | None,
    width: int,
    paint: Paint,
    called: tuple[ItemNames, ItemNames] = (NAMELESS, NAMELESS),
) -> Iterator[str]:
    """Two aligned threads of two traces; `called`: how the items of either side are called."""
    titles = [thread_name(key, many) for key, many in zip((found.a, found.b), several, strict=True)]
    yield paint("head", titles[0] if titles[0] == titles[1] else f"{titles[0]} and {titles[1]}")
    parting = found.parting
    compared = f"{plural(found.steps, 'step')} compared"
    if found.undecided:
        compared += f", {found.undecided:,} of them undecided: a trace does not say enough"
    if parting is None:
        alone = f"; {plural(found.alone, 'step')} of one side only" if found.alone else ""
        what = "no difference" if query is None else "the query matches the same steps in both"
        yield from labelled("first", f"none: {what}; {compared}{alone}", width, indent=2)
        return
    yield from labelled("first", _sentence(parting, query), width, indent=2)
    for n, at in enumerate((parting.a, parting.b)):
        if at is not None:
            name = pasted(f"{names[n]}@{address(at.step, several=several[n])}")
            for line in step_lines(name, at.step, (), width - 12, paint, NAMELESS):
                yield f"  {'ab'[n]}         {line}"
    if parting.by == "order":
        yield from labelled(
            "note", "their prompts differ, so their turns are paired by order", width, indent=2
        )
    yield from (f"    {line}" for line in item_lines(parting.items, width - 4, paint, called))
    yield from labelled("after", compared, width, indent=2)


def _sentence(parting: Parting, query: str | None) -> str:
    side, other = ("a", "b") if parting.a is not None else ("b", "a")
    if parting.why == "turn":
        return f"a turn that only {side} has"
    if parting.why == "step":
        return f"{side} continues where {other} ends the turn"
    if parting.why == "query":
        return f"{visible(query or '')} matches in {'a' if parting.holds else 'b'} only"
    if parting.items:
        return "the windows hold different things"
    return "the windows hold the same current items; copies that are stale differ"


# JSON -------------------------------------------------------------------------------------------------------


def turned_json(found: QueryTurns, trace: str, query: str) -> dict[str, Any]:
    """One `bisect` line."""
    first = found.first
    return {
        "type": "bisect",
        "trace": trace,
        "session": found.key.session,
        "thread": found.key.thread,
        "query": query,
        "first": found.flips[0].at if first is not None else None,
        "before": found.before,
        "steps": found.steps,
        "held": found.held,
        "undecided": found.undecided,
        "turns": found.turns,
        "flips": [{"at": flip.at, "holds": flip.truth} for flip in found.flips],
        "changes": jsonout.changes(found.changes, skipped=True),
        "limits": ceilings_json(found.ceilings.rows),
    }


def parted_json(found: Parted, names: Sequence[str], query: str | None) -> dict[str, Any]:
    """One `parting` line."""
    parting = found.parting
    at: tuple[StepAt | None, StepAt | None] = (None, None) if parting is None else (parting.a, parting.b)
    ordinals = (None, None) if parting is None else (parting.ordinal_a, parting.ordinal_b)
    sides = [
        _side(key, name, step, ordinal)
        for key, name, step, ordinal in zip((found.a, found.b), names, at, ordinals, strict=True)
    ]
    return {
        "type": "parting",
        "query": query,
        "a": sides[0],
        "b": sides[1],
        "why": None if parting is None else parting.why,
        "aligned_by": None if parting is None else parting.by,
        "holds_in": None if parting is None or parting.holds is None else "a" if parting.holds else "b",
        "steps": found.steps,
        "alone": found.alone,
        "undecided": found.undecided,
        "items": () if parting is None else parting.items,
    }


def _side(key: ThreadKey | None, trace: str, at: StepAt | None, ordinal: int | None) -> dict[str, Any]:
    return {
        "trace": trace,
        "session": None if key is None else key.session,
        "thread": None if key is None else key.thread,
        "at": None if at is None or ordinal is None else Moment(ordinal, at.step.turn, at.step.step),
    }
