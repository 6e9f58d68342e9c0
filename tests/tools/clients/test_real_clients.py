"""Real clients behind `ctxctl record`: every body, every frame and what was billed, in one trace of two runs.

They are installed by `make clients`; without `CTXCTL_CLIENTS` naming their folder each test is skipped.  The
stand-in and what holds a trace against it are tested here without any.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctxctl.record.clients import CLIENTS
from tools.clients import page
from tools.clients.held import Held
from tools.clients.install import installed
from tools.clients.running import Outcome, alone, recorded
from tools.clients.script import filled
from tools.clients.specs import FIRST, SPECS, Spec
from tools.clients.standin import StandIn

FOLDER = os.environ.get("CTXCTL_CLIENTS", "")
NEED = "set CTXCTL_CLIENTS to a folder of installed clients (`make clients` makes .clients)"
TOOL = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


@pytest.fixture
def server() -> Iterator[StandIn]:
    made = StandIn()
    yield made
    made.close()


def there(spec: Spec) -> Path:
    """The folder of the clients, if this one is in it."""
    if not FOLDER:
        pytest.skip(NEED)
    folder = Path(FOLDER).resolve()
    if installed(folder, spec) is None:
        pytest.skip(f"{spec.name} is not installed in {FOLDER}: it, its registry or npm is not here")
    return folder


@pytest.mark.clients
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.command)
def test_a_client_is_recorded_and_does_not_notice(spec: Spec, tmp_path: Path) -> None:
    folder = there(spec)
    # The same directory, as its name is in what some of them send.
    work = tmp_path / "work"
    before, after = alone(folder, spec, work), recorded(folder, spec, work, own=True)
    assert (after.codes, after.output) == (before.codes, before.output)
    assert after.requests == before.requests > 0
    assert after.strays == before.strays
    assert after.held is not None
    assert after.held.problems == []
    assert after.held.equal


@pytest.mark.clients
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "spec", [one for one in SPECS if one.name != "Copilot CLI"], ids=lambda spec: spec.command
)
def test_a_client_without_an_address_is_led_by_default(spec: Spec, tmp_path: Path) -> None:
    folder = there(spec)
    if spec.name == "Codex":
        pytest.importorskip(
            "websockets", reason="Codex asks over a WebSocket, which is read with ctxctl[serve]"
        )
    made = recorded(folder, spec, tmp_path / "work", own=False)
    assert (made.codes, made.strays) == ([0, 0], [])
    assert made.held is not None
    assert made.held.problems == []
    assert made.held.equal


def test_every_client_that_is_run_is_in_the_table() -> None:
    assert {spec.name for spec in SPECS} <= {client.name for client in CLIENTS}
    assert all(any(spec.package in c.packages for c in CLIENTS if c.name == spec.name) for spec in SPECS)


def ask(server: StandIn, path: str, body: dict[str, Any]) -> bytes:
    request = urllib.request.Request(
        server.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    read: bytes = urllib.request.urlopen(request).read()
    return read


def chat(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    tools = [{"type": "function", "function": {"name": "bash", "parameters": TOOL}}, {"type": "other"}]
    tools.append({"type": "function", "function": {"name": "read", "parameters": {}}})
    return {"model": "m", "messages": [{"role": "user", "content": FIRST}, *messages], "tools": tools, **more}


def test_the_script_runs_two_tools_and_ends(server: StandIn) -> None:
    messages: list[dict[str, Any]] = []
    said = []
    for _ in range(3):
        message = json.loads(ask(server, "/v1/chat/completions", chat(*messages)))["choices"][0]["message"]
        said.append(message)
        messages.append(message)
        messages += [
            {"role": "tool", "tool_call_id": c["id"], "content": "x"} for c in message.get("tool_calls", ())
        ]
    assert [json.loads(one["tool_calls"][0]["function"]["arguments"]) for one in said[:2]] == [
        {"command": "ls"},
        {"command": "cat notes.txt"},
    ]
    assert "tool_calls" not in said[2]
    again = ask(server, "/v1/chat/completions", chat(*messages, {"role": "user", "content": "[task B] More"}))
    assert json.loads(again)["choices"][0]["message"]["tool_calls"]


def test_usage_is_told_as_it_is_kept(server: StandIn) -> None:
    ways: list[dict[str, Any]] = [
        {},
        {"stream": True},
        {"stream": True, "stream_options": {"include_usage": True}},
    ]
    for number, more in enumerate(ways):
        longer = {"role": "assistant", "content": "More. " * 9 * number}
        ask(server, "/v1/chat/completions", chat(longer, **more))
    assert [call.told for call in server.calls] == [True, False, True]
    first, second, third = (call.usage for call in server.calls)
    assert first.cached == 0
    assert second.cached == first.total < second.total
    assert third.cached == second.total < third.total


@pytest.mark.parametrize(
    "path", ["/messages", "/chat/completions", "/v1/v1/messages", "/models/m:generateContent"]
)
def test_no_other_spelling_is_answered(path: str, server: StandIn) -> None:
    with pytest.raises(urllib.error.HTTPError) as found:
        ask(server, path, {"model": "m", "messages": []})
    assert found.value.code == 404
    assert server.strays == [f"POST {path}"]


def test_arguments_are_what_a_schema_takes() -> None:
    schema = {
        "properties": {
            "command": {"type": "array"}, "why": {"type": "string"}, "level": {"enum": ["low", "high"]},
            "wait": {"type": ["integer", "null"]}, "extra": {"type": "string"},
        },
        "required": ["command", "why", "level", "wait"],
    }  # fmt: skip
    assert filled(schema, "ls") == {
        "command": ["bash", "-lc", "ls"],
        "why": "look around",
        "level": "low",
        "wait": 10,
    }
    assert filled({"properties": {"cmd": {"type": "string"}}}, "ls") == {"cmd": "ls"}


def test_the_table_says_what_was_not_tried(tmp_path: Path) -> None:
    good = Outcome([0, 0], ["a", "b"], held=Held(6, 6, 6, 6, 6, []))
    worse = Outcome([0, 1], ["a", "b"], held=Held(6, 5, 4, 3, 6, []))
    rows = {"Codex": page.Row("1.2", good, good, good), "pi": page.Row("2.0", good, worse, worse)}
    sheet = tmp_path / "recording.md"
    sheet.write_text(f"before\n{page.BEGIN}\nlast year\n{page.END}\nafter\n", encoding="utf-8")
    page.write(rows, {"Crush": "does not install here"}, sheet)
    text = sheet.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "last year" not in text
    lines = {line.split(" | ")[0].lstrip("| "): line for line in text.splitlines() if line.startswith("| ")}
    assert "| 12, 12 | 12 of 12 | 12 of 12 | as without |" in lines["Codex"]
    assert "| 12, 10 | 8 of 12 | 6 of 12 | differ |" in lines["pi"]
    assert "does not install here" in lines["Crush"]
    assert "not tried" in lines["Goose"]
    assert lines.keys() >= {client.name for client in CLIENTS}
