"""``ctxctl diff``: two frames, of one trace or of two; or two whole sessions, with ``--sessions``."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

from ctxctl.cli import options as opt
from ctxctl.cli.parameters import Argument, Done, Option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxctl.cli.run import Run
    from ctxctl.item_names import ItemNames
    from ctxctl.model.sessions import SessionDiff, TurnPair
    from ctxctl.report.compare import Comparison
    from ctxctl.session import Inspector
    from ctxctl.session.naming import NamedPlace

A = Annotated[
    str | None,
    Argument(
        metavar="[A]",
        help="A frame: run.jsonl@3; run.jsonl alone is its last frame, @3 alone is in the newest session"
        " of the current directory.",
        autocompletion=opt.complete_files,
        show_default=False,
    ),
]
B = Annotated[
    str | None,
    Argument(
        metavar="B",
        help="Another frame; @7 alone is in the same trace. Default: the frame before A.",
        autocompletion=opt.complete_files,
        show_default=False,
    ),
]
Stat = Annotated[bool, Option("--stat", help="Show only the table of changes.")]
PatchOnly = Annotated[
    bool,
    Option("--patch", help="Show only texts: diffs of updated items; added and removed items in full."),
]
Ui = Annotated[bool, Option("--ui", help="Open the terminal UI on the two frames.")]
ExitCode = Annotated[bool, Option("--exit-code", help="Exit 1 if the frames differ.")]
Sessions = Annotated[
    bool,
    Option("--sessions", help="Compare two whole sessions of one task, turn by turn, not two frames."),
]


@opt.takes(opt.PAGED, "oneline canonical everything ids thread", opt.COUNTED, opt.READ, thread=opt.ThreadOf)
def diff(
    options: opt.CommonOptions,
    a: A = None,
    b: B = None,
    stat: Stat = False,
    patch: PatchOnly = False,
    ui: Ui = False,
    exit_code: ExitCode = False,
    sessions: Sessions = False,
) -> None:
    """Compare two frames: what entered and left the window, item by item and line by line.

    Two traces without an address are compared by their last frames; with --sessions, as a whole.
    """
    from ctxctl.cli.run import begin, opened, tell_problems, verdict
    from ctxctl.cli.selection import split_frame
    from ctxctl.cli.sessions import given_or_newest
    from ctxctl.errors import Exit
    from ctxctl.report.compare import compared
    from ctxctl.session.naming import locate

    run = begin(options)
    left = split_frame(given_or_newest(a, run))
    right = split_frame(b, same=left.trace) if b is not None else None
    if sessions:
        raise Done(
            _whole_sessions(
                left, right, run, stat=stat, exit_code=exit_code, frames=patch or ui or options.oneline
            )
        )
    if ui:
        raise Done(_interface(left, right, options.thread, run))
    with ExitStack() as stack:
        one = two = stack.enter_context(opened(left.trace, run, "replaying"))
        if right is not None and right.trace != left.trace:
            two = stack.enter_context(opened(right.trace, run, "replaying"))
        one.read_whole(run.out.progressed)
        named = locate(one, left.address, None, options.thread)
        at = named if right is not None else _previous_step(one, named)
        to = named if right is None else locate(two, right.address, None, options.thread)
        found = compared(one, at, two, to, under=_replayed_under(one, two), canonical=options.canonical)
        _tell(found, one, two, run, stat=stat, patch=patch)
        run.out.flush()
        for inspector in () if options.json else dict.fromkeys((one, two)):
            tell_problems(inspector, run)
        if two is not one and not options.json:
            _note_default_frames(left, right)
        code = max(verdict(one, run), verdict(two, run))
    raise Done(Exit.FINDINGS if exit_code and found.differs else code)


def _interface(left: NamedPlace, right: NamedPlace | None, thread: str | None, run: Run) -> int:
    """Open the terminal UI on two frames, over the trace of the second; its exit code."""
    import sys

    from ctxctl.cli.output import is_terminal
    from ctxctl.cli.run import inspector_of
    from ctxctl.errors import UsageError
    from ctxctl.session.naming import locate
    from ctxctl.tui import app
    from ctxctl.tui.screens.diff.values import FrameName, Pair

    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise UsageError(
            "no-terminal",
            "--ui needs a terminal for its keys and its screen",
            hint="without --ui, the diff is printed",
        )
    to = left if right is None else right
    found: list[Pair] = []
    with ExitStack() as stack:

        def opening() -> Inspector:
            two = inspector_of(to.trace, run)
            try:
                one = None
                if left.trace != to.trace:
                    one = stack.enter_context(inspector_of(left.trace, run))
                at = locate(one or two, left.address, None, thread)
                if right is None:
                    found.append(Pair(FrameName(_previous_step(two, at)), FrameName(at)))
                else:
                    found.append(
                        Pair(FrameName(at, one), FrameName(locate(two, right.address, None, thread)))
                    )
            except BaseException:
                two.close()
                raise
            return two

        return app.run(opening, to.trace, settings=run.settings, pair=lambda _: found[0])


def _previous_step(inspector: Inspector, ordinal: int) -> int:
    from ctxctl.errors import UsageError

    before = inspector.previous(ordinal)
    if before is None:
        raise UsageError(
            "no-frame-before", "this is the first frame of its thread: there is none to compare it with",
            hint="name a second frame, for example `ctxctl diff run.jsonl@1 @2`",
        )  # fmt: skip
    return before


def _replayed_under(one: Inspector, two: Inspector) -> str:
    """What both were replayed under, in one line."""
    from ctxctl.cli.run import header
    from ctxctl.report.heading import one_line

    return "; ".join(dict.fromkeys((one_line(header(one)), one_line(header(two)))))


def _tell(
    found: Comparison, one: Inspector, two: Inspector, run: Run, *, stat: bool, patch: bool
) -> None:  # fmt: skip
    import msgspec

    from ctxctl.analysis.frame_pair import with_skipped
    from ctxctl.cli.run import header, tell_problems
    from ctxctl.report import compare, jsonout
    from ctxctl.report.oneline import change_line
    from ctxctl.session.item_words import names_in_frames

    out = run.out
    if run.everything:
        found = msgspec.structs.replace(found, changes=with_skipped(found.changes, found.b.frame.placements))
    if run.json:
        out.json(jsonout.trace(header(one)))
        if two is not one:
            out.json(jsonout.trace(header(two)))
        told = None if stat and not patch else list(compare.patches(found, whole=patch))
        out.json(compare.to_json(found, told, skipped=run.everything))
        tell_problems(one, run)
        if two is not one:
            tell_problems(two, run)
        return
    names = names_in_frames((one, found.a.frame), (two, found.b.frame), ids=run.options.ids)
    if run.options.oneline:
        out.lines(change_line(change, names) for change in compare.listed(found.changes, run.everything))
        return
    if stat or not patch:
        out.lines(compare.stat_lines(found, out.width, out.paint, names, skipped=run.everything))
    if patch or not stat:
        patches = list(compare.patches(found, whole=patch))
        if patches and (stat or not patch):
            out.lines([""])
        out.lines(compare.patch_lines(patches, out.paint))


def _note_default_frames(left: NamedPlace, right: NamedPlace | None) -> None:
    """Say what was compared, where two traces were named and no frame of them."""
    from ctxctl.cli.output import narrate

    if right is not None and left.address is None and right.address is None:
        narrate("ctxctl: comparing the last frames; --sessions compares the whole sessions")


def _whole_sessions(
    left: NamedPlace, right: NamedPlace | None, run: Run, *, stat: bool, exit_code: bool, frames: bool
) -> int:
    """Compare two sessions and print it; the exit code.  `frames`: what was asked for is about frames."""
    from ctxctl.analysis.sessions import compare_sessions
    from ctxctl.cli.run import opened, tell_problems, verdict
    from ctxctl.errors import Exit, UsageError
    from ctxctl.tokens.catalogue.rates import RateBook

    if right is None or left.address is not None or right.address is not None or frames:
        raise UsageError(
            "not-sessions",
            "--sessions compares two whole traces",
            hint="write `ctxctl diff one.jsonl two.jsonl --sessions`, without @, --patch, --oneline and --ui",
        )
    with opened(left.trace, run, "replaying") as one, opened(right.trace, run, "replaying") as two:
        found = compare_sessions(one, two, RateBook(run.settings.models), run.out.progressed)
        if run.json:
            _sessions_json(found, (one, two), run, items=not stat)
        else:
            _sessions_plain(found, (one, two), run, stat=stat)
        run.out.flush()
        for inspector in (one, two):
            tell_problems(inspector, run)
        run.out.flush()
        code = max(verdict(one, run), verdict(two, run))
    return int(Exit.FINDINGS if exit_code and found.differs else code)


def _sessions_plain(found: SessionDiff, sides: Sequence[Inspector], run: Run, *, stat: bool) -> None:
    from ctxctl.cli.run import header
    from ctxctl.item_names import NAMELESS
    from ctxctl.report.heading import one_line, told_apart
    from ctxctl.report.sessions import head_lines, stat_lines, turn_lines
    from ctxctl.session.item_words import names_at

    out = run.out
    ids = run.options.ids

    def called(pair: TurnPair) -> tuple[ItemNames, ItemNames]:
        a, b = (
            NAMELESS if side is None else names_at(inspector, side.ordinal, ids=ids)
            for inspector, side in zip(sides, (pair.a, pair.b), strict=True)
        )
        return a, b

    names = told_apart([inspector.name for inspector in sides])
    under = "; ".join(dict.fromkeys(one_line(header(inspector)) for inspector in sides))
    out.lines(head_lines(found, names, under, out.width))
    out.lines(stat_lines(found, out.width, out.paint))
    if not stat:
        out.lines(turn_lines(found, out.width, out.paint, called, everything=run.everything))


def _sessions_json(found: SessionDiff, sides: Sequence[Inspector], run: Run, *, items: bool) -> None:
    from ctxctl.cli.run import header
    from ctxctl.report import jsonout
    from ctxctl.report.heading import base_name
    from ctxctl.report.sessions import pair_json, to_json

    out = run.out
    for inspector in sides:
        out.json(jsonout.trace(header(inspector)))
    for thread in found.threads:
        for pair in thread.turns:
            out.json(pair_json(pair, items=items))
    out.json(to_json(found, [base_name(inspector.name) for inspector in sides]))
