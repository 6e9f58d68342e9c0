"""The bytes of a live trace: a native file that grows, or a foreign capture.

A changed capture is imported whole, and compared with the previous import. Importers write the same for the
same beginning of a capture, except for lines about its end. So lines common to both imports are permanent,
and a few at the end are replaced each time.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, Protocol, cast

import orjson

from ctxctl.errors import CtxctlError
from ctxctl.importers.capture import open_capture
from ctxctl.importers.turn_ends import is_over
from ctxctl.model.problem import Problem, may_pass
from ctxctl.session.learned.choice import OFF, choose_set
from ctxctl.session.opening import Opened, write_native
from ctxctl.trace.follow import Follower, FollowRestart, OpenFile, PathFiles, Span, State
from ctxctl.trace.growing import GrowingSource, GrowingTrace
from ctxctl.trace.source import Source

_IMPORT_SHARE: Final = 0.3
"""Largest share of the time for importing."""
_RETRY_SECONDS: Final = 1.0
"""Seconds before an unreadable capture is tried again."""
_SETTLE_SECONDS: Final = 0.3
"""Seconds for which a capture that seems to have shrunk must not change: it may be half written."""
_TURN_END_SECONDS: Final = 0.5
"""Seconds in which a runtime may still write about a finished turn, such as its bill."""
ANEW: Final = "replayed-anew"
LATER: Final = "new lines change the meaning of the first steps; replayed from the first line"
_COPY: Final = 1 << 20
_MAX_FILES: Final = 20_000
_ABOUT = re.compile(rb'"event_type":"ctxctl\.(?:session\.ended|fidelity\.measured)"')
"""Lines that importers write about a capture's end, which are not permanent."""
_LEADING = re.compile(rb'"event_type":"context\.(?!assembly|injection|exported)')
"""Lines about content that no request has carried yet, which are not permanent either."""


