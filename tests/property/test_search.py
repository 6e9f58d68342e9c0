"""The search over random traces, held against looking at every step by itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.analysis.search import search_trace
from ctxctl.engine.query import contained_text, parse_query
from ctxctl.model.results import Change, Placement
from ctxctl.session import Inspector
from tests.oracle.build import Event, lines
from tests.oracle.random_traces import traces
from tests.property.test_laws import FEWER

QUERIES = (
    "1", "a or 2", "-3", "kind:tool -1", "status:removed", "status:skipped 1",
    "cause:compacted or status:added",
    "status:omitted 1", "new>5 turn:2..", "window>30", "turn:1..2", "is:compacted or 4 freed>0",
    "segment:history 1", "-segment:context", "provenance:derived or 5",
)  # fmt: skip


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("search") / "trace.jsonl"


def current(placements: list[Placement], item: str) -> Placement | None:
    """The last copy of an item in a frame that is not stale."""
    return next((p for p in reversed(placements) if p.item == item and not p.stale), None)


def told(inspector: Inspector, ordinal: int, change: Change) -> tuple[str | None, str | None]:
    """The text that a change speaks of, and its segment, found the long way."""
    withheld = change.item in inspector.step(ordinal).annotations.withheld
    if change.status == "omitted":
        content = inspector.native(change.line)["data"].get("content") if change.line else None
        return (None if withheld else content), None
    at = inspector.previous(ordinal) if change.status == "removed" else ordinal
    placement = None if at is None else current(list(inspector.frame(at).placements), change.item)
    if placement is None:
        return None, None
    if placement.content is None or (withheld and change.status == "removed"):
        return None, placement.segment
    return inspector.text(placement.content), placement.segment


@FEWER
@given(events=traces(), text=st.sampled_from(QUERIES))
def test_a_search_finds_what_is_found_step_by_step(trace: Path, events: list[Event], text: str) -> None:
    trace.write_bytes(lines(events))
    query = parse_query(text)
    expected = []
    with Inspector.open(trace) as inspector:
        listed = [r for r in inspector.replay(skipped=query.asks_skipped) if hasattr(r, "step")]
        for ordinal, step in enumerate(listed):
            if query.about_steps:
                if query.matches_step(step):
                    expected.append((ordinal, None, None))
                continue
            for change in step.changes:
                if change.status == "skipped" and not query.asks_skipped:
                    continue
                said, segment = told(inspector, ordinal, change)
                if query.matches_change(step, change, contained_text(said), segment):
                    expected.append((ordinal, change.status, change.item))
        found = [hit for one in search_trace(inspector, query, lambda: None) for hit in one.hits]
    assert [(hit.ordinal, hit.status, hit.item) for hit in found] == expected
