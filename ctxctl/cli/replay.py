"""``ctxctl replay``: every step and turn of a trace; or, with ``--compare``, recorded and simulated ones side
by side, in one pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from ctxctl.cli import options as opt
from ctxctl.cli.parameters import Argument, Done, Option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ctxctl.analysis.compacting import Compacting
    from ctxctl.analysis.comparison import Comparison
    from ctxctl.analysis.turn_sums import TurnSum
    from ctxctl.cli.run import Run
    from ctxctl.cli.selection import TurnSelection
    from ctxctl.engine.query import Query
    from ctxctl.item_names import ItemNames
    from ctxctl.model.results import Summary
    from ctxctl.model.turnpairs import TurnPair
    from ctxctl.model.whatif import Supposition
    from ctxctl.report.heading import Header
    from ctxctl.session import Inspector
    from ctxctl.session.naming import NamedPlace

Window = Annotated[
    str | None,
    Option("--window", metavar="TOKENS", help="Simulate a window of this many tokens: 128000, 128k, 1m."),
]
Reserve = Annotated[
    str | None,
    Option("--reserve", metavar="TOKENS", help="Simulate reserving this much for the answer."),
]
MaxInput = Annotated[
    str | None, Option("--max-input", metavar="TOKENS", help="Simulate this limit on the prompt.")
]
Drop = Annotated[
    list[str] | None,
    Option(
        "--drop",
        metavar="KIND|SOURCE|SERVER",
        help="Simulate the session without these items: kind:tool_result, source:app:notes,"
        " server:github, item:ID, or a name that only one of these has. Repeatable.",
    ),
]
Set = Annotated[
    list[str] | None,
    Option(
        "--set",
        metavar="ITEM=FILE",
        help="Simulate the session with this text in place of the item's (ITEM@VERSION: of one version); - is"
        " stdin. Repeatable.",
    ),
]
Compare = Annotated[bool, Option("--compare", help="Show recorded and simulated side by side, turn by turn.")]
Place = Annotated[
    str | None,
    Argument(
        metavar="[TRACE[@TURN]|DIR]",
        help="Trace or foreign capture, or a turn of one (run.jsonl@3); - is stdin. With a directory: a list"
        " of its sessions; on a terminal, choose one. Default: the newest session of the current directory.",
        autocompletion=opt.complete_files,
        show_default=False,
    ),
]
Steps = Annotated[bool, Option("--steps", help="Show each step with its changes, not only each turn.")]
Where = Annotated[
    str | None,
    Option("--where", metavar="QUERY", help="Show only steps that match this query (docs/search.md)."),
]


@opt.takes(
    opt.PAGED,
    "oneline everything ids turn thread",
    opt.COUNTED,
    "steps window reserve max_input drop set compare where",
    "calibration",
    opt.READ,
)
def replay(
    options: opt.CommonOptions,
    trace: Place = None,
    steps: Steps = False,
    window: Window = None,
    reserve: Reserve = None,
    max_input: MaxInput = None,
    drop: Drop = None,
    set: Set = None,  # noqa: A002 - the option's name
    compare: Compare = False,
    where: Where = None,
) -> None:
    """Replay a trace: in the UI on a terminal; as a report in a pipe, or with --plain or --json."""
    import sys

    from ctxctl.cli.output import is_dumb_terminal, is_terminal
    from ctxctl.cli.run import begin, opened
    from ctxctl.cli.selection import place_selected, split_trace, where_query
    from ctxctl.cli.sessions import given_or_newest, holds_several
    from ctxctl.cli.whatif_options import limits, replacements

    run = begin(
        options,
        limits=limits(window, reserve, max_input),
        drop=drop or (),
        texts=replacements(set, trace or ""),
    )
    query = where_query(where, alone=not compare)
    place = split_trace(given_or_newest(trace, run))
    trace = place.trace
    if compare:
        raise Done(_compared(place, run))
    named = options.turn or options.thread or where or place.address
    asked = options.plain or options.json or options.oneline or steps or named is not None
    screen = not is_dumb_terminal() and is_terminal(sys.stdout) and _has_keys(trace, is_terminal(sys.stdin))
    if not asked and holds_several(trace, run):
        from ctxctl.cli.picker import listed, picked

        raise Done(picked(run, trace) if screen else listed(run, trace))
    if not asked and screen:
        raise Done(_interface(trace, run))
    with opened(trace, run, "replaying") as inspector:
        chosen = place_selected(inspector, place.address, options.turn, options.thread)
        turn = options.turn if place.address is None else chosen.named_turn
        by_step = steps or run.everything or turn is not None or query is not None
        plain = (_step_lines if options.oneline else _steps) if by_step else _turns
        show = _json if options.json else plain
        code = show(inspector, run, chosen, turn, query)
        run.out.flush()
    raise Done(code)


def _compared(place: NamedPlace, run: Run) -> int:
    """Recorded and simulated side by side: what options ask for is supposed, and no way of reading."""
    import msgspec

    from ctxctl.cli.run import opened
    from ctxctl.cli.selection import place_selected
    from ctxctl.model.whatif import AS_RECORDED, Supposition

    options, ordinary = run.options, run.ordinary
    supposition = Supposition(
        model=options.model, window=run.limits.window, reserve=run.limits.reserve,
        max_input=run.limits.max_input, policy=options.policy, encoding=options.encoding, drop=run.drop,
        set=run.texts,
    )  # fmt: skip
    settings = msgspec.structs.replace(
        run.settings, model=ordinary.model, encoding=ordinary.encoding, policy=ordinary.policy
    )
    plain = run._replace(settings=settings, limits=AS_RECORDED, drop=(), texts=())
    with opened(place.trace, plain, "comparing") as inspector:
        chosen = place_selected(inspector, place.address, options.turn, options.thread)
        turn = options.turn if place.address is None else chosen.named_turn
        code = _print_compared(inspector, plain, supposition, chosen, turn)
        run.out.flush()
    return code


def _has_keys(trace: str, at_terminal: bool) -> bool:
    """Whether keys can be read: from standard input, or from the terminal where that is the trace."""
    if trace != "-":
        return at_terminal
    if at_terminal:
        return False
    from ctxctl.tui.lifecycle import keys_from_terminal

    return keys_from_terminal()


def _interface(trace: str, run: Run) -> int:
    """Open the terminal UI; its exit code."""
    from ctxctl.cli.run import inspector_of
    from ctxctl.tui import app

    return app.run(lambda: inspector_of(trace, run), trace, settings=run.settings)


def _turns(
    inspector: Inspector, run: Run, chosen: TurnSelection, turn: str | None, query: Query | None
) -> int:
    """A summary, and a row for each turn."""
    from functools import partial

    from ctxctl.cli.run import header, tell_problems, verdict
    from ctxctl.cli.selection import SelectedResults
    from ctxctl.report.turns import TurnsReport
    from ctxctl.tokens.catalogue.rates import RateBook

    out = run.out
    _calm_collector()
    head = header(inspector, thread=chosen.thread, turn=turn, late=inspector.places().late)
    names = partial(_names_taken, inspector, run, {})
    report = TurnsReport(
        head, out.width, out.paint, RateBook(run.settings.models), names, inspector.capture_lines
    )
    for result, _ in SelectedResults(inspector, run, query, chosen):
        report.feed(result)
    summary = _finished(inspector, chosen, turn, report.totals.steps)
    if run.options.oneline:
        out.rows(report.oneline(inspector.name))
    else:
        out.lines(report.end(summary))
    tell_problems(inspector, run)
    return verdict(inspector, run, differs=bool(report.totals.differs))


def _step_lines(
    inspector: Inspector, run: Run, chosen: TurnSelection, turn: str | None, query: Query | None
) -> int:
    """A line for each step that was chosen."""
    from ctxctl.analysis.frame_pair import several_sessions
    from ctxctl.cli.run import tell_problems, verdict
    from ctxctl.cli.selection import SelectedResults
    from ctxctl.model.results import Step
    from ctxctl.report.oneline import step_line
    from ctxctl.report.totals import Totals

    totals = Totals()
    _calm_collector()
    several = several_sessions(inspector)
    for result, shown in SelectedResults(inspector, run, query, chosen):
        if isinstance(result, Step):
            totals.add(result)
            if shown:
                run.out.rows([step_line(inspector.name, result, several=several)])
    _finished(inspector, chosen, turn, totals.steps)
    tell_problems(inspector, run)
    return verdict(inspector, run, differs=bool(totals.differs))


def _names_taken(
    inspector: Inspector, run: Run, ordinals: dict[tuple[object, ...], int], row: TurnSum, one: Compacting
) -> ItemNames:
    """How the items are called that a compaction took; words are read only where an item has no title.

    `ordinals`: of steps by their places, filled when the first compaction asks.
    """
    from ctxctl.item_names import ItemNames
    from ctxctl.session.item_words import directory_of, names_at

    if all(item.title for item in one.largest):
        return ItemNames(directory_of(inspector), ids=run.options.ids)
    if not ordinals:
        for number, span in enumerate(inspector.places().spans):
            ordinals.setdefault(span[:4], number)
    ordinal = ordinals[row.session, row.thread, one.turn, one.step]
    return names_at(inspector, ordinal, ids=run.options.ids)


def _steps(
    inspector: Inspector, run: Run, chosen: TurnSelection, turn: str | None, query: Query | None
) -> int:
    """Every step that was chosen, with its changes, then the sums."""
    from ctxctl.cli.run import header, tell_problems, verdict
    from ctxctl.cli.selection import SelectedResults
    from ctxctl.report.replay import ReplayReport
    from ctxctl.session.item_words import ItemWords

    out = run.out
    _calm_collector()
    head = header(inspector, thread=chosen.thread, turn=turn, late=inspector.places().late)
    replayed = SelectedResults(inspector, run, query, chosen)
    replayed.words = ItemWords(inspector)
    names = replayed.words.names(ids=run.options.ids)
    report = ReplayReport(head, out.width, out.paint, names, skipped=run.everything)
    for result, shown in replayed:
        if shown:
            out.lines(report.feed(result))
        else:
            report.pass_over(result)
    summary = _finished(inspector, chosen, turn, report.totals.steps)
    out.lines(report.end(summary, replayed.where))
    tell_problems(inspector, run)
    return verdict(inspector, run, differs=bool(report.totals.differs))


def _json(
    inspector: Inspector, run: Run, chosen: TurnSelection, turn: str | None, query: Query | None
) -> int:
    from ctxctl.cli.run import header, tell_problems, verdict
    from ctxctl.cli.selection import SelectedResults
    from ctxctl.model.results import Step
    from ctxctl.report import jsonout
    from ctxctl.report.totals import Totals

    out = run.out
    _calm_collector()
    out.json(jsonout.trace(header(inspector, thread=chosen.thread, turn=turn, late=inspector.places().late)))
    totals = Totals()
    replayed = SelectedResults(inspector, run, query, chosen)
    for result, shown in replayed:
        if isinstance(result, Step):
            totals.add(result)
            if shown:
                out.json(jsonout.step(result, skipped=run.everything))
        elif shown:
            out.json(jsonout.turn(result, skipped=run.everything))
    summary = _finished(inspector, chosen, turn, totals.steps)
    tell_problems(inspector, run)
    if replayed.where is not None:
        out.json({"type": "where", **replayed.where._asdict()})
    out.json(jsonout.summary(totals.narrow(summary)))
    return verdict(inspector, run, differs=bool(totals.differs))


def _calm_collector() -> None:
    """Let the garbage collector look rarely: a replay makes many objects and hardly a cycle."""
    import gc

    gc.freeze()
    gc.set_threshold(100_000, 20, 50)


def _finished(inspector: Inspector, chosen: TurnSelection, turn: str | None, steps: int) -> Summary:
    """The summary of the replay that just ended; an error if what was asked for is not in the trace."""
    from ctxctl.cli.selection import nothing_there

    summary = inspector.summary
    assert summary is not None
    if not steps and (turn is not None or chosen.thread is not None):
        raise nothing_there(turn, chosen.thread, inspector.places().spans)
    return summary


def _print_compared(
    inspector: Inspector, run: Run, supposition: Supposition, chosen: TurnSelection, turn: str | None
) -> int:
    """Replay both sides and print them; the exit code.

    Raises UsageError for what is supposed and does not exist.
    """
    from ctxctl.analysis.whatif import WhatIfs
    from ctxctl.cli.run import header, tell_problems, verdict
    from ctxctl.tokens.catalogue.rates import RateBook

    whatifs = WhatIfs(inspector)
    supposed = whatifs.resolve(supposition)
    book = RateBook(run.settings.models)
    comparison = whatifs.compare(supposed, book=book, wanted=chosen.__call__, settle=True)
    head = header(inspector, thread=chosen.thread, turn=turn)
    pairs = _compared_turns(inspector, run, comparison, chosen, turn)
    if run.json:
        _compared_json(run, comparison, head, pairs, lambda: tell_problems(inspector, run))
    else:
        _compared_plain(run, comparison, head, pairs)
    whatifs.close()
    if not run.json:
        tell_problems(inspector, run)
    return verdict(inspector, run)


def _compared_turns(
    inspector: Inspector, run: Run, comparison: Comparison, chosen: TurnSelection, turn: str | None
) -> Iterator[TurnPair]:
    """The turns; an error behind the last if what was asked for is not in the trace."""
    from ctxctl.cli.selection import nothing_there

    yield from comparison.turns(run.out.progressed)
    if not comparison.recorded.steps and (turn is not None or chosen.thread is not None):
        raise nothing_there(turn, chosen.thread, inspector.places().spans)


def _compared_plain(run: Run, comparison: Comparison, head: Header, turns: Iterator[TurnPair]) -> None:
    from ctxctl.report import sidebyside

    out = run.out
    addresses = sidebyside.Addresses()
    rows = [sidebyside.turn_cells(one, addresses.of(one)) for one in turns]
    out.lines([*sidebyside.heading(head, comparison, out.width), ""])
    out.lines(sidebyside.turn_table(rows, out.width, out.paint))
    out.lines(sidebyside.sums(comparison, addresses, out.width, out.paint))


def _compared_json(
    run: Run, comparison: Comparison, head: Header, turns: Iterator[TurnPair], tell: Callable[[], None]
) -> None:
    from ctxctl.report import sidebyside

    count = 0
    run.out.json(sidebyside.trace(head, comparison))
    run.out.json(sidebyside.supposition(comparison))
    for one in turns:
        count += 1
        run.out.json(sidebyside.turn(one))
    tell()
    run.out.json(sidebyside.summary(comparison, count))
