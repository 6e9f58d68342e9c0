"""``ctxctl bisect``: where a query turns true, or where two traces diverge."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

from ctxctl.cli import options as opt
from ctxctl.cli.parameters import Argument, Done

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxctl.analysis.bisect import Parted
    from ctxctl.cli.run import Run
    from ctxctl.engine.query import Query
    from ctxctl.item_names import ItemNames
    from ctxctl.session import Inspector

Arguments = Annotated[
    list[str],
    Argument(
        metavar="[TRACE] [TRACE] [QUERY]",
        help="A trace and a query (in quotes), or two traces with or without a query. A"
        " query alone searches the newest session of the current directory.",
        autocompletion=opt.complete_files,
        show_default=False,
    ),
]


@opt.takes(opt.PAGED, "everything ids thread", opt.COUNTED, "calibration", opt.READ)
def bisect(
    options: opt.CommonOptions,
    arguments: Arguments,
) -> None:
    """Find the first step that matches a query, or where two traces of the same task differ.

    Exits 0 if there is such a step, 1 if there is none.
    """
    from ctxctl.cli.run import begin, opened, tell_problems, verdict
    from ctxctl.cli.selection import query_of, whole_trace
    from ctxctl.cli.sessions import newest_here
    from ctxctl.errors import Exit

    traces, text = _traces_and_query(arguments)
    query = query_of(text) if text is not None else None
    run = begin(options)
    one = "`ctxctl find {} QUERY` asks one turn"
    two = "`ctxctl diff` compares two frames: ctxctl diff one.jsonl@3 two.jsonl@3"
    traces = [whole_trace(trace, one if len(traces) == 1 else two) for trace in traces or [newest_here(run)]]
    with ExitStack() as stack:
        inspectors = [stack.enter_context(opened(trace, run, "replaying")) for trace in traces]
        if query is not None:
            _check_values(inspectors, query, run)
        if len(inspectors) > 1:
            found = _bisect_two_traces(inspectors, query, run, options.thread)
        else:
            assert query is not None
            found = _bisect_one_trace(inspectors[0], query, run, options.thread)
        run.out.flush()
        for inspector in inspectors:
            tell_problems(inspector, run)
        code = max(verdict(inspector, run) for inspector in inspectors)
        run.out.flush()
    raise Done(code if found else Exit.FINDINGS)


def _check_values(inspectors: Sequence[Inspector], query: Query, run: Run) -> None:
    """Raises UsageError (`unknown-value`) for a value that no trace knows."""
    from functools import reduce

    from ctxctl.analysis.known_values import unknown_error, unknown_to_both, unknown_values

    found = (unknown_values(inspector, query, run.out.progressed) for inspector in inspectors)
    for unknown in reduce(unknown_to_both, found):
        raise unknown_error(unknown)


def _traces_and_query(arguments: Sequence[str]) -> tuple[list[str], str | None]:
    """The traces and the query; an argument alone, or the second of two, is a trace if it is a file."""
    from ctxctl.errors import UsageError

    hint = "ctxctl bisect run.jsonl 'window > 80%', or ctxctl bisect one.jsonl two.jsonl"
    if len(arguments) == 1 and not os.path.exists(arguments[0]):
        return [], arguments[0]
    if len(arguments) == 1:
        raise UsageError(
            "no-query", f"a query, or a second trace, is missing after {arguments[0]!r}", hint=hint
        )
    if len(arguments) > 3:
        raise UsageError(
            "bad-query", f"got {len(arguments)} arguments, but takes two traces and one query at most",
            hint=f"write the query in quotes: {hint}",
        )  # fmt: skip
    if len(arguments) == 3:
        return list(arguments[:2]), arguments[2]
    if arguments[1] == "-" or os.path.exists(arguments[1]):
        return list(arguments), None
    return [arguments[0]], arguments[1]


def _bisect_one_trace(inspector: Inspector, query: Query, run: Run, thread: str | None) -> bool:
    """One trace; whether the query holds somewhere."""
    from ctxctl.analysis.bisect import bisect
    from ctxctl.analysis.frame_pair import several_sessions
    from ctxctl.cli.run import header
    from ctxctl.cli.selection import price_book
    from ctxctl.item_names import NAMELESS
    from ctxctl.report import jsonout
    from ctxctl.report.bisect import turned_json, turned_lines
    from ctxctl.report.heading import base_name, one_line
    from ctxctl.report.tables import labelled
    from ctxctl.session.item_words import names_at
    from ctxctl.text import visible

    out, name = run.out, base_name(inspector.name)
    found = bisect(inspector, query, price_book(query, run), out.progressed)
    found = [turned for turned in found if thread is None or turned.key.thread == thread]
    if run.json:
        out.json(jsonout.trace(header(inspector, thread=thread)))
        for turned in found:
            out.json(turned_json(turned, name, str(query)))
        return any(turned.first is not None for turned in found)
    out.lines(labelled("query", visible(str(query)), out.width, tab=11))
    out.lines(labelled("under", one_line(header(inspector)), out.width, tab=11))
    several, ids = several_sessions(inspector), run.options.ids
    for turned in found:
        names = names_at(inspector, turned.flips[0].at.ordinal, ids=ids) if turned.flips else NAMELESS
        lines = turned_lines(
            turned, inspector.name, several, out.width, out.paint, names, everything=run.everything,
            limits=query.asks_limit,
        )  # fmt: skip
        out.lines(["", *lines])
    return any(turned.first is not None for turned in found)


def _bisect_two_traces(
    inspectors: Sequence[Inspector], query: Query | None, run: Run, thread: str | None
) -> bool:
    """Two traces; whether they differ."""
    from ctxctl.analysis.bisect import first_parting
    from ctxctl.analysis.frame_pair import several_sessions
    from ctxctl.cli.run import header
    from ctxctl.report import jsonout
    from ctxctl.report.bisect import parted_json, parted_lines
    from ctxctl.report.heading import base_name, one_line
    from ctxctl.report.tables import labelled
    from ctxctl.text import pasted, visible
    from ctxctl.tokens.catalogue.rates import RateBook

    out, names = run.out, [base_name(inspector.name) for inspector in inspectors]
    text = None if query is None else str(query)
    one, two = inspectors
    found = first_parting(one, two, query, RateBook(run.settings.models), out.progressed)
    if thread is not None:
        found = [f for f in found if any(key is not None and key.thread == thread for key in (f.a, f.b))]
    differs = any(parted.parting is not None for parted in found)
    if run.json:
        for inspector in inspectors:
            out.json(jsonout.trace(header(inspector, thread=thread)))
        for parted in found:
            out.json(parted_json(parted, names, text))
        return differs
    if text is not None:
        out.lines(labelled("query", visible(text), out.width, tab=11))
    paths = [inspector.name for inspector in inspectors]
    out.lines(labelled("a", pasted(paths[0]), out.width, tab=11))
    out.lines(labelled("b", pasted(paths[1]), out.width, tab=11))
    under = list(dict.fromkeys(one_line(header(inspector)) for inspector in inspectors))
    out.lines(labelled("under", "; ".join(under), out.width, tab=11))
    several = [several_sessions(inspector) for inspector in inspectors]
    for parted in found:
        called = _called(parted, one, two, ids=run.options.ids)
        out.lines(["", *parted_lines(parted, paths, several, text, out.width, out.paint, called)])
    return differs


def _called(parted: Parted, one: Inspector, two: Inspector, *, ids: bool) -> tuple[ItemNames, ItemNames]:
    """How the items at which two threads part are called, on either side."""
    from ctxctl.item_names import NAMELESS
    from ctxctl.session.item_words import names_at

    at = parted.parting
    a, b = (None, None) if at is None else (at.ordinal_a, at.ordinal_b)
    return (
        NAMELESS if a is None else names_at(one, a, ids=ids),
        NAMELESS if b is None else names_at(two, b, ids=ids),
    )
