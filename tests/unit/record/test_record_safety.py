"""The file and the processes: kills, forks, full disks, rotation, strange files; and values that are none."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from record_help import ROOT, child, data, events, replayed, types

from ctxctl import Recorder
from ctxctl.errors import UsageError
from ctxctl.model import vocab
from ctxctl.record import journal, sink, values
from ctxctl.record.append_target import AppendTarget
from ctxctl.record.options import Options
from ctxctl.trace.follow import Follower, PathFiles, Span


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


WRITER = """
import sys, os
from ctxctl import Recorder
recorder = Recorder(sys.argv[1], session="s")
size = int(sys.argv[2])
for number in range(10**9):
    recorder.item(f"{os.getpid()}-{number}", "x" * size + str(number))
    os.write(1, b"%d\\n" % number)
"""


@pytest.mark.parametrize("size", [200, 20_000, 3_000_000])
def test_no_acknowledged_event_is_lost_to_kill_9(path: Path, size: int) -> None:
    acknowledged: list[tuple[int, int]] = []
    chance = random.Random(size)
    for _ in range(4):
        command = [sys.executable, "-c", WRITER, str(path), str(size)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.08))
        process.kill()
        told = [b"0\n", *process.stdout.read().splitlines(keepends=True)]
        process.wait()
        acknowledged += [(process.pid, int(line)) for line in told if line.endswith(b"\n")]
    with Recorder(path) as recorder:
        recorder.item("the next writer", "x")
    names: set[str] = set()
    torn = 0
    for line in path.read_bytes().split(b"\n"):
        try:
            names.add(json.loads(line)["data"]["item_id"])
        except ValueError:
            torn += line != b""
    assert {f"{pid}-{number}" for pid, number in acknowledged} <= names
    assert torn <= 4
    assert "the next writer" in names


def _many(path: str, name: int, count: int) -> None:
    recorder = Recorder(path, session="shared", thread=f"t{name}")
    for number in range(count):
        recorder.item(f"{name}/{number}", f"content {number} " * (number % 40))


def test_four_processes_on_one_file_lose_nothing(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_many, args=(str(path), name, 1000)) for name in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    found = events(path)
    assert sorted(e["data"]["item_id"] for e in found) == sorted(
        f"{n}/{i}" for n in range(4) for i in range(1000)
    )
    assert len({event["event_id"].rpartition("-")[0] for event in found}) == 4
    assert len(replayed(path)) == 4


FORKING = """
import os, sys
from ctxctl import Recorder
recorder = Recorder(sys.argv[1], session=sys.argv[2] or None)
long = "a content that the parent has shown already, and that its children show again, each of them " * 2
with recorder.turn() as turn, turn.step() as step:
    recorder.assembly([recorder.item("x", long)])
    recorder.injection()
children = []
for number in range(3):
    pid = os.fork()
    if pid == 0:
        with recorder.turn() as turn, turn.step() as step:
            recorder.assembly([recorder.item("x", long), recorder.item("y", str(number))])
            recorder.injection()
        os._exit(0)
    children.append(pid)
for pid in children:
    os.waitpid(pid, 0)
with recorder.turn() as turn, turn.step() as step:
    recorder.assembly([recorder.item("x", long)])
    recorder.injection()
"""


@pytest.mark.parametrize("session", ["", "given"])
def test_forked_children_are_writers_of_their_own(path: Path, session: str) -> None:
    assert child(FORKING, str(path), session).stderr == ""
    found = events(path)
    assert len({event["event_id"].rpartition("-")[0] for event in found}) == 4
    assert path.read_text().count("that the parent has shown already") == 8  # twice in each writer's one copy
    steps = replayed(path)
    assert sorted(step["counts"]["added"] for step in steps) == [0, 1, 2, 2, 2]
    assert len({(step["session"], step["thread"]) for step in steps}) == 4


def test_a_fork_while_another_thread_writes_leaves_the_child_able_to(path: Path) -> None:
    code = (
        FORKING.split("with recorder")[0]
        + """
import threading
stop = []
def work():
    number = 0
    while not stop:
        number += 1
        recorder.item(f"{number}", long)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for number in range(20):
    pid = os.fork()
    if pid == 0:
        recorder.item(f"child-{number}", "x")
        os._exit(0)
    os.waitpid(pid, 0)
