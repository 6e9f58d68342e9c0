"""The pager that long reports go through on a terminal, as git has it.

``CTXCTL_PAGER``, else ``PAGER``, else ``less``; empty or ``cat`` is none.  ``less`` is told to end by itself
where all of it fits on the screen, to show colours and to leave the text on the screen.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from contextlib import suppress
from typing import Final

_LESS: Final = "FRX"


class Pager:
    """A running pager; what it is sent, it shows."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def write(self, data: bytes) -> None:
        """Send it bytes that are fit for a terminal; raises BrokenPipeError where it was left."""
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def close(self) -> None:
        """Say that this was all, and wait until the reader has left it."""
        assert self._process.stdin is not None
        with suppress(OSError):  # it was left before its end
            self._process.stdin.close()
        while True:
            try:
                self._process.wait()
                return
            except KeyboardInterrupt:  # is the pager's to answer: it has the terminal
                continue


def started_pager() -> Pager | None:
    """The user's pager, started on the terminal; None where none is wanted, or it is not there."""
    command = wanted_pager()
    if command is None:
        return None
    environment = {"LESS": _LESS, "LV": "-c", **os.environ}
    try:
        # The user's own command, and a shell's, as everywhere.
        process = subprocess.Popen(command, shell=True, stdin=subprocess.PIPE, env=environment)
    except OSError:
        return None
    return Pager(process)


def wanted_pager() -> str | None:
    """The command of the pager; None for none."""
    for name in ("CTXCTL_PAGER", "PAGER"):
        if name in os.environ:
            command = os.environ[name].strip()
            return command if command not in ("", "cat") and _is_there(command) else None
    return "less" if shutil.which("less") else None


def _is_there(command: str) -> bool:
    """Whether the program of a command line is there, as far as can be seen without a shell."""
    try:
        words = shlex.split(command)
    except ValueError:
        return True
    return bool(words) and ("=" in words[0] or shutil.which(words[0]) is not None)
