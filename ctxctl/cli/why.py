"""``ctxctl why``: why an item is, or is not, in the window of a step."""

from __future__ import annotations

from typing import Annotated

from ctxctl.cli import options as opt
from ctxctl.cli.parameters import Option

WhatIf = Annotated[
    bool, Option("--what-if", help="Look for what would keep it in a long session too; this takes a while.")
]
NoWhatIf = Annotated[
    bool,
    Option(
        "--no-what-if",
        help="Show only what is recorded: do not look for a limit or policy that would keep it.",
    ),
]
Ids = Annotated[bool, Option("--ids", help="Name records and items by their ids.")]
All = Annotated[bool, Option("--all", help="List every change in the item's history, and every problem.")]


@opt.takes(
    opt.PAGED,
    "everything ids what_if no_what_if turn thread",
    opt.COUNTED,
    opt.READ,
    everything=All,
    ids=Ids,
    turn=opt.TurnOf,
    thread=opt.ThreadOf,
)
def why(
    options: opt.CommonOptions,
    frame: opt.FrameArg = None,
    item: opt.ItemArg = None,
    what_if: WhatIf = False,
    no_what_if: NoWhatIf = False,
) -> None:
    """Explain why an item is, or is not, in a window: the recorded decisions, and what would keep it."""
    from ctxctl.analysis.why.answer import explain_item
    from ctxctl.cli.run import begin, header, reported
    from ctxctl.cli.selection import split_frame
    from ctxctl.cli.sessions import trace_and_item
    from ctxctl.report import jsonout
    from ctxctl.report.heading import one_line
    from ctxctl.report.why import to_json, what_if_lines, why_lines
    from ctxctl.session.item_words import names_at
    from ctxctl.session.naming import locate
    from ctxctl.text import visible

    run = begin(options)
    frame, item = trace_and_item(frame, item, run)
    place = split_frame(frame)
    out = run.out
    with reported(place.trace, run, "replaying") as inspector:
        ordinal = locate(inspector, place.address, options.turn, options.thread)
        found = explain_item(
            inspector, ordinal, item, everything=options.everything, ids=options.ids or options.json,
            progress=out.progressed,
        )  # fmt: skip
        if not options.json:
            named = header(inspector)
            out.lines([out.paint("dim", f"{visible(named.trace)}: {one_line(named)}")])
            out.lines(why_lines(found, out.width, out.paint, names_at(inspector, ordinal), ids=options.ids))
            out.flush()
        supposed = None
        if not no_what_if:
            from ctxctl.analysis.why.supposing import supposed_outcomes

            supposed = supposed_outcomes(
                inspector, found, run.settings.models, progress=out.progressed, however_long=what_if
            )
        if options.json:
            out.json(jsonout.trace(header(inspector)))
            out.json(to_json(found, supposed))
        elif supposed is not None:
            out.lines(what_if_lines(supposed, out.width, out.paint, ids=options.ids))
