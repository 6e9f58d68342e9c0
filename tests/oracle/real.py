"""The real engine, asked in process for what `ctxctl replay --json --all` prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ctxctl.cli.skipped import stream
from ctxctl.inspector import Inspector
from ctxctl.model.results import Step, Turn
from ctxctl.report import jsonout
from tests.oracle.build import Event, lines
from tests.oracle.case import Case, Replayed


def replay(
    where: Path,
    events: list[Event],
    *,
    target: str = "model",
    model: str | None = None,
    everything: bool = True,
) -> Replayed:
    """Write the trace to `where` and replay it; with `everything`, frame by frame, skipped items listed."""
    where.write_bytes(lines(events))
    inspector = Inspector.open(str(where), target=target, model=model)
    try:
        results = list(stream(inspector, lambda _: None, everything=everything))
        steps = [_json(result) for result in results if isinstance(result, Step)]
        turns = [_json(result) for result in results if isinstance(result, Turn)]
        problems = [json.loads(jsonout.line(jsonout.problem(problem))) for problem in inspector.problems]
        return Replayed(steps, turns, problems)
    finally:
        inspector.close()


def _json(result: Step | Turn) -> dict[str, Any]:
    whole = (
        jsonout.step(result, skipped=True) if isinstance(result, Step) else jsonout.turn(result, skipped=True)
    )
    said: dict[str, Any] = json.loads(jsonout.line(whole))
    return said


def run(case: Case, where: Path) -> Replayed:
    """Replay a case."""
    return replay(where, case.events, target=case.target, model=case.model)
