"""``ctxctl validate``: conformance to the schemas and to the rules of the trace format."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from ctxctl.cli import options as opt
from ctxctl.cli.parameters import Done

if TYPE_CHECKING:
    from ctxctl.model.problem import Problem
    from ctxctl.model.results import Step
    from ctxctl.session import Inspector

_MOST = 100_000
"""Findings kept; a file in which every line is wrong must not fill the memory."""


@opt.takes(opt.PAGED, "everything target read_as color", everything=opt.EveryProblem)
def validate(
    options: opt.CommonOptions,
    trace: opt.TraceArg,
) -> None:
    """Check every line against the schemas and the rules of the format. Exit 1 if something is wrong.

    A foreign capture is checked as the trace that it is converted to.
    """
    from ctxctl.cli.run import begin, header, opened
    from ctxctl.cli.selection import whole_trace
    from ctxctl.errors import Exit
    from ctxctl.report import jsonout
    from ctxctl.report.fidelity import measured, measured_lines
    from ctxctl.report.tables import problem_lines
    from ctxctl.wording import plural

    run = begin(options._replace(no_learned=True))
    out = run.out
    trace = whole_trace(trace, "leave the turn out; `ctxctl show {}` shows it")
    with opened(trace, run, "validating") as inspector:
        found = sorted(_findings(inspector))
        total = inspector.problem_count + len(found) - len(inspector.problems)
        wrong = total - inspector.problem_count + inspector.finding_count
        summary = inspector.summary
        events = summary.events if summary is not None else 0
        if options.json:
            out.json(jsonout.trace(header(inspector)))
            for problem in found:
                out.json(jsonout.problem(problem))
            out.json(
                {
                    "type": "validation",
                    "events": events,
                    "problems": total,
                    "valid": not wrong,
                    "fidelity": measured(summary.fidelity if summary is not None else ()),
                }
            )
        else:
            cap = None if options.everything else max(run.settings.problems, 1)
            out.lines(problem_lines(inspector.name, found, total, cap))
            verdict = f"{plural(total, 'problem')} in " if wrong else "valid: "
            out.lines([f"{verdict}{plural(events, 'event')}"])
            if summary is not None:
                out.lines(measured_lines(summary.fidelity, out.width))
        out.flush()
    raise Done(Exit.FINDINGS if wrong else Exit.OK)


def _findings(inspector: Inspector) -> list[Problem]:
    """What the reader, the engine and the importer report, and what the schemas and the ledger say."""
    from ctxctl.model.problem import Problem
    from ctxctl.model.results import Step

    found: list[Problem] = []
    for result in inspector.replay():
        if isinstance(result, Step) and (fault := _unbalanced(result)):
            found.append(Problem(result.first_line, 0, "unbalanced-ledger", fault))
    for problem in chain(_line_faults(inspector), _returned(inspector)):
        found.append(problem)
        if len(found) >= _MOST:
            break
    return [*inspector.problems, *found]


def _returned(inspector: Inspector) -> Iterator[Problem]:
    """Texts that come back after they were redacted."""
    if inspector.redactor:
        for event in inspector.trace.events():
            yield from inspector.redactor.returns(event)


def _unbalanced(step: Step) -> str | None:
    """What does not add up in a step; the engine guarantees that nothing ever is."""
    ledger = step.ledger
    before = ledger.window_before + ledger.reweighed
    if before + ledger.new - ledger.freed != ledger.window_after:
        return f"turn {step.turn}.{step.step}: the ledger does not balance"
    if sum(step.segments.values()) != step.window.used:
        return f"turn {step.turn}.{step.step}: the segments do not add up to the window"
    return None


def _line_faults(inspector: Inspector) -> Iterator[Problem]:
    """Lines that are events but not valid ones, or that declare what is not a context record's to declare."""
    import json

    from ctxctl.model.problem import Problem
    from ctxctl.trace.around_content import parsed_around_content
    from ctxctl.trace.governance import declarations
    from ctxctl.trace.validate import validate_event

    trace = inspector.trace
    for event in trace.events():
        line = trace.line(event.offset, event.length)
        try:
            value = parsed_around_content(line) or json.loads(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            continue  # repaired and reported by the reader
        if isinstance(value, dict):
            for message in validate_event(value):
                yield inspector.redactor.problem(
                    Problem(event.line, event.offset, "schema-violation", message)
                )
            if declared := declarations(value):
                message = f"a context record declares a runtime's outcome: {'; '.join(declared)}"
                yield Problem(event.line, event.offset, "declares-runtime-status", message)
