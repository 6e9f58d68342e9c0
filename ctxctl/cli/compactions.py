"""``ctxctl compactions``: what each compaction took out of the window, and what is lost with it."""

from __future__ import annotations

from typing import Annotated

from ctxctl.cli import options as opt
from ctxctl.cli.parameters import Option

Everything = Annotated[
    bool, Option("--all", help="List every path, command, task, figure and message, and every problem.")
]


@opt.takes(opt.PAGED, "everything ids thread", opt.COUNTED, "calibration", opt.READ, everything=Everything)
def compactions(options: opt.CommonOptions, trace: opt.TurnArg = None) -> None:
    """Show what each compaction removed, and which paths, commands, tasks, figures and messages are lost.

    A path or message counts as lost if its words are neither in the summary nor in anything that came later.
    """
    from ctxctl.analysis import handed_on
    from ctxctl.cli.run import begin, header, reported
    from ctxctl.cli.selection import check_thread, place_selected, split_trace
    from ctxctl.cli.sessions import given_or_newest
    from ctxctl.report import jsonout
    from ctxctl.report.compactions import compaction_lines, to_json
    from ctxctl.report.heading import header_lines
    from ctxctl.session.item_words import ItemWords

    run = begin(options)
    place, out = split_trace(given_or_newest(trace, run)), run.out
    with reported(place.trace, run, "replaying") as inspector:
        check_thread(inspector, options.thread)
        words = ItemWords(inspector)
        found = handed_on.compactions(inspector, out.progressed, words.see)
        chosen = place_selected(inspector, place.address, None, options.thread)
        found = [one for one in found if chosen(one)]
        head = header(inspector, thread=chosen.thread, turn=chosen.named_turn)
        if options.json:
            out.json(jsonout.trace(head))
            for one in found:
                out.json(to_json(one))
        else:
            out.lines([*header_lines(head, out.width), ""])
            if not found and not chosen.is_all:
                out.lines(["no compaction is recorded in these turns"])
                return
            names = words.names(ids=options.ids)
            out.lines(compaction_lines(found, out.width, out.paint, names, everything=run.everything))
