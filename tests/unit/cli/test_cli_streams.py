"""Streams, terminals, pipes and exit codes, in real processes."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

TRACES = Path(__file__).parent.parent.parent / "golden" / "traces"
WINDOW = str(TRACES / "window.jsonl")
COMMAND = [sys.executable, "-m", "ctxctl"]
PROGRESS = re.compile(rb"\r\x1b\[2K(?:ctxctl: \w+(?: \d+%)? \.\.\.)?")
ROOT = Path(__file__).parent.parent.parent.parent

pytestmark = pytest.mark.usefixtures("one_cache")


def ctxctl(*arguments: str, **given: object) -> subprocess.CompletedProcess[bytes]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), **given.pop("env", {})}  # type: ignore[dict-item]
    given.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run(
        [*COMMAND, *arguments],
        env=env,
        stderr=subprocess.PIPE,
        timeout=60,
        **{"stdout": subprocess.PIPE, **given},
    )  # type: ignore[call-overload]


def on_terminal(*arguments: str, env: dict[str, str] | None = None, columns: int = 80) -> tuple[int, bytes]:
    """Run on a pseudo-terminal; the exit code and what was written, without the progress line."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update({"PYTHONPATH": str(ROOT), "TERM": "xterm-256color"})
        os.environ.pop("COLUMNS", None)
        os.environ.update(env or {})
        os.execv(sys.executable, [*COMMAND, *arguments])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    seen = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if not select.select([fd], [], [], 1)[0]:
            continue
        try:
            data = os.read(fd, 65536)
        except OSError:
            break
        if not data:
            break
        seen += data
    os.close(fd)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), PROGRESS.sub(b"", seen)


def test_data_on_stdout_narration_on_stderr() -> None:
    done = ctxctl("replay", str(TRACES / "damaged.jsonl"))
    assert done.returncode == 0
    assert b"1 turn, 1 step" in done.stdout
    assert b"bad-json" not in done.stdout
    assert f"{TRACES / 'damaged.jsonl'}:5: byte 1644: bad-json: ".encode() in done.stderr
    assert ctxctl("replay", WINDOW).stderr == b""


def test_stdin() -> None:
    data = Path(WINDOW).read_bytes()
    named = ctxctl("replay", WINDOW).stdout
    piped = ctxctl("replay", "-", stdin=None, input=data)
    assert piped.returncode == 0
    assert piped.stdout == named.replace(b"window.jsonl", b"-")
    shown = ctxctl("show", "-@2.1", "--text", "--stage", "assembly", stdin=None, input=data)
    assert shown.stdout.endswith(b"And on Saturday?\n")


