"""Commands of the user's that are run for each turn that is over."""

from __future__ import annotations

import os
import subprocess
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final

from ctxctl.cli.output import note

_GRACE: Final = 5.0
"""Seconds for the commands that are still to be run, after an interrupt."""

_Job = tuple[str, dict[str, str], bytes]


class Hooks:
    """Runs one shell command a turn, one after the other, in a thread: watching never waits for them.

    The command line is the user's alone.  What the trace says comes on standard input and in variables; the
    command's standard output goes to our standard error, because ours is data.
    """

    def __init__(self, command: str) -> None:
        self._command = command
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="ctxctl-exec", daemon=True)
        self._thread.start()

    def turn(self, name: str, variables: dict[str, str], data: bytes) -> None:
        """Run the command for one turn; `name` is for messages."""
        self._jobs.put((name, variables, data))

    def close(self, *, patient: bool) -> None:
        """Wait for the commands; `patient`: for as long as they take."""
        self._jobs.put(None)
        self._thread.join(None if patient else _GRACE)
        if self._thread.is_alive():
            left = 0
            try:
                while self._jobs.get_nowait() is not None:
                    left += 1
            except Empty:
                pass
            note(f"ctxctl: --exec: still running; {left} more were not begun")

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            name, variables, data = job
            try:
                self._one(name, variables, data)
            except (OSError, ValueError) as error:
                note(f"ctxctl: --exec: turn {name}: {error}")

    def _one(self, name: str, variables: dict[str, str], data: bytes) -> None:
        env = dict(os.environb)
        for key, value in variables.items():
            env[f"CTXCTL_{key}".encode()] = value.replace("\0", "").encode("utf-8", "replace")
        process = subprocess.Popen(
            self._command, shell=True, stdin=subprocess.PIPE, stdout=2, env=env, start_new_session=True
        )
        try:
            process.communicate(data)
        except BrokenPipeError:  # it does not care for the turn
            process.wait()
        if process.returncode:
            how = f"exit code {process.returncode}" if process.returncode > 0 else "ended by a signal"
            note(f"ctxctl: --exec: turn {name}: {how}")
