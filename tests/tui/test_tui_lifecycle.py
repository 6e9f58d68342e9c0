"""What is kept aside while the UI has the terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from ctxctl.tui import lifecycle

PANIC = """a warning
thread '<unnamed>' panicked at src/lib.rs:7:5:
byte index 3 is not a char boundary; it is inside 'SECRET'
more of SECRET
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace

thread 'main' (12) panicked at /x/y.rs:1:1:
SECRET

another warning
"""


def test_a_panic_is_told_without_what_it_quotes() -> None:
    lines = lifecycle.without_panics(PANIC)
    assert lines == [
        "a warning",
        "thread '<unnamed>' panicked at src/lib.rs:7:5:",
        "thread 'main' (12) panicked at /x/y.rs:1:1:",
        "another warning",
    ]
    assert len(lifecycle.without_panics("x\n" * 1000)) == 20


def test_without_a_terminal_nothing_is_redirected() -> None:
    code = (
        "import os, sys\n"
        "from ctxctl.tui import lifecycle\n"
        "before = sys.__stderr__\n"
        "with lifecycle.stderr_kept_aside() as aside:\n"
        "    assert sys.__stderr__ is before\n"
        "    os.write(2, b'told at once')\n"
        "assert aside.lines == []\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "told at once")


def test_no_terminal_no_keys() -> None:
    code = (
        "import os; os.setsid()\n"
        "from ctxctl.tui import lifecycle\n"
        "assert not lifecycle.keys_from_terminal()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_interrupts_are_for_the_program_that_has_the_terminal() -> None:
    before = signal.getsignal(signal.SIGINT)
    with lifecycle.without_interrupts():
        os.kill(os.getpid(), signal.SIGINT)
        done = subprocess.run(
            [sys.executable, "-c", "import signal; print(signal.getsignal(signal.SIGINT).__name__)"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    assert done.stdout.strip() == "default_int_handler"
    assert signal.getsignal(signal.SIGINT) is before
