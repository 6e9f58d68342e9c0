"""`ctxctl record -- COMMAND`: the program runs as it would alone, and its calls are in the trace."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
CTXCTL = [sys.executable, "-m", "ctxctl"]
LIMIT = 60.0


class Handler(BaseHTTPRequestHandler):
    """A model's API that answers in a stream, in OpenAI's and in Anthropic's way."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        server: Any = self.server
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        server.bodies.append(raw)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        events = anthropic() if self.path.startswith("/v1/messages") else openai()
        for number, data in enumerate(events):
            if number == 1 and b"wait for it" in raw:
                server.gate.wait(LIMIT)
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")


def openai() -> list[bytes]:
    chunks = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Blue "}}]},
        {"choices": [{"index": 0, "delta": {"content": "light scatters."}}]},
        {
            "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 17, "completion_tokens": 5},
        },
    ]
    return [
        *(
            b"data: "
            + json.dumps({"model": "gpt-5", "object": "chat.completion.chunk", **c}).encode()
            + b"\n\n"
            for c in chunks
        ),
        b"data: [DONE]\n\n",
    ]


def anthropic() -> list[bytes]:
    message = {
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4",
        "content": [],
        "usage": {"input_tokens": 21, "output_tokens": 1},
    }
    events = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "Red light does not."},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 6}},
        {"type": "message_stop"},
    ]
    return [f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events]


@pytest.fixture
def api() -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.bodies, server.gate = [], threading.Event()
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.gate.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def environment(api: Any, tmp_path: Path) -> dict[str, str]:
    kept = {
        n: v
        for n, v in os.environ.items()
        if not re.search(r"_(BASE_URL|API_BASE|ENDPOINT)$|_proxy$", n, re.I)
    }
    url = f"http://127.0.0.1:{api.server_port}"
    return kept | {
        "PYTHONPATH": str(ROOT),
        "CTXCTL_STATE_DIR": str(tmp_path / "state"),
        "CTXCTL_CACHE_DIR": str(tmp_path / "cache"),
        "OPENAI_BASE_URL": f"{url}/v1",
        "ANTHROPIC_BASE_URL": url,
    }


CHILD = """
import json, os, sys, urllib.request
def ask(base, path, **body):
    body, url = {"stream": True, **body}, os.environ[base] + path
    fields = {"Content-Type": "application/json", "Authorization": "Bearer x"}
    request = urllib.request.Request(url, json.dumps(body).encode(), fields)
    print(urllib.request.urlopen(request).read().decode().count("data:"), flush=True)
history = [{"role": "user", "content": sys.argv[1]}]
ask("OPENAI_BASE_URL", "/chat/completions", model="gpt-5", messages=history)
history += [{"role": "assistant", "content": "Blue light scatters."}, {"role": "user", "content": "And red?"}]
ask("OPENAI_BASE_URL", "/chat/completions?v=1", model="gpt-5", messages=history)
ask("ANTHROPIC_BASE_URL", "/v1/messages", model="claude-opus-4", max_tokens=9, messages=history[2:])
if len(sys.argv) > 2:
    sys.stdin.readline()
sys.exit(7)
"""


def record(trace: Path, *command: str, **more: Any) -> subprocess.CompletedProcess[str]:
    argv = [*CTXCTL, "record", "-o", str(trace), "--", *command]
    return subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT, **more)


