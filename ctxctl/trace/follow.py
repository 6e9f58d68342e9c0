"""Follow one file while others write to it: what a look at it finds, and how to continue.

The follower never waits and reads little: a look costs a few system calls and the new bytes of the unfinished
last line, and nothing that grows with the file. All its system calls go through `Files` and `Handle`, so that
tests can use files in memory.

It returns the whole lines of the file in order, each once. If the file is renamed and a new one takes its
name, the old one is read on through its open descriptor, and the new one after it. If the file is cut or
rewritten, a `FollowRestart` discards everything returned so far, and the current lines follow. Lines that
were written and cut away between two looks are lost, and the restart says so.
"""

from __future__ import annotations

import os
from typing import Final, Literal, NamedTuple, Protocol

from ctxctl.model.problem import Problem
from ctxctl.trace.source import let_go

HEAD: Final = 1024
"""Bytes at the start of the file that a look compares with the earlier ones."""
TAIL: Final = 256
"""Bytes before the end of the part already read that a look compares too."""
RETIRED: Final = 4
"""Most renamed files that are still looked at: a writer may continue the old one for a while."""
_PROBE: Final = 64
_CHUNK: Final = 1 << 18

State = Literal["waiting", "following", "gone", "refused"]
"""`waiting`: it never existed. `gone`: it existed. `refused`: it exists and may not be opened."""


class Stat(NamedTuple):
    """A file's status by the system."""

    device: int
    inode: int
    size: int
    links: int
    """Number of names of the file; 0 once it was deleted or its last name replaced."""


class Handle(Protocol):
    """An open file, whose inode cannot be reused."""

    def stat(self) -> Stat:
        """Return the file's current status."""
        ...

    def read(self, offset: int, n: int) -> bytes:
        """Return at most `n` bytes; fewer only at the end."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


class Files(Protocol):
    """The name that is followed."""

    def stat(self) -> Stat | None:
        """Return the status of the named file; None if there is none, or it is inaccessible."""
        ...

    def open(self) -> Handle:
        """Open the named file. Raises OSError."""
        ...


class Span(NamedTuple):
    """Whole lines to read next."""

    handle: Handle
    offset: int
    length: int


class FollowRestart(NamedTuple):
    """Discards everything returned so far. What follows is the file from its first line."""

    problem: Problem


class FileLook(NamedTuple):
    """The result of one look."""

    state: State
    found: list[Span | FollowRestart]
    problems: list[Problem]
    unfinished: int
    """Bytes of an unfinished last line."""


class Follower:
    """Looks at a file on request. Not thread-safe."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._file: _File | None = None
        self._retired: list[_File] = []
        self._leaving: list[Handle] = []
        """Former files whose returned spans may still have to be read."""
        self._complained = ""

    def look(self) -> FileLook:
        """Return what is new. Read its spans before the next look, and soon: the file may be cut."""
        self._let_go()
        found: list[Span | FollowRestart] = []
        problems: list[Problem] = []
        state = self._begin(found, problems) if self._file is None else self._go_on(found, problems)
        return FileLook(state, found, problems, self._file.unfinished if self._file is not None else 0)

    def rest(self) -> list[Span]:
        """Return the unfinished last lines, which will not be finished any more."""
        files = [*self._retired, *([self._file] if self._file is not None else ())]
        return [Span(f.handle, f.read, f.unfinished) for f in files if f.unfinished]

    def close(self) -> None:
        """Close all files."""
        self._let_go()
        for file in (*self._retired, *([self._file] if self._file is not None else ())):
            file.handle.close()
        self._file, self._retired = None, []

    def _let_go(self) -> None:
        leaving, self._leaving = self._leaving, []
        for handle in leaving:
            handle.close()

    def _begin(self, found: list[Span | FollowRestart], problems: list[Problem]) -> State:
        if self._files.stat() is None:
            return "waiting"
        opened = self._opened(problems)
        if opened is None:
            return "refused" if self._complained else "waiting"
        self._file = opened
        opened.grow(found)
        return "following"

    def _go_on(self, found: list[Span | FollowRestart], problems: list[Problem]) -> State:
        file = self._file
        assert file is not None
        for old in list(self._retired):
            if not old.altered():
                old.grow(found)
            else:
                self._retired.remove(old)
                self._leaving.append(old.handle)
        if (how := file.altered()) is not None:
            self._restart(file, how, found)
        file.grow(found)
        there = self._files.stat()
        if there is None:
            return "gone"
        if file.is_at(there):
            self._complained = ""
            return "following"
        new = self._known(there) or self._opened(problems)
        if new is None:
            return "refused" if self._complained else "gone"
        file.grow(found)  # written between the last read and the rename
        self._succeed(file, new, found, problems)
        return "following"

    def _succeed(
        self, old: _File, new: _File, found: list[Span | FollowRestart], problems: list[Problem]
    ) -> None:
        """Replace a file under the name: by a continuing copy, the next of a rotation, or another trace."""
        if new.continues(old):
            new.take_over(old)
            self._leaving.append(old.handle)
        elif old.handle.stat().links > 0:
            self._retire(old, problems)
        else:
            self._leaving.append(old.handle)
            if old.read:
                self._drop_retired()
                found.append(FollowRestart(_problem("trace-replaced", "another file has taken its name")))
        self._file = new
        new.grow(found)

    def _retire(self, old: _File, problems: list[Problem]) -> None:
        self._retired.append(old)
        if len(self._retired) > RETIRED:
            gone = self._retired.pop(0)
            if gone.unfinished:
                what = f"a renamed file ends in {gone.unfinished} bytes of a line that was never finished"
                problems.append(Problem(0, gone.read, "unfinished-line", what))
            self._leaving.append(gone.handle)

    def _restart(self, file: _File, how: str, found: list[Span | FollowRestart]) -> None:
        self._drop_retired()
        file.again()
        slug = "trace-truncated" if how == _SHORTER else "trace-rewritten"
        message = f"{how}; events that came and went between two looks, if any, are lost"
        found.append(FollowRestart(_problem(slug, message)))

    def _known(self, there: Stat) -> _File | None:
        """Return a renamed file that got its name back."""
        back = next((old for old in self._retired if old.is_at(there)), None)
        if back is not None:
            self._retired.remove(back)
        return back

    def _drop_retired(self) -> None:
        self._leaving += [old.handle for old in self._retired]
        self._retired = []

    def _opened(self, problems: list[Problem]) -> _File | None:
        try:
            handle = self._files.open()
        except FileNotFoundError:
            return None
        except OSError as error:
            why = error.strerror or type(error).__name__
            if self._complained != why:
                self._complained = why
                problems.append(_problem("not-readable", f"cannot be opened: {why}; it is tried further"))
            return None
        self._complained = ""
        return _File(handle)


