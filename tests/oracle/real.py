"""The real engine, asked in process for what `ctxctl replay --json --all` prints."""

from __future__ import annotations

import json
from pathlib import Path

from ctxctl.inspector import Inspector
from ctxctl.model.results import Step
from ctxctl.report import jsonout
from tests.oracle.build import Event, lines
from tests.oracle.case import Case, Replayed


def replay(
    where: Path, events: list[Event], *, target: str = "model", model: str | None = None
) -> Replayed:
    """Write the trace to `where` and replay it."""
    where.write_bytes(lines(events))
    inspector = Inspector.open(str(where), target=target, model=model)
    try:
        steps, turns = [], []
        for result in inspector.replay():
            if isinstance(result, Step):
                steps.append(json.loads(jsonout.line(jsonout.step(result, skipped=True))))
            else:
                turns.append(json.loads(jsonout.line(jsonout.turn(result, skipped=True))))
        problems = [json.loads(jsonout.line(jsonout.problem(problem))) for problem in inspector.problems]
        return Replayed(steps, turns, problems)
    finally:
        inspector.close()


def run(case: Case, where: Path) -> Replayed:
    """Replay a case."""
    return replay(where, case.events, target=case.target, model=case.model)
