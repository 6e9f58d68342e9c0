"""Follows one file while others write to it: what a look at it finds, and what is to be done about that.

The follower never waits and reads as little as it can: a look costs a few system calls, the bytes of the
unfinished last line that are new, and nothing that grows with the file.  Everything it knows of the system it
asks through `Files` and `Handle`, so that tests drive it over files that exist in memory only.

What is told, and in which order: the whole lines of the file, each once.  Where the file is renamed and a new
one begins under the name, the old one is read on through its open descriptor, the new one behind it.  Where
the file is cut or written anew, nothing told so far counts any longer: a `FollowRestart`, then the lines that
are there now.  What was written and cut away between two looks nobody can know; the restart says so.
"""

from __future__ import annotations

import os
from typing import Final, Literal, NamedTuple, Protocol

from ctxctl.model.problem import Problem
from ctxctl.trace.source import let_go

HEAD: Final = 1024
"""Bytes at the start of the file that a look compares with what they were."""
TAIL: Final = 256
"""Bytes in front of the place up to which the file was read that a look compares as well."""
RETIRED: Final = 4
"""Renamed files that are looked at further: a writer may go on with the old one for a while."""
_PROBE: Final = 64
_CHUNK: Final = 1 << 18

State = Literal["waiting", "following", "gone", "refused"]
"""`waiting`: nothing was ever there; `gone`: it was; `refused`: it is there and may not be opened."""


class Stat(NamedTuple):
    """What the system says of a file."""

    device: int
    inode: int
    size: int
    links: int
    """Names that the file has; 0 once it was deleted or another took its last name."""


class Handle(Protocol):
    """An open file, which keeps its inode from being given to another."""

    def stat(self) -> Stat:
        """The file as it is now."""
        ...

    def read(self, offset: int, n: int) -> bytes:
        """At most `n` bytes; fewer at the end only."""
        ...

    def close(self) -> None:
        """Let the file go."""
        ...


class Files(Protocol):
    """The name that is followed."""

    def stat(self) -> Stat | None:
        """What stands under the name; None if there is nothing, or nobody may know."""
        ...

    def open(self) -> Handle:
        """Open what stands under the name; raises OSError."""
        ...


class Span(NamedTuple):
    """Whole lines to be read next."""

    handle: Handle
    offset: int
    length: int


class FollowRestart(NamedTuple):
    """Nothing that was told so far counts any longer; what follows is the file from its first line."""

    problem: Problem


class FileLook(NamedTuple):
    """What one look found."""

    state: State
    found: list[Span | FollowRestart]
    problems: list[Problem]
    unfinished: int
    """Bytes of a last line that has no end yet."""


class Follower:
    """Looks at a file, as often as its owner likes; not for several threads."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._file: _File | None = None
        self._retired: list[_File] = []
        self._leaving: list[Handle] = []
        """Files of which spans were told that may still have to be read."""
        self._complained = ""

    def look(self) -> FileLook:
        """What is new.  Spans are to be read before the next look, and soon: the file may be cut."""
        self._let_go()
        found: list[Span | FollowRestart] = []
        problems: list[Problem] = []
        state = self._begin(found, problems) if self._file is None else self._go_on(found, problems)
        return FileLook(state, found, problems, self._file.unfinished if self._file is not None else 0)

    def rest(self) -> list[Span]:
        """The unfinished last lines, which nobody will finish any more."""
        files = [*self._retired, *([self._file] if self._file is not None else ())]
        return [Span(f.handle, f.read, f.unfinished) for f in files if f.unfinished]

    def close(self) -> None:
        """Let all files go."""
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
        file.grow(found)  # what came between the last reading and the renaming
        self._succeed(file, new, found, problems)
        return "following"

    def _succeed(
        self, old: _File, new: _File, found: list[Span | FollowRestart], problems: list[Problem]
    ) -> None:
        """Another file has the name now: a copy that goes on, the next of a rotation, or another trace."""
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
        """A renamed file that got its name back."""
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
    """One open file: up to where its whole lines were told, and what stood there."""

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self.read = 0
        """End of the last whole line that was told."""
        self._searched = 0
        """Up to here there is no line end behind `read`."""
        self._head = b""
        self._tail = b""
        self._probe = b""
        self._key = handle.stat()[:2]

    @property
    def unfinished(self) -> int:
        """Bytes behind the last whole line, as of the last look."""
        return self._searched - self.read

    def is_at(self, there: Stat) -> bool:
        """Whether a name leads to this file."""
        return self._key == there[:2]

    def altered(self) -> str | None:
        """What happened to the part that was read, None if nothing did."""
        if self.handle.stat().size < self.read:
            return _SHORTER
        if self._head != self.handle.read(0, len(self._head)):
            return _OTHERWISE
        if self._tail != self.handle.read(self.read - len(self._tail), len(self._tail)):
            return _OTHERWISE
        return None

    def again(self) -> None:
        """Begin with the first line."""
        self.read = self._searched = 0
        self._head = self._tail = self._probe = b""

    def grow(self, found: list[Span | FollowRestart]) -> None:
        """Tell the whole lines that came since."""
        size = self.handle.stat().size
        if size < self._searched or self._probe != self._probed():
            self._searched = self.read  # an unfinished line was cut off, and another one begun
        end = self._last_line_end(self._searched, size)
        self._searched = max(self.read, size)
        if end > self.read:
            found.append(Span(self.handle, self.read, end - self.read))
            self._settle(end)
        self._probe = self._probed()

    def _probed(self) -> bytes:
        """The end of the unfinished line, as far as it was searched."""
        at = max(self.read, self._searched - _PROBE)
        return self.handle.read(at, self._searched - at) if self._searched > at else b""

    def _last_line_end(self, start: int, stop: int) -> int:
        """The place behind the last line end in [start, stop), `read` where there is none."""
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
        """Whether this file begins with all that was read of another: that one in a new place."""
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
        """Go on where the other one was."""
        self._searched = self.read = old.read
        self._head, self._tail, self._probe = old._head, old._tail, b""


def _problem(slug: str, message: str) -> Problem:
    return Problem(0, 0, slug, message)


class PathFiles:
    """A name in the file system."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)

    def stat(self) -> Stat | None:
        """What the name leads to, symbolic links followed."""
        try:
            return _stat(os.stat(self._path))
        except (OSError, ValueError):
            return None

    def open(self) -> OpenFile:
        """A descriptor of its own."""
        import stat

        fd = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            let_go(fd)
            raise OSError(0, "it is not a regular file")
        return OpenFile(fd)


class OpenFile:
    """A descriptor; reading needs no position and several threads may do it."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def stat(self) -> Stat:
        """The file as it is now."""
        return _stat(os.fstat(self.fd))

    def read(self, offset: int, n: int) -> bytes:
        """At most `n` bytes."""
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