stop.append(1)
for thread in threads: thread.join()
"""
    )
    assert child(code, str(path), "").stderr == ""
    names = {event["data"]["item_id"] for event in events(path)}
    assert {f"child-{number}" for number in range(20)} <= names


FULL = """
import resource, signal, sys
from ctxctl import Recorder
limit = int(sys.argv[2])
recorder = Recorder(sys.argv[1], session="s")
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
for number in range(200):
    recorder.item(f"i{number}", "x" * 100 + str(number))
first = recorder.written, recorder.dropped
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
import time
time.sleep(6 if len(sys.argv) > 3 else 0.3)
for number in range(200, 210):
    recorder.item(f"i{number}", "x" * 100 + str(number))
    time.sleep(0.06)
print(*first, recorder.written, recorder.dropped)
"""


@pytest.mark.slow
def test_what_a_full_disk_refuses_is_counted_and_the_trace_says_so(path: Path) -> None:
    done = child(FULL, str(path), "20000", "wait")
    before, refused, written, dropped = map(int, done.stdout.split())
    assert (before + refused, written + dropped) == (200, 210)
    assert refused > 0
    assert dropped == refused
    lines, torn = [], 0
    for line in path.read_bytes().split(b"\n"):
        try:
            lines.append(json.loads(line))
        except ValueError:
            torn += line != b""
    assert torn <= 1
    gaps = [line["data"] for line in lines if line["event_type"] == vocab.RECORD_DROPPED]
    assert [gap["n"] for gap in gaps] == [dropped]
    assert gaps[0]["last"] - gaps[0]["first"] + 1 == dropped
    assert set(gaps[0]["reasons"]) <= {"EFBIG", "ENOSPC"}
    assert len(lines) == written + 1
    assert f"{dropped} of 210 events are not in the trace (EFBIG" in done.stderr or "ENOSPC" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_disk_that_stays_full_is_told_of_at_exit_only(tmp_path: Path) -> None:
    code = """
