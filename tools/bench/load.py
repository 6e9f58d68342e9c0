"""What a capture makes Python do, in things that are taken up one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REQUEST = 10
"""Requests, of any format, for which a reading may take as long as a bare start of Python does.

What they cost is Python: one is imported, told from the one before, weighed, priced, kept and written.  A
floor of C alone (parsing, counting) does not grow with them, so that a multiple of it is a target for one
shape of capture only.  The machine's speed is in the bare start.  What was reached in November 2026 is 1/12
for a replay that is kept and printed.
"""
EVENT = 500
"""Events of a native trace that repeat what stood there before, likewise."""
SESSION = 4
"""Captures of a directory, likewise, beside their requests: to open, to recognise and to keep each."""
START = 12
"""Bare starts that a command takes by itself (section "start")."""


@dataclass(frozen=True)
class Load:
    """What a capture holds of what is taken up one by one."""

    requests: int = 0
    events: int = 0
    sessions: int = 0

    def starts(self) -> float:
        """Bare starts of Python that may be spent on it, beside the floor and the command's own start."""
        return self.requests / REQUEST + self.events / EVENT + self.sessions / SESSION

    def words(self) -> str:
        """The same as a target says it."""
        parts = [
            f"1/{number} {what}"
            for number, what, there in (
                (REQUEST, "a request", self.requests), (EVENT, "an event", self.events),
                (SESSION, "a session", self.sessions),
            )
            if there
        ]  # fmt: skip
        return f"{START} bare starts, and {', '.join(parts)}"


_INJECTION = b'"event_type":"context.injection.applied"'
_ANSWER = b'"type":"assistant","message":'


def of_trace(path: Path) -> Load:
    """The load of a native trace."""
    lines = requests = 0
    for piece in _pieces(path):
        lines += piece.count(b"\n")
        requests += piece.count(_INJECTION)
    return Load(requests=requests, events=lines)


def of_sessions(path: Path) -> Load:
    """The load of a Claude Code session, or of a directory of them; a session by itself is none of many."""
    if path.is_file():
        return Load(requests=sum(piece.count(_ANSWER) for piece in _pieces(path)))
    files = sorted(file for file in path.iterdir() if file.is_file())
    return Load(requests=sum(of_sessions(file).requests for file in files), sessions=len(files))


def _pieces(path: Path) -> Iterator[bytes]:
    """A file in stretches of whole lines."""
    with path.open("rb", buffering=1 << 20) as file:
        while lines := file.readlines(1 << 24):
            yield b"".join(lines)
