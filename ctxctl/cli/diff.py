"""``ctxctl diff``: two frames, of one trace or of two."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from ctxctl.cli import options as opt

if TYPE_CHECKING:
    from ctxctl.cli.session import Manner
    from ctxctl.model.results import Placement
    from ctxctl.report.compare import Comparison, Text
    from ctxctl.session import Inspector
    from ctxctl.session.naming import NamedPlace

A = Annotated[
    str,
    typer.Argument(
        metavar="A", help="A frame: run.jsonl@3, or run.jsonl.", autocompletion=opt.complete_files
    ),
]
B = Annotated[
    str | None,
    typer.Argument(
        metavar="B",
        help="Another; @7 alone is in the same trace. Without it A is compared with the frame before it.",
        autocompletion=opt.complete_files,
        show_default=False,
    ),
]
Stat = Annotated[bool, typer.Option("--stat", help="Only the table of changes.")]
PatchOnly = Annotated[
    bool,
    typer.Option("--patch", help="Only texts: diffs of updated items, and added and removed ones whole."),
]
Ui = Annotated[bool, typer.Option("--ui", help="Open the terminal UI on the two frames.")]
ExitCode = Annotated[bool, typer.Option("--exit-code", help="Exit 1 if the frames differ.")]
Sessions = Annotated[
    bool,
    typer.Option("--sessions", help="Compare two whole sessions of one task, turn by turn, not two frames."),
]


def diff(
    a: A,
    b: B = None,
    stat: Stat = False,
    patch: PatchOnly = False,
    ui: Ui = False,
    exit_code: ExitCode = False,
    sessions: Sessions = False,
    plain: opt.Plain = False,
    json: opt.Json = False,
    canonical: opt.Canonical = False,
    everything: opt.Everything = False,
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
    """Compare two frames: what entered and left the window, item by item and line by line.

    Two traces without an address are compared by their last frames; with --sessions, as a whole.
    """
    from ctxctl.cli.address import split
    from ctxctl.cli.session import manner, opened, tell_problems, verdict
    from ctxctl.cli.sessions import pointed_out, whole
    from ctxctl.cli.show import locate
    from ctxctl.errors import Exit

    left = split(a)
    right = split(b, same=left.trace) if b is not None else None
    how = manner(
        json=json, everything=everything, target=target, model=model, encoding=encoding,
        policy=policy, learned=opt.learned(no_learned), format=format, strict=strict, color=color,
    )  # fmt: skip
    if sessions:
        raise typer.Exit(whole(left, right, how, stat=stat, exit_code=exit_code, frames=patch or ui))
    if ui:
        raise typer.Exit(_interface(left, right, thread, how))
    with ExitStack() as stack:
        one = two = stack.enter_context(opened(left.trace, how, "replaying"))
        if right is not None and right.trace != left.trace:
            two = stack.enter_context(opened(right.trace, how, "replaying"))
        one.outline(how.out.progressed)
        named = locate(one, left.address, None, thread)
        at = named if right is not None else _before(one, named)
        to = named if right is None else locate(two, right.address, None, thread)
        found = comparison(one, at, two, to, canonical=canonical)
        _tell(found, one, two, how, stat=stat, patch=patch)
        how.out.flush()
        for inspector in () if json else dict.fromkeys((one, two)):
            tell_problems(inspector, how)
        if two is not one and not json:
            pointed_out(left, right)
        code = max(verdict(one, how), verdict(two, how))
    raise typer.Exit(Exit.FINDINGS if exit_code and found.differs else code)


def _interface(left: NamedPlace, right: NamedPlace | None, thread: str | None, how: Manner) -> int:
    """Open the terminal UI on two frames, over the trace of the second; its exit code."""
    import sys

    from ctxctl.cli.output import is_terminal
    from ctxctl.cli.session import inspector_of
    from ctxctl.cli.show import locate
    from ctxctl.errors import UsageError
    from ctxctl.tui.app import run
    from ctxctl.tui.screens.diff.values import FrameName, Pair

    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise UsageError(
            "no-terminal",
            "--ui needs a terminal for keys and screen",
            hint="leave it out: the diff is printed",
        )
    to = left if right is None else right
    found: list[Pair] = []
    with ExitStack() as stack:

        def opening() -> Inspector:
            two = inspector_of(to.trace, how)
            try:
                one = None
                if left.trace != to.trace:
                    one = stack.enter_context(inspector_of(left.trace, how))
                at = locate(one or two, left.address, None, thread)
                if right is None:
                    found.append(Pair(FrameName(_before(two, at)), FrameName(at)))
                else:
                    found.append(
                        Pair(FrameName(at, one), FrameName(locate(two, right.address, None, thread)))
                    )
            except BaseException:
                two.close()
                raise
            return two

        return run(opening, to.trace, settings=how.settings, pair=lambda _: found[0])


def _before(inspector: Inspector, ordinal: int) -> int:
    from ctxctl.errors import UsageError

    before = inspector.previous(ordinal)
    if before is None:
        raise UsageError(
            "no-frame-before", "this is the first frame of its thread: nothing to compare it with",
            hint="name a second frame, for example `ctxctl diff run.jsonl@1 @2`",
        )  # fmt: skip
    return before


def comparison(one: Inspector, a: int, two: Inspector, b: int, *, canonical: bool = False) -> Comparison:
    """Two frames by their ordinals, with what is between them; `canonical`: texts with JSON in that form."""
    from ctxctl.analysis.frame_pair import frame_changes, several_sessions
    from ctxctl.cli.session import base_name, header
    from ctxctl.report.compare import Comparison, Side
    from ctxctl.report.heading import one_line

    left, right = one.frame(a), two.frame(b)
    result = frame_changes(one, a, two, b)
    under = list(dict.fromkeys((one_line(header(one)), one_line(header(two)))))
    return Comparison(
        under="; ".join(under),
        a=Side(base_name(one.name), left, reader(one, canonical=canonical), several_sessions(one)),
        b=Side(base_name(two.name), right, reader(two, canonical=canonical), several_sessions(two)),
        changes=result.changes,
        new=result.new,
        freed=result.freed,
        before=result.before,
        after=result.after,
        unrecorded=result.unrecorded,
        reweighed=result.reweighed,
    )


def reader(inspector: Inspector, *, canonical: bool = False) -> Text:
    """Reads a placement's text from its trace: as it was sent, or with its JSON in canonical form."""
    from ctxctl.session.assembly import text_of

    def read(placement: Placement) -> str | None:
        return None if placement.content is None else text_of(inspector.text, placement, canonical=canonical)

    return read


def _tell(
    found: Comparison, one: Inspector, two: Inspector, how: Manner, *, stat: bool, patch: bool
) -> None:  # fmt: skip
    import msgspec

    from ctxctl.cli.session import header, tell_problems
    from ctxctl.cli.skipped import listed
    from ctxctl.report import compare, jsonout

    out = how.out
    if how.everything:
        found = msgspec.structs.replace(found, changes=listed(found.changes, found.b.frame.placements))
    if how.json:
        out.json(jsonout.trace(header(one)))
        if two is not one:
            out.json(jsonout.trace(header(two)))
        told = None if stat and not patch else list(compare.patches(found, whole=patch))
        out.json(compare.to_json(found, told, skipped=how.everything))
        tell_problems(one, how)
        if two is not one:
            tell_problems(two, how)
        return
    if stat or not patch:
        out.lines(compare.stat_lines(found, out.width, out.paint, skipped=how.everything))
    if patch or not stat:
        patches = list(compare.patches(found, whole=patch))
        if patches and (stat or not patch):
            out.lines([""])
        out.lines(compare.patch_lines(patches, out.paint))