import sys
from ctxctl import Recorder
recorder = Recorder(sys.argv[1])
for number in range(5): recorder.item(str(number), "x")
print("on")
"""
    done = child(code, "/dev/full")
    assert (done.returncode, done.stdout) == (0, "on\n")
    assert (
        done.stderr == "ctxctl: /dev/full: 5 of 5 events are not in the trace (it is not a regular file 5)\n"
    )


@pytest.mark.parametrize(
    "fault", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ESTALE, "short", "nothing"]
)
@pytest.mark.parametrize("nth", [1, 2, 5])
def test_a_fault_of_the_nth_write_is_counted_exactly(
    path: Path, monkeypatch: pytest.MonkeyPatch, fault: Any, nth: int
) -> None:
    real, calls = os.write, []

    def write(fd: int, line: bytes) -> int:
        calls.append(fd)
        if len(calls) == nth:
            if fault == "short":
                return real(fd, line[: len(line) // 2])
            if fault == "nothing":
                return 0
            raise OSError(fault, os.strerror(fault))
        return real(fd, line)

    recorder = Recorder(path)
    monkeypatch.setattr(recorder._core.journal, "_delay", 0.0)
    monkeypatch.setattr(journal, "_FIRST_DELAY", 0.0)
    monkeypatch.setattr(sink.os, "write", write)
    for number in range(8):
        recorder.item(f"i{number}", "x" * 99)
    monkeypatch.undo()
    recorder.close()
    whole = [json.loads(line) for line in path.read_bytes().split(b"\n") if line.endswith(b"}")]
    names = [line["data"]["item_id"] for line in whole if line["event_type"] == "context.item.added"]
    lost = 0 if fault in ("short", "nothing") else 1
    assert names == [f"i{n}" for n in range(8) if not lost or n != nth - 1]
    assert (
        sum(line["data"]["n"] for line in whole if line["event_type"] == vocab.RECORD_DROPPED)
        == lost
        == recorder.dropped
    )
    assert recorder.written == 8 - lost


def test_a_descriptor_closed_under_it_is_never_written_to_again(path: Path, tmp_path: Path) -> None:
    recorder = Recorder(path, strict=True)
    recorder.item("a", "x")
    fd = recorder._core.journal._sink._fd
    os.close(fd)
    other = os.open(tmp_path / "precious.db", os.O_RDWR | os.O_CREAT)
    assert other == fd
    recorder.item("b", "x")
    recorder.close()
    os.close(other)
    assert (tmp_path / "precious.db").read_bytes() == b""
    assert [record["item_id"] for record in data(path, "context.item.added")] == ["a", "b"]


@pytest.mark.parametrize("how", ["symlink", "fifo", "directory", "hard link", "device"])
def test_what_is_no_file_of_ones_own_is_not_written_to(
    tmp_path: Path, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, other = tmp_path / "run.jsonl", tmp_path / "other"
    if how == "symlink":
        other.write_text("mine")
        path.symlink_to(other)
    elif how == "fifo":
        os.mkfifo(path)
    elif how == "directory":
        path.mkdir()
    elif how == "hard link":
        other.write_text("mine")
        path.hardlink_to(other)
    else:
        path = Path("/dev/null")
    recorder = Recorder(path)
    recorder.item("x", "y")
    recorder.close()
    assert (recorder.written, recorder.dropped) == (0, 1)
    assert "1 of 1 events are not in the trace" in capsys.readouterr().err
    if other.exists():
        assert other.read_text() == "mine"
    with pytest.raises(OSError):  # noqa: PT011 - each has its own
        Recorder(path, strict=True)


def test_a_file_of_somebody_else_that_took_the_name_is_left_alone(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(journal, "_FIRST_DELAY", 0.0)
    monkeypatch.setattr(journal, "_LAST_DELAY", 0.0)
    notes = tmp_path / "notes.txt"
    notes.write_text("# notes of mine\n")
    recorder = Options(path).recorder()
    monkeypatch.setattr(recorder._core.journal, "_delay", 0.0)
    recorder.item("a", "x")
    os.replace(notes, path)
    recorder.item("b", "x")
    recorder.item("c", "x")
    assert (recorder.written, recorder.dropped) == (1, 2)
    assert path.read_text() == "# notes of mine\n"
    os.rename(path, notes)
    recorder.item("d", "x")
    recorder.close()
    assert [record["item_id"] for record in data(path, "context.item.added")] == ["d"]
    lost = data(path, vocab.RECORD_DROPPED)
    assert [record["reasons"] for record in lost] == [{"it is not a trace": 2}]
    assert notes.read_text() == "# notes of mine\n"
    assert "2 of 4 events are not in the trace (it is not a trace 2)" in capsys.readouterr().err


@pytest.mark.parametrize("found", [b"", b'{"schema_version":"0.1.1","event_type":"context.x"}\n'])
def test_a_new_file_or_another_trace_under_the_name_is_gone_on_with(
    path: Path, tmp_path: Path, found: bytes
) -> None:
    recorder = Options(path).recorder()
    recorder.item("a", "x")
    (tmp_path / "other").write_bytes(found)
    os.replace(tmp_path / "other", path)
    recorder.item("b", "x")
    recorder.close()
    assert (recorder.written, recorder.dropped) == (2, 0)
    assert path.read_bytes().startswith(found)
    assert b'"item_id":"b"' in path.read_bytes()


def test_what_could_not_be_opened_at_first_is_looked_at_once_it_can(path: Path) -> None:
    path.symlink_to("nowhere")
    recorder = Options(path, say=lambda line: None).recorder(must=False)
    path.unlink()
    path.write_text("# notes of mine\n")
    time.sleep(0.1)
    recorder.item("a", "x")
    recorder.close()
    assert (recorder.written, recorder.dropped) == (0, 1)
    assert path.read_text() == "# notes of mine\n"


def test_lines_of_others_are_not_appended_to_a_file_that_took_the_name(path: Path, tmp_path: Path) -> None:
    target = AppendTarget(Options(path))
    target.write(b'{"schema_version":"0.1.1","event_type":"context.x"}\n')
    (tmp_path / "notes.txt").write_text("# notes of mine\n")
    os.replace(tmp_path / "notes.txt", path)
    with pytest.raises(OSError, match="it is not a trace"):
        target.write(b"{}\n")
    target.close()
    assert (target.written, target.error) == (1, "it is not a trace")
    assert path.read_text() == "# notes of mine\n"


def test_rotation_loses_nothing_and_each_file_stands_alone(path: Path, tmp_path: Path) -> None:
    long = "a content that every file shows for itself, as nobody reads two of them together. " * 4
    names, told = [], 0
    follower = Follower(PathFiles(path))

    def look() -> int:
        return sum(
            bytes(found.handle.read(found.offset, found.length)).count(b"\n")
            for found in follower.look().found
            if isinstance(found, Span)
        )

    with Recorder(path, rotate_bytes=32_000, strict=True) as recorder:
        first = recorder.item("first", long, kind="system_prompt")
        refs = [first]
        for number in range(60):
            with recorder.turn() as turn, turn.step():
                refs.append(recorder.item(f"i{number}", f"item {number} " + "y" * 300))
                recorder.assembly(refs[:1] + refs[-5:])
                recorder.injection()
            names.append(f"i{number}")
            told += look()
    told += look()
    files = sorted(tmp_path.glob("run*.jsonl"), key=lambda p: p.stat().st_mtime)
    assert len(files) >= 3
    assert all(file.stat().st_size <= 32_000 for file in files)
    assert sum(file.read_bytes().count(b"\n") for file in files) == told
    steps = [step for file in files for step in replayed(file)]
    sent = [step for step in steps if step["layer"] == "injected"]
    assert len({step["step_id"] for step in sent}) == 60
    assert len(steps) - 60 <= len(files)  # a step may lie across two files
    assert all(step["window"]["uncounted"] == 0 for step in steps)
    assert {r["item_id"] for file in files for r in data(file, "context.item.added")} == {"first", *names}


def test_bodies_go_on_in_a_rotated_file(path: Path, tmp_path: Path) -> None:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be brief. " * 20}]
    with Recorder(path, rotate_bytes=40_000, strict=True) as recorder:
        for number in range(30):
            messages.append({"role": "user", "content": f"question {number} " * 12})
            recorder.request(messages=messages, model="m")
    files = sorted(tmp_path.glob("run*.jsonl"), key=lambda p: p.stat().st_mtime)
    assert 2 <= len(files) <= 6
    turns = [step for file in files for step in replayed(file)]
    assert len(turns) == 30
    assert all(step["window"]["uncounted"] == 0 for step in turns)
    assert [sum(step["counts"][n] for n in ("added", "skipped")) for step in turns] == list(range(2, 32))


def test_processes_that_rotate_at_once_lose_nothing(path: Path, tmp_path: Path) -> None:
    code = """
