"""What fuzzing has found, each as the least capture that shows it, written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers import registry
from ctxctl.importers.pi.system import strict_schema
from ctxctl.ingest.build import timestamp
from ctxctl.ingest.lines import Line, salvage
from ctxctl.ingest.parts import moment
from ctxctl.model.problem import Problem
from ctxctl.providers.spans import inferences
from ctxctl.providers.usage import millisecond_clock
from ctxctl.trace.contents import Contents
from ctxctl.trace.decode import Decoder
from ctxctl.trace.source import Source
from tests.formats.damage import Imported, imported
from tools.fuzz.laws import faults
from tools.fuzz.parsers import PARSERS
from tools.fuzz.seeds import FIXTURES


def _lines(*rows: Any) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def _event(number: int, kind: str, step: str, **data: Any) -> dict[str, Any]:
    return {
        "schema_version": "0.1.1", "event_id": f"e{number}", "event_type": kind, "source": "s", "time": "2026-01-01T00:00:00Z",
        "session_id": "a", "turn_id": "t", "step_id": step, "data": {"schema_version": "0.1.1", **data},
    }  # fmt: skip


def _item(number: int, step: str) -> dict[str, Any]:
    return _event(
        number, "context.item.added", step,
        item_id=f"i{number}", context_kind="user_message", content_mode="inline", content=f"text {number}", visibility=["model"],
    )  # fmt: skip


def _sent(number: int, step: str) -> list[dict[str, Any]]:
    blocks = [{"block_id": "b", "item_refs": ["i1"]}]
    both = {
        "assembly_id": f"asm-{step}",
        "target": "model",
        "visibility": ["model"],
        "created_at": "2026-01-01T00:00:00Z",
    }
    return [
        _event(number, "context.assembly.created", step, ordered_blocks=blocks, **both),
        _event(
            number + 1,
            "context.injection.applied",
            step,
            injection_id=f"inj-{step}",
            injection_point="system",
            **both,
        ),
    ]


LATE = [_item(1, "one"), *_sent(2, "one"), _item(4, "two"), *_sent(5, "two")]

CAPTURES: dict[str, tuple[str, bytes]] = {
    "a type that is a list": ("codex", _lines({"type": "session_meta", "payload": {"id": "a"}}, {"type": ["message"], "role": "user"})),
    "a type within an envelope that is an object": ("codex-exec", _lines({"type": "item.completed", "data": {"type": {}}})),
    "a method that is an object": ("mcp-session", _lines({"method": {}, "id": 1}, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})),
    "a role that is a list": ("amplifier", _lines({"role": "user", "content": "a", "timestamp": "2026-01-01T00:00:00Z"}, {"role": []})),
    "an agent that is called as the thread without a name is": (
        "swe-agent",
        json.dumps(
            {
                "trajectory": [],
                "history": [
                    {"role": "user", "content": "a", "agent": "primary"},
                    {"role": "assistant", "content": "b", "agent": "primary"},
                    {"role": "assistant", "content": "c"},
                ],
            }
        ).encode(),
    ),
    "a line of a turn that is over": (
        "sanqian",
        _lines(
            {"kind": "createAgent", "turn": 1, "agent_id": "a", "attached_contexts": ["notes:n"]},
            {"kind": "message", "turn": 2, "role": "user", "content": "a"},
            {"kind": "message", "turn": 1, "role": "user", "content": "b"},
        ),
    ),
    "a session that is named when items were told": (
        "sanqian",
        _lines(
            {"kind": "createAgent", "turn": 1, "agent_id": "a", "attached_contexts": ["notes:n"]},
            {"kind": "getCurrent", "turn": 1, "provider_id": "notes:n", "data": {"title": "a", "content": "b", "version": 1}},
            {"kind": "detach", "turn": 2, "session_id": "s", "contexts": ["notes:n"]},
            {"kind": "message", "turn": 2, "role": "user", "content": "c"},
        ),
    ),
    "a server that gets its name late": (
        "mcp-session",
        _lines(
            {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
            {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "search", "inputSchema": {"type": "object"}}]}},
            {"jsonrpc": "2.0", "id": 0, "result": {"capabilities": {}, "protocolVersion": "1", "serverInfo": {"name": "notes"}}},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
            {"jsonrpc": "2.0", "id": 2, "result": {"tools": [{"name": "search", "inputSchema": {"type": "object"}}]}},
        ),
    ),
    "another server, behind the first": (
        "mcp-session",
        _lines(
            {"jsonrpc": "2.0", "id": 0, "result": {"capabilities": {}, "protocolVersion": "1", "serverInfo": {"name": "notes"}}},
            {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "search", "inputSchema": {"type": "object"}}]}},
            {"jsonrpc": "2.0", "id": 2, "result": {"capabilities": {}, "protocolVersion": "1", "serverInfo": {"name": "maps"}}},
            {"jsonrpc": "2.0", "id": 3, "result": {"tools": [{"name": "way", "inputSchema": {"type": "object"}}]}},
        ),
    ),
    "a number that no machine has, in a stream's repaired line": (
        "api",
        b'{"type":"response.created","sequence_number":0,"response":{"id":"r","object":"response","model":"m","output":[]}}\n'
        b'{"type":"response.completed","sequence_number":1,"n":1180591620717411303424,"m":NaN,"response":{"id":"r",'
        b'"object":"response","model":"m","usage":{"input_tokens":3,"output_tokens":1},"output":[{"type":"message","role":"assistant",'
        b'"content":[{"type":"output_text","text":"a"}]}]}}\n',
    ),
    "a block whose type is an object": (
        "chat-messages",
        json.dumps([{"role": "user", "content": [{"type": {"a": 1}, "text": "a"}]}, {"role": "assistant", "content": "b"}]).encode(),
    ),
    "a foreign line that names a session": (
        "sanqian",
        _lines(
            {"kind": "attach", "turn": 1, "contexts": ["notes:n"]},
            {"kind": "getCurrent", "turn": 1, "provider_id": "notes:n", "data": {"title": "a", "content": "b", "version": 1}},
            {"type": "user", "sessionId": "s", "uuid": "u"},
            {"kind": "detach", "turn": 2, "contexts": ["notes:n"]},
            {"kind": "message", "turn": 2, "role": "user", "content": "c"},
        ),
    ),
    "a day that no calendar has": (
        "goose",
        _lines(
            {"id": "a", "working_dir": "/a"},
            {"role": "user", "created": 1750000000, "content": [{"type": "text", "text": "a"}]},
            {"role": "assistant", "created": "2026-02-30T10:00:00Z", "content": [{"type": "text", "text": "b"}]},
            {"role": "user", "created": 1750000007, "content": [{"type": "text", "text": "c"}]},
            {"role": "assistant", "created": 1750000009, "content": [{"type": "text", "text": "d"}]},
        ),
    ),
    "an event that comes twice": ("agent-context", json.dumps([LATE[0], LATE[0], *LATE[1:3]]).encode()),
    "an item of a step that is over": ("agent-context", json.dumps([*LATE, _item(7, "one")]).encode()),
    "an item of a step that was sent": ("agent-context", json.dumps([*LATE[:3], _item(7, "one")]).encode()),
    "a request of a step that is over": ("agent-context", json.dumps([*LATE, {**LATE[2], "event_id": "e8"}]).encode()),
}  # fmt: skip


@pytest.mark.parametrize("what", CAPTURES)
def test_imports_of_what_was_found_are_valid(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXCTL_CACHE", "off")
    read_as, data = CAPTURES[what]
    path = tmp_path / "capture"
    path.write_bytes(data)
    assert faults(path, tmp_path / "trace.jsonl", read_as) == []


def _of(what: str) -> Imported:
    read_as, data = CAPTURES[what]
    return imported(registry.by_name(read_as), data)


def test_what_is_wrong_is_told_by_the_import() -> None:
    told = {what: [(problem.slug, problem.line) for problem in _of(what).problems] for what in CAPTURES}
    assert told["a line of a turn that is over"] == [("late-event", 3)]
    assert told["an event that comes twice"] == [("duplicate-event", 1)]
    assert told["an item of a step that is over"] == [("late-event", 1)]
    assert told["an item of a step that was sent"] == [("late-event", 1)]
    assert told["a request of a step that is over"] == [("late-event", 1)]


def test_a_server_is_a_session_by_the_name_that_it_begins_with() -> None:
    late, other = _of("a server that gets its name late"), _of("another server, behind the first")
    assert {event.get("session_id") for event in late.events} == {None}
    assert [event.get("session_id") for event in other.events if ".item." in event["event_type"]] == [
        "notes",
        "maps",
    ]


PARSED = {
    "codec": b'{"event_type":"context.item.added","item_id":"a","context_kind":"note","token_estimate":18446744073709551616}\n',
}
"""By parser, what it could not take."""


@pytest.mark.parametrize("name", PARSED)
def test_parsers_take_what_was_found(name: str) -> None:
    PARSERS[name].run(PARSED[name])


def test_a_foreign_line_names_no_session() -> None:
    found = _of("a foreign line that names a session")
    assert [(problem.slug, problem.line) for problem in found.problems] == [("unknown-record", 3)]
    assert {event.get("session_id") for event in found.events} == {None}
    assert [
        event["data"]["item_id"] for event in found.events if event["event_type"] == "context.item.removed"
    ] == ["notes:n"]


def test_what_is_late_is_kept_without_the_step_that_is_over() -> None:
    (late,) = (event for event in _of("an item of a step that is over").events if event["event_id"] == "e7")
    assert late["data"]["content"] == "text 7"
    assert "step_id" not in late


def test_a_message_of_a_day_that_no_calendar_has_keeps_its_request() -> None:
    """Its events were refused for their time, and the windows that are told by what changed were lost."""
    found = _of("a day that no calendar has")
    assert not found.problems
    assert {"a", "b", "c", "d"} == set(found.texts())


@pytest.mark.parametrize(
    ("told", "is_read_as"),
    [
        ("2026-02-30T10:00:00Z", None),
        ("2026-02-29T10:00:00Z", None),
        ("2024-02-29T10:00:00Z", "2024-02-29T10:00:00Z"),
        ("2026-01-00T00:00:00Z", None),
        ("0000-01-01T00:00:00Z", None),
        ("2026-01-01 10:00:00.5+0100", "2026-01-01T10:00:00.5+01:00"),
        ("2026-01-01 10:00:00", "2026-01-01T10:00:00Z"),
        ("\u0662\u0660\u0662\u0666-01-01T00:00:00Z", None),
    ],
)
def test_times_are_days_of_the_calendar(told: str, is_read_as: str | None) -> None:
    assert timestamp(told) == is_read_as


@pytest.mark.parametrize("value", [10**400, -(10**400), float("nan"), float("inf"), 0, -1.5, 2**60])
def test_numbers_that_are_no_moment_are_none(value: float) -> None:
    assert moment(value) is None


TORN = b'{"a": "\xff\xff\xff\xff\xff\xff\xff\xff", "b": NaN} {"torn'


def test_faults_lie_within_their_line() -> None:
    """Each byte that is no UTF-8 is shown as a character of three: what came behind it was put behind the line."""
    problems: list[Problem] = []
    Decoder(Contents(Source.from_bytes("one", TORN)), problems.append).decode_all(TORN, 1, 0, last=True)
    salvage(Line(1, 0, TORN), problems.append)
    assert {"bad-utf8", "bad-number", "bad-json"} <= {problem.slug for problem in problems}
    assert all(0 <= problem.byte < len(TORN) for problem in problems)


def test_keys_of_a_stranger_are_told_on_one_short_line() -> None:
    line = json.dumps({"a\nb": 1, "c" * 5000: 2, "plain": 3}).encode()
    problems: list[Problem] = []
    Decoder(Contents(Source.from_bytes("one", line)), problems.append).decode_all(line, 1, 0)
    (problem,) = problems
    assert problem.slug == "not-an-event"
    assert "\n" not in problem.message
    assert len(problem.message) < 200
    assert "plain" in problem.message


@pytest.mark.parametrize("value", [[10**400, 1], [1, 10**400], 10**400, [float("inf"), 1], -(10**400)])
def test_times_of_spans_that_no_machine_has_are_none(value: object) -> None:
    assert inferences.moment(value) is None


def test_times_of_spans_are_moments_in_whatever_unit() -> None:
    told = [
        inferences.moment(value) for value in ([1767225600, 5 * 10**8], 1767225600_000, "1767225600000000000")
    ]
    assert [str(one)[:19] for one in told] == ["2026-01-01T00:00:00"] * 3


@pytest.mark.parametrize("name", [{}, [], None, 1])
def test_a_schema_that_requires_what_is_no_name_stays(name: object) -> None:
    assert strict_schema({"type": "object", "properties": {"a": {}}, "required": [name]}) is None
    assert strict_schema({"type": "object", "properties": {"a": {}}, "required": ["a"]}) is not None


def test_times_of_hundreds_of_digits(tmp_path: Path) -> None:
    source = FIXTURES / "roo" / "condensed" / "api_conversation_history.json"
    messages = json.loads(source.read_bytes())
    for message in messages:
        message["ts"] = 10**400
    capture = tmp_path / source.name
    capture.write_text(json.dumps(messages))
    assert not faults(capture, tmp_path / "trace.jsonl", "roo")
    assert (millisecond_clock(10**400), millisecond_clock(float("nan"))) == (None, None)
    assert millisecond_clock(1_772_640_136_200) == "2026-03-04T16:02:16.200000+00:00"