class CaptureFeed:
    """A foreign capture, imported whole whenever it has changed, and compared with the previous import."""

    rewinds = True
    whole = False

    def __init__(
        self, name: str, path: Path, format_name: str | None, pause: Callable[[], None], learned: str = OFF
    ) -> None:
        self._name, self._path, self._format = name, path, format_name
        self._learned = learned
        self._pause = pause
        self._source: GrowingSource | None = None
        self._opened: Opened | None = None
        self._spool: OpenFile | None = None
        self._end = 0
        """Bytes in the temporary file."""
        self._last: BinaryIO | None = None
        """The bytes of the last import."""
        self._size = 0
        """Bytes of the last import that are in the source."""
        self._places: list[tuple[int, int]] = []
        """Where the import's bytes are in the source: pairs of (import, source), ascending."""
        self._mark: Marks | None = None
        self._free_at = 0.0
        """When the next import may begin."""
        self._short: tuple[Marks, float] | None = None
        self._over_at: float | None = None
        """When the turn counts as over, by the capture and if nothing more comes."""
        self._is_over = False
        self.aside = b""

    def look(self, now: float) -> FeedLook:
        """Import the capture again if it has changed and it is time."""
        marks = marks_of(self._path)
        if not marks:
            return FeedLook("waiting" if self._mark is None else "gone", False)
        if marks == self._mark or now < self._free_at:
            return FeedLook("following", False)
        self._over_at = None
        began, least = time.monotonic(), 0.0
        try:
            opened, made = self._imported()
        except CtxctlError as error:
            if may_pass(error.slug):
                least = _RETRY_SECONDS
            else:
                self._mark = marks
            return FeedLook("following", False, problems=(Problem(0, 0, error.slug, error.message),))
        finally:
            cost = time.monotonic() - began
            self._free_at = now + max(least, cost + cost * (1 - _IMPORT_SHARE) / _IMPORT_SHARE)
        if opened is None:
            made.close()
            self._mark = marks
            return FeedLook("following", False)
        if self._doubtful(marks, made, now):
            made.close()
            return FeedLook("following", False)
        grew = _grew(self._mark or {}, marks)
        self._mark, self._short = marks, None
        if self._is_over:
            self._over_at = time.monotonic() + _TURN_END_SECONDS
        return self._compare(opened, made, grew=grew)

    def _imported(self) -> tuple[Opened | None, BinaryIO]:
        file = cast("BinaryIO", tempfile.TemporaryFile(prefix="ctxctl-"))  # noqa: SIM115 - lives on
        problems: list[Problem] = []
        with open_capture(self._path, self._format) as capture:
            found = capture.format
            if found is None:
                return None, file
            used = choose_set(found.name, capture.source, self._learned)
            if used is not None:
                used.grows = True
            write_native(capture.source, found, problems, file, self._pause, used)
            self._is_over = isinstance(capture.source, Source) and is_over(found.name, capture.source)
            faults = capture.source.problems if isinstance(capture.source, Source) else ()
        file.flush()
        fresh = GrowingTrace(GrowingSource(self._name, self._path))
        reported = (*faults, *problems)
        return Opened(fresh, found.name, found.default_policy, reported, used), file

    def _doubtful(self, marks: Marks, made: BinaryIO, now: float) -> bool:
        """Return whether the capture may be half written: it lost lines, and did so only recently."""
        if self._last is None or _size_of(made) >= self._size:
            return False
        if self._short is None or self._short[0] != marks:
            self._short = (marks, now)
        self._free_at = max(self._free_at, self._short[1] + _SETTLE_SECONDS)
        return now - self._short[1] < _SETTLE_SECONDS

    def _compare(self, opened: Opened, made: BinaryIO, *, grew: bool) -> FeedLook:
        before, self._last = self._last, made
        known = self._opened
        self._opened = opened
        if before is None or known is None or known.format != opened.format:
            why = None
            if known is not None:
                why = Problem(0, 0, "trace-replaced", "the capture's format has changed")
            return self._begin(opened, why)
        common = _common(before, made, self._size)
        before.close()
        self._opened = opened._replace(trace=known.trace)
        rollback = None
        if common < self._size:
            if not common:
                otherwise = Problem(0, 0, "trace-replaced", "the beginning of the capture has changed")
                return self._begin(opened, Problem(0, 0, ANEW, LATER) if grew else otherwise)
            assert self._source is not None
            rollback = Rollback(self._address(common), self._source.size)
            self._places = [(a, b) for a, b in self._places if a < common]
            self._size = common
        self._settle(rollback is not None)
        return FeedLook("following", True, self._opened, None, rollback)

    def _begin(self, opened: Opened, why: Problem | None) -> FeedLook:
        if self._spool is not None:
            self._spool.close()
        with tempfile.TemporaryFile(prefix="ctxctl-") as file:
            self._spool = OpenFile(os.dup(file.fileno()))
        assert isinstance(opened.trace, GrowingTrace)
        self._source = opened.trace.source
        self._opened = opened
        self._end = self._size = 0
        self._places = [(0, 0)]
        self._settle(False)
        return FeedLook("following", True, opened, why)

    def _settle(self, moved: bool) -> None:
        """Append the permanent lines to the source. The rest stays aside."""
        assert self._last is not None
        size = _size_of(self._last)
        end = _for_good(self._last, self._size, size)
        if moved:
            assert self._source is not None
            self._places.append((self._size, self._source.size))
        self._copy(end)
        self.aside = os.pread(self._last.fileno(), size - end, end)

    def _copy(self, end: int) -> None:
        assert self._last is not None
        assert self._spool is not None
        assert self._source is not None
        begin = self._end
        while self._size < end:
            data = os.pread(self._last.fileno(), min(_COPY, end - self._size), self._size)
            if not data:
                break
            os.pwrite(self._spool.fd, data, self._end)
            self._end += len(data)
            self._size += len(data)
        self._source.add(self._spool, begin, self._end - begin)

    def _address(self, at: int) -> int:
        first, there = max((a, b) for a, b in self._places if a <= at)
        return there + at - first

    def due(self, now: float) -> float:
        """Return the seconds until the next import may begin, or the turn is over."""
        due = max(0.0, self._free_at - now) or 3600.0
        return due if self._over_at is None else min(due, max(0.0, self._over_at - now))

    def turn_over(self, now: float) -> bool:
        """Return whether the last recent event was the end of a turn."""
        if self._over_at is None or now < self._over_at or marks_of(self._path) != self._mark:
            return False
        self._over_at = None
        return True

    def last(self) -> FeedLook:
        """Append what was held back. Nothing more will come."""
        self.aside = b""
        if self._last is None:
            return FeedLook("waiting", False)
        self._copy(_size_of(self._last))
        return FeedLook("following", True)

    def again(self) -> Opened:
        """Open the last import again."""
        assert self._opened is not None
        fresh = GrowingTrace(GrowingSource(self._name, self._path))
        look = self._begin(self._opened._replace(trace=fresh), None)
        assert look.opened is not None
        return look.opened

    def close(self) -> None:
        """Close the files."""
        for file in (self._last, self._spool):
            if file is not None:
                file.close()
        self._last = self._spool = None


