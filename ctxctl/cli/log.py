"""``ctxctl log``: the life of one item."""

from __future__ import annotations

from typing import Annotated

import typer

from ctxctl.cli import options as opt

Item = Annotated[
    str,
    typer.Argument(metavar="ITEM", help="An item's id, ID@VERSION, title, source, or a piece of its text."),
]


def log(
    trace: opt.TraceArg,
    item: Item,
    plain: opt.Plain = False,
    json: opt.Json = False,
    thread: opt.Thread = None,
    target: opt.Target = None,
    model: opt.Model = None,
    encoding: opt.Encoding = None,
    policy: opt.Policy = None,
    no_learned: opt.NoLearned = False,
    format: opt.Format = None,  # noqa: A002 - the option's name
    strict: opt.Strict = None,
    color: opt.Color = None,
) -> None:
    """Tell an item's life: when it was added, updated, skipped, compacted, removed."""
    from ctxctl.analysis.by_name import life_by_name
    from ctxctl.cli.session import header, manner, opened, tell_problems, verdict
    from ctxctl.report import jsonout
    from ctxctl.report.heading import header_lines
    from ctxctl.report.life import life_lines, spans, to_json

    how = manner(
        json=json, target=target, model=model, encoding=encoding,
        policy=policy, learned=opt.learned(no_learned), format=format, strict=strict, color=color,
    )  # fmt: skip
    out = how.out
    with opened(trace, how, "replaying") as inspector:
        name, lives = life_by_name(inspector, item, thread)
        if json:
            out.json(jsonout.trace(header(inspector, thread=thread)))
            for span in spans(lives):
                out.json(to_json(name, span))
            tell_problems(inspector, how)
        else:
            out.lines(header_lines(header(inspector, thread=thread), out.width))
            out.lines(["", *life_lines(name, lives, out.width, out.paint)])
            out.flush()
            tell_problems(inspector, how)
        out.flush()
        code = verdict(inspector, how)
    raise typer.Exit(code)
