from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers import registry
from ctxctl.model.results import Step
from ctxctl.session import Inspector

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"


def replayed(path: Path) -> tuple[Inspector, list[Step]]:
    inspector = Inspector.open(path)
    return inspector, [result for result in inspector.replay() if isinstance(result, Step)]


def items(inspector: Inspector, ordinal: int) -> list[tuple[str, str | None, str | None]]:
    frame = inspector.frame(ordinal)
    return [(p.item, p.title, inspector.text(p.content) if p.content else None) for p in frame.placements]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("server.json", ["mcp:weather:instructions", "mcp:weather:forecast", "mcp:weather:history"]),
        ("registry.json", ["mcp:list_shelves", "mcp:lend"]),
        ("servers.json", ["mcp:weather:forecast", "mcp:library:lend"]),
    ],
)
def test_dumps_in_their_shapes(name: str, expected: list[str]) -> None:
    inspector, steps = replayed(FIXTURES / "mcp_tools" / name)
    assert inspector.format == "mcp-tools"
    assert [p.item for p in inspector.frame(0).placements] == expected
    assert len(steps) == 1
    assert steps[0].segments["tools"] > 0
    assert "injection_not_recorded" in steps[0].flags


def test_a_definition_is_what_clients_send_of_it() -> None:
    inspector, _ = replayed(FIXTURES / "mcp_tools" / "server.json")
    text = items(inspector, 0)[1][2]
    assert text is not None
    assert text.startswith('{"description":"Weather of the coming days at a place.","input_schema":{')
    assert "readOnlyHint" not in text


def test_a_directory_of_dumps_is_one_surface(tmp_path: Path) -> None:
    for server in ("alpha", "beta"):
        folder = tmp_path / server / "__snaps__"
        folder.mkdir(parents=True)
        tool = '{"name":"go","description":"Go.","inputSchema":{"type":"object"}}'
        (folder / "go.snap").write_text(tool)
    inspector, steps = replayed(tmp_path)
    assert [p.item for p in inspector.frame(0).placements] == ["mcp:alpha:go", "mcp:beta:go"]
    assert [p.source for p in inspector.frame(0).placements] == ["alpha", "beta"]
    assert len(steps) == 1


def test_each_use_of_a_server_is_a_step() -> None:
    inspector, steps = replayed(FIXTURES / "mcp_session" / "stdio.txt")
    main = [step for step in steps if step.thread == "main"]
    assert [step.turn_id for step in main] == ["offer", "call-1", "call-2", "call-3", "offer-2", "call-4"]
    assert inspector.problem_count == 0
    offered = [c.item for c in main[0].changes]
    assert offered == ["mcp:weather:instructions", "mcp:weather:forecast", "mcp:weather:history"]
    call = main[1].changes
    assert [(c.item, c.kind) for c in call] == [
        ("1:3", "tool_call"),
        ("1:3/result", "tool_result"),
        ("1:3/result/1", "image"),
    ]


def test_tools_that_are_offered_no_longer_leave() -> None:
    _, steps = replayed(FIXTURES / "mcp_session" / "stdio.txt")
    (last,) = [step for step in steps if step.turn_id == "offer-2"]
    told = {(c.item, c.status, c.cause) for c in last.changes if c.item.startswith("mcp:")}
    assert ("mcp:weather:history", "removed", "detached") in told
    assert ("mcp:weather:forecast", "updated", None) in told


def test_a_sampling_request_is_a_request() -> None:
    inspector, steps = replayed(FIXTURES / "mcp_session" / "stdio.txt")
    (sampling,) = [n for n, step in enumerate(steps) if step.thread.startswith("sampling")]
    assert steps[sampling].layer == "injected"
    assert steps[sampling].model == "gpt-4o"
    assert [text for _, _, text in items(inspector, sampling)] == ["Be brief.", "Sum up: rain until Friday."]


def test_wrapped_messages_are_read_too() -> None:
    inspector, steps = replayed(FIXTURES / "mcp_session" / "wrapped.jsonl")
    assert inspector.format == "mcp-session"
    assert [step.time for step in steps] == ["2026-03-02T09:00:01Z", "2026-03-02T09:00:03Z"]
    assert items(inspector, 1)[-1][2] == "Sun."


@pytest.mark.parametrize(
    "head",
    [
        b'[{"role":"user","content":"hi"}]',
        b'{"name":"x","tools":[]}',
        b'{"model":"m","messages":[],"tools":[{"name":"a","input_schema":{}}]}',
        b'{"jsonrpc":"3"}',
        b"STDERR: hello",
        b"{" * 60_000,
    ],
)
def test_what_it_is_not(head: bytes) -> None:
    for importer in registry.built_in():
        if importer.name.startswith("mcp-"):
            assert importer.detect(head) < 50


@pytest.mark.parametrize("name", ["exchanges.jsonl", "interceptor.json"])
def test_what_stands_between_client_and_server_over_http_writes(name: str) -> None:
    """Bodies as texts and as events of a stream, both ends in one record or one each; `method` is HTTP's."""
    inspector, steps = replayed(FIXTURES / "mcp_session" / name)
    assert inspector.format == "mcp-session"
    assert inspector.problem_count == 0
    assert [step.turn_id for step in steps] == ["offer", "call-1"]
    assert [text for _, _, text in items(inspector, 1)][-1] == "Bees dance."


def messages(wrap: Callable[[dict[str, Any]], Any], *, levels: int = 0) -> bytes:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    tool = {"name": "go", "description": "Goes.", "inputSchema": {"type": "object"}}
    told = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [tool]}}
    made = []
    for one in (asked, told):
        for _ in range(levels):
            one = {"data": one}
        made.append(json.dumps(wrap(one)))
    return "\n".join(made).encode()


@pytest.mark.parametrize(("levels", "steps"), [(1, 1), (3, 1), (30, 0)])
def test_records_inside_of_records_are_opened_so_far_and_no_further(
    tmp_path: Path, levels: int, steps: int
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(messages(lambda one: {"level": "info", "payload": one}, levels=levels))
    assert len(replayed(path)[1]) == steps


def test_a_log_as_one_document_is_a_log_and_no_dump_of_tools(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps([json.loads(line) for line in messages(dict).splitlines()], indent=1))
    assert replayed(path)[0].format == "mcp-session"


def test_a_request_to_a_model_that_talks_of_the_protocol_is_no_log() -> None:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": '{"jsonrpc":"2.0","method":"tools/list"}'}],
    }
    assert registry.of_head(json.dumps(body).encode()).name == "api"  # type: ignore[union-attr]
