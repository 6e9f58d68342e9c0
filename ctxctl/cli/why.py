"""``ctxctl why``: why an item is, or is not, in the window of a step."""

from __future__ import annotations

from typing import Annotated

import typer

from ctxctl.cli import options as opt

Item = Annotated[
    str,
    typer.Argument(metavar="ITEM", help="An item's id, ID@VERSION, title, source, or a piece of its text."),
]
NoWhatIf = Annotated[
    bool,
    typer.Option("--no-what-if", help="Only what is recorded: look for no limit or policy that keeps it."),
]
All = Annotated[bool, typer.Option("--all", help="Every change of its life, and every problem.")]


def why(
    frame: opt.FrameArg,
    item: Item,
    plain: opt.Plain = False,
    json: opt.Json = False,
    everything: All = False,
    no_what_if: NoWhatIf = False,
    turn: opt.TurnOf = None,
    thread: opt.ThreadOf = None,
    target: opt.Target = None,
    model: opt.Model = None,
    encoding: opt.Encoding = None,
    policy: opt.Policy = None,
    no_learned: opt.NoLearned = False,
    format: opt.Format = None,  # noqa: A002 - the option's name
    strict: opt.Strict = None,
    color: opt.Color = None,
) -> None:
    """Tell why an item is, or is not, in a window: the recorded decisions, and what it would take."""
    from ctxctl.analysis.why.answer import explain_item
    from ctxctl.cli.address import split
    from ctxctl.cli.session import header, manner, opened, tell_problems, verdict
    from ctxctl.cli.show import locate
    from ctxctl.report import jsonout
    from ctxctl.report.heading import one_line
    from ctxctl.report.why import to_json, what_if_lines, why_lines
    from ctxctl.text import visible

    place = split(frame)
    how = manner(
        json=json, everything=everything, target=target, model=model, encoding=encoding,
        policy=policy, learned=opt.learned(no_learned), format=format, strict=strict, color=color,
    )  # fmt: skip
    out = how.out
    with opened(place.trace, how, "replaying") as inspector:
        ordinal = locate(inspector, place.address, turn, thread)
        found = explain_item(inspector, ordinal, item, everything=everything, progress=out.progressed)
        if not json:
            named = header(inspector)
            out.lines([out.paint("dim", f"{visible(named.trace)}: {one_line(named)}")])
            out.lines(why_lines(found, out.width, out.paint))
            out.flush()
        supposed = None
        if not no_what_if:
            from ctxctl.analysis.why.supposing import supposed_outcomes

            supposed = supposed_outcomes(inspector, found, how.settings.models, progress=out.progressed)
        if json:
            out.json(jsonout.trace(header(inspector)))
            out.json(to_json(found, supposed))
        elif supposed is not None:
            out.lines(what_if_lines(supposed, out.width, out.paint))
        out.flush()
        tell_problems(inspector, how)
        out.flush()
        code = verdict(inspector, how)
    raise typer.Exit(code)
