"""`ctxctl record --mcp`: a server and a client that do not notice, and what is recorded."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SERVER = r"""
import json, os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)  # it ends by the signal, whatever it is doing
out = open(1, "w", closefd=False)  # sys.stdout drops what a pipe did not take where PYTHONUNBUFFERED is set
print("a banner that is no JSON", file=out, flush=True)
sys.stderr.write("a note of the server\n"); sys.stderr.flush()
def say(value):
    out.write(json.dumps(value) + "\n"); out.flush()
changed = False
for line in sys.stdin:
    try: message = json.loads(line)
    except ValueError:
        say({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no JSON"}}); continue
    method, params = message.get("method"), message.get("params") or {}
    def answer(result): say({"jsonrpc": "2.0", "id": message.get("id"), "result": result})
    def tool(name): return {"name": name, "description": f"Does {name}", "inputSchema": {"type": "object"}}
    if method == "initialize":
        answer({"protocolVersion": "2025-06-18", "capabilities": {}, "instructions": "Be kind to the demo.",
                "serverInfo": {"name": "demo", "version": "1"}})
    elif method == "tools/list":
        if params.get("cursor"): answer({"tools": [tool("big")] if not changed else []})
        else: answer({"tools": [tool("echo")], "nextCursor": "two"})
    elif method == "tools/call":
        name, arguments = params["name"], params.get("arguments", {})
        if name == "big":
            say({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1}})
            answer({"content": [{"type": "text", "text": "y" * arguments["size"]}]})
        elif name == "fail":
            say({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -3, "message": "broken"}})
        elif name == "bad": answer({"content": [{"type": "text", "text": "went wrong"}], "isError": True})
        elif name == "exit": os._exit(7)
        elif name == "die": os.kill(os.getpid(), signal.SIGTERM)
        elif name == "deaf": os.close(0); answer({"content": []}); signal.pause()
        elif name == "mute": os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        elif name == "ask":
            asked = {"role": "user", "content": {"type": "text", "text": "One word?"}}
            say({"jsonrpc": "2.0", "id": message["id"], "method": "sampling/createMessage",
                 "params": {"messages": [asked]}})
        elif name == "change":
            changed = True
            say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}); answer({"content": []})
        else: answer({"content": [{"type": "text", "text": json.dumps(arguments)}]})
    elif method == "resources/list": answer({"resources": [{"uri": "file:///notes", "name": "notes"}]})
    elif method == "resources/read": answer({"contents": [{"uri": "file:///notes", "text": "Buy milk."}]})
    elif method == "prompts/list": answer({"prompts": [{"name": "greet"}]})
    elif method == "prompts/get":
        answer({"messages": [{"role": "user", "content": {"type": "text", "text": "Greet me."}}]})