def test_turns_are_in_the_trace_and_seen_while_they_happen(
    api: Any, environment: dict[str, str], tmp_path: Path
) -> None:
    trace, program = tmp_path / "run.jsonl", tmp_path / "child.py"
    program.write_text(CHILD)
    watching = subprocess.Popen(
        [*CTXCTL, "watch", "--plain", str(trace)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    running = subprocess.Popen(
        [
            *CTXCTL,
            "record",
            "-o",
            str(trace),
            "--",
            sys.executable,
            str(program),
            "Why is the sky blue?",
            "wait",
        ],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        read_until(watching.stdout, b"Why is the sky blue?")
        assert running.poll() is None  # it is waiting for its input
        out, said = running.communicate("\n", timeout=LIMIT)
        # The last turns are over when the program is.
        read_until(watching.stdout, b"claude-opus-4")
    finally:
        watching.kill()
        watching.communicate()
        running.kill()
        running.wait()
    assert running.returncode == 7
    assert out == "4\n4\n6\n"
    assert "OPENAI_BASE_URL, ANTHROPIC_BASE_URL, GOOGLE_GEMINI_BASE_URL lead to the recorder" in said
    assert f"to follow it: ctxctl watch {trace}" in said
    assert "3 calls of a model" in said
    assert trace.stat().st_mode & 0o777 == 0o600
    done = subprocess.run(
        [*CTXCTL, "replay", "--json", "--all", str(trace)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    steps = [row for row in rows if row["type"] == "step"]
    assert [step["model"] for step in steps] == ["gpt-5", "gpt-5", "claude-opus-4"]
    assert [row for row in rows if row["type"] == "problem"] == []
    text = trace.read_text()
    events = [json.loads(line) for line in text.splitlines()]
    usages = [event["data"] for event in events if event["event_type"].endswith("usage.reported")]
    assert [(u["input_tokens"], u["output_tokens"]) for u in usages] == [(17, 5), (17, 5), (21, 6)]
    assert "Red light does not." in text
    assert "Bearer" not in text


def read_until(stream: Any, mark: bytes) -> bytes:
    got, until = b"", time.monotonic() + LIMIT
    while mark not in got:
        left = until - time.monotonic()
        assert left > 0, got
        assert select.select([stream], [], [], left)[0], got
        data = os.read(stream.fileno(), 1 << 16)
        assert data, got
        got += data
    return got


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (["sh", "-c", "exit 3"], 3, ""),
        (["sh", "-c", "kill -TERM $$"], 143, ""),
        (["sh", "-c", "kill -INT $$"], 130, ""),
        (
            ["no-such-program-anywhere"],
            127,
            "ctxctl: error: no-such-program-anywhere: No such file or directory",
        ),
        (["/etc/passwd"], 126, "ctxctl: error: /etc/passwd: Permission denied"),
    ],
)
def test_the_exit_code_is_the_programs(
    environment: dict[str, str], tmp_path: Path, command: list[str], code: int, said: str
) -> None:
    done = record(tmp_path / "run.jsonl", *command, env=environment)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr


def test_input_and_output_are_the_programs(environment: dict[str, str], tmp_path: Path) -> None:
    done = record(
        tmp_path / "run.jsonl", "sh", "-c", "cat; echo err >&2", env=environment, input="one\ntwo\n"
    )
    assert done.stdout == "one\ntwo\n"
    assert "\nerr\n" in done.stderr
    assert "nothing came by" in done.stderr


def test_a_trace_that_cannot_be_written_is_said_before_the_program_runs(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    done = record(tmp_path / "notes.txt", "sh", "-c", "echo ran", env=environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not a trace" in done.stderr
    assert (tmp_path / "notes.txt").read_text() == "mine"


TALKER = """
import os, signal, sys, time
def note(number, frame):
    print("got", number, flush=True)
    if number == signal.SIGTERM:
        sys.exit(4)
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGTERM):
    signal.signal(number, note)
print("parent", os.getppid())
print("up", flush=True)
while True:
    time.sleep(0.05)
"""
"""It polls: a signal that comes just before `signal.pause()` is noticed at the next one only."""


def test_each_signal_reaches_the_program_once(environment: dict[str, str], tmp_path: Path) -> None:
    argv = [*CTXCTL, "record", "-q", "-o", str(tmp_path / "run.jsonl"), "--", sys.executable, "-c", TALKER]
    running = subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE)
    assert running.stdout is not None
    try:
        read_until(running.stdout, b"up\n")
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
            running.send_signal(number)
            assert read_until(running.stdout, b"\n") == b"got %d\n" % number
        running.send_signal(signal.SIGTERM)
        rest, _ = running.communicate(timeout=LIMIT)
    finally:
        running.kill()
        running.wait()
    assert rest == b"got 15\n"
    assert running.returncode == 4


@pytest.mark.skipif(shutil.which("bash") is None, reason="job control is the shell's: needs bash")
def test_job_control_and_keys_are_the_programs(environment: dict[str, str], tmp_path: Path) -> None:
    """A shell on a terminal: Ctrl-Z, `fg`, and Ctrl-C, which ends the shell's loop as well."""
    talker = tmp_path / "talker.py"
    talker.write_text(TALKER)
    line = " ".join([*CTXCTL, "record", "-q", "-o", str(tmp_path / "run.jsonl"), "--", sys.executable])
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(
            "bash", ["bash", "--norc", "--noprofile", "-i"], environment | {"PS1": "<>", "HISTFILE": ""}
        )
    try:
        type_in = lambda text: os.write(terminal, text.encode())  # noqa: E731
        seen(terminal, b"<>")
        type_in(f"{line} {talker}\n")
        wrapper = int(seen(terminal, b"up\r\n").split(b"parent ")[1].split()[0])
        type_in("\x03")
        seen(terminal, b"got 2\r\n")
        type_in("\x1a")
        seen(terminal, b"Stopped")
        type_in("echo in the sh''ell\n")
        seen(terminal, b"in the shell\r\n")
        type_in("fg\n")
        seen(terminal, b"talker.py")
        in_front(terminal, wrapper)
        type_in("\x1c")
        after = seen(terminal, b"got 3\r\n")
        assert after.count(b"got") == 1
        type_in("\x03")
        seen(terminal, b"got 2\r\n")
        os.kill(wrapper, signal.SIGTERM)
        seen(terminal, b"got 15\r\n")
        type_in("echo code=$?\n")
        seen(terminal, b"code=4\r\n")
        sleeper = tmp_path / "sleeper.py"
        sleeper.write_text("import time\nprint('slee' + 'ps', flush=True)\ntime.sleep(60)\n")
        type_in(f"for i in 1 2; do echo round=$i; {line} {sleeper}; done\n")
        seen(terminal, b"sleeps\r\n")
        type_in("\x03")
        assert b"round=2" not in seen(terminal, b"<>")
    finally:
        os.kill(pid, signal.SIGKILL)
        os.close(terminal)
        os.waitpid(pid, 0)


def in_front(terminal: int, pid: int) -> None:
    """Wait until keys go to a program: the shell says `fg` before it hands the terminal over."""
    until = time.monotonic() + LIMIT
    while os.tcgetpgrp(terminal) != os.getpgid(pid):
        assert time.monotonic() < until
        time.sleep(0.01)


def seen(terminal: int, mark: bytes) -> bytes:
    got, until = b"", time.monotonic() + LIMIT
    while mark not in got:
        left = until - time.monotonic()
        assert left > 0, got
        assert select.select([terminal], [], [], left)[0], got
        got += os.read(terminal, 1 << 16)
    return got


def test_streams_that_outlive_the_program_are_recorded_to_their_end(
    api: Any, environment: dict[str, str], tmp_path: Path
) -> None:
    trace, ask = tmp_path / "run.jsonl", tmp_path / "ask.py"
    ask.write_text(CHILD.replace("history +=", "sys.exit()\nhistory +="))
    argv = [*CTXCTL, "record", "-o", str(trace), "--", "sh", "-c", ""]
    # The program ends only when its child has asked, which is all that it does not wait for.
    argv[-1] = f"{sys.executable} {ask} 'wait for it' >{tmp_path}/out & read line"
    running = subprocess.Popen(argv, env=environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        until = time.monotonic() + LIMIT
        while not api.bodies:
            assert time.monotonic() < until
            time.sleep(0.01)
        assert running.stdin is not None
        running.stdin.write(b"\n")
        running.stdin.flush()
        read_until(running.stderr, b"waiting for 1 answer")
        api.gate.set()
        _, said = running.communicate(timeout=LIMIT)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == 0
    assert b"1 call of a model" in said
    assert "Blue light scatters." in trace.read_text()


def test_the_proxy_alone(api: Any, environment: dict[str, str], tmp_path: Path) -> None:
    trace, program = tmp_path / "run.jsonl", tmp_path / "child.py"
    program.write_text(CHILD)
    argv = [*CTXCTL, "record", "--proxy", "-o", str(trace)]
    running = subprocess.Popen(argv, env=environment, stderr=subprocess.PIPE)
    try:
        said = read_until(running.stderr, b"to follow it").decode()
        shown = dict(re.findall(r"ctxctl: ([A-Z_]+)=(http://127\.0\.0\.1:[0-9]+\S*)", said))
        assert shown.keys() == {"OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"}
        done = subprocess.run(
            [sys.executable, str(program), "Why?"],
            env=environment | shown,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        assert (done.returncode, done.stdout) == (7, "4\n4\n6\n"), done.stderr
        running.send_signal(signal.SIGINT)
        _, last = running.communicate(timeout=LIMIT)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == 0
    assert b"3 calls of a model" in last
    assert "Red light does not." in trace.read_text()


def test_the_example(environment: dict[str, str], tmp_path: Path) -> None:
    trace = tmp_path / "run.jsonl"
    example = ROOT / "docs" / "examples" / "any_program.py"
    done = record(trace, sys.executable, str(example), env=environment | {"OPENAI_API_KEY": "sk" + "-none"})
    assert (done.returncode, done.stdout) == (0, "Blue light scatters.\n" * 2), done.stderr
    assert "2 calls of a model" in done.stderr
    events = [json.loads(line) for line in trace.read_text().splitlines()]
    assert sum(event["event_type"] == "context.injection.applied" for event in events) == 2
    assert "And at dusk?" in trace.read_text()


def test_what_was_relayed_is_written_when_the_relay_is_killed(
    environment: dict[str, str], tmp_path: Path
) -> None:
    trace, program = tmp_path / "run.jsonl", tmp_path / "child.py"
    program.write_text(CHILD)
    argv = [*CTXCTL, "record", "-o", str(trace), "--", sys.executable, str(program), "Why?", "wait"]
    running = subprocess.Popen(
        argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert running.stdin is not None
    read_until(running.stdout, b"4\n4\n6\n")
    running.kill()
    running.wait()
    until = time.monotonic() + LIMIT
    # The last answer may have been on its way to the recorder; those before it were not.
    while b"Blue light scatters." not in trace.read_bytes():
        assert time.monotonic() < until
        time.sleep(0.02)
    running.communicate(b"\n")  # the program ends by itself
