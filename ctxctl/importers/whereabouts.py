"""Where a session ran, as its log says: the directory in which it began, and the branch at each time.

An imported trace tells the directory as well (`directory_of`): views show paths from there.
Branches are found by a pass beside the import, for they have no place in a trace: nothing of it is context.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from ctxctl.errors import CtxctlError
from ctxctl.ingest.lines import ignore_problem, lines
from ctxctl.trace.decode import parse_line
from ctxctl.trace.source import Source, open_source

_HEAD: Final = 256
"""Bytes of a line of Codex in which its type stands."""
_BEGINNING: Final = 256 << 10
"""Bytes of a log in which its directory is looked for; the line of Codex that has it holds its prompt too."""
_LONGEST: Final = 1000
_NAMES: Final = (b'"cwd"', b'"working_dir"')
_PLACES: Final = (("cwd",), ("payload", "cwd"), ("data", "context", "cwd"), ("working_dir",))
_ABSOLUTE: Final = re.compile(r"/|[A-Za-z]:[\\/]")


class Whereabouts(NamedTuple):
    """Where one session ran."""

    directory: str | None = None
    branches: tuple[tuple[str, str], ...] = ()
    """Time and branch, whenever that is another."""

    def branch(self, time: str | None) -> str | None:
        """The branch at a time, the first one before any; None where none is recorded."""
        if not self.branches:
            return None
        at = bisect_right(self.branches, (time or "", "\U0010ffff")) - 1
        return self.branches[max(0, at)][1]


class _Git(msgspec.Struct):
    branch: str | None = None


class _Payload(msgspec.Struct):
    cwd: str | None = None
    git: _Git | None = None


class _Line(msgspec.Struct):
    """What lines of the known logs say of it."""

    timestamp: str | None = None
    cwd: str | None = None
    branch: str | None = msgspec.field(default=None, name="gitBranch")
    payload: _Payload | None = None


_DECODER: Final = msgspec.json.Decoder(_Line)
_TOLD_BY: Final[dict[str, tuple[bytes, ...]]] = {
    "claude-code": (b"",),
    "codex": (b'"session_meta"',),
    "droid": (b'"session_start"', b'"cwd"'),
    "pi": (b'"session"',),
    "qwen-code": (b'"cwd"',),
}
"""By format, what stands at the beginning of lines that tell; lines without are passed over."""


def directory_of(source: Source) -> str | None:
    """The absolute path of the directory in which the session of a log began; None where its first lines do
    not say.

    Told by Claude Code (transcripts and streams), Codex, Copilot CLI, Droid, Goose, pi and Qwen Code.
    """
    for line in source.read(0, _BEGINNING).split(b"\n"):
        if not any(word in line for word in _NAMES):
            continue
        value = parse_line(line)
        for path in _PLACES if value is not None else ():
            found: Any = value
            for name in path:
                found = found.get(name) if isinstance(found, dict) else None
            if isinstance(found, str) and len(found) <= _LONGEST and _ABSOLUTE.match(found):
                return found
    return None


def recorded_directory(path: str) -> str | None:
    """As `directory_of`, of a file; None for a directory, and for a file that cannot be read."""
    if Path(path).is_dir():
        return None
    with suppress(CtxctlError, OSError), open_source(path) as source:
        return directory_of(source)
    return None


def whereabouts(path: str, format_name: str) -> Whereabouts:
    """Where a session ran; nothing where the format does not say, or the file cannot be read."""
    words = _TOLD_BY.get(format_name)
    if words is None or Path(path).is_dir():
        return Whereabouts()
    directory: str | None = None
    branches: list[tuple[str, str]] = []
    try:
        with open_source(path) as source:
            for line in lines(source, ignore_problem):
                told = _told(line.data, words)
                if told is None:
                    continue
                payload = told.payload or _Payload()
                directory = directory or told.cwd or payload.cwd
                branch = told.branch or (payload.git.branch if payload.git is not None else None)
                if branch and (not branches or branches[-1][1] != branch):
                    branches.append((told.timestamp or "", branch))
    except (CtxctlError, OSError):
        pass
    return Whereabouts(directory, tuple(sorted(branches)))


def _told(data: bytes, words: tuple[bytes, ...]) -> _Line | None:
    """What a line tells; None for one that does not, and for a damaged one."""
    head = data[:_HEAD]
    if words != (b"",) and not any(word in head for word in words):
        return None
    try:
        return _DECODER.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
