"""The real engine, asked in process for what `ctxctl replay --json --all` prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ctxctl.model.results import Step, Turn
from ctxctl.report import jsonout
from ctxctl.session import Inspector
from tests.oracle.build import Event, lines
from tests.oracle.case import Case, Replayed


@contextmanager
def opened(where: Path, events: list[Event], **how: Any) -> Iterator[Inspector]:
    """Write the trace to `where` and open it, with counts as they are unless it says otherwise."""
    where.write_bytes(lines(events))
    inspector = Inspector.open(str(where), **{"calibration": "none", **how})
    try:
        yield inspector
    finally:
        inspector.close()


def replay(
    where: Path,
    events: list[Event],
    *,
    target: str = "model",
    model: str | None = None,
    skipped: bool = True,
) -> Replayed:
    """Replay the trace; with `skipped`, skipped items are listed among the changes."""
    with opened(where, events, target=target, model=model) as inspector:
        results = list(inspector.replay(skipped=skipped))
        problems = [json.loads(jsonout.line(jsonout.problem(problem))) for problem in inspector.problems]
    steps = [_json(result) for result in results if isinstance(result, Step)]
    turns = [_json(result) for result in results if isinstance(result, Turn)]
    return Replayed(steps, turns, problems)


def seek(where: Path, events: list[Event]) -> list[dict[str, Any]]:
    """The steps of the trace, each opened by itself, the last one first."""
    with opened(where, events) as inspector:
        count = len(inspector.outline().rows)
        return [_json(inspector.step(ordinal)) for ordinal in reversed(range(count))][::-1]


def _json(result: Step | Turn) -> dict[str, Any]:
    whole = (
        jsonout.turn(result, skipped=True) if isinstance(result, Turn) else jsonout.step(result, skipped=True)
    )
    said: dict[str, Any] = json.loads(jsonout.line(whole))
    return said


def run(case: Case, where: Path) -> Replayed:
    """Replay a case."""
    return replay(where, case.events, target=case.target, model=case.model)
