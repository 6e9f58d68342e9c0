"""``ctxctl blame``: whose each stretch of the assembled text is, and since when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from ctxctl.cli import options as opt
from ctxctl.cli.parameters import Option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxctl.cli.run import Run
    from ctxctl.model.blame import Blame, Block
    from ctxctl.session import Inspector

Stat = Annotated[bool, Option("--stat", help="Show only the sums: by kind, source, tool server and age.")]
Stale = Annotated[bool, Option("--stale", help="Show only stale copies: those that a later copy replaced.")]
Duplicate = Annotated[
    bool,
    Option("--duplicate", help="Show only blocks that repeat an earlier one, word for word or nearly."),
]
Item = Annotated[
    str | None,
    Option(
        "--item",
        metavar="ITEM",
        help="Show only copies of this item: its title or path, part of one, an id, or a piece of its text.",
    ),
]


Everything = Annotated[
    bool, Option("--all", help="List every row of the sums, and every problem, however many there are.")
]


@opt.takes(
    opt.PAGED,
    "canonical everything ids turn thread",
    opt.COUNTED,
    "calibration",
    opt.READ,
    everything=Everything,
    turn=opt.TurnOf,
    thread=opt.ThreadOf,
)
def blame(
    options: opt.CommonOptions,
    frame: opt.FrameArg = None,
    stat: Stat = False,
    stale: Stale = False,
    duplicate: Duplicate = False,
    item: Item = None,
) -> None:
    """Show the assembled text of a frame, with the item, version, source and age of each block."""
    from ctxctl.analysis.blame import blame_frame as blamed
    from ctxctl.analysis.blame import shown_blocks
    from ctxctl.analysis.by_name import copies_by_name
    from ctxctl.cli.run import begin, reported
    from ctxctl.cli.selection import split_frame
    from ctxctl.cli.sessions import given_or_newest
    from ctxctl.session.naming import locate

    run = begin(options)
    place = split_frame(given_or_newest(frame, run))
    with reported(place.trace, run, "replaying") as inspector:
        ordinal = locate(inspector, place.address, options.turn, options.thread)
        if run.settings.strict:
            inspector.read_whole(run.out.progressed)  # what is wrong behind the frame counts, too
        found = blamed(inspector, ordinal, progress=run.out.progressed, canonical=options.canonical)
        name, version = copies_by_name(inspector, found, item) if item is not None else (None, None)
        blocks = shown_blocks(found, stale=stale, duplicate=duplicate, item=name, version=version)
        tell = _json if options.json else _plain
        tell(inspector, run, found, blocks, stat)


def _plain(inspector: Inspector, run: Run, found: Blame, blocks: Sequence[Block], stat: bool) -> None:
    import sys

    from ctxctl.cli.output import is_terminal
    from ctxctl.cli.run import header
    from ctxctl.report.blame import head_lines, sum_lines, text_lines
    from ctxctl.report.heading import one_line
    from ctxctl.session.item_words import ItemWords

    out = run.out
    words = ItemWords(inspector)
    words.see_frame(found.step, [block.placement for block in found.blocks])
    names = words.names(ids=run.options.ids)
    out.lines(head_lines(found, inspector.name, one_line(header(inspector)), out.width))
    out.lines([""])
    if not stat and blocks:
        out.lines(text_lines(found, blocks, out.width, out.paint, names, wrapped=is_terminal(sys.stdout)))
        out.lines([""])
    elif not stat:
        out.lines(["no block matches", ""])
    out.lines(sum_lines(found, blocks, out.width, out.paint, names, everything=run.everything))


def _json(inspector: Inspector, run: Run, found: Blame, blocks: Sequence[Block], stat: bool) -> None:
    from ctxctl.cli.run import header
    from ctxctl.report import jsonout
    from ctxctl.report.blame import block_json, to_json

    out = run.out
    out.json(jsonout.trace(header(inspector)))
    for block in () if stat else blocks:
        out.json(block_json(found, block))
    out.json(to_json(found, blocks))
