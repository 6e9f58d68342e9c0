"""``ctxctl show``: one frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from ctxctl.cli import options as opt
from ctxctl.cli.parameters import Option

if TYPE_CHECKING:
    from ctxctl.cli.run import Run
    from ctxctl.report.compare import Patch
    from ctxctl.session import Inspector

Stage = Annotated[
    str | None,
    Option("--stage", metavar="NAME", help="Show only this stage.", autocompletion=opt.complete_stages),
]
Text = Annotated[
    bool,
    Option(
        "--text",
        help="Print the assembled text, then diffs of updated items; with --stage assembly, only the text.",
    ),
]


@opt.takes(
    opt.PAGED,
    "canonical everything ids turn thread",
    opt.COUNTED,
    "calibration",
    opt.READ,
    turn=opt.TurnOf,
    thread=opt.ThreadOf,
)
def show(
    options: opt.CommonOptions,
    frame: opt.FrameArg = None,
    stage: Stage = None,
    text: Text = False,
) -> None:
    """Show one frame, which is all that one request sent: its stages, its items in order, or its text."""
    from ctxctl.cli.run import begin, reported
    from ctxctl.cli.selection import split_frame
    from ctxctl.cli.sessions import given_or_newest
    from ctxctl.errors import UsageError
    from ctxctl.model.vocab import STAGES
    from ctxctl.session.naming import locate

    if stage is not None and stage not in STAGES:
        raise UsageError(
            "unknown-stage", f"no stage is called {stage!r}", hint=f"there are: {', '.join(STAGES)}"
        )
    run = begin(options)
    place = split_frame(given_or_newest(frame, run))
    with reported(place.trace, run, "replaying") as inspector:
        inspector.read_whole(run.out.progressed)
        ordinal = locate(inspector, place.address, options.turn, options.thread)
        tell = _json if options.json else _plain
        tell(inspector, run, ordinal, stage, text, canonical=options.canonical)


def _plain(
    inspector: Inspector, run: Run, ordinal: int, stage: str | None, text: bool, *, canonical: bool
) -> None:
    from ctxctl.analysis.frame_pair import with_skipped
    from ctxctl.cli.run import header
    from ctxctl.report.compare import patch_lines
    from ctxctl.report.frame import frame_lines, stage_lines
    from ctxctl.report.heading import header_lines
    from ctxctl.session.item_words import names_at
    from ctxctl.text import visible

    out = run.out
    if text:
        assembled, updated = _text(inspector, ordinal, stage, canonical=canonical)
        out.text(visible(assembled, newline=True))
        if updated:
            out.lines(["", *patch_lines(updated, out.paint)])
        return
    frame = inspector.frame(ordinal)
    if stage is not None:
        out.lines(stage_lines(frame.step, stage, out.width))
        return
    step = frame.step
    mode = f"{step.mode} ({'declared' if step.mode_declared else 'inferred'})"
    out.lines(header_lines(header(inspector), out.width, mode=mode))
    extra = with_skipped(step.changes, frame.placements) if run.everything else None
    names = names_at(inspector, ordinal, ids=run.options.ids)
    out.lines(frame_lines(frame, out.width, out.paint, names, changes=extra))


def _json(
    inspector: Inspector, run: Run, ordinal: int, stage: str | None, text: bool, *, canonical: bool
) -> None:
    import msgspec

    from ctxctl.analysis.frame_pair import with_skipped
    from ctxctl.cli.run import header
    from ctxctl.report import jsonout
    from ctxctl.report.compare import patches_json

    out = run.out
    out.json(jsonout.trace(header(inspector)))
    frame = inspector.frame(ordinal)
    step = frame.step
    if run.everything:
        step = msgspec.structs.replace(step, changes=with_skipped(step.changes, frame.placements))
    if stage is not None:
        view = step.stages.get(stage)
        place = {"session": step.session, "thread": step.thread, "turn": step.turn, "step": step.step}
        fields = jsonout.stage(view) if view is not None else {"verdict": "not_recorded"}
        out.json({"type": "stage", "stage": stage, **place, **fields})
    assembled, updated = _text(inspector, ordinal, stage, canonical=canonical) if text else (None, None)
    line = {
        "type": "frame",
        "step": jsonout.step(step, skipped=run.everything),
        "placements": [jsonout.placement(p, n) for n, p in enumerate(frame.placements)],
        "text": assembled,
        "patches": None if updated is None else patches_json(updated),
    }
    if stage is None or text:
        out.json(line)


def _text(
    inspector: Inspector, ordinal: int, stage: str | None, *, canonical: bool
) -> tuple[str, list[Patch] | None]:
    """The assembled text, and diffs of the items that the step updated; None where the text alone is asked
    for, by the stage that is.
    """
    from ctxctl.report.compare import compared, patches

    text = inspector.assembled(ordinal, canonical=canonical)
    if stage == "assembly":
        return text, None
    before = inspector.previous(ordinal)
    if before is None:
        return text, []
    found = compared(inspector, before, inspector, ordinal, canonical=canonical)
    return text, list(patches(found, whole=False))