_SHORTER = "the file became shorter"
_OTHERWISE = "what had been read of the file now reads otherwise"


class _File:
    """One open file: the end of its returned lines, and their last bytes."""

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self.read = 0
        """End of the last whole line that was returned."""
        self._searched = 0
        """End of the part after `read` that is known to have no line end."""
        self._head = b""
        self._tail = b""
        self._probe = b""
        self._key = handle.stat()[:2]

    @property
    def unfinished(self) -> int:
        """Bytes after the last whole line, as of the last look."""
        return self._searched - self.read

    def is_at(self, there: Stat) -> bool:
        """Return whether a status is of this file."""
        return self._key == there[:2]

    def altered(self) -> str | None:
        """Return what happened to the part already read; None if nothing did."""
        if self.handle.stat().size < self.read:
            return _SHORTER
        if self._head != self.handle.read(0, len(self._head)):
            return _OTHERWISE
        if self._tail != self.handle.read(self.read - len(self._tail), len(self._tail)):
            return _OTHERWISE
        return None

    def again(self) -> None:
        """Restart at the first line."""
        self.read = self._searched = 0
        self._head = self._tail = self._probe = b""

    def grow(self, found: list[Span | FollowRestart]) -> None:
        """Add the whole lines that were written since."""
        size = self.handle.stat().size
        if size < self._searched or self._probe != self._probed():
            self._searched = self.read  # an unfinished line was cut off and another one begun
        end = self._last_line_end(self._searched, size)
        self._searched = max(self.read, size)
        if end > self.read:
            found.append(Span(self.handle, self.read, end - self.read))
            self._settle(end)
        self._probe = self._probed()

    def _probed(self) -> bytes:
        """Return the end of the searched part of the unfinished line."""
        at = max(self.read, self._searched - _PROBE)
        return self.handle.read(at, self._searched - at) if self._searched > at else b""

    def _last_line_end(self, start: int, stop: int) -> int:
        """Return the end of the last line in [start, stop); `read` if there is none."""
        while stop > start:
            at = max(start, stop - _CHUNK)
            cut = self.handle.read(at, stop - at).rfind(b"\n")
            if cut >= 0:
                return at + cut + 1
            stop = at
        return self.read

    def _settle(self, end: int) -> None:
        self.read = end
        if len(self._head) < HEAD:
            self._head = self.handle.read(0, min(HEAD, end))
        at = max(0, end - TAIL)
        self._tail = self.handle.read(at, end - at)

    def continues(self, old: _File) -> bool:
        """Return whether this file begins with all that was read of another, so is a copy of it."""
        if self.handle.stat().size < old.read or not old.read:
            return False
        at = 0
        while at < old.read:
            n = min(_CHUNK, old.read - at)
            if self.handle.read(at, n) != old.handle.read(at, n):
                return False
            at += n
        return True

    def take_over(self, old: _File) -> None:
        """Continue where another file ended."""
        self._searched = self.read = old.read
        self._head, self._tail, self._probe = old._head, old._tail, b""


def _problem(slug: str, message: str) -> Problem:
    return Problem(0, 0, slug, message)


class PathFiles:
    """A name in the file system."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)

    def stat(self) -> Stat | None:
        """Return the status of what the name leads to, following symbolic links."""
        try:
            return _stat(os.stat(self._path))
        except (OSError, ValueError):
            return None

    def open(self) -> OpenFile:
        """Return a new descriptor."""
        import stat

        fd = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            let_go(fd)
            raise OSError(0, "it is not a regular file")
        return OpenFile(fd)


class OpenFile:
    """A descriptor. Reading uses no position, so several threads may read."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def stat(self) -> Stat:
        """Return the file's current status."""
        return _stat(os.fstat(self.fd))

    def read(self, offset: int, n: int) -> bytes:
        """Return at most `n` bytes."""
        parts = []
        while n > 0 and (got := os.pread(self.fd, n, offset)):
            parts.append(got)
            offset += len(got)
            n -= len(got)
        return b"".join(parts)

    def close(self) -> None:
        """Close the descriptor."""
        let_go(self.fd)


def _stat(found: os.stat_result) -> Stat:
    return Stat(found.st_dev, found.st_ino, found.st_size, found.st_nlink)
