"""`ctxctl record --stdin` and `--watch`: the same as an import, while it grows, and only once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ctxctl.record import watch
from ctxctl.record.append_target import AppendTarget
from ctxctl.record.capture_mirror import CaptureMirror
from ctxctl.record.options import Options
from ctxctl.session.live import LiveSession

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures"
GROWING = (
    FIXTURES / "claude_code" / "session.jsonl",
    FIXTURES / "claude_code" / "compaction.jsonl",
    FIXTURES / "codex" / "rollout.jsonl",
)
SECRET = "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"


def ctxctl(*arguments: object, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "ctxctl", *map(str, arguments)]
    return subprocess.run(command, input=data, capture_output=True, cwd=ROOT, timeout=60)


def imported(capture: Path, tmp_path: Path) -> list[dict[str, Any]]:
    out = tmp_path / "imported.jsonl"
    assert ctxctl("import", capture, "-o", out, "--force").returncode == 0
    return events(out)


def events(trace: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in trace.read_bytes().split(b"\n") if line.strip()]


def told(event: dict[str, Any]) -> dict[str, Any]:
    """An event less what tells captures apart."""
    made = {**event, "event_id": event["event_id"].rpartition(":")[2]}
    made.pop("session_id", None)
    return made


def same(found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    assert [told(event) for event in found] == [told(event) for event in wanted]
    assert len({event["event_id"] for event in found}) == len(found)


class Tool:
    """Another tool that writes below a directory, looked at whenever it has written."""

    def __init__(self, tmp_path: Path) -> None:
        self.directory = tmp_path / "tool"
        self.directory.mkdir()
        self.trace = tmp_path / "t.jsonl"
        self.outlet: AppendTarget | None = None
        self.begin()

    def begin(self) -> None:
        if self.outlet is not None:
            self.outlet.close()
        options = Options(self.trace, say=lambda line: None)
        self.outlet = AppendTarget(options)
        self.watching = watch.Watching(self.directory, self.outlet, options, None)

    def look(self) -> None:
        for found in self.watching._captures.values():
            found._free_at = float("-inf")
        self.watching._search_at = 0.0
        self.watching.look(time.monotonic(), lambda: False)

    def end(self) -> None:
        self.watching.finish()
        assert self.outlet is not None
        self.outlet.close()


@pytest.mark.parametrize("capture", GROWING, ids=lambda path: path.stem)
def test_a_session_that_grows_becomes_what_its_import_is(capture: Path, tmp_path: Path) -> None:
    tool = Tool(tmp_path)
    target = tool.directory / capture.name
    for number, line in enumerate(capture.read_bytes().splitlines(keepends=True)):
        with target.open("ab") as file:
            file.write(line[: len(line) // 2])
            file.flush()
            tool.look()
            file.write(line[len(line) // 2 :])
        tool.look()
        if number % 5 == 4:
            tool.begin()  # as after a kill: nothing is known but the trace
    tool.look()
    assert 0 < len(events(tool.trace)) <= len(imported(target, tmp_path))
    tool.end()
    same(events(tool.trace), imported(target, tmp_path))
    assert tool.trace.stat().st_mode & 0o777 == 0o600


def test_nothing_is_written_twice_after_a_restart(tmp_path: Path) -> None:
    tool = Tool(tmp_path)
    for path in GROWING:
        shutil.copy(path, tool.directory)
    tool.look()
    tool.end()
    before = tool.trace.read_bytes()
    assert len({event["session_id"] for event in events(tool.trace)}) >= 3
    tool.begin()
    tool.look()
    tool.end()
    assert tool.trace.read_bytes() == before


def test_a_line_that_a_kill_left_unfinished_is_written_again(tmp_path: Path) -> None:
    tool = Tool(tmp_path)
    shutil.copy(GROWING[0], tool.directory)
    tool.look()
    tool.end()
    whole = tool.trace.read_bytes()
    tool.trace.write_bytes(whole[:-40])
    tool.begin()
    tool.look()
    tool.end()
    lines = tool.trace.read_bytes().split(b"\n")
    found = [json.loads(line) for line in lines if line.strip() and line.endswith(b"}")]
    same(found, imported(GROWING[0], tmp_path))


def test_a_capture_written_anew_leaves_what_was_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_SETTLED", 0.0)
    tool = Tool(tmp_path)
    target = tool.directory / "session.jsonl"
    shutil.copy(GROWING[0], target)
    tool.look()
    first = events(tool.trace)
    lines = GROWING[0].read_bytes().splitlines(keepends=True)
    target.write_bytes(b"".join(lines[:3]))  # half written, or pruned
    tool.look()
    assert events(tool.trace) == first
    tool.look()
    tool.begin()
    tool.look()
    tool.look()
    tool.end()
    found = events(tool.trace)
    assert found[: len(first)] == first
    again = found[len(first) :]
    assert again
    assert {event["session_id"] for event in again}.isdisjoint(event["session_id"] for event in first)
    assert len({event["event_id"] for event in found}) == len(found)


def test_what_turns_out_otherwise_is_taken_back(tmp_path: Path) -> None:
    """And another writer of the same file does not feel it."""
    trace = tmp_path / "t.jsonl"
    outlet = AppendTarget(Options(trace))

    def event(number: int, text: str) -> dict[str, Any]:
        item = {"item_id": f"i{number}", "content": text, "visibility": ["model"]}
        return {"event_type": "context.item.added", "event_id": f"e{number}", "time": "2026-01-01T00:00:00Z",
                "source": "x", "data": item}  # fmt: skip

    from ctxctl.record.capture_mirror import RecordedCaptures

    mirror = CaptureMirror(outlet, RecordedCaptures(outlet), b"one", "s", lambda problem: None)
    long = "a text that is long enough to be referred to where it comes again, and it does come again"
    assert mirror.update([event(1, "a"), event(2, long), event(3, "half")], sure=False) == "done"
    with trace.open("ab") as other:
        other.write(b'{"event_type":"of.another","event_id":"o"}\n')
    told = [event(1, "a"), event(2, "otherwise"), event(3, long), event(4, long)]
    assert mirror.update(told, sure=False) == "done"
    found = events(trace)
    assert [e["event_id"].rpartition(":")[2] for e in found] == ["e1", "o", "e2", "e3", "e4"]
    assert found[3]["data"]["content"] == long
    assert found[4]["data"]["content_ref"].startswith("sha256:")
    assert outlet.written == 4
    outlet.close()


def test_a_folder_of_raw_bodies_is_one_capture(tmp_path: Path) -> None:
    tool = Tool(tmp_path)
    bodies = FIXTURES / "api" / "pairs"
    into = tool.directory / "pairs"
    into.mkdir()
    for name in ("request_2.json", "response_2.json", "request_10.json", "response_10.sse"):
        shutil.copy(bodies / name, into)
        tool.look()
    tool.end()
    same(events(tool.trace), imported(into, tmp_path))


def test_secrets_that_another_tool_wrote_are_not_recorded(tmp_path: Path) -> None:
    tool = Tool(tmp_path)
    text = GROWING[0].read_text()
    assert "rounding" in text
    (tool.directory / "session.jsonl").write_text(text.replace("rounding", SECRET))
    tool.look()
    tool.end()
    assert SECRET not in tool.trace.read_text()
    assert tool.outlet is not None
    assert tool.outlet.redacted["github-token"] > 0
    steps = ctxctl("replay", "--json", tool.trace).stdout.splitlines()
    assert [row for row in map(json.loads, steps) if row["type"] == "problem"] == []


def test_the_command_follows_and_ends_in_order(tmp_path: Path) -> None:
    directory, trace = tmp_path / "tool", tmp_path / "t.jsonl"
    directory.mkdir()
    lines = GROWING[0].read_bytes().splitlines(keepends=True)
    target = directory / "session.jsonl"
    target.write_bytes(b"".join(lines[:4]))
    command = [sys.executable, "-m", "ctxctl", "record", "--watch", str(directory), "-o", str(trace)]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE)
    assert process.stderr is not None
    assert b"recording what is written under" in process.stderr.readline()
    assert b"to follow it: ctxctl watch" in process.stderr.readline()
    with LiveSession(trace) as live:
        while not trace.exists() or not trace.stat().st_size:
            live.poll(0.1)
        second = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60)
        assert (second.returncode, b"another `ctxctl record` is writing to it" in second.stderr) == (2, True)
        with target.open("ab") as file:
            file.write(b"".join(lines[4:]))
        process.send_signal(signal.SIGTERM)
        said = process.stderr.read().decode()
        assert process.wait(30) == 0
        live.finish()
        assert live.inspector is not None
        assert live.inspector.events == len(events(trace))
    assert "1 session of other tools" in said
    assert f"{len(events(trace))} events written, 0 secrets replaced" in said
    same(events(trace), imported(target, tmp_path))


@pytest.mark.parametrize("capture", [*GROWING, FIXTURES / "api" / "chat.json"], ids=lambda path: path.stem)
def test_a_known_format_on_standard_input_is_its_import_and_is_recorded_once(
    capture: Path, tmp_path: Path
) -> None:
    trace = tmp_path / "t.jsonl"
    for _ in range(2):
        done = ctxctl("record", "--stdin", "-o", trace, data=capture.read_bytes())
        assert done.returncode == 0, done.stderr
        same(events(trace), imported(capture, tmp_path))
    assert b"0 events written" in done.stderr


def test_a_stream_is_recorded_before_it_ends(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    lines = GROWING[1].read_bytes().splitlines(keepends=True)
    command = [sys.executable, "-m", "ctxctl", "record", "--stdin", "-q", "-o", str(trace)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(b"".join(lines[:-1]))
    process.stdin.flush()
    while not trace.exists() or trace.read_bytes().count(b"\n") < 3:
        assert process.poll() is None
        time.sleep(0.05)
    process.stdin.write(lines[-1])
    process.stdin.close()
    assert process.wait(30) == 0
    same(events(trace), imported(GROWING[1], tmp_path))


def test_events_on_standard_input_are_written_as_they_come_and_once(tmp_path: Path) -> None:
    trace, native = tmp_path / "t.jsonl", tmp_path / "native.jsonl"
    assert ctxctl("import", GROWING[0], "-o", native).returncode == 0
    lines = native.read_bytes().splitlines(keepends=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "ctxctl", "record", "--stdin", "-o", str(trace)], cwd=ROOT,
        stdin=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(b"".join(lines[:5]) + lines[5][:20])
    process.stdin.flush()
    while not trace.exists() or trace.read_bytes().count(b"\n") < 5:
        assert process.poll() is None
        time.sleep(0.05)
    assert len(events(trace)) == 5
    process.kill()
    process.wait()
    odd = b'{"event_type": "my.own", "data": {"k": "%b"}}\nnot an event\n\n[1]\n' % SECRET.encode()
    done = ctxctl("record", "--stdin", "-o", trace, data=native.read_bytes() + odd)
    assert done.returncode == 0
    found = events(trace)
    assert found[: len(lines)] == [json.loads(line) for line in lines]
    own, dropped = found[len(lines) :]
    assert own["data"]["k"].startswith("[redacted github-token")
    assert (own["source"], own["metadata"]["ctxctl"]["redacted"]["secrets"]) == ("stdin", 1)
    assert dropped["data"]["n"] == 2
    assert b"2 events lost, 1 secret replaced (github-token 1)" in done.stderr


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "stdin is empty"),
        (b"hello\n", "none of the known formats"),
        (b"\x1f\x8b\x08\x00rest", "is compressed"),
    ],
)
def test_what_is_nothing_to_record_is_told(tmp_path: Path, data: bytes, said: str) -> None:
    done = ctxctl("record", "--stdin", "-o", tmp_path / "t.jsonl", data=data)
    assert (done.returncode, said in done.stderr.decode()) == (3, True)


def test_a_disk_that_is_full_loses_nothing_that_the_capture_still_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = Tool(tmp_path)
    shutil.copy(GROWING[0], tool.directory)
    assert tool.outlet is not None
    real, left = os.write, [4]

    def write(fd: int, data: bytes) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        return real(fd, data)

    with monkeypatch.context() as patch:
        patch.setattr("ctxctl.record.sink.os.write", write)
        tool.look()
    assert len(events(tool.trace)) < len(imported(GROWING[0], tmp_path))
    tool.look()
    tool.end()
    same(events(tool.trace), imported(GROWING[0], tmp_path))