Marks = dict[str, tuple[int, int, int, int]]
"""By name: device, inode, size and time of each file that belongs to a capture."""


def marks_of(path: Path) -> Marks:
    """Return values that show whether a capture has changed; empty without a capture."""
    found: Marks = {}
    if path.is_dir():
        _tree(path, "", found)
        return found
    _mark(path, path.name, found)
    if not found:
        return found
    try:
        with os.scandir(path.parent) as entries:
            beside = [e.name for e in entries if is_companion(path, e.name) and e.name != path.name]
    except OSError:
        beside = []
    for name in beside[:_MAX_FILES]:
        there = path.parent / name
        if there.is_dir():
            _tree(there, f"{name}/", found)
        else:
            _mark(there, name, found)
    return found


def _grew(before: Marks, now: Marks) -> bool:
    """Return whether all old files exist and none is shorter."""
    return all(
        name in now and now[name][:2] == mark[:2] and now[name][2] >= mark[2] for name, mark in before.items()
    )


def is_companion(path: Path, name: str) -> bool:
    """Return whether an entry may belong to a capture: logs of databases, sub-agents' files."""
    return name == path.stem or name.startswith(f"{path.name}-") or (
        name.startswith("agent-") and name.endswith(".jsonl")
    )  # fmt: skip


def _tree(top: Path, prefix: str, found: Marks) -> None:
    from ctxctl.ingest.folder import Folder

    for name in Folder(str(top), top).files:
        _mark(top / name, prefix + name, found)


def _mark(path: Path, name: str, found: Marks) -> None:
    try:
        now = os.stat(path)
    except OSError:
        return
    found[name] = (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns)


