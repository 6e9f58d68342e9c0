"""What the panes show, asked of an inspector.  Runs in the loader's thread; no widget, no state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ctxctl.model.problem import Problem
from ctxctl.model.results import Summary
from ctxctl.model.whatif import Edited, Limits
from ctxctl.report.frame import stages_text
from ctxctl.session.calibration import calibration_note
from ctxctl.tui.document import Document
from ctxctl.tui.screens.turns.state import Trace
from ctxctl.wording import number

if TYPE_CHECKING:
    from ctxctl.session import Inspector
    from ctxctl.session.params import Params

_FACT: Final = 22
"""Cells in front of a fact of a stage."""
_WIDE: Final = 75
"""Columns of what the capture holds: what the narrowest usual screen holds."""


def trace(inspector: Inspector, *, live: bool = False) -> Trace:
    """Name, parameters and number of problems so far; `live`: it is being written."""
    params = inspector.params
    return Trace(
        name=inspector.name,
        format=inspector.format,
        encoding=_method(params),
        assumed=params.assumed,
        policy=params.policy + _learned(inspector) + _supposed(params.limits) + _edited(params.edited),
        problems=inspector.problem_count,
        late=inspector.late_events,
        live=live,
        places=places_of(inspector.format),
        size=inspector.trace.source.size,
    )


def places_of(format_name: str) -> tuple[str, ...]:
    """Where captures of a format come from, and what has to be switched on for them; empty for our own."""
    from ctxctl.importers.capture import about_format

    about = about_format(format_name)
    return () if about is None else tuple(about.places)


def _method(params: Params) -> str:
    """How texts are counted for the model that the trace names first."""
    calibrated = calibration_note(params.calibration, params.encoding, params.first_model, params.target)
    if calibrated is not None:
        return str(calibrated["method"])
    return f"{'estimate' if params.assumed else 'exact'}:{params.encoding}"


def _learned(inspector: Inspector) -> str:
    """What the log was completed by, for the head of the main screen."""
    used = inspector.learned
    return f" (learned: {used.learned.name}, {used.items} items)" if used is not None else ""


def _edited(edited: Edited) -> str:
    """What is dropped and set, for the head of the main screen."""
    parts = [f"without {one.selector}" for one in edited.drops]
    parts += [f"{one.item} set" for one in edited.texts]
    return f" (simulated: {', '.join(parts)})" if parts else ""


def _supposed(limits: Limits) -> str:
    """The limits of a what-if, for the head of the main screen."""
    named = (("window", limits.window), ("reserve", limits.reserve), ("max input", limits.max_input))
    given = [f"{name} {number(tokens)}" for name, tokens in named if tokens is not None]
    return f" (simulated: {', '.join(given)})" if given else ""


def stages(inspector: Inspector, ordinal: int) -> Document:
    """All stages of a step with what is known of each, and what its records tell beside the frame."""
    lines = list(stages_text(inspector.step(ordinal)))
    hangs = [_FACT if line.startswith("  ") else 2 for line in lines]
    return Document.of_lines(((" ", line) for line in lines), hangs)


# Whole texts ------------------------------------------------------------------------------------------------


def _where(problem: Problem) -> str:
    """The place of a problem; one of no line is the whole file's."""
    if not problem.line:
        return "the file"
    return f"line {number(problem.line)}, byte {number(problem.byte)}"


def problems(found: Iterable[Problem], total: int) -> Document:
    """The problems of a trace, one a line; how many more there are than were kept."""
    lines = [(" ", f"{_where(p)}  {p.slug}  {p.message}") for p in found]
    if not lines:
        lines = [(" ", "Every line of the trace could be read.")]
    elif total > len(lines):
        lines.append(("!", f"and {number(total - len(lines))} more"))
    return Document.of_lines(lines)


def about(format_name: str, summary: Summary | None) -> Document:
    """What the format can tell of each fact, and what the capture held of it once it was read whole."""
    from ctxctl.importers.capture import about_format
    from ctxctl.report.fidelity import declared_lines, measured_lines

    measured = summary.fidelity if summary is not None else ()
    if measured and measured[0].format is not None:
        format_name = measured[0].format
    lines = [("@", f"format {format_name}")]
    declared = about_format(format_name)
    if declared is None and not measured:
        lines.append((" ", "A trace as it was recorded: each step's stages say what was not recorded of it."))
    if measured:
        lines += [(" ", ""), ("@", "what the capture holds")]
        lines += [(" ", line) for line in measured_lines(measured, _WIDE, indent=0)]
    elif declared is not None:
        lines += [(" ", ""), ("!", "what this capture holds is known once it has been read")]
    if declared is not None:
        lines += [(" ", ""), ("@", "what such captures hold at best")]
        lines += [(" ", line) for line in declared_lines(declared, _WIDE)]
    return Document.of_lines(lines)