import sys
from ctxctl import Recorder
recorder = Recorder(sys.argv[1], session="s", thread=sys.argv[2], rotate_bytes=50_000)
for number in range(600): recorder.item(f"{sys.argv[2]}/{number}", f"{number} " + "z" * 200)
print(recorder.dropped)
"""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path), f"t{n}"], env=env, stdout=subprocess.PIPE, text=True
        )
        for n in range(3)
    ]
    assert [process.communicate()[0] for process in processes] == ["0\n"] * 3
    names = [r["item_id"] for file in tmp_path.glob("run*.jsonl") for r in data(file, "context.item.added")]
    assert sorted(names) == sorted(f"t{n}/{i}" for n in range(3) for i in range(600))


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_file_that_goes_away_is_begun_anew(path: Path, how: str) -> None:
    with Recorder(path, strict=True) as recorder:
        recorder.item("a", "x")
        if how == "deleted":
            path.unlink()
        else:
            path.rename(path.with_suffix(".old"))
            time.sleep(sink.LOOK + 0.05)
        recorder.item("b", "x")
        recorder.item("a", "x")
    assert [record["item_id"] for record in data(path, "context.item.added")] == ["b", "a"]


def test_everything_is_told_anew_after_so_many_bytes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "TELL_AGAIN", 10_000)
    messages: list[dict[str, Any]] = []
    long = "told again and again, as each stretch of the trace stands for itself " * 3
    with Recorder(path, strict=True) as recorder:
        refs: list[str] = []
        for number in range(40):
            messages.append({"role": "user", "content": f"{number} {long}"})
            recorder.request(messages=messages)
            refs.append(recorder.item("shared", long, kind="file_excerpt"))
            with recorder.turn(thread="typed") as turn, turn.step():
                recorder.assembly([turn.item("one", long), turn.item(f"i{number}", f"{number}")])
                recorder.injection()
    steps = [step for step in replayed(path) if step["thread"] == "main"]
    assert [step["counts"]["added"] for step in steps] == [1] * 40
    assert path.read_text().count(f'"0 {long}"') > 2
    told = [
        e["data"]["metadata"]["ctxctl"] for e in events(path) if e["event_type"] == "context.assembly.created"
    ]
    assert sum("base" not in marks for marks in told) > 4


def test_a_write_that_hangs_opens_a_breaker(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "SLOW", 0.05)
    real = os.write

    def slow(fd: int, line: bytes) -> int:
        monkeypatch.setattr(sink.os, "write", real)
        time.sleep(0.1)
        return real(fd, line)

    recorder = Recorder(path)
    monkeypatch.setattr(sink.os, "write", slow)
    recorder.item("slow", "x")
    recorder.item("dropped", "x")
    time.sleep(0.6)
    recorder.item("again", "x")
    recorder.close()
    assert types(path) == ["item.added", vocab.RECORD_DROPPED, "item.added"]
    assert data(path, vocab.RECORD_DROPPED) == [{"n": 1, "reasons": {"slow": 1}, "first": 2, "last": 2}]


def test_with_fsync_the_name_of_each_new_file_is_on_the_disk_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[bool] = []
    """Of each, whether it was a directory."""
    fsync = os.fsync

    def noting(fd: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(fd).st_mode))
        fsync(fd)

    monkeypatch.setattr(sink.os, "fsync", noting)
    with Recorder(tmp_path / "new" / "run.jsonl", session="s", fsync=True, rotate_bytes=1500) as recorder:
        for n in range(20):
            recorder.item(f"item-{n}", "x" * 100)
    files = len(list((tmp_path / "new").iterdir()))
    assert files > 1
    assert synced[:3] == [False, True, False]
    assert sum(synced) == files


def test_a_disk_that_cannot_sync_is_told_of(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(sink.os, "fsync", fails)
    with Recorder(path, fsync=True, strict=True) as recorder:
        recorder.item("x", "y")
    assert recorder.written == len(events(path)) == 1
    assert "1 may not be on the disk (Input/output error)" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong",
    [{"path": None}, {"path": 7}, {"path": object()}, {"path": "a\0b"}, {"path": ""},
     {"rotate_bytes": "1 MB"}, {"redact": object()}, {"redact": "no such file"}],
)  # fmt: skip
def test_a_recorder_that_cannot_be_made_records_nothing(path: Path, wrong: dict[str, Any]) -> None:
    call: Any = Recorder
    recorder = call(**{"path": path, **wrong})
    with recorder.turn() as turn, turn.step() as step:
        step.item("x", "y")
        step.request(messages=[{"role": "user", "content": "x"}])
    recorder.close()
    assert recorder.written == 0
    assert recorder.dropped >= 2
    assert not path.exists()
    with pytest.raises((TypeError, ValueError, OSError, UsageError)):
        call(**{"path": path, **wrong}, strict=True)


def test_strange_names_are_made_fit(path: Path) -> None:
    call: Any = Recorder
    recorder = call(path, source=object(), session="a\nb\x1b[1m", thread=7, fsync=2)
    turn = recorder.turn(object(), session=["x"], thread="\ud800")
    turn.step(step_id=b"x", model=3).item("x", "y")
    recorder.close()
    (event,) = events(path)
    assert (event["source"], event["session_id"], event["thread_id"]) == ("ctxctl", "ab[1m", "?")


def test_what_comes_after_the_end_is_counted(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorder = Recorder(path)
    recorder.close()
    recorder.item("late", "x")
    recorder.close()
    recorder.close()
    assert capsys.readouterr().err.count("1 of 1 events are not in the trace (closed 1)") == 1


def test_a_call_from_within_a_call_is_written_behind_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(path, strict=True)
    real = os.write

    def write(fd: int, line: bytes) -> int:
        monkeypatch.setattr(sink.os, "write", real)
        recorder.item("inner", "from a signal handler")
        return real(fd, line)

    monkeypatch.setattr(sink.os, "write", write)
    recorder.item("outer", "x")
    recorder.close()
    assert [record["item_id"] for record in data(path, "context.item.added")] == ["outer", "inner"]


def test_signal_handlers_may_record(path: Path) -> None:
    recorder = Recorder(path, strict=True)
    hits: list[int] = []

    def handler(*_: object) -> None:
        hits.append(1)
        recorder.item(f"signal {len(hits)}", "x")

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        for number in range(3000):
            recorder.item(f"i{number}", "x" * 300)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    recorder.close()
    assert recorder.dropped == 0
    assert len(events(path)) == 3000 + len(hits)


def test_a_lock_that_never_comes_free_costs_a_bounded_wait(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "WAIT", 0.05)
    recorder = Recorder(path)
    recorder.item("a", "x")
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with recorder._core.journal._lock:
            held.set()
            done.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    recorder.item("b", "x")
    done.set()
    thread.join()
    recorder.item("c", "x")
    recorder.close()
    assert types(path) == ["item.added", vocab.RECORD_DROPPED, "item.added"]
    assert data(path, vocab.RECORD_DROPPED)[0]["reasons"] == {"busy": 1}


class Bad:
    """Everything that it can do wrong it does."""

    def __repr__(self) -> str:
        raise BaseException("no")

    __str__ = __iter__ = __len__ = __bool__ = __hash__ = __repr__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise ValueError("no")

    @property
    def content(self) -> str:
        raise RuntimeError("no")


class Model:
    def model_dump(self, **_: Any) -> Any:
        raise SystemError("no")


def cycle() -> Any:
    made: list[Any] = []
    made.append({"again": made})
    return made


def deep(levels: int) -> Any:
    made: Any = "x"
    for _ in range(levels):
        made = [made]
    return made


HOSTILE = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(st.characters()),
        st.binary(max_size=20),
        st.builds(Bad), st.builds(Model), st.builds(cycle), st.builds(lambda: 10**5000), st.just("\ud800"),
        st.builds(deep, st.sampled_from([90, 500, 20_000])), st.builds(object), st.builds(lambda: Bad),
        st.datetimes(), st.uuids(),
        st.decimals(), st.builds(lambda: iter([1])), st.builds(lambda: {Bad: 1, None: 2, 2.5: 3, (1,): 4,
        True: 5}),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=4),
        st.tuples(inner, inner),
        st.builds(lambda x: {"t": (x, frozenset([1, "a"]))}, inner),
    ),
    max_leaves=8,
)  # fmt: skip


@given(HOSTILE)
@settings(max_examples=200)
def test_any_value_becomes_json(value: Any) -> None:
    assert isinstance(json.loads(values.encoded([value])), list)


@given(
    HOSTILE,
    HOSTILE,
    st.sampled_from(
        [
            "item",
            "surface",
            "selection",
            "budget",
            "assembly",
            "injection",
            "compaction",
            "missing",
            "redaction",
            "usage",
            "event",
            "remove",
            "request",
            "turn",
        ]
    ),
)
@settings(max_examples=150)
def test_no_call_raises_whatever_it_is_given_and_every_line_is_valid(
    tmp_path_factory: pytest.TempPathFactory, one: Any, two: Any, name: str
) -> None:
    path = tmp_path_factory.mktemp("hostile") / "x.jsonl"
    with open(os.devnull, "w") as null:
        recorder, err = Recorder(path), sys.stderr
        call: Any = getattr(recorder, name)
        call(one)
        call(one, metadata=two) if name != "turn" else call(session=two)
        call(items=two, model=one, scope=two) if name not in ("turn", "request") else call(thread=one)
        recorder.item("x", one, title=two, source=one)
        recorder.item("y", "fine", extra=two)
        try:
            sys.stderr = null
            recorder.close()
        finally:
            sys.stderr = err
    if path.exists():
        found = events(path)
        assert any(event["data"].get("item_id") == "y" for event in found)


def test_huge_texts_and_records_are_cut_and_say_so(path: Path) -> None:
    with Recorder(path, strict=True) as recorder:
        recorder.item("x", "y" * (values.TEXT + 100))
        recorder.item("z", {"a": ["w" * 1_000_000] * 60})
        recorder.item("many", [0] * (values.VALUES + 10))
    assert path.stat().st_size < 64 << 20
    text = path.read_text()
    assert f"[ctxctl: cut here; {values.TEXT + 100} characters in all]" in text
    assert "left out, the record is too large" in text
