# ruff: noqa: E501 - a record stands in one line
"""Events for steps that were over: how many there are is said first, wherever a replay is shown."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ctxctl.session import Inspector
from tests.unit.record.record_help import ctxctl

Json = dict[str, Any]
ROOT = Path(__file__).resolve().parents[3]
TRACES = sorted([*ROOT.glob("tests/golden/traces/**/*.jsonl"), *ROOT.glob("fixtures/native/**/*.jsonl")])


def event(number: int, kind: str, step: str, **data: Any) -> Json:
    return {
        "schema_version": "0.1.1", "event_id": f"e{number}", "event_type": kind, "source": "t",
        "time": "2026-01-01T00:00:00Z", "session_id": "s", "thread_id": "main", "turn_id": "turn-1",
        "step_id": step, "data": {"schema_version": "0.1.1", **data},
    }  # fmt: skip


def run(first: int, steps: int) -> list[Json]:
    """What one writer tells that begins its names anew: an item, the window, that it went out, the bill."""
    made: list[Json] = []
    for step in range(1, steps + 1):
        name, item = f"step-{step}", f"i{first}.{step}"
        block = {"block_id": item, "item_refs": [item], "role": "user"}
        told: tuple[tuple[str, Json], ...] = (
            ("context.item.added", {"item_id": item, "context_kind": "user_message", "content": f"text {item}"}),
            ("context.assembly.created", {"assembly_id": f"a{item}", "target": "model", "ordered_blocks": [block]}),
            ("context.injection.applied", {"injection_id": f"n{item}", "assembly_id": f"a{item}", "target": "model"}),
            ("ctxctl.usage.reported", {"input_tokens": 5}),
        )  # fmt: skip
        made += [event(first + len(made) + at, kind, name, **data) for at, (kind, data) in enumerate(told)]
    return made


def written(path: Path, events: list[Json]) -> Path:
    with path.open("a") as file:
        file.writelines(json.dumps(one) + "\n" for one in events)
    return path


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_the_first_lines_say_how_many_and_what_it_means(tmp_path: Path, steps: int) -> None:
    path = written(tmp_path / "run.jsonl", run(0, steps) + run(100, steps))
    rows = [json.loads(line) for line in ctxctl("replay", "--json", "--all", str(path)).stdout.splitlines()]
    late = [row for row in rows if row["type"] == "problem" and row["slug"].startswith("late-")]
    assert rows[0]["late_events"] == len(late) > 0
    done = ctxctl("replay", "--plain", str(path))
    assert done.returncode == 0
    second = " ".join(done.stdout.splitlines()[1:3])
    assert f"late      {len(late)} events name steps that are over" in second
    assert ctxctl("replay", "--plain", "--strict", str(path)).returncode == 1


def test_nothing_is_said_of_none(tmp_path: Path) -> None:
    path = written(tmp_path / "run.jsonl", run(0, 3))
    assert "late" not in ctxctl("replay", "--plain", str(path)).stdout
    assert "late_events" not in json.loads(ctxctl("replay", "--json", str(path)).stdout.splitlines()[0])
    assert ctxctl("replay", "--plain", "--strict", str(path)).returncode == 0


def test_one_event_is_told_as_one(tmp_path: Path) -> None:
    path = written(tmp_path / "run.jsonl", [*run(0, 2), run(100, 1)[0]])
    assert (
        "late      1 event names a step that is over: it counts"
        in ctxctl("replay", "--plain", str(path)).stdout
    )


def test_the_count_goes_on_when_the_file_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXCTL_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "run.jsonl"
    whole = [*run(0, 2), *run(100, 2), *run(200, 1)]
    for at in range(0, len(whole), 3):
        written(path, whole[at : at + 3])
        with Inspector.open(str(path)) as inspector:
            told = inspector.places().late
            list(inspector.replay())
            assert told == inspector.late_events
    assert told > 0


def test_an_injection_for_somebody_else_seals_nothing(tmp_path: Path) -> None:
    events = run(0, 1)
    other = event(50, "context.injection.applied", "step-1", injection_id="x", target="ui")
    path = written(tmp_path / "run.jsonl", [events[0], other, *events[1:]])
    with Inspector.open(str(path)) as inspector:
        assert inspector.places().late == 0
        list(inspector.replay())
        assert inspector.late_events == 0


@pytest.mark.parametrize("path", TRACES, ids=lambda path: os.fspath(path.relative_to(ROOT)))
def test_the_index_counts_as_the_replay_does(path: Path) -> None:
    with Inspector.open(str(path)) as inspector:
        told = inspector.places().late
        list(inspector.replay())
        assert told == inspector.late_events