"""


@pytest.fixture
def server(tmp_path: Path) -> Path:
    path = tmp_path / "server.py"
    path.write_text(SERVER)
    return path


def call(number: int, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


def tool(number: int, name: str, **arguments: Any) -> bytes:
    return call(number, "tools/call", name=name, arguments=arguments)


def command(server: Path, trace: Path, *more: str) -> list[str]:
    own = [sys.executable, "-m", "ctxctl", "record", "-o", str(trace), "--mcp", *more]
    return [*own, "--", sys.executable, str(server)]


def run(arguments: list[str], data: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(arguments, input=data, capture_output=True, cwd=ROOT, timeout=60)


def events(trace: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in trace.read_bytes().splitlines()]


def items(trace: Path) -> dict[str, dict[str, Any]]:
    found = [
        e["data"] for e in events(trace) if e["event_type"] in ("context.item.added", "context.item.updated")
    ]
    return {record["item_id"]: record for record in found}


SESSION = b"".join((
    call(0, "initialize"), call(1, "tools/list"), call(2, "tools/list", cursor="two"),
    b"this is no JSON\n", b"\n", b'{"jsonrpc": "2.0", "method": "half', b'\n', b"\xff\xfe\x00 bytes\n",
    tool(3, "echo", city="Ulm"), tool(4, "big", size=3_000_000), tool(5, "fail"), tool(6, "bad"),
    call(7, "resources/list"), call(8, "resources/read", uri="file:///notes"),
    call(9, "prompts/list"), call(10, "prompts/get", name="greet"),
    tool(11, "change"), call(12, "tools/list"), call(13, "tools/list", cursor="two"), b'{"no": "line end"}',
))  # fmt: skip


def test_every_byte_passes_and_everything_is_recorded(server: Path, tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    plain = run([sys.executable, str(server)], SESSION)
    tapped = run(command(server, trace), SESSION)
    assert hashlib.sha256(tapped.stdout).digest() == hashlib.sha256(plain.stdout).digest()
    assert tapped.returncode == plain.returncode == 0
    assert len(plain.stdout) > 3_000_000
    told = tapped.stderr.decode()
    assert plain.stderr.decode() in told
    assert "to follow it: ctxctl watch" in told
    found = items(trace)
    assert found["mcp:demo:echo"]["context_kind"] == "tool_definition"
    assert found["mcp:demo:instructions"]["content"] == "Be kind to the demo."
    assert found["mcp:demo:file:///notes"]["content"] == "Buy milk."
    assert "Greet me." in [record.get("content") for record in found.values()]
    assert '{"city": "Ulm"}' in [record.get("content") for record in found.values()]
    assert max(len(record.get("content") or "") for record in found.values()) == 3_000_000
    wrong = [r["metadata"]["native"] for r in found.values() if (r.get("metadata") or {}).get("native")]
    assert [one for one in wrong if one.get("is_error")] != []
    kinds = [event["event_type"] for event in events(trace)]
    assert kinds.count("ctxctl.mcp.error") == 5  # three lines that the server could not read, and `fail`
    changed = [e["data"] for e in events(trace) if e["event_type"] == "ctxctl.mcp.list_changed"]
    assert [record["list"] for record in changed] == ["tools"]
    gone = [e["data"]["item_id"] for e in events(trace) if e["event_type"] == "context.item.removed"]
    assert gone == ["mcp:demo:big"]
    surface = [e["data"] for e in events(trace) if e["event_type"] == "context.surface.created"]
    assert "mcp:demo:big" in surface[1]["available_item_refs"]
    assert "mcp:demo:big" not in surface[-1]["available_item_refs"]
    assert "tool definitions: " in told
    assert "(o200k_base)" in told
    assert "5 errors, 1 note of progress" in told
    replayed = subprocess.run(
        [sys.executable, "-m", "ctxctl", "replay", "--json", str(trace)],
        capture_output=True,
        cwd=ROOT,
        timeout=60,
    )
    assert replayed.returncode == 0
    assert [row for row in map(json.loads, replayed.stdout.splitlines()) if row["type"] == "problem"] == []


@pytest.mark.parametrize(("name", "code"), [("exit", 7), ("die", -signal.SIGTERM)])
def test_the_end_is_the_servers_own(server: Path, tmp_path: Path, name: str, code: int) -> None:
    trace = tmp_path / "t.jsonl"
    data = call(0, "initialize") + tool(1, name) + tool(2, "echo")
    assert run([sys.executable, str(server)], data).returncode == code
    done = run(command(server, trace), data)
    assert done.returncode == code
    assert "never answered" in done.stderr.decode()
    assert any(event["event_type"] == "ctxctl.session.ended" for event in events(trace))


class Talk:
    """A client that keeps its pipes open."""

    def __init__(self, arguments: list[str]) -> None:
        self.process = subprocess.Popen(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT,
            # Tests may run where the signal is ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
        )  # fmt: skip
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.to, self.back = self.process.stdin, self.process.stdout

    def ask(self, data: bytes) -> dict[str, Any]:
        for at in range(0, len(data), 7):  # in pieces, none of which is a line
            self.to.write(data[at : at + 7])
            self.to.flush()
        while not (line := self.back.readline()).startswith(b"{"):
            assert line
        made: dict[str, Any] = json.loads(line)
        return made

    def flood(self) -> None:
        for _ in range(1000):
            self.to.write(b"x" * 65536)
            self.to.flush()


def test_both_sides_number_their_requests_from_the_same_start(server: Path, tmp_path: Path) -> None:
    talk = Talk(command(server, tmp_path / "t.jsonl", "--quiet"))
    talk.ask(call(0, "initialize"))
    assert talk.ask(tool(1, "ask"))["method"] == "sampling/createMessage"
    answer = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Yes."}}
    said = json.dumps({"jsonrpc": "2.0", "id": 1, "result": answer}).encode() + b"\n"
    talk.ask(said + tool(2, "echo", a=1))
    talk.to.close()
    assert talk.process.wait(30) == 0
    contents = [record.get("content") for record in items(tmp_path / "t.jsonl").values()]
    assert "One word?" in contents
    assert "Yes." in contents
    assert '{"a": 1}' in contents


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_for_the_tap_is_one_for_the_server(server: Path, tmp_path: Path, number: int) -> None:
    talk = Talk(command(server, tmp_path / "t.jsonl"))
    assert talk.ask(call(0, "initialize"))["id"] == 0
    talk.process.send_signal(number)
    assert talk.process.wait(30) == -number
    assert items(tmp_path / "t.jsonl")["mcp:demo:instructions"]


def test_a_server_that_no_longer_reads_and_one_that_no_longer_writes(server: Path, tmp_path: Path) -> None:
    talk = Talk(command(server, tmp_path / "t.jsonl"))
    talk.ask(call(0, "initialize"))
    talk.ask(tool(1, "deaf"))
    with pytest.raises(BrokenPipeError):
        talk.flood()
    talk.process.terminate()
    assert talk.process.wait(30) == -signal.SIGTERM
    talk = Talk(command(server, tmp_path / "t.jsonl"))
    talk.ask(call(0, "initialize"))
    talk.to.write(tool(1, "mute"))
    talk.to.flush()
    assert talk.back.read() == b""  # the end, though the server goes on
    assert talk.process.poll() is None
    talk.to.close()
    assert talk.process.wait(30) == 0


def test_a_client_that_dies_takes_the_server_with_it_as_without_a_tap(server: Path, tmp_path: Path) -> None:
    talk = Talk(command(server, tmp_path / "t.jsonl"))
    talk.ask(call(0, "initialize"))
    talk.back.close()
    talk.to.write(tool(1, "big", size=1_000_000))
    talk.to.flush()
    assert talk.process.wait(30) != 0  # the server's broken pipe
    talk = Talk(command(server, tmp_path / "t.jsonl"))
    talk.ask(call(0, "initialize"))
    talk.to.close()
    assert talk.process.wait(30) == 0


# A disk on which calls that concern a file wait from when one file is there until another is, and say so.
STALLED = """
import os, pathlib, runpy, stat, sys, time
name, folder = sys.argv.pop(1), pathlib.Path(sys.argv.pop(1))
real = getattr(os, name)
def is_slow(): return (folder / "stalls").exists() and not (folder / "goes on").exists()
def stalled(fd, *rest):
    while stat.S_ISREG(os.fstat(fd).st_mode) and is_slow():
        (folder / "waits").touch()
        time.sleep(0.01)
    return real(fd, *rest)