def _size_of(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _common(a: BinaryIO, b: BinaryIO, most: int) -> int:
    """Return the bytes of whole lines that two files have in common at the start, at most `most`."""
    most = min(most, _size_of(a), _size_of(b))
    at = 0
    while at < most:
        n = min(_COPY, most - at)
        x, y = os.pread(a.fileno(), n, at), os.pread(b.fileno(), n, at)
        if x != y:
            return _line_start(a, at + _first_difference(x, y))
        at += n
    return _line_start(a, most)


def _first_difference(x: bytes, y: bytes) -> int:
    """Return the bytes that two different ranges have in common at the start."""
    low, high = 0, min(len(x), len(y))
    while low < high:
        middle = (low + high + 1) // 2
        if x[:middle] == y[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _line_start(file: BinaryIO, at: int) -> int:
    """Return the last place at or before `at` where a line begins."""
    while at > 0:
        begin = max(0, at - _COPY)
        cut = os.pread(file.fileno(), at - begin, begin).rfind(b"\n")
        if cut >= 0:
            return begin + cut + 1
        at = begin
    return 0


def _for_good(file: BinaryIO, start: int, size: int) -> int:
    """Return where the final lines about the capture's end begin, within the last million bytes."""
    begin = max(start, size - _COPY)
    data = os.pread(file.fileno(), size - begin, begin)
    end = len(data)
    for line in reversed(data.splitlines(keepends=True)):  # our own traces have no other line ends
        if not _ABOUT.search(line) and not _is_uncarried(line):
            break
        end -= len(line)
    return begin + end


def _is_uncarried(line: bytes) -> bool:
    """Return whether a line is about content that a later step will carry."""
    if not _LEADING.search(line):
        return False
    try:
        event = orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return isinstance(event, dict) and event.get("step_id") is None


_MAX_LINE: Final = 1 << 20
"""Longest last line without an end that is read as if it were whole."""


class Rollback(NamedTuple):
    """Discards everything from byte `at` on. What follows begins at byte `next`."""

    at: int
    next: int


class FeedLook(NamedTuple):
    """The result of a look, besides what was appended to the source."""

    state: State
    changed: bool
    opened: Opened | None = None
    """Set if the trace is new, or was opened again."""
    restart: Problem | None = None
    """Why it was opened again."""
    rollback: Rollback | None = None
    problems: tuple[Problem, ...] = ()


class Feed(Protocol):
    """One followed capture."""

    aside: bytes
    """Lines after the source's end that may still change."""
    whole: bool
    """Whether `aside` is one unfinished line."""
    rewinds: bool
    """Whether looks may roll the trace back."""

    def look(self, now: float) -> FeedLook:
        """Append what is new to the source; `now` in seconds of a monotonic clock."""
        ...

    def due(self, now: float) -> float:
        """Return the seconds until another look is useful, if nothing happens to the file."""
        ...

    def last(self) -> FeedLook:
        """Append what was held back. Nothing more will come."""
        ...

    def again(self) -> Opened:
        """Open the same trace again, to read it from its first line."""
        ...

    def turn_over(self, now: float) -> bool:
        """Return whether the capture now says that the turn is over; once for each of its states."""
        ...

    def close(self) -> None:
        """Close the files, except those of opened traces."""
        ...


class NativeFeed:
    """A file of native lines."""

    rewinds = False
    whole = True

    def __init__(self, name: str, path: Path) -> None:
        self._name, self._path = name, path
        self._follower = Follower(PathFiles(path))
        self._source: GrowingSource | None = None
        self.aside = b""

    def look(self, now: float) -> FeedLook:
        """Follow the file; see `trace.follow`."""
        seen = self._follower.look()
        restart: Problem | None = None
        opened: Opened | None = None
        changed = False
        for found in seen.found:
            changed = True
            if isinstance(found, FollowRestart):
                restart, self._source, opened = found.problem, None, None
                continue
            if self._source is not None and self._source.full:
                message = "its files were renamed too often to keep them all; restarted with the last one"
                restart, self._source = Problem(0, 0, "trace-rotated", message), None
            if self._source is None:
                self._source = GrowingSource(self._name, self._path)
                opened = self._opened()
            self._add(found)
        self.aside = self._unfinished(seen.unfinished)
        return FeedLook(seen.state, changed, opened, restart, None, tuple(seen.problems))

    def _add(self, span: Span) -> None:
        assert self._source is not None
        assert isinstance(span.handle, OpenFile)
        self._source.add(span.handle, span.offset, span.length)

    def _opened(self) -> Opened:
        assert self._source is not None
        return Opened(GrowingTrace(self._source), "native", "recorded", ())

    def _unfinished(self, size: int) -> bytes:
        """Return the last line, if only its end is missing."""
        if not 2 <= size <= _MAX_LINE:
            return b""
        rest = [span.handle.read(span.offset, span.length) for span in self._follower.rest()[-1:]]
        return rest[0] if rest and rest[0].rstrip().endswith(b"}") else b""

    def due(self, now: float) -> float:
        """Return an hour: nothing is new unless the file changes."""
        return 3600.0

    def last(self) -> FeedLook:
        """Read the unfinished lines like those of a file that ends there."""
        self.aside = b""
        opened: Opened | None = None
        rest = self._follower.rest()
        for span in rest:
            if self._source is None:
                self._source = GrowingSource(self._name, self._path)
                opened = self._opened()
            self._add(span)
        return FeedLook("following", bool(rest), opened)

    def again(self) -> Opened:
        """Open the bytes read so far."""
        assert self._source is not None
        self._source = self._source.again()
        return self._opened()

    def turn_over(self, now: float) -> bool:
        """Return False: native events say so themselves."""
        return False

    def close(self) -> None:
        """Close the file."""
        self._follower.close()
