"""Following a file, held against a model: a file system in memory, writers of all manners, and looks.

Nothing waits here: a look happens where the machine says so.  As long as no file loses bytes, what was told
is what was written, line for line.  Where bytes are cut away or another file takes the name, a restart must
have been told, nothing is told twice since, and what is there now was told.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ctxctl.trace import follow
from ctxctl.trace.follow import FileLook, Follower, FollowRestart, Span, Stat

EXAMPLES = settings.default.max_examples if settings.default else 100
MACHINE = settings(max_examples=EXAMPLES, stateful_step_count=40, deadline=None)


class Inode:
    """A file, whether it has a name or not."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.data = bytearray()
        self.links = 1
        self.handles = 0


class Disk:
    """One directory; the number of a file that nobody holds is given to the next one."""

    def __init__(self) -> None:
        self.named: Inode | None = None
        self.all: list[Inode] = []
        self.refused = False

    def create(self) -> Inode:
        taken = {inode.number for inode in self.all if inode.links or inode.handles}
        inode = Inode(next(n for n in range(1, 10_000) if n not in taken))
        self.all.append(inode)
        self.named = inode
        return inode


class Handle:
    def __init__(self, inode: Inode) -> None:
        self.inode = inode
        inode.handles += 1
        self.open = True

    def stat(self) -> Stat:
        assert self.open
        return Stat(1, self.inode.number, len(self.inode.data), self.inode.links)

    def read(self, offset: int, n: int) -> bytes:
        assert self.open
        return bytes(self.inode.data[offset : offset + n])

    def close(self) -> None:
        assert self.open
        self.open = False
        self.inode.handles -= 1


class Files:
    def __init__(self, disk: Disk) -> None:
        self.disk = disk

    def stat(self) -> Stat | None:
        inode = self.disk.named
        return None if inode is None else Stat(1, inode.number, len(inode.data), inode.links)

    def open(self) -> Handle:
        if self.disk.named is None:
            raise FileNotFoundError
        if self.disk.refused:
            raise PermissionError(13, "Permission denied")
        return Handle(self.disk.named)


class Tailing(RuleBasedStateMachine):
    follower: type[Follower] = Follower
    gentle = False
    """Without what loses bytes."""

    @initialize()
    def begin(self) -> None:
        self.disk = Disk()
        self.tail = type(self).follower(Files(self.disk))
        self.serial = 0
        self.told: list[bytes] = []
        """Whole lines told since the last restart."""
        self.harmless = True
        """No byte was cut away, and no file lost its last name, so far."""
        self.behind: list[Inode] = []
        """Renamed files that a writer may go on with."""
        self.seen: Inode | None = None
        """What had the name at the last look: what comes and goes between two looks nobody can follow."""

    def line(self, filler: int = 0) -> bytes:
        """Nobody else's: no two stretches of two lines are alike."""
        self.serial += 1
        return (f"{self.serial:06d}." * (1 + filler)).encode() + b"\n"

    def inode(self) -> Inode:
        return self.disk.named or self.disk.create()

    @rule(count=st.integers(1, 4), filler=st.sampled_from([0, 1, 60, 400]))
    def append_whole(self, count: int, filler: int) -> None:
        self.inode().data += b"".join(self.line(filler) for _ in range(count))

    @rule(filler=st.sampled_from([0, 60]), cut=st.integers(1, 6))
    def append_partial(self, filler: int, cut: int) -> None:
        self.inode().data += self.line(filler)[:-cut]

    @rule()
    def complete_partial(self) -> None:
        self.serial += 1
        self.inode().data += f"end {self.serial}\n".encode()

    @rule(filler=st.sampled_from([0, 60]))
    def two_writers(self, filler: int) -> None:
        """Each writes its line with one call; a line that one left unfinished is glued to the other's."""
        first, second = self.line(filler), self.line(filler)
        self.inode().data += first
        self.inode().data += second

    @precondition(lambda self: self.disk.named is not None and self.seen is self.disk.named)
    @rule(at_once=st.booleans())
    def rotate(self, at_once: bool) -> None:
        assert self.disk.named is not None
        self.behind = [*self.behind, self.disk.named][-2:]
        self.disk.named = None
        if at_once:
            self.disk.create()

    @precondition(lambda self: self.behind)
    @rule()
    def go_on_with_the_renamed_file(self) -> None:
        self.behind[-1].data += self.line()

    @precondition(lambda self: self.disk.named is not None and not self.gentle)
    @rule(refill=st.integers(0, 12))
    def copytruncate(self, refill: int) -> None:
        self.cut(0, refill)

    @precondition(lambda self: self.disk.named is not None and not self.gentle)
    @rule(keep=st.floats(0, 1), refill=st.integers(0, 12))
    def truncate(self, keep: float, refill: int) -> None:
        assert self.disk.named is not None
        self.cut(int(len(self.disk.named.data) * keep), refill)

    def cut(self, keep: int, refill: int) -> None:
        inode = self.disk.named
        assert inode is not None
        if keep < len(inode.data):
            self.harmless = False
            del inode.data[keep:]
        for _ in range(refill):
            inode.data += self.line(refill)

    @precondition(lambda self: self.disk.named is not None and not self.gentle)
    @rule(lines=st.integers(0, 3))
    def replace_by_rename(self, lines: int) -> None:
        assert self.disk.named is not None
        self.disk.named.links = 0
        self.harmless = False
        self.disk.create().data += b"".join(self.line() for _ in range(lines))

    @precondition(lambda self: self.disk.named is not None)
    @rule(lines=st.integers(0, 3))
    def replace_by_a_copy_that_goes_on(self, lines: int) -> None:
        old = self.disk.named
        assert old is not None
        old.links = 0
        whole = bytes(old.data)
        self.disk.create().data += whole + b"".join(self.line() for _ in range(lines))

    @precondition(lambda self: self.disk.named is not None and not self.gentle)
    @rule()
    def delete(self) -> None:
        assert self.disk.named is not None
        self.disk.named.links = 0
        self.disk.named = None
        self.harmless = False

    @precondition(lambda self: self.disk.named is None)
    @rule()
    def create(self) -> None:
        self.disk.create()

    @rule(refused=st.booleans())
    def chmod(self, refused: bool) -> None:
        self.disk.refused = refused

    @rule()
    def look(self) -> None:
        self.looked()

    def looked(self) -> FileLook:
        seen = self.tail.look()
        self.seen = self.disk.named if not self.disk.refused or self.seen is self.disk.named else None
        for found in seen.found:
            if isinstance(found, FollowRestart):
                assert not self.harmless, f"restarted for nothing: {found.problem.message}"
                self.told = []
                continue
            self.take(found)
        return seen

    def take(self, span: Span) -> None:
        data = span.handle.read(span.offset, span.length)
        assert data.endswith(b"\n"), "a line without an end was told"
        assert len(data) == span.length
        assert span.handle.read(span.offset - 1, 1) == b"\n" or not span.offset, "told from within a line"
        self.told += data.splitlines(keepends=True)
        assert len(set(self.told)) == len(self.told), "a line was told twice"

    def teardown(self) -> None:
        if not hasattr(self, "disk"):
            return
        self.disk.refused = False
        self.looked()
        seen = self.looked()
        assert seen.found == [], "there was more after a look"
        named = self.disk.named
        there = whole_lines(named.data) if named is not None else []
        missing = [line for line in there if line not in self.told]
        assert not missing, f"not told: {missing}"
        if self.harmless:
            files = [inode for inode in self.disk.all if inode.links]
            expected = sorted(line for inode in files for line in whole_lines(inode.data))
            assert sorted(self.told) == expected
            for inode in files:
                lines = whole_lines(inode.data)
                assert [line for line in self.told if line in set(lines)] == lines, "not in the file's order"
        self.tail.close()
        assert all(inode.handles == 0 for inode in self.disk.all), "a file was left open"


