"""``ctxctl replay``: every step and turn of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from ctxctl.cli import options as opt

if TYPE_CHECKING:
    from ctxctl.cli.only import Only
    from ctxctl.cli.session import Manner
    from ctxctl.engine.query import Query
    from ctxctl.model.results import Summary
    from ctxctl.session import Inspector


def replay(
    trace: opt.TraceArg,
    plain: opt.Plain = False,
    json: opt.Json = False,
    everything: opt.Everything = False,
    turn: opt.Turn = None,
    thread: opt.Thread = None,
    target: opt.Target = None,
    model: opt.Model = None,
    encoding: opt.Encoding = None,
    policy: opt.Policy = None,
    window: opt.Window = None,
    reserve: opt.Reserve = None,
    max_input: opt.MaxInput = None,
    drop: opt.Drop = None,
    set: opt.Set = None,  # noqa: A002 - the option's name
    compare: opt.Compare = False,
    where: opt.Where = None,
    calibration: opt.Calibration = None,
    no_learned: opt.NoLearned = False,
    format: opt.Format = None,  # noqa: A002 - the option's name
    strict: opt.Strict = None,
    color: opt.Color = None,
) -> None:
    """Replay a trace: the UI on a terminal; the report when piped, or with --plain or --json."""
    import sys

    from ctxctl.cli.asking import wanted
    from ctxctl.cli.only import only
    from ctxctl.cli.output import dumb, is_terminal
    from ctxctl.cli.session import manner, opened
    from ctxctl.cli.supposing import limits, replacements

    how = manner(
        json=json, everything=everything, target=target, model=model, encoding=encoding,
        policy=policy, calibration=calibration, learned=opt.learned(no_learned), format=format,
        strict=strict, color=color,
        limits=limits(window, reserve, max_input), drop=drop or (), texts=replacements(set, trace),
    )  # fmt: skip
    query = wanted(where, alone=not compare)
    if compare:
        raise typer.Exit(_compared(trace, how, turn, thread, model, encoding, policy))
    quiet = plain or json or turn or thread or where or dumb()
    if not quiet and is_terminal(sys.stdout) and _has_keys(trace, is_terminal(sys.stdin)):
        raise typer.Exit(_interface(trace, how))
    with opened(trace, how, "replaying") as inspector:
        chosen = only(turn, thread, lambda: inspector.places().spans)
        show = _json if json else _plain
        code = show(inspector, how, chosen, turn, query)
        how.out.flush()
    raise typer.Exit(code)


def _compared(
    trace: str,
    how: Manner,
    turn: str | None,
    thread: str | None,
    model: str | None,
    encoding: str | None,
    policy: str | None,
) -> int:
    """Recorded and simulated side by side: what flags ask for is supposed, and no way of reading."""
    import msgspec

    from ctxctl.cli.comparing import compare
    from ctxctl.cli.only import only
    from ctxctl.cli.session import opened
    from ctxctl.config import load
    from ctxctl.model.whatif import AS_RECORDED, Supposition

    ordinary = load()
    supposition = Supposition(
        model=model, window=how.limits.window, reserve=how.limits.reserve, max_input=how.limits.max_input,
        policy=policy, encoding=encoding, drop=how.drop, set=how.texts,
    )  # fmt: skip
    settings = msgspec.structs.replace(
        how.settings, model=ordinary.model, encoding=ordinary.encoding, policy=ordinary.policy
    )
    plain = how._replace(settings=settings, limits=AS_RECORDED, drop=(), texts=())
    with opened(trace, plain, "comparing") as inspector:
        code = compare(
            inspector, plain, supposition, only(turn, thread, lambda: inspector.places().spans), turn
        )
        how.out.flush()
    return code


def _has_keys(trace: str, at_terminal: bool) -> bool:
    """Whether keys can be read: from standard input, or from the terminal where that is the trace."""
    if trace != "-":
        return at_terminal
    if at_terminal:
        return False
    from ctxctl.tui.lifecycle import keys_from_terminal

    return keys_from_terminal()


def _interface(trace: str, how: Manner) -> int:
    """Open the terminal UI; its exit code."""
    from ctxctl.cli.session import inspector_of
    from ctxctl.tui.app import run

    return run(lambda: inspector_of(trace, how), trace, settings=how.settings)


def _plain(inspector: Inspector, how: Manner, chosen: Only, turn: str | None, query: Query | None) -> int:
    from ctxctl.cli.asking import Replayed
    from ctxctl.cli.session import header, tell_problems, verdict
    from ctxctl.report.replay import ReplayReport

    out = how.out
    _calm_collector()
    head = header(inspector, thread=chosen.thread, turn=turn, late=inspector.places().late)
    report = ReplayReport(head, out.width, out.paint, skipped=how.everything)
    replayed = Replayed(inspector, how, query, chosen)
    for result, shown in replayed:
        if shown:
            out.lines(report.feed(result))
        else:
            report.pass_over(result)
    summary = _finished(inspector, chosen, turn, report.totals.steps)
    out.lines(report.end(summary, replayed.where))
    tell_problems(inspector, how)
    return verdict(inspector, how, differs=bool(report.totals.differs))


def _json(inspector: Inspector, how: Manner, chosen: Only, turn: str | None, query: Query | None) -> int:
    from ctxctl.cli.asking import Replayed
    from ctxctl.cli.session import header, tell_problems, verdict
    from ctxctl.model.results import Step
    from ctxctl.report import jsonout
    from ctxctl.report.totals import Totals

    out = how.out
    totals = Totals()
    _calm_collector()
    out.json(jsonout.trace(header(inspector, thread=chosen.thread, turn=turn, late=inspector.places().late)))
    replayed = Replayed(inspector, how, query, chosen)
    for result, shown in replayed:
        if isinstance(result, Step):
            totals.add(result)
        if not shown:
            continue
        if isinstance(result, Step):
            out.json(jsonout.step(result, skipped=how.everything))
        else:
            out.json(jsonout.turn(result, skipped=how.everything))
    summary = _finished(inspector, chosen, turn, totals.steps)
    tell_problems(inspector, how)
    if replayed.where is not None:
        out.json({"type": "where", **replayed.where._asdict()})
    out.json(jsonout.summary(totals.narrow(summary)))
    return verdict(inspector, how, differs=bool(totals.differs))


def _calm_collector() -> None:
    """Let the garbage collector look rarely: a replay makes many objects and hardly a cycle."""
    import gc

    gc.freeze()
    gc.set_threshold(100_000, 20, 50)


def _finished(inspector: Inspector, chosen: Only, turn: str | None, steps: int) -> Summary:
    """The summary of the replay that just ended; an error if what was asked for is not in the trace."""
    from ctxctl.cli.only import nothing_there

    summary = inspector.summary
    assert summary is not None
    if not steps and (turn is not None or chosen.thread is not None):
        raise nothing_there(turn, chosen.thread, inspector.places().spans)
    return summary