setattr(os, name, stalled)
runpy.run_module("ctxctl", run_name="__main__")
"""


@pytest.mark.parametrize("name", ["write", "fsync"])
def test_answers_come_at_once_and_a_slow_trace_delays_nothing(
    server: Path, tmp_path: Path, name: str
) -> None:
    trace, slow = tmp_path / "t.jsonl", [sys.executable, "-c", STALLED, name, str(tmp_path)]
    talk = Talk([*slow, *command(server, trace, "--fsync")[3:]])
    assert talk.ask(call(0, "initialize"))["id"] == 0
    (tmp_path / "stalls").touch()
    assert talk.ask(tool(1, "echo", n=0))["id"] == 1
    limit = time.monotonic() + 30
    while not (tmp_path / "waits").exists():
        assert time.monotonic() < limit
        time.sleep(0.01)
    for number in range(2, 40):  # while nothing at all gets to the disk
        assert talk.ask(tool(number, "echo", n=number))["id"] == number
    assert talk.ask(tool(40, "big", size=1_000_000))["method"] == "notifications/progress"
    assert not (tmp_path / "goes on").exists()
    before = trace.read_bytes() if trace.exists() else b""
    assert b'{\\"n\\": 30}' not in before
    (tmp_path / "goes on").touch()
    talk.to.close()
    talk.back.read()
    assert talk.process.wait(30) == 0
    contents = [record.get("content") for record in items(trace).values()]
    assert {json.dumps({"n": number}) for number in range(2, 40)} <= {*contents}


def test_a_trace_that_cannot_be_written_changes_nothing(server: Path, tmp_path: Path) -> None:
    """The session is the same, and the loss is counted."""
    full = Path("/dev/full")
    done = run(command(server, tmp_path / "t.jsonl", "--fsync"), SESSION)
    assert done.returncode == 0
    if full.exists():
        refused = run(command(server, full), SESSION)
        assert refused.returncode == 2
        assert b"is not a regular file" in refused.stderr
    nowhere = run(command(server, tmp_path / "server.py" / "t.jsonl"), SESSION)
    assert (nowhere.returncode, nowhere.stdout) == (0, done.stdout)
    assert b"cannot be written" in nowhere.stderr
    assert b"lost" in nowhere.stderr


def test_secrets_in_results_are_replaced(server: Path, tmp_path: Path) -> None:
    secret = "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"
    done = run(command(server, tmp_path / "t.jsonl"), call(0, "initialize") + tool(1, "echo", key=secret))
    assert secret.encode() in done.stdout
    assert secret not in (tmp_path / "t.jsonl").read_text()
    assert b"secrets replaced (github-token" in done.stderr


def test_what_cannot_be_run_is_told_as_shells_do(tmp_path: Path) -> None:
    own = [sys.executable, "-m", "ctxctl", "record", "-o", str(tmp_path / "t.jsonl"), "--mcp", "--"]
    missing = run([*own, "no-such-server-at-all"], b"")
    assert (missing.returncode, b"cannot run no-such-server-at-all" in missing.stderr) == (127, True)
    assert run([*own, str(tmp_path)], b"").returncode == 126


def test_a_grandchild_that_keeps_the_pipe_does_not_keep_the_session(tmp_path: Path) -> None:
    code = (
        "import os, sys, time\nif os.fork() == 0:\n    time.sleep(30)\nprint('done', flush=True)\nos._exit(4)"
    )
    arguments = [
        sys.executable,
        "-m",
        "ctxctl",
        "record",
        "-q",
        "-o",
        str(tmp_path / "t.jsonl"),
        "--mcp",
        "--",
    ]
    process = subprocess.Popen(
        [*arguments, sys.executable, "-c", code], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=ROOT
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"done\n"
    assert process.wait(20) == 4
