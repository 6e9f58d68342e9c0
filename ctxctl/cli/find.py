"""``ctxctl find``: the steps at which a query holds, in one trace or in many."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

from ctxctl.cli import options as opt
from ctxctl.cli.found_steps import Counts, FindOptions
from ctxctl.cli.parameters import Argument, Done, Option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxctl.analysis.known_values import UnknownValue
    from ctxctl.cli.run import Run
    from ctxctl.engine.query import Query
    from ctxctl.session.naming import NamedPlace

Arguments = Annotated[
    list[str],
    Argument(
        metavar="[TRACE[@TURN]...] QUERY",
        help="Traces, turns of them (run.jsonl@3) or directories of traces, then the query, in quotes"
        " (docs/search.md). Without a trace: the newest session of the current directory.",
        autocompletion=opt.complete_files,
        show_default=False,
    ),
]
First = Annotated[
    bool, Option("--first", help="Show only the first step found in each trace; read no further.")
]
Count = Annotated[bool, Option("--count", help="Print only the number of steps found in each trace.")]


@opt.takes(opt.PAGED, "oneline everything ids thread", opt.COUNTED, "calibration", opt.READ)
def find(
    options: opt.CommonOptions,
    arguments: Arguments,
    first: First = False,
    count: Count = False,
) -> None:
    """Find the steps that match a query. Exit 0 if there are any, 1 if there are none."""
    from ctxctl.cli.output import complain
    from ctxctl.cli.run import begin
    from ctxctl.cli.selection import query_of, split_trace
    from ctxctl.cli.sessions import newest_here
    from ctxctl.errors import CtxctlError, Exit, UsageError

    *traces, text = arguments
    if not traces and os.path.exists(split_trace(text).trace):
        raise UsageError(
            "no-query",
            f"the query is missing after {text!r}",
            hint="write both, the query in quotes: ctxctl find run.jsonl 'window > 80%'",
        )
    query = query_of(text)
    run = begin(options)
    traces = traces or [newest_here(run)]
    wish = FindOptions(options.thread, first, count, len(traces) > 1)
    found, looked_at, worst = 0, 0, 0
    unknown: list[Sequence[UnknownValue]] = []
    for trace in traces:
        try:
            counts, code, missing = _find_in(trace, query, run, wish)
        except CtxctlError as error:
            if len(traces) == 1:
                raise
            run.out.flush()
            complain(error.message, error.hint)
            worst = max(worst, int(error.exit_code))
            continue
        found += counts.steps
        looked_at += counts.of
        worst = max(worst, code)
        unknown.append(missing)
    run.out.flush()
    if options.thread is not None and not looked_at and not worst:
        raise UsageError(
            "no-such-frame", f"no trace has a thread called {options.thread!r}",
            hint="`ctxctl replay TRACE` shows a trace's threads",
        )  # fmt: skip
    if unknown:
        _check_values(unknown)
    missed = not found or worst
    raise Done(worst if worst > Exit.FINDINGS else Exit.FINDINGS if missed else Exit.OK)


def _check_values(unknown: Sequence[Sequence[UnknownValue]]) -> None:
    """Raises UsageError (`unknown-value`) for a value that no trace knows."""
    from functools import reduce

    from ctxctl.analysis.known_values import unknown_error, unknown_to_both

    for value in reduce(unknown_to_both, unknown):
        raise unknown_error(value)


def _find_in(
    trace: str, query: Query, run: Run, wish: FindOptions
) -> tuple[Counts, int, Sequence[UnknownValue]]:
    """Find in one trace, or in all of a directory.

    Returns what was counted, the exit code of problems alone, and the query's values that are unknown there.
    """
    from ctxctl.cli.fleet import fleet
    from ctxctl.cli.selection import split_trace

    place = split_trace(trace)
    if place.address is not None:
        return _find_in_trace(place, query, run, wish)
    with fleet(trace, run, "replaying") as several:
        if several is not None:
            from ctxctl.cli.fleet_find import find_in_fleet

            return find_in_fleet(several, query, run, wish)
    return _find_in_trace(place, query, run, wish)


def _find_in_trace(
    place: NamedPlace, query: Query, run: Run, wish: FindOptions
) -> tuple[Counts, int, Sequence[UnknownValue]]:
    from ctxctl.analysis.known_values import unknown_values
    from ctxctl.cli.found_steps import print_steps
    from ctxctl.cli.output import narrate
    from ctxctl.cli.run import header, opened, tell_problems, verdict
    from ctxctl.cli.selection import check_thread, place_selected
    from ctxctl.report import jsonout
    from ctxctl.report.find import ceilings_text, sum_line
    from ctxctl.report.heading import base_name

    with opened(place.trace, run, "replaying") as inspector:
        name = base_name(inspector.name)
        unknown = unknown_values(inspector, query, run.out.progressed)
        if unknown and not wish.several:
            _check_values([unknown])
        if not wish.several:
            check_thread(inspector, wish.thread)
        chosen = place_selected(inspector, place.address, None, wish.thread)
        if run.json:
            run.out.json(jsonout.trace(header(inspector, thread=chosen.thread, turn=chosen.named_turn)))
        counts, limits = print_steps(
            inspector, name, query, run, wish, chosen=chosen.__call__, path=place.trace
        )
        if not run.json and (not wish.first or not counts.steps):
            prefix = f"{name}: " if wish.several else ""
            narrate(prefix + sum_line(*counts))
            if query.asks_limit and limits:
                narrate(f"{prefix}limit: {ceilings_text(limits)}")
        run.out.flush()
        tell_problems(inspector, run)
        return counts, verdict(inspector, run), unknown
