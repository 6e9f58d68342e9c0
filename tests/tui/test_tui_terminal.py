"""On a real terminal: whatever ends the program, the terminal is as it was and the exit code says why."""

from __future__ import annotations

import base64
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import terminal as ptys
from terminal import PATIENCE, Terminal, child, harm
from test_tui_tour import trace_of

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="needs a pty"),
    pytest.mark.slow,
    pytest.mark.usefixtures("one_cache"),
]


def terminal(
    what: str = "notes", before: Callable[[], None] | None = None, **settings: object
) -> AbstractContextManager[Terminal]:
    """The made-up trace on a terminal."""
    return ptys.terminal(child(what), before=before, **settings)


@pytest.mark.parametrize(("keys", "code"), [("q", 0), ("\x03", 130)])
def test_keys_that_leave(keys: str, code: int) -> None:
    with terminal() as tty:
        tty.wait_for("what changed in turn 1")
        tty.type(keys)
        assert tty.wait() == code
        tty.assert_restored()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda n: n.name)
def test_signals_restore_the_terminal(number: signal.Signals) -> None:
    with terminal() as tty:
        tty.wait_for("what changed in turn 1")
        tty.process.send_signal(number)
        assert tty.wait() == 128 + number
        tty.assert_restored()


TRACES = Path(__file__).parents[2] / "traces"
_HELD = (
    *(":\r", ":\x1b", "\r", ":", "?", "v\x1b", "D\x1b", "/a\r", "/\x1b", "W\x1b", "w\x1b", "f\r", "t\x1b"),
    *(":theme\r", ":help\r"),
)
_ONCE = (
    *"jkhlgGnNzZdDsSxaBbCtvwymRuFLpWf[]{}!123,.<>",
    *("\r", "\x1b", "\t", "\x7f", "\x1b[A", "\x1b[B", "\x1b[5~", "\x1b[6~"),
)


@pytest.mark.parametrize("seed", range(2))
def test_random_and_held_keys_at_a_tenth_of_the_speed_end_nothing(seed: int, tmp_path: Path) -> None:
    chance, going = random.Random(seed), threading.Event()

    def slowed(process: subprocess.Popen[bytes]) -> None:
        while going.is_set() and process.poll() is None:
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.09)
            process.send_signal(signal.SIGCONT)
            time.sleep(0.01)

    command = [sys.executable, "-m", "ctxctl", "replay", str(TRACES / "notes-assistant.jsonl")]
    environment = {"CTXCTL_STATE_DIR": str(tmp_path)}
    with ptys.terminal(command, environment=environment, size=(100, 30)) as tty:
        tty.wait_for("what changed in turn 1")
        going.set()
        slow = threading.Thread(target=slowed, args=[tty.process])
        slow.start()
        pressed, end = [], time.monotonic() + 12
        while time.monotonic() < end and tty.process.poll() is None:
            held = chance.random() < 0.3
            pressed.append(chance.choice(_HELD) * chance.randint(3, 30) if held else chance.choice(_ONCE))
            tty.type(pressed[-1])
            tty.read(0.05)
        going.clear()
        slow.join()
        tty.process.send_signal(signal.SIGTERM)
        assert tty.wait() in (0, 143), (pressed, tty.farewell)
        tty.assert_restored()
        assert "ctxctl:" not in tty.farewell


def test_a_crash_exits_non_zero_and_tells_no_data() -> None:
    with terminal("crash") as tty:
        tty.wait_for("what changed in turn 1")
        tty.type("]")
        assert tty.wait() == 70
        tty.assert_restored()
        assert "ctxctl: internal error: ValueError at " in tty.farewell
        assert "SECRET" not in tty.seen
        assert "Traceback" not in tty.seen


def test_a_trace_that_cannot_be_read_is_told_after_the_screen_is_left() -> None:
    with terminal("unreadable") as tty:
        assert tty.wait() == 3
        tty.assert_restored()
        assert "ctxctl: no readable event in ␛]0;x␇" in tty.farewell
        assert "is it a trace?" in tty.farewell


