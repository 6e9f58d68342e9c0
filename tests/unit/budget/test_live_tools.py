"""Parts of a plan that an MCP server lists; the server is one of ours."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ctxctl.cli.main import run
from ctxctl.errors import UnreadableError
from ctxctl.record.mcp import tool_list
from ctxctl.record.mcp.tool_list import tools_of

SERVER = """
import json, os, subprocess, sys, time
mode = sys.argv[1]
def say(message):
    sys.stdout.write(json.dumps(dict(jsonrpc="2.0", **message)) + "\\n")
    sys.stdout.flush()
def tool(n):
    return {"name": f"tool_{n}", "description": "Looks. " * (n + 1), "inputSchema": {"type": "object"}}
print("Need to install the following packages: [ok]", flush=True)
if mode == "ends":
    print("no key\\x1b[31m is set", file=sys.stderr)
    sys.exit(7)
if mode == "child":
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    open("child.pid", "w").write(str(child.pid))
for line in sys.stdin:
    told = json.loads(line)
    asked, key = told["method"], told.get("id")
    if asked == "initialize":
        assert told["params"]["clientInfo"]["name"] == "ctxctl"
        say({"id": 900, "method": "ping"})
        assert json.loads(sys.stdin.readline())["result"] == {}
        say({"id": 901, "method": "roots/list"})
        assert json.loads(sys.stdin.readline())["error"]["code"] == -32601
        say({"id": key, "result": {"protocolVersion": "2024-11-05", "serverInfo": {"name": "s"}}})
        say({"method": "notifications/message", "params": {}})
    elif asked == "notifications/initialized":
        pass
    elif mode == "refuses":
        say({"id": key, "error": {"code": -32000, "message": "not today\\x1b[2J"}})
    elif mode == "silent":
        time.sleep(600)
    elif mode == "floods":
        while True:
            sys.stdout.write("x" * 65536)
    elif mode == "none":
        say({"id": key, "result": {"tools": []}})
    elif mode == "strange":
        say({"id": key, "result": {"tools": {"a": 1}}})
    elif mode == "endless":
        say({"id": key, "result": {"tools": [], "nextCursor": "again"}})
    else:
        cursor = told["params"].get("cursor", "0")
        nth = int(cursor)
        page = {"tools": [tool(2 * nth), tool(2 * nth + 1), "no tool"]}
        say({"id": key, "result": page | ({"nextCursor": str(nth + 1)} if nth < 2 else {})})
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "server.py").write_text(SERVER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.setattr(tool_list, "_GRACE", 0.3)
    return tmp_path


def command(mode: str) -> list[str]:
    return [sys.executable, "server.py", mode]


def asked(here: Path, mode: str, **more: Any) -> list[dict[str, Any]]:
    return tools_of(command(mode), here, "1", **more)


def plan(here: Path, mode: str) -> Path:
    path = here / "plan.toml"
    path.write_text(
        f"""
[model]
window = 100000
encoding = "o200k_base"
[[part]]
name = "looking"
mcp = {json.dumps(command(mode))}
server = "look"
[limits]
servers = {{ "look" = 100000 }}
"""
    )
    return path


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(["budget", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def gone(pid: int) -> bool:
    """Whether a process has ended, or does soon."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_all_pages_are_asked_for(here: Path) -> None:
    assert [tool["name"] for tool in asked(here, "tools")] == [f"tool_{n}" for n in range(6)]


def test_nothing_is_run_unasked(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = plan(here, "tools")
    (here / "server.py").write_text("open('ran', 'w')")
    code, out, err = said(capsys, str(path))
    assert (code, out) == (2, "")
    assert "server.py tools" in err  # what would be run
    assert "--live" in err
    assert not (here / "ran").exists()


def test_tokens_of_each_tool_and_of_the_server(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = plan(here, "tools")
    code, out, _ = said(capsys, str(path), "--live", "--json")
    assert code == 0
    rows = [json.loads(line) for line in out.splitlines()]
    part = next(row for row in rows if row["type"] == "part")
    assert (part["kind"], part["segment"], part["server"], part["method"]) == (
        "mcp",
        "tools",
        "look",
        "calibrated",
    )
    sizes = [piece["tokens"] for piece in part["pieces"]]
    assert [piece["name"] for piece in part["pieces"]] == [f"tool_{n}" for n in range(6)]
    assert sizes == sorted(sizes)
    assert sum(sizes) == part["tokens"]["p50"] > 0
    # As a file of the same definitions is counted.
    (here / "tools.json").write_text(json.dumps(asked(here, "tools")))
    text = path.read_text().replace(f"mcp = {json.dumps(command('tools'))}", 'tools = "tools.json"')
    path.write_text(text)
    again = [json.loads(line) for line in said(capsys, str(path), "--json")[1].splitlines()]
    assert next(row for row in again if row["type"] == "part")["pieces"] == part["pieces"]


def test_the_gate_names_the_largest_tools(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = plan(here, "tools")
    path.write_text(path.read_text().replace('"look" = 100000', '"look" = 10'))
    code, out, _ = said(capsys, str(path), "--live", "--check")
    assert code == 1
    assert "tools of server 'look'" in out
    assert "largest tools: tool_5" in out


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("ends", "it ended with exit code 7"),
        ("refuses", "tools/list failed: not today"),
        ("strange", "holds no tools"),
        ("endless", "more than 200 pages"),
        ("none", "lists no tools"),
    ],
)
def test_a_server_that_tells_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], mode: str, told: str
) -> None:
    code, out, err = said(capsys, str(plan(here, mode)), "--live")
    assert (code, out) == (3, "")
    assert told in err
    assert "\x1b" not in err
    if mode == "ends":
        assert "it said: no key" in err


def test_a_server_that_says_nothing_or_too_much(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnreadableError, match="in time"):
        asked(here, "silent", patience=2.0)
    monkeypatch.setattr(tool_list, "MOST_BYTES", 1 << 20)
    with pytest.raises(UnreadableError, match="more than 1 MiB"):
        asked(here, "floods")


def test_a_command_that_cannot_be_run(here: Path) -> None:
    for name in ("no-such-server", "./server.py", "a\0b"):
        with pytest.raises(UnreadableError, match="cannot run") as failed:
            tools_of([name], here, "1")
        assert failed.value.slug == "no-tool-list"


def test_what_the_server_started_is_ended_too(here: Path) -> None:
    if not os.path.exists("/proc/self/stat"):
        pytest.skip("needs /proc")
    assert len(asked(here, "child")) == 6
    assert gone(int((here / "child.pid").read_text()))
