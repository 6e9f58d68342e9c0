"""The version of the client is told with a thread's first request, and again where it changes."""

from __future__ import annotations

from typing import Any

import pytest

from ctxctl.ingest.build import Maker, Window
from tests.unit.importers.agent_help import FIXTURES, Json, imported, jsonl, of_type


def told(format_name: str, data: bytes) -> list[str | None]:
    """By request, what its assembly says of the client."""
    events, _ = imported(format_name, data)
    made = of_type(events, "context.assembly.created")
    return [one["metadata"]["ctxctl"].get("client_version") for one in made]


@pytest.mark.parametrize(
    ("format_name", "file", "version"),
    [
        ("codex", "codex/rollout.jsonl", "0.140.0"),
        ("copilot-cli", "copilot_cli/events.jsonl", "1.0.64"),
    ],
)
def test_a_thread_s_first_request_names_the_version_and_no_other_does(
    format_name: str, file: str, version: str
) -> None:
    events, _ = imported(format_name, (FIXTURES / file).read_bytes())
    found: dict[str | None, list[str | None]] = {}
    for one in events:
        if one["event_type"] == "context.assembly.created":
            ours = one["data"]["metadata"]["ctxctl"]
            found.setdefault(one.get("thread_id"), []).append(ours.get("client_version"))
    assert any(len(told) > 1 for told in found.values())
    for each in found.values():
        assert each == [version] + [None] * (len(each) - 1)


def line(number: int, kind: str, version: str, content: Any, **message: Any) -> Json:
    above = f"u{number - 1}" if number > 1 else None
    own = {"role": kind, "content": content, **message}
    return {
        "type": kind, "uuid": f"u{number}", "parentUuid": above, "sessionId": "s", "version": version,
        "timestamp": "2026-07-03T08:36:00.000Z", "message": own,
    }  # fmt: skip


def answer(number: int, version: str) -> Json:
    text = [{"type": "text", "text": "Yes."}]
    return line(number, "assistant", version, text, id=f"m{number}", model="claude-opus-4-6")


def test_claude_code_that_was_updated_in_between_names_both_versions() -> None:
    lines = [
        line(1, "user", "2.1.20", "One?"), answer(2, "2.1.20"),
        line(3, "user", "2.1.20", "Two?"), answer(4, "2.1.20"),
        line(5, "user", "2.1.37", "Three?"), answer(6, "2.1.37"),
    ]  # fmt: skip
    assert told("claude-code", jsonl(*lines)) == ["2.1.20", None, "2.1.37"]


@pytest.mark.parametrize("odd", [None, True, 3.5, "", "x" * 41, ["2"]])
def test_what_is_no_version_is_none(odd: Any) -> None:
    maker = Maker("test", "t-")
    maker.by(odd)
    assert maker.client is None
    made = Window().assemble(maker, "asm", [])
    assert "client_version" not in made["metadata"]["ctxctl"]


def test_a_schema_s_number_is_a_version_as_it_is_to_the_account() -> None:
    maker = Maker("test", "t-")
    maker.by(3)
    assert maker.client == "3"
