"""`ctxctl why` against an independent walk of the events, on hand-made and random traces."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from ctxctl.analysis.why.answer import explain_item
from ctxctl.report import jsonout
from ctxctl.report.why import to_json
from ctxctl.session import Inspector
from ctxctl.session.store_rows import lives_of
from tests.oracle import real
from tests.oracle.build import Event
from tests.oracle.cases import ALL
from tests.oracle.random_traces import traces
from tests.oracle.walk import Walk

TRACES = Path(__file__).parents[3] / "traces"


def asked(inspector: Inspector, ordinal: int, item: str, **how: Any) -> dict[str, Any]:
    """The answer as it is printed."""
    line = jsonout.line(to_json(explain_item(inspector, ordinal, item, **how), None))
    found: dict[str, Any] = json.loads(line)
    return found


def pairs(inspector: Inspector, some: Random, most: int) -> list[tuple[int, str]]:
    """Steps and items of their threads, present and absent ones."""
    known = lives_of(inspector)
    entries = list(known.entries())
    found = [
        (ordinal, entry.item)
        for ordinal in range(len(known))
        for entry in entries
        if entry.thread == known.thread_of(ordinal)
    ]
    return found if len(found) <= most else some.sample(found, most)


def wrong(where: Path, events: list[Event], most: int = 40) -> dict[str, list[str]]:
    """By step and item, in what `why` and the walk differ."""
    walk, found = Walk(events), {}
    with real.opened(where, events) as inspector:
        for ordinal, item in pairs(inspector, Random(len(events)), most):
            complaints = walk.complaints(asked(inspector, ordinal, item, everything=True))
            if complaints:
                found[f"{item} at {ordinal}"] = complaints
    return found


@pytest.mark.parametrize("case", [c for c in ALL if c.target == "model"], ids=lambda case: case.name)
def test_cases(case: Any, tmp_path: Path) -> None:
    assert wrong(tmp_path / "trace.jsonl", case.events) == {}


@pytest.mark.parametrize("name", ["coding-agent", "notes-assistant", "retrieval-agent"])
def test_traces_of_the_docs(name: str, tmp_path: Path) -> None:
    lines = (TRACES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    assert wrong(tmp_path / "trace.jsonl", [json.loads(line) for line in lines[:150]]) == {}


@settings(max_examples=40)
@given(traces())
def test_random_traces(tmp_path_factory: pytest.TempPathFactory, events: list[Event]) -> None:
    assert wrong(tmp_path_factory.mktemp("why") / "trace.jsonl", events, most=12) == {}