@pytest.mark.parametrize("arguments", [("--json",), ("--plain",), ("--json", "--all")], ids=" ".join)
def test_two_runs_give_the_same_bytes(arguments: tuple[str, ...]) -> None:
    one, two = (ctxctl("replay", WINDOW, *arguments, env={"PYTHONHASHSEED": seed}) for seed in ("1", "2"))
    assert one.stdout == two.stdout
    assert one.returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("replay", WINDOW), ("replay", WINDOW, "--json"), ("--version",), ("formats",), ("--help",),
        ("import", "--help"), ("fleet", "ask", "--help"),
    ],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_said_and_exits_1(unbuffered: str, arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        done = ctxctl(*arguments, stdout=full, env={"PYTHONUNBUFFERED": unbuffered})
    assert done.returncode == 1
    assert done.stderr == b"ctxctl: error: cannot write to standard output: No space left on device\n"


def test_a_closed_stdout_is_said_and_exits_1() -> None:
    done = ctxctl("replay", WINDOW, stdout=None, preexec_fn=lambda: os.close(1))
    assert done.returncode == 1
    assert done.stderr == b"ctxctl: error: standard output is closed\n"


@pytest.mark.parametrize(
    "arguments", [("replay", WINDOW), ("replay", WINDOW, "--json")], ids=["plain", "json"]
)
def test_a_reader_that_goes_away_ends_it_quietly(arguments: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = ctxctl(*arguments, stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_closed_stderr_is_nobodys_loss() -> None:
    done = ctxctl("replay", str(TRACES / "damaged.jsonl"), preexec_fn=lambda: os.close(2))
    assert done.returncode == 0
    assert b"1 turn, 1 step" in done.stdout
    assert ctxctl("replay", "nowhere.jsonl", preexec_fn=lambda: os.close(2)).returncode == 3


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_an_output_encoding_that_lacks_characters(encoding: str) -> None:
    done = ctxctl("replay", str(TRACES / "hostile.jsonl"), env={"PYTHONIOENCODING": encoding, "LC_ALL": "C"})
    assert done.returncode == 0
    assert done.stderr == b""
    done.stdout.decode(encoding)
    lines = ctxctl("replay", str(TRACES / "hostile.jsonl"), "--json", env={"PYTHONIOENCODING": encoding})
    lines.stdout.decode("utf-8")


def test_a_terminal_gets_colour_and_its_width() -> None:
    code, seen = on_terminal("replay", WINDOW, "--plain", "--steps", columns=60)
    assert code == 0
    assert b"\x1b[32m+ added\x1b[0m" in seen
    plain = seen.replace(b"\r", b"").decode()
    assert max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in plain.split("\n")) <= 60


@pytest.mark.parametrize(
    ("env", "arguments"),
    [
        ({"NO_COLOR": "1"}, ()),
        ({"TERM": "dumb"}, ()),
        ({}, ("--color", "never")),
        ({"CTXCTL_COLOR": "never"}, ()),
    ],
)
def test_no_colour_where_it_is_unwanted(env: dict[str, str], arguments: tuple[str, ...]) -> None:
    code, seen = on_terminal("replay", WINDOW, "--plain", "--steps", *arguments, env=env)
    assert code == 0
    assert b"\x1b" not in seen
    assert b"+ added" in seen


def test_a_dumb_terminal_gets_the_report() -> None:
    code, seen = on_terminal("replay", WINDOW, env={"TERM": "dumb"})
    assert code == 0
    assert b"\x1b" not in seen
    assert b"2 turns, 3 steps" in seen


def test_json_has_no_colour_even_on_a_terminal() -> None:
    code, seen = on_terminal("replay", str(TRACES / "hostile.jsonl"), "--json", "--color", "always")
    assert code == 0
    assert b"\x1b" not in seen
    assert "\x9b".encode() not in seen


def test_hostile_traces_reach_no_terminal() -> None:
    for arguments in (("replay", "--plain"), ("replay", "--steps"), ("show", "--text"), ("show",), ("diff",)):
        target = str(TRACES / "hostile.jsonl") + ("@2" if arguments[0] == "diff" else "")
        code, seen = on_terminal(arguments[0], target, *arguments[1:], "--color", "never")
        assert code == 0
        text = seen.decode().replace("\r\n", "\n")
        assert not {
            c for c in text if (c < " " and c != "\n") or "\x7f" <= c <= "\x9f" or "\u2066" <= c <= "\u2069"
        }
        assert not [line for line in text.split("\n") if line.lstrip().startswith("::")]
        assert "##[" not in text
        assert "##vso[" not in text


def test_interrupted() -> None:
    reading, writing = os.pipe()
    child = subprocess.Popen(
        [*COMMAND, "replay", "-"], stdin=reading, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    os.write(writing, Path(WINDOW).read_bytes())
    while any(fcntl.ioctl(reading, termios.FIONREAD, bytes(4))):  # until it has read all, and waits for more
        assert child.poll() is None
        time.sleep(0.02)
    os.close(reading)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    os.close(writing)
    assert child.returncode == 130
    assert err == b"ctxctl: interrupted\n"
    assert out == b""


def test_a_long_piece_of_work_shows_a_line_and_takes_it_away(tmp_path: Path) -> None:
    script = tmp_path / "slow.py"
    script.write_text(
        "import sys, time\n"
        "from ctxctl.cli.output import Output\n"
        "out = Output()\n"
        "with out.progress('replaying') as progress:\n"
        "    progress(0.25)\n"
        "    time.sleep(1.2)\n"
        "    out.lines(['data'])\n"
        "    out.flush()\n"
    )
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update({"PYTHONPATH": str(ROOT), "TERM": "xterm"})
        os.execv(sys.executable, [sys.executable, str(script)])
    seen = b""
    while True:
        try:
            data = os.read(fd, 4096)
        except OSError:
            break
        if not data:
            break
        seen += data
    os.close(fd)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code == 0
    assert b"ctxctl: replaying 25% ..." in seen
    assert seen.endswith(b"\r\x1b[2Kdata\r\n")


def test_no_progress_on_a_pipe() -> None:
    assert ctxctl("replay", WINDOW).stderr == b""


@pytest.mark.slow
def test_replay_on_a_terminal_opens_the_ui_and_quits_clean() -> None:
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update({"PYTHONPATH": str(ROOT), "TERM": "xterm-256color"})
        os.execv(sys.executable, [*COMMAND, "replay", WINDOW])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    seen = b""
    asked = 0.0
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if b"\x1b[?1049h" in seen and time.monotonic() - asked > 2:
            os.write(fd, b"q")
            asked = time.monotonic()
        if not select.select([fd], [], [], 0.2)[0]:
            continue
        try:
            data = os.read(fd, 65536)
        except OSError:
            break
        if not data:
            break
        seen += data
    os.close(fd)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert b"\x1b[?1049l" in seen
    assert b"Traceback" not in seen
