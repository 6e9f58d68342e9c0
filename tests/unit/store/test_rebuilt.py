"""Every frame of every fixture is rebuilt exactly from rows."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import orjson
import pytest

from ctxctl.model.whatif import Limits
from tests.unit.engine.making import add, assembly
from tests.unit.store.rebuilt import differences

ROOT = Path(__file__).parents[3]
TRACES = sorted((ROOT / "traces").glob("*.jsonl"))
FIXTURES = sorted(
    path
    for path in (ROOT / "fixtures").rglob("*")
    if path.suffix in {".json", ".jsonl", ".yaml", ".eval", ".log", ".md"} and path.stat().st_size < 1 << 20
)
POLICIES = (
    "fifo",
    "priority",
    "truncate_middle",
    "summarize_oldest",
    "defer_to_retrieval",
    "amplifier",
    "sanqian",
)


@pytest.mark.parametrize("folder", sorted({path.parent for path in FIXTURES}), ids=lambda path: path.name)
def test_rows_say_what_the_replay_said(folder: Path) -> None:
    wrong = {path.name: differences(path) for path in FIXTURES if path.parent == folder}
    assert {name: found for name, found in wrong.items() if found} == {}


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
@pytest.mark.parametrize("policy", POLICIES)
def test_rows_say_what_a_replay_under_a_policy_said(path: Path, policy: str) -> None:
    more: dict[str, Any] = {"policy": policy, "limits": Limits(window=8_000)}
    assert differences(path, **more) == []


def test_rows_say_how_a_wide_window_was_shuffled(tmp_path: Path) -> None:
    rng, names = random.Random(1), [f"i{number}" for number in range(300)]
    events = [add(name, name, turn="1") for name in names]
    for turn in "12345":
        rng.shuffle(names)
        events.append(assembly(turn, *names, turn=turn))
    path = tmp_path / "shuffled.jsonl"
    path.write_bytes(b"\n".join(orjson.dumps({"event_id": f"e{n}", **one}) for n, one in enumerate(events)))
    assert differences(path) == []