def whole_lines(data: bytes | bytearray) -> list[bytes]:
    return [line for line in bytes(data).splitlines(keepends=True) if line.endswith(b"\n")]


class Gentle(Tailing):
    gentle = True


@pytest.mark.parametrize("machine", [Gentle, Tailing])
def test_no_line_is_lost_and_none_is_told_twice(machine: type[Tailing]) -> None:
    run_state_machine_as_test(machine, settings=MACHINE)  # type: ignore[no-untyped-call]


# The same test must catch followers that are wrong.


class TellsUnfinishedLines(Follower):
    def look(self) -> FileLook:
        seen = super().look()
        return seen._replace(found=[*seen.found, *self.rest()])


class ForgetsRenamedFiles(Follower):
    def _go_on(self, found: Any, problems: Any) -> Any:
        there = self._files.stat()
        if self._file is not None and there is not None and not self._file.is_at(there):
            self._file.grow = lambda found: None  # type: ignore[method-assign]
        return super()._go_on(found, problems)


class TakesSizesForContents(Follower):
    def _go_on(self, found: Any, problems: Any) -> Any:
        if self._file is not None:
            self._file._head = self._file._tail = b""
        return super()._go_on(found, problems)


class ReadsRenamedFilesAgain(Follower):
    def _retire(self, old: Any, problems: Any) -> None:
        old.again()
        super()._retire(old, problems)


class NeverRestarts(Follower):
    def _restart(self, file: Any, how: str, found: Any) -> None:
        file.again()


@pytest.mark.parametrize(
    ("broken", "machine"),
    [
        (TellsUnfinishedLines, Gentle),
        (ForgetsRenamedFiles, Gentle),
        (ReadsRenamedFilesAgain, Gentle),
        (TakesSizesForContents, Tailing),
        (NeverRestarts, Tailing),
    ],
)
def test_a_follower_that_is_wrong_is_caught(broken: type[Follower], machine: type[Tailing]) -> None:
    wrong = type("Wrong", (machine,), {"follower": broken})
    quick = settings(
        MACHINE, max_examples=400, print_blob=False, report_multiple_bugs=False, phases=(Phase.generate,)
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(wrong, settings=quick)  # type: ignore[no-untyped-call]


def test_parts_of_the_head_and_the_end_are_what_a_look_compares() -> None:
    assert follow.HEAD == 1024
    assert follow.TAIL > 0
