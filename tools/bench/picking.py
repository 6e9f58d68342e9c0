"""What the list of sessions costs until its first screen is there: ``ctxctl`` alone, on a pty."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Final

_PATIENCE: Final = 120.0
"""Seconds after which a list that does not come is given up."""
_COUNTED: Final = re.compile(rb"[0-9,]+ sessions")
_LIVE: Final = re.compile(rb"([0-9,]+) going on")
_WRITTEN: Final = 2
"""Sessions that are written to just before."""


def measure(home: str, directory: str) -> None:
    """Print seconds of CPU until the list is there, and how many sessions are live in it."""
    for path in sorted(Path(home).rglob("*.jsonl"))[:_WRITTEN]:
        os.utime(path)
    own, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "CTXCTL_STATE": "off"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    program = subprocess.Popen(
        [sys.executable, "-m", "ctxctl"], stdin=theirs, stdout=theirs, stderr=theirs, cwd=directory,
        env=environment, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    try:
        shown = _until_listed(own)
        print(_cpu(program.pid), int((_LIVE.findall(shown) or [b"0"])[-1].replace(b",", b"")))
    finally:
        program.kill()
        program.wait()
        os.close(own)


def _until_listed(terminal: int) -> bytes:
    shown, end = b"", time.monotonic() + _PATIENCE
    while not _COUNTED.search(shown):
        if time.monotonic() > end:
            sys.exit(f"no list of sessions came: {shown[-300:]!r}")
        if select.select([terminal], [], [], 0.01)[0]:
            shown += os.read(terminal, 1 << 16)
    while select.select([terminal], [], [], 0.05)[0]:  # the rest of that screen
        shown += os.read(terminal, 1 << 16)
    return shown


def _cpu(pid: int) -> float:
    """Seconds of CPU that a process has used so far, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
