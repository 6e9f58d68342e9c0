"""`ctxctl record -- CLIENT`: both spellings of a path reach the provider, and silence is told of."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.clients.held import held
from tools.clients.standin import StandIn

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 60.0
ASKING = """
import json, os, sys, urllib.request
for variable, path in [one.split("=") for one in sys.argv[1:]]:
    kind = "contents" if "models/" in path else "input" if "responses" in path else "messages"
    part = {"parts": [{"text": "Hello"}]} if kind == "contents" else {"content": "Hello"}
    body = {"model": "m", "max_tokens": 9, kind: [{"role": "user", **part}]}
    sent, fields = json.dumps(body).encode(), {"Content-Type": "application/json"}
    request = urllib.request.Request(os.environ[variable] + path, sent, fields)
    print(urllib.request.urlopen(request).status)
"""
BOTH = {
    "anthropic": ("ANTHROPIC_BASE_URL", "/messages", "/v1/messages"),
    "chat": ("OPENAI_BASE_URL", "/chat/completions", "/v1/chat/completions"),
    "responses": ("OPENAI_BASE_URL", "/responses", "/v1/responses"),
    "gemini": ("GOOGLE_GEMINI_BASE_URL", "/models/m:generateContent", "/v1beta/models/m:generateContent"),
}


@pytest.fixture
def server() -> Iterator[StandIn]:
    made = StandIn()
    yield made
    made.close()


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    return {
        "HOME": str(tmp_path), "PATH": f"{tmp_path}/bin:/usr/bin:/bin", "PYTHONPATH": str(ROOT),
        "CTXCTL_STATE_DIR": str(tmp_path / "state"), "CTXCTL_CACHE_DIR": str(tmp_path / "cache"), **more,
    }  # fmt: skip


def record(tmp_path: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ctxctl", "record", "-o", str(tmp_path / "run.jsonl"), *arguments]
    return subprocess.run(
        command,
        cwd=tmp_path,
        env=environment(tmp_path, **more),
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )


def program(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def given(server: StandIn) -> list[str]:
    urls = {"anthropic": server.url, "openai": f"{server.url}/v1", "gemini": server.url}
    return [word for name, url in urls.items() for word in ("--upstream", f"{name}={url}")]


@pytest.mark.parametrize("name", BOTH)
def test_both_spellings_of_a_path_reach_the_provider(name: str, server: StandIn, tmp_path: Path) -> None:
    variable, short, whole = BOTH[name]
    asked = [f"{variable}={path}" for path in (short, whole)]
    done = record(tmp_path, *given(server), "--", sys.executable, "-c", ASKING, *asked)
    assert (done.returncode, done.stdout, server.strays) == (0, "200\n200\n", [])
    assert {call.path for call in server.calls} == {whole}
    assert held(tmp_path / "run.jsonl", server.calls).equal
    assert len(server.calls) == 2
    # One of OpenAI's was right with the version that its address has, all others were without.
    assert "1 path put right" in done.stderr


def test_an_address_of_the_users_is_spelled_right_too(server: StandIn, tmp_path: Path) -> None:
    asked = ["ANTHROPIC_BASE_URL=/messages", "ANTHROPIC_BASE_URL=/v1/messages"]
    command = ["--", sys.executable, "-c", ASKING, *asked]
    done = record(tmp_path, *command, ANTHROPIC_BASE_URL=server.url)
    assert (done.returncode, server.strays, len(server.calls)) == (0, [], 2)


def test_a_client_that_reads_a_flag_is_recorded(server: StandIn, tmp_path: Path) -> None:
    script = """#!%s
import json, sys, tomllib, urllib.request
settings = tomllib.loads(sys.argv[sys.argv.index("-c") + 1])
body = json.dumps({"model": "m", "input": [{"role": "user", "content": sys.argv[-1]}]}).encode()
print(urllib.request.urlopen(urllib.request.Request(settings["openai_base_url"] + "/responses", body)).status)
sys.exit(3)
"""
    program(tmp_path, "codex", script % sys.executable)
    done = record(tmp_path, *given(server), "--", "codex", "exec", "Hello")
    assert (done.returncode, done.stdout) == (3, "200\n")
    assert held(tmp_path / "run.jsonl", server.calls).equal
    assert "Codex: " in done.stderr.splitlines()[0]
    done = record(tmp_path, *given(server), "--", "sh", "-c", "true; codex exec 'Hello again'")
    assert (done.returncode, len(server.calls)) == (3, 2)
    assert json.loads(server.calls[1].body)["input"][0]["content"] == "Hello again"


def test_a_program_that_sends_nothing_is_told_of_at_the_end(tmp_path: Path) -> None:
    done = record(tmp_path, "--", "true")
    told = done.stderr.splitlines()
    assert done.returncode == 0
    assert told[-2].startswith(
        "ctxctl: nothing came by: OPENAI_BASE_URL, OPENAI_API_BASE, ANTHROPIC_BASE_URL"
    )
    assert "--upstream NAME=URL" in told[-1]
    assert "docs/recording.md" in told[-1]
    program(tmp_path, "amp", "#!/bin/sh\n")
    done = record(tmp_path, "--", "amp")
    assert "nothing came by from Amp: its own server asks the models" in done.stderr


@pytest.mark.slow
def test_silence_is_told_while_the_program_runs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ctxctl", "record", "-o", "run.jsonl", "--", "sleep", "60"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(tmp_path), stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stderr is not None
        told = [running.stderr.readline() for _ in range(4)]
        assert "nothing came by in 10 seconds" in told[2]
        assert running.poll() is None
        running.terminate()
        # Once is enough; at the end it is said again, with the figures.
        rest = running.stderr.read()
    assert rest.count("nothing came by") == 1
    assert "in 10 seconds" not in rest


@pytest.mark.slow
def test_a_program_on_the_terminal_is_not_disturbed(tmp_path: Path) -> None:
    import os
    import pty
    import time

    pid, terminal = pty.fork()
    if not pid:
        os.chdir(tmp_path)
        command = [sys.executable, "-m", "ctxctl", "record", "-o", "run.jsonl", "--", "sleep", "13"]
        os.execve(command[0], command, environment(tmp_path))
    said, began = b"", time.monotonic()
    try:
        while chunk := os.read(terminal, 4096):
            said += chunk
    except OSError:
        pass  # Linux's way of saying that the other side is closed
    os.waitpid(pid, 0)
    os.close(terminal)
    assert time.monotonic() - began > 12
    assert b"in 10 seconds" not in said
    assert said.count(b"nothing came by") == 1
