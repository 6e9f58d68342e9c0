"""``ctxctl replay``: every step and turn of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from ctxctl.cli import options as opt

if TYPE_CHECKING:
    from ctxctl.cli.only import Only
    from ctxctl.cli.session import Manner
    from ctxctl.inspector import Inspector
    from ctxctl.model.results import Summary
    from ctxctl.model.whatif import Limits


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
    format: opt.Format = None,  # noqa: A002 - the option's name
    strict: opt.Strict = None,
    color: opt.Color = None,
) -> None:
    """Replay a trace: the UI on a terminal; the report when piped, or with --plain or --json."""
    import sys

    from ctxctl.cli.only import only
    from ctxctl.cli.output import dumb, is_terminal
    from ctxctl.cli.session import manner, opened

    how = manner(
        json=json, everything=everything, target=target, model=model, encoding=encoding,
        policy=policy, format=format, strict=strict, color=color,
        limits=_limits(window, reserve, max_input),
    )  # fmt: skip
    quiet = plain or json or turn or thread or dumb()
    if not quiet and is_terminal(sys.stdout) and _has_keys(trace, is_terminal(sys.stdin)):
        raise typer.Exit(_interface(trace, how))
    with opened(trace, how, "replaying") as inspector:
        chosen = only(turn, thread, lambda: inspector.places().spans)
        show = _json if json else _plain
        code = show(inspector, how, chosen, turn)
        how.out.flush()
    raise typer.Exit(code)


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


def _limits(window: str | None, reserve: str | None, max_input: str | None) -> Limits:
    """Limits to suppose, as they were typed; raises UsageError("bad-limit")."""
    from ctxctl.errors import UsageError
    from ctxctl.model.whatif import Limits, parse_tokens

    def tokens(option: str, typed: str | None, least: int) -> int | None:
        try:
            return None if typed is None else parse_tokens(typed, least=least)
        except ValueError as error:
            shown = (typed or "")[:80]
            raise UsageError("bad-limit", f"{option} must be {error}, not {shown!r}") from None

    return Limits(
        tokens("--window", window, 1), tokens("--reserve", reserve, 0), tokens("--max-input", max_input, 1)
    )


def _plain(inspector: Inspector, how: Manner, chosen: Only, turn: str | None) -> int:
    from ctxctl.cli.session import header, tell_problems, verdict
    from ctxctl.report.replay import ReplayReport

    out = how.out
    _calm_collector()
    head = header(inspector, thread=chosen.thread, turn=turn)
    report = ReplayReport(head, out.width, out.paint, skipped=how.everything)
    for result in inspector.replay(out.progressed, skipped=how.everything):
        if chosen(result):
            out.lines(report.feed(result))
    summary = _finished(inspector, chosen, turn, report.totals.steps)
    out.lines(report.end(summary))
    tell_problems(inspector, how)
    return verdict(inspector, how, differs=bool(report.totals.differs))


def _json(inspector: Inspector, how: Manner, chosen: Only, turn: str | None) -> int:
    from ctxctl.cli.session import header, tell_problems, verdict
    from ctxctl.model.results import Step
    from ctxctl.report import jsonout
    from ctxctl.report.totals import Totals

    out = how.out
    totals = Totals()
    _calm_collector()
    out.json(jsonout.trace(header(inspector, thread=chosen.thread, turn=turn)))
    for result in inspector.replay(out.progressed, skipped=how.everything):
        if not chosen(result):
            continue
        if isinstance(result, Step):
            totals.add(result)
            out.json(jsonout.step(result, skipped=how.everything))
        else:
            out.json(jsonout.turn(result, skipped=how.everything))
    summary = _finished(inspector, chosen, turn, totals.steps)
    tell_problems(inspector, how)
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
