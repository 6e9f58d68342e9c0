"""The example traces: valid, reproducible, and consistent with what the engine makes of them."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import orjson
import pytest

from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.trace.validate import validate_event
from traces import kit

TRACES = Path(__file__).parents[3] / "traces"
NAMES = ("notes-assistant", "coding-agent", "retrieval-agent")


def lines(name: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (TRACES / f"{name}.jsonl").read_bytes().splitlines()]


def steps(name: str) -> list[Step]:
    with Inspector.open(TRACES / f"{name}.jsonl") as inspector:
        found = [result for result in inspector.replay() if isinstance(result, Step)]
        assert inspector.problems == []
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_line_is_valid(name: str) -> None:
    assert [fault for event in lines(name) for fault in validate_event(event)] == []


@pytest.mark.parametrize("name", NAMES)
def test_is_small_and_is_what_its_script_writes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kit, "HERE", tmp_path)
    runpy.run_module(f"traces.make_{name.replace('-', '_')}", run_name="__main__")
    written = (tmp_path / f"{name}.jsonl").read_bytes()
    assert written == (TRACES / f"{name}.jsonl").read_bytes()
    assert len(written) < 300_000


@pytest.mark.parametrize("name", NAMES)
def test_declared_sizes_are_those_of_the_engine(name: str) -> None:
    for step in steps(name):
        assert step.stages["budget"].facts["actual_tokens"] == step.window.recorded
        assert step.usage is not None
        assert step.usage.difference is not None
        assert step.usage.difference < 0


@pytest.mark.parametrize("name", NAMES)
def test_contents_stand_in_the_file_once(name: str) -> None:
    texts = [e["data"]["content"] for e in lines(name) if isinstance(e["data"].get("content"), str)]
    long = [text for text in texts if len(text.encode()) >= kit.INLINE]
    assert len(long) == len(set(long))


def test_notes_assistant_shows_the_version_rules() -> None:
    found = steps("notes-assistant")
    changes = {(c.item, c.status, c.cause, s.turn) for s in found for c in s.changes}
    assert {s.mode for s in found} == {"append"}
    assert ("quire:editor-state", "updated", None, 3) in changes
    assert ("quire:editor-state", "removed", "detached", 8) in changes
    assert ("quire:editor-state", "added", None, 11) in changes
    assert ("quire:resource/attendance", "removed", "detached", 10) in changes
    assert all(s.ledger.freed == 0 for s in found)
    assert [s.turn for s in found if "missing_context" in s.flags] == [7]


def test_coding_agent_shows_threads_and_a_compaction() -> None:
    found = steps("coding-agent")
    assert {s.thread for s in found} == {"main", "explorer", "reviewer"}
    (compacted,) = [s for s in found if "compacted" in s.flags]
    gone = [c for c in compacted.changes if c.status == "removed"]
    assert (compacted.thread, compacted.turn) == ("main", 9)
    assert len(gone) == 51
    assert {(c.cause, c.into) for c in gone} == {("compacted", "summary-1")}
    cut = [c.item for s in found for c in s.changes if c.status == "updated" and "truncated" in c.flags]
    assert cut == ["result-1", "result-5"]


def test_retrieval_agent_shows_omissions_and_goes_over_budget() -> None:
    found = steps("retrieval-agent")
    assert [(s.turn, s.window.over) for s in found if s.window.over] == [(6, 615)]
    reasons = {c.reason for s in found for c in s.changes if c.status == "omitted" or c.cause == "omitted"}
    assert {"low_relevance", "stale", "duplicate", "policy_blocked", "permission_missing"} <= reasons
    assert any("rescored" in c.flags for s in found for c in s.changes)