def test_leaving_does_not_wait_for_a_trace_that_is_being_read() -> None:
    with terminal("slow") as tty:
        tty.wait_for("reading the trace")
        started = time.monotonic()
        tty.type("q")
        assert tty.wait() == 0
        assert time.monotonic() - started < 20
        tty.assert_restored()


def test_a_terminal_that_goes_away_ends_the_process() -> None:
    def deaf() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    with terminal(before=deaf) as tty:
        tty.wait_for("what changed in turn 1")
        os.close(tty.slave)
        os.close(tty.master)
        assert tty.process.wait(PATIENCE) == 128 + signal.SIGHUP


def test_bytes_of_a_hostile_trace() -> None:
    with terminal("hostile") as tty:
        tty.wait_for("⟨U+202E⟩")
        for keys in ("j", "\r", "j", "\r", "d"):
            tty.type(keys)
            tty.read(0.3)
        tty.type("t")
        tty.rest(0.5)
        tty.type("q")
        tty.type("q")
        assert tty.wait() == 0
    assert harm(tty.bytes.decode("utf-8")) == []


# What else has the terminal


def test_stopping_and_going_on() -> None:
    with terminal() as tty:
        tty.wait_for("what changed in turn 1")
        for _ in range(2):
            before = len(tty.bytes)
            tty.type("\x1a")
            tty.wait_for("\x1b[?1049l", before)
            wait_until(lambda: _stopped(tty.process.pid))
            before = len(tty.bytes)
            tty.process.send_signal(signal.SIGCONT)
            tty.wait_for("what changed in turn 1", before)
        tty.type("]")
        tty.wait_for("what changed in turn 2")
        tty.type("q")
        assert tty.wait() == 0
        tty.assert_restored()


def wait_until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


def _stopped(pid: int) -> bool:
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return done.stdout.strip().startswith("T")


def test_what_libraries_write_is_kept_off_the_screen_and_told_after() -> None:
    with terminal("panic") as tty:
        tty.wait_for("what changed in turn 1")
        tty.type("]")
        tty.rest(0.3)
        tty.type("q")
        assert tty.wait() == 0
        tty.assert_restored()
        assert "panicked" not in tty.seen.rpartition("\x1b[?1049l")[0]
        assert "panicked at src/lib.rs:7:5" in tty.farewell
        assert "a library ␛[2Jwarns" in tty.farewell
        assert "SECRET" not in tty.seen


