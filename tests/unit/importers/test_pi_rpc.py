"""What pi prints of a run, plain and as a test runner keeps it."""

from __future__ import annotations

import json
from pathlib import Path

from ctxctl.importers.pi import FORMAT as PI
from ctxctl.importers.pi_rpc import FORMAT as PI_RPC
from tests.unit.importers.agent_help import FIXTURES, Json, imported, jsonl, windows, written

NAME = "pi-rpc"
STREAM = FIXTURES / "pi_rpc" / "stream.jsonl"
KEPT = FIXTURES / "pi_rpc" / "target-execution.json"


def raw_log() -> list[Json]:
    """The stream as the runner logs it: laid out over lines, a record for each of them."""
    rows = ["# Pi CLI stream log", "# target: pi-local"]
    for line in STREAM.read_text().splitlines():
        first, *rest = json.dumps(json.loads(line), indent=2).split("\n")
        rows += [f"[+00:01] [stdout] {first}", *rest]
    source = {"kind": "provider_log", "format": "text"}
    return [
        {"schema_version": "agentv.raw_provider_log_line.v1", "source": source, "content": row}
        for row in rows
    ]


def test_messages_count_once_though_they_are_told_of_many_times() -> None:
    found = windows(STREAM, NAME)
    assert [w.billed() for w in found] == [400, 460]
    assert found[1].kinds() == ["user_message", "reasoning", "tool_call", "tool_result"]
    assert found[1].texts() == ["Name a bird that swims.", None, 'bash {"command":"look birds"}', "penguin"]


def test_a_runners_record_gives_what_the_stream_gives(tmp_path: Path) -> None:
    wanted = [w.items for w in windows(STREAM, NAME)]
    assert [w.items for w in windows(KEPT, NAME)] == wanted
    assert [w.items for w in windows(written(tmp_path, *raw_log()), NAME)] == wanted


def test_a_log_of_event_names_says_that_there_is_nothing_to_replay() -> None:
    rows = [row for row in raw_log() if not row["content"].startswith((" ", "{", "}"))][:4]
    for row in rows:
        row["content"] = row["content"].replace("{", "message_start: user")
    found, problems = imported(NAME, jsonl(*rows))
    assert [p.slug for p in problems] == ["unknown-record"]
    assert not found


def test_a_stream_without_message_ends_is_read_from_its_end(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in STREAM.read_text().splitlines()]
    path = written(tmp_path, *[line for line in lines if not line["type"].startswith("message")])
    assert [w.billed() for w in windows(path, NAME)] == [400, 460]


def test_after_a_compaction_only_its_summary_is_known_to_stay(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in STREAM.read_text().splitlines()]
    result = {"summary": "A penguin swims.", "firstKeptEntryId": "e5", "tokensBefore": 464}
    again = [{"type": "compaction_end", "reason": "manual", "result": result}, *lines[1:8]]
    found = windows(written(tmp_path, *lines, *again), NAME)
    assert found[2].texts() == ["A penguin swims.", "Name a bird that swims."]


def test_streams_and_sessions_are_not_mixed_up() -> None:
    for path in (STREAM, KEPT):
        assert PI_RPC.detect(path.read_bytes()) >= 90
        assert PI.detect(path.read_bytes()) == 0
    assert PI_RPC.detect(jsonl(*raw_log())) >= 90
    for path in (FIXTURES / "pi").iterdir():
        assert PI_RPC.detect(path.read_bytes()) == 0
