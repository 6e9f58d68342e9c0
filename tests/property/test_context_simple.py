"""The rules of context-simple against its original code: 3,000 random histories, and live sessions.

Digests and logs were written by the original code; `tests/original/test_amplifier_simple.py` runs it again
where it can be had.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxctl.model.results import Step
from ctxctl.session import Inspector
from tests.unit.policies.simple_inputs import DIGESTS, INPUTS, KEPT, made, ours

Json = dict[str, Any]
LOGS = sorted(KEPT.glob("*-events.jsonl.gz"), key=lambda path: int(path.name.partition("-")[0]))
RECORDINGS = sorted(KEPT.glob("*-recorded.jsonl.gz"))


@pytest.mark.slow
def test_what_the_original_code_made_of_random_histories() -> None:
    lines = DIGESTS.read_text(encoding="utf-8").splitlines()
    recorded = [line for line in lines if not line.startswith("#")]
    assert len(recorded) == INPUTS
    views = [ours(made(seed)) for seed in range(INPUTS)]
    other = [seed for seed, view in enumerate(views) if view.digest != recorded[seed]]
    assert not other
    levels = {view.told["strategy_level"] for view in views if view.told is not None}
    assert levels == set(range(1, 9))
    assert any(view.told is None for view in views)


def stepped(path: Path, policy: str) -> list[Step]:
    with Inspector.open(str(path), policy=policy) as inspector:
        return [step for step in inspector.replay() if isinstance(step, Step)]


def verdicts(steps: list[Step]) -> Counter[str]:
    """Of the stages that were held against the record."""
    found = Counter(step.stages[name].verdict for step in steps for name in ("budget", "assembly"))
    return Counter({name: n for name, n in found.items() if name not in ("recorded", "not_recorded")})


def compactions(path: Path) -> int:
    return gzip.decompress(path.read_bytes()).count(b'"event": "context:compaction"')


def test_the_logs_hold_sessions_and_compactions_enough() -> None:
    assert len(LOGS) >= 8
    assert sum(map(compactions, LOGS)) >= 200


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name.partition(".")[0])
@pytest.mark.parametrize("policy", ["amplifier", "amplifier:sticky=false"])
def test_a_live_log_matches_in_every_compaction(path: Path, policy: str) -> None:
    """Level, counts, sizes to the token, and the view message for message, whichever version is asked for."""
    steps = stepped(path, policy)
    assert verdicts(steps) == {"matches": 2 * compactions(path)}
    for step in steps:
        facts = step.stages["budget"].facts
        assert facts.get("expected", {}) == {**facts.get("expected", {}), **facts.get("recorded", {})}


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name.partition(".")[0])
def test_the_recorders_own_trace_tells_of_each_compaction(path: Path) -> None:
    """Views and requests: never a false alarm, and every removal has its compaction."""
    steps = stepped(path, "amplifier")
    found = verdicts(steps)
    assert set(found) <= {"matches", "cannot_tell"}
    assert found["matches"] > 4 * found["cannot_tell"]
    plain = stepped(path, "recorded")
    gone = [one for step in plain for one in step.changes if one.status == "removed"]
    assert {one.cause for one in gone} == {"compacted"}


def changed(path: Path, to: Path, change: Callable[[Json], None]) -> Path:
    """A log with one of its events changed."""
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    told = [line for line in lines if line["event"] == "context:compaction"]
    change(told[len(told) // 2]["data"])
    to.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return to


@pytest.mark.parametrize(
    ("field", "by"),
    [("strategy_level", -1), ("messages_removed", 1), ("messages_truncated", 2),
     ("user_messages_stubbed", -1), ("after_messages", 1), ("after_tokens", 3), ("after_tokens", -3)],
)  # fmt: skip
def test_a_false_record_among_true_ones_is_found(tmp_path: Path, field: str, by: int) -> None:
    path = changed(LOGS[1], tmp_path / "log.jsonl", lambda data: data.update({field: data[field] + by}))
    steps = stepped(path, "amplifier")
    wrong = [step for step in steps if step.stages["budget"].verdict == "differs"]
    assert [step.stages["budget"].facts["differing"] for step in wrong] == [[field]]


def test_a_message_that_the_log_lacks_makes_it_impossible_to_tell(tmp_path: Path) -> None:
    path = changed(LOGS[0], tmp_path / "log.jsonl", lambda data: data.update(before_messages=99))
    (unsure,) = [s for s in stepped(path, "amplifier") if s.stages["budget"].verdict == "cannot_tell"]
    assert "messages where the runtime compacted 99" in unsure.stages["budget"].facts["reason"]