def test_with_standard_error_elsewhere_the_ui_is_still_on_the_terminal(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log, terminal("panic", stderr=log.fileno()) as tty:
        tty.wait_for("what changed in turn 1")
        tty.type("]")
        tty.rest(0.3)
        tty.type("q")
        assert tty.wait() == 0
        tty.assert_restored()
    assert b"panicked" in (tmp_path / "log").read_bytes()
    assert b"\x1b[?1049h" not in (tmp_path / "log").read_bytes()


def test_resizing_over_and_over() -> None:
    with terminal() as tty:
        tty.wait_for("what changed in turn 1")
        for n in range(60):
            tty.resize(1 + n * 37 % 210, 1 + n * 13 % 60)
            tty.process.send_signal(signal.SIGWINCH)
            tty.read(0.01)
        tty.resize(80, 24)
        tty.process.send_signal(signal.SIGWINCH)
        tty.rest(0.3)
        tty.type("]")
        tty.wait_for("turn 2/3")
        # What stands there already is not painted again, unless all is.
        before = len(tty.bytes)
        tty.resize(100, 30)
        tty.process.send_signal(signal.SIGWINCH)
        tty.wait_for("what changed in turn 2", before)
        tty.type("q")
        assert tty.wait() == 0


def test_a_trace_through_a_pipe_is_shown_and_keys_come_from_the_terminal(tmp_path: Path) -> None:
    path = trace_of(("one", "two", "three"), tmp_path / "t.jsonl")
    reading, writing = os.pipe()
    with ptys.terminal([sys.executable, "-m", "ctxctl", "replay", "-"], stdin=reading) as tty:
        os.close(reading)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(path.read_bytes())
        tty.wait_for("what changed in turn 1")
        tty.type("]")
        tty.wait_for("what changed in turn 2")
        tty.type("q")
        assert tty.wait() == 0
        tty.assert_restored()


def test_a_pager_has_the_terminal_and_gives_it_back(tmp_path: Path) -> None:
    pager = tmp_path / "my pager"
    pager.write_text(
        f"#!/bin/sh\ntrap 'touch \"{tmp_path}/interrupted\"' INT\n"
        f"cp \"$1\" '{tmp_path}/copy'; echo \"$1\" > '{tmp_path}/name'\n"
        "printf 'PAGER HAS IT '; stty -a <&0 | grep -q ' icanon' && printf 'as it was'\n"
        "read line; read line; exit 0\n"
    )
    pager.chmod(0o700)
    environment = {"PAGER": f"'{pager}'", "TMPDIR": str(tmp_path)}
    with terminal("hostile", environment=environment) as tty:
        tty.wait_for("what changed in turn 1")
        tty.type("?")
        tty.wait_for("keys")
        tty.type("o")
        tty.wait_for("PAGER HAS IT as it was")
        before = len(tty.bytes)
        tty.type("\x03")  # meant for the pager, which shows it has gone
        wait_until((tmp_path / "interrupted").exists)
        tty.type("\r\r")
        tty.wait_for("\x1b[?1049h", before)
        tty.rest(0.3)
        tty.type("\x1b")
        tty.rest(0.3)
        tty.type("q")
        assert tty.wait() == 0
        tty.assert_restored()
    assert "next turn" in (tmp_path / "copy").read_text()
    assert not Path((tmp_path / "name").read_text().strip()).exists()


def test_the_clipboard_gets_text_made_visible() -> None:
    with terminal("hostile") as tty:
        tty.wait_for("what changed in turn 1")
        tty.type("p")
        tty.rest(0.3)
        tty.type("y")
        tty.wait_for("sent to the clipboard")
        tty.type("\x1b")
        tty.rest(0.3)
        tty.type("q")
        assert tty.wait() == 0
    sent = re.findall(r"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07", tty.seen)
    assert len(sent) == 1
    copied = base64.b64decode(sent[0]).decode("utf-8")
    assert "␛]52;c;" in copied
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", copied)


def test_nothing_is_written_at_home_but_what_is_remembered(tmp_path: Path) -> None:
    path = trace_of(("one", "two", "three"), tmp_path / "t.jsonl")
    state = tmp_path / "state"
    for turn in (1, 2):
        command = [sys.executable, "-m", "ctxctl", "replay", str(path)]
        with ptys.terminal(command, environment={"CTXCTL_STATE_DIR": str(state)}) as tty:
            tty.wait_for(f"what changed in turn {turn}")
            tty.rest(0.3)
            if turn == 1:
                tty.type("]")
                tty.wait_for("what changed in turn 2")
            tty.type("q")
            assert tty.wait() == 0
    assert [entry.name for entry in state.iterdir()] == ["ui.json"]
    kept = json.loads((state / "ui.json").read_text())
    assert [left["ordinal"] for left in kept["traces"].values()] == [1]


def test_wrong_keys_in_the_settings_are_told_at_once(tmp_path: Path) -> None:
    path = trace_of(("one",), tmp_path / "t.jsonl")
    (tmp_path / "ctxctl.toml").write_text('[keys]\n"turn.nxt" = "n"\n')
    command = [sys.executable, "-m", "ctxctl", "replay", str(path)]
    with ptys.terminal(command, environment={"CTXCTL_CONFIG": str(tmp_path / "ctxctl.toml")}) as tty:
        assert tty.wait() == 2
    assert "nothing is called 'turn.nxt'" in tty.seen
    assert "did you mean turn.next" in tty.seen
    assert "\x1b[?1049h" not in tty.seen
