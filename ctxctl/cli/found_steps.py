"""The steps of one trace at which a query holds, as ``ctxctl find`` prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ctxctl.analysis.where import WhereStep
    from ctxctl.cli.run import Run
    from ctxctl.engine.query import Query
    from ctxctl.item_names import ItemNames
    from ctxctl.model.results import Step
    from ctxctl.session import Inspector
    from ctxctl.session.results import Ceiling


class Counts(NamedTuple):
    """Steps found in one trace, their changes, steps looked at, and steps that could not be decided."""

    steps: int = 0
    changes: int = 0
    of: int = 0
    undecided: int = 0


class FindOptions(NamedTuple):
    """What is to be printed of what is found."""

    thread: str | None
    first: bool
    only_count: bool
    several: bool
    """There are several traces, so that each line names its own."""


def print_steps(
    inspector: Inspector,
    name: str,
    query: Query,
    run: Run,
    wish: FindOptions,
    left_out: Callable[[Step], bool] | None = None,
    chosen: Callable[[Step], bool] | None = None,
    path: str | None = None,
) -> tuple[Counts, Sequence[Ceiling]]:
    """Print the steps of one trace that are found, under its name; how many, and the limits that were met.

    `left_out` is told of every step to the last, and says whether it is passed over; `chosen` says which
    steps of the rest are looked at.  `path`: the trace as it was typed, in addresses that can be copied.
    """
    from ctxctl.analysis.frame_pair import several_sessions
    from ctxctl.analysis.where import steps_where
    from ctxctl.cli.selection import price_book
    from ctxctl.report.find import found_json
    from ctxctl.session.item_words import ItemWords
    from ctxctl.session.results import Ceilings
    from ctxctl.text import pasted

    out, path = run.out, path or name
    several = several_sessions(inspector)
    words = ItemWords(inspector)
    names = words.names(ids=run.options.ids)
    counts, ended, limits = Counts(), False, Ceilings()
    named = not (run.json or wish.only_count or run.options.oneline)
    for stop in steps_where(
        inspector, query, out.progressed, book=price_book(query, run), skipped=run.everything,
        whole=not wish.first, frames=named,
    ):  # fmt: skip
        step, held = stop.at.step, stop.held
        if named:
            words.see(stop.at)
        if (left_out is not None and left_out(step)) or ended:
            continue
        if wish.thread not in (None, step.thread) or (chosen is not None and not chosen(step)):
            continue
        limits.add(step.window)
        counts = counts._replace(of=counts.of + 1, undecided=counts.undecided + (held.truth is None))
        if not held.truth:
            continue
        counts = counts._replace(steps=counts.steps + 1, changes=counts.changes + len(held.changes))
        if not wish.only_count:
            _print_hit(stop, name, path, run, names, several=several)
        if wish.first:
            ended = True
            if left_out is None:
                break
    if run.json:
        out.json(found_json(name, str(query), counts, limits.rows, complete=not ended))
    elif wish.only_count:
        out.lines([f"{pasted(path)}: {counts.steps}" if wish.several else str(counts.steps)])
    out.flush()
    return counts, limits.rows


def _print_hit(stop: WhereStep, name: str, path: str, run: Run, names: ItemNames, *, several: bool) -> None:
    """One step that was found."""
    from ctxctl.analysis.where import address
    from ctxctl.report.find import hit_json, step_lines
    from ctxctl.report.oneline import step_line
    from ctxctl.text import pasted

    out, step, changes = run.out, stop.at.step, stop.held.changes
    if run.json:
        out.json(hit_json(name, stop.ordinal, step, changes))
    elif run.options.oneline:
        out.rows([step_line(path, step, several=several)])
    else:
        at = pasted(f"{path}@{address(step, several=several)}")
        out.lines(step_lines(at, step, changes, out.width, out.paint, names, everything=run.everything))
