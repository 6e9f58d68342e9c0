"""``ctxctl watch`` as a process: lines, ends, hooks, signals, pipes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.acceptance import runs

ROOT = Path(__file__).parent.parent.parent.parent
COMMAND = [sys.executable, "-m", "ctxctl"]

pytestmark = pytest.mark.usefixtures("one_cache")
WINDOW = (ROOT / "tests" / "golden" / "traces" / "window.jsonl").read_bytes()
DEMO = (ROOT / "traces" / "notes-assistant.jsonl").read_bytes()
ROLLOUT = (ROOT / "fixtures" / "codex" / "rollout.jsonl").read_bytes()
CAPTURE = (ROOT / "fixtures" / "claude_code" / "session.jsonl").read_bytes()


def ctxctl(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    """A command in a process of its own, to its end."""
    done = runs.ctxctl(*arguments)
    return subprocess.CompletedProcess(arguments, done.code, done.stdout, done.stderr)


@contextmanager
def watching(*arguments: str, stdout: int = subprocess.PIPE) -> Iterator[subprocess.Popen[bytes]]:
    """A watch in the background; stderr is unbuffered, so that what it says can be waited for."""
    process = subprocess.Popen(
        [*COMMAND, "watch", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, bufsize=0,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def until(process: subprocess.Popen[bytes], word: bytes) -> bytes:
    """What it says on stderr, up to a line that holds a word."""
    assert process.stderr is not None
    said = b""
    while word not in said:
        line = process.stderr.readline()
        assert line, said
        said += line
    return said


def objects(out: bytes) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.splitlines()]


def append(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(data)


@pytest.mark.parametrize("data", [WINDOW, DEMO, CAPTURE], ids=["window", "demo", "claude-code"])
@pytest.mark.parametrize("how", ["--json", "--plain"])
def test_what_is_there_already_is_told_as_replay_tells_it(tmp_path: Path, data: bytes, how: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(data)
    watched = ctxctl("watch", str(path), how, "--idle", "0.2")
    assert watched.returncode == 0
    assert (
        watched.stdout == ctxctl("replay", str(path), how, *(["--steps"] if how == "--plain" else [])).stdout
    )


@pytest.mark.slow
@pytest.mark.parametrize("data", [DEMO, CAPTURE], ids=["demo", "claude-code"])
def test_what_comes_in_pieces_ends_as_replay_tells_the_whole(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "run.jsonl"
    with watching(str(path), "--json", "--idle", "3") as process:
        until(process, b"waiting for")
        for n in range(7):
            append(path, data[len(data) * n // 7 : len(data) * (n + 1) // 7])
            time.sleep(0.05)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out == ctxctl("replay", str(path), "--json").stdout


def test_a_step_is_told_while_the_writer_is_still_there(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    lines = DEMO.splitlines(keepends=True)
    append(path, b"".join(lines[: len(lines) // 2]))
    with watching(str(path), "--json") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["type"] == "trace"
        assert json.loads(process.stdout.readline())["type"] == "step"


def test_it_ends_with_the_turn_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(DEMO)
    said = objects(ctxctl("watch", str(path), "--json", "--until", "2").stdout)
    turns = [one for one in said if one["type"] == "turn"]
    assert turns[-1]["turn"] == 2
    assert said[-1]["type"] == "summary"
    assert said[-1]["turns"] == len(turns)


def test_a_turn_is_over_when_the_runtime_says_so(tmp_path: Path) -> None:
    lines = ROLLOUT.splitlines(keepends=True)
    end = next(n for n, line in enumerate(lines) if b'"task_complete"' in line)
    path, told = tmp_path / "rollout.jsonl", tmp_path / "turns"
    append(path, lines[0])
    with watching(str(path), "--json", "--until", "1", "--exec", f'cat >> "{told}"') as process:
        until(process, b"following")
        for line in lines[1:end]:
            append(path, line)
            time.sleep(0.05)
        time.sleep(1.5)
        assert process.poll() is None
        assert not told.exists()
        append(path, lines[end])
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    whole = objects(ctxctl("replay", str(path), "--json").stdout)
    assert [(one["turn"], one["step"]) for one in objects(out) if one["type"] == "step"] == [
        (one["turn"], one["step"]) for one in whole if one["type"] == "step"
    ]
    assert objects(told.read_bytes()) == [one for one in whole if one["type"] == "turn"]


def test_a_directory_that_is_made_later(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "sessions"
    with watching(str(folder), "--json", "--until", "2") as process:
        until(process, b"waiting for")
        (folder / "a").mkdir(parents=True)
        time.sleep(0.5)
        append(folder / "a" / "run.jsonl", DEMO)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert [one["turn"] for one in objects(out) if one["type"] == "turn"] == [1, 2]


def test_a_newer_session_in_a_directory_that_is_made_later(tmp_path: Path) -> None:
    append(tmp_path / "one" / "run.jsonl", DEMO)
    with watching(str(tmp_path), "--plain", "--until", "99") as process:
        until(process, b"one/run.jsonl")
        append(tmp_path / "two" / "deep" / "run.jsonl", WINDOW)
        until(process, b"now following a newer session")
        until(process, b"two/deep/run.jsonl")


def test_a_turn_that_is_none_is_wrong_usage(tmp_path: Path) -> None:
    done = ctxctl("watch", str(tmp_path), "--until", "the last")
    assert done.returncode == 2
    assert b"--until" in done.stderr


def test_a_command_is_run_for_each_turn_and_gets_it_on_stdin(tmp_path: Path) -> None:
    path, out = tmp_path / "run.jsonl", tmp_path / "turns"
    path.write_bytes(DEMO)
    command = f'cat >> "{out}"; echo "$CTXCTL_THREAD $CTXCTL_TURN" >> "{out}.env"; echo noise'
    done = ctxctl("watch", str(path), "--json", "--idle", "0.2", "--exec", command)
    assert done.returncode == 0
    turns = [one for one in objects(done.stdout) if one["type"] == "turn"]
    assert objects(out.read_bytes()) == turns
    names = Path(f"{out}.env").read_text().split("\n")[:-1]
    assert names == [f"{turn['thread']} {turn['turn']}" for turn in turns]
    assert b"noise" in done.stderr


def test_what_a_trace_says_is_no_part_of_a_command(tmp_path: Path) -> None:
    path, proof = tmp_path / "run.jsonl", tmp_path / "proof"
    hostile = f"$(touch {proof}); `touch {proof}`; \\0".encode()
    path.write_bytes(WINDOW.replace(b'"turn_id":"', b'"thread_id":"' + hostile + b'","turn_id":"'))
    command = 'echo "$CTXCTL_THREAD" > /dev/null'
    done = ctxctl("watch", str(path), "--json", "--idle", "0.2", "--exec", command)
    assert done.returncode == 0
    assert not proof.exists()


def test_a_command_that_fails_is_told_and_stops_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(DEMO)
    done = ctxctl("watch", str(path), "--json", "--idle", "0.2", "--exec", "exit 3")
    assert done.returncode == 0
    assert b"exit code 3" in done.stderr
    assert objects(done.stdout)[-1]["type"] == "summary"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_with_a_summary(tmp_path: Path, number: int, code: int) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(DEMO)
    with watching(str(path), "--json") as process:
        until(process, b"following")
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(number)
        out, said = process.communicate(timeout=60)
    assert process.returncode == code
    assert first + out == ctxctl("replay", str(path), "--json").stdout
    assert b"Traceback" not in said


def test_a_signal_while_there_is_nothing(tmp_path: Path) -> None:
    with watching(str(tmp_path / "run.jsonl"), "--json") as process:
        until(process, b"waiting for")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, b"")


def test_a_reader_that_goes_away_ends_it_quietly_though_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(DEMO)
    with watching(str(path), "--json") as process:
        until(process, b"following")
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(timeout=30) == 0
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.slow
def test_the_newest_session_of_a_directory_is_followed_and_a_newer_one_too(tmp_path: Path) -> None:
    old, new = tmp_path / "a" / "old.jsonl", tmp_path / "b" / "new.jsonl"
    for path in (old, new):
        path.parent.mkdir()
    (tmp_path / "notes.txt").write_text("no trace")
    old.write_bytes(WINDOW)
    printed = tmp_path / "printed"
    with (
        printed.open("wb") as file,
        watching(str(tmp_path), "--json", "--idle", "6", stdout=file.fileno()) as process,
    ):
        until(process, b"old.jsonl")
        new.write_bytes(DEMO)
        until(process, b"newer session")
        process.communicate(timeout=60)
    expected = [ctxctl("replay", str(path), "--json").stdout for path in (old, new)]
    assert printed.read_bytes() == b"".join(expected)


@pytest.mark.slow
def test_pinned_it_stays(tmp_path: Path) -> None:
    (tmp_path / "old.jsonl").write_bytes(WINDOW)
    with watching(str(tmp_path), "--json", "--idle", "4", "--pin") as process:
        until(process, b"following")
        (tmp_path / "new.jsonl").write_bytes(DEMO)
        out, _ = process.communicate(timeout=60)
    assert out == ctxctl("replay", str(tmp_path / "old.jsonl"), "--json").stdout


def test_a_file_that_is_written_anew_is_told_anew_and_said(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(DEMO)
    with watching(str(path), "--json", "--idle", "3") as process:
        until(process, b"following")
        time.sleep(0.5)
        path.write_bytes(WINDOW)
        out, said = process.communicate(timeout=60)
    assert b"shorter" in said
    kinds = [one["type"] for one in objects(out)]
    assert kinds.count("trace") == kinds.count("summary") == 2
    assert "trace-truncated" in [one.get("slug") for one in objects(out)]


def test_what_never_becomes_a_trace_is_told_at_the_end(tmp_path: Path) -> None:
    missing = ctxctl("watch", str(tmp_path / "none.jsonl"), "--json", "--idle", "0.1")
    assert missing.returncode == 3
    (tmp_path / "text").write_text("only words\n")
    words = ctxctl("watch", str(tmp_path / "text"), "--json", "--idle", "0.1")
    assert words.returncode == 3
    assert b"no readable context event" in words.stderr
    assert ctxctl("watch", "-").returncode == 2
