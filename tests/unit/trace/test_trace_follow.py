"""Following real files: rotation, truncation, replacement, deletion, permissions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxctl.trace.follow import Follower, FollowRestart, OpenFile, PathFiles, Span


class Tail:
    """A follower, and what it told."""

    def __init__(self, path: Path) -> None:
        self.follower = Follower(PathFiles(path))
        self.lines: list[str] = []
        self.why: list[str] = []
        self.slugs: list[str] = []
        self.state = ""

    def look(self) -> list[str]:
        """The lines that are new."""
        before = len(self.lines)
        seen = self.follower.look()
        self.state = seen.state
        self.slugs += [problem.slug for problem in seen.problems]
        for found in seen.found:
            if isinstance(found, FollowRestart):
                self.why.append(found.problem.slug)
                self.lines, before = [], 0
                continue
            assert isinstance(found.handle, OpenFile)
            self.lines += found.handle.read(found.offset, found.length).decode().split("\n")[:-1]
        return self.lines[before:]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


@pytest.fixture
def tail(path: Path) -> Iterator[Tail]:
    tail = Tail(path)
    yield tail
    tail.follower.close()


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_a_file_that_is_not_there_is_waited_for(tail: Tail, path: Path) -> None:
    assert tail.look() == []
    assert tail.state == "waiting"
    append(path, "one\n")
    assert tail.look() == ["one"]
    assert tail.state == "following"


def test_an_unfinished_line_is_told_once_when_it_has_an_end(tail: Tail, path: Path) -> None:
    append(path, "one\ntw")
    assert tail.look() == ["one"]
    assert tail.look() == []
    append(path, "o")
    assert tail.look() == []
    append(path, "\nthree\n")
    assert tail.look() == ["two", "three"]


def test_a_renamed_file_is_read_to_its_end_before_the_next_one(tail: Tail, path: Path) -> None:
    append(path, "one\n")
    tail.look()
    append(path, "two\n")
    path.rename(path.with_suffix(".1"))
    append(path, "three\n")
    assert tail.look() == ["two", "three"]
    append(path.with_suffix(".1"), "late\n")
    assert tail.look() == ["late"]
    assert tail.why == []


def test_a_file_that_gets_its_name_back_is_not_told_again(tail: Tail, path: Path) -> None:
    append(path, "one\n")
    tail.look()
    path.rename(path.with_suffix(".1"))
    assert tail.look() == []
    assert tail.state == "gone"
    append(path, "two\n")
    assert tail.look() == ["two"]
    path.with_suffix(".1").replace(path)
    assert tail.look() == []
    append(path, "three\n")
    assert tail.look() == ["three"]


@pytest.mark.parametrize("refill", ["", "x\n", "other lines, and more of them than there were before\n" * 3])
def test_a_file_that_is_cut_is_begun_anew(tail: Tail, path: Path, refill: str) -> None:
    append(path, "one\ntwo\nthree\n")
    tail.look()
    path.write_text(refill)
    tail.look()
    assert tail.lines == refill.split("\n")[:-1]
    assert tail.why == ["trace-truncated" if len(refill) < 14 else "trace-rewritten"]


def test_cutting_off_an_unfinished_line_is_no_cut(tail: Tail, path: Path) -> None:
    append(path, "one\ntorn li")
    tail.look()
    os.truncate(path, 4)
    append(path, "two\n")
    assert tail.look() == ["two"]
    assert tail.why == []


def test_another_file_that_takes_the_name_is_another_trace(tail: Tail, path: Path) -> None:
    append(path, "one\n")
    tail.look()
    other = path.with_suffix(".tmp")
    append(other, "eins\n")
    other.replace(path)
    assert tail.look() == ["eins"]
    assert tail.why == ["trace-replaced"]


def test_a_copy_that_goes_on_is_the_same_trace(tail: Tail, path: Path) -> None:
    append(path, "one\ntwo\n")
    tail.look()
    other = path.with_suffix(".tmp")
    append(other, "one\ntwo\nthree\n")
    other.replace(path)
    assert tail.look() == ["three"]
    assert tail.why == []


def test_deleting_and_writing_anew_is_seen_though_the_number_may_be_the_same(tail: Tail, path: Path) -> None:
    append(path, "one\n")
    tail.look()
    path.unlink()
    append(path, "eins\nzwei\n")
    assert tail.look() == ["eins", "zwei"]
    assert tail.why == ["trace-replaced"]
    path.unlink()
    assert tail.look() == []
    assert tail.state == "gone"


def test_a_file_that_may_not_be_opened_is_tried_further(tail: Tail, path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("nothing is forbidden to root")
    append(path, "one\n")
    path.chmod(0)
    tail.look()
    tail.look()
    assert tail.state == "refused"
    assert tail.slugs == ["not-readable"]
    path.chmod(0o600)
    assert tail.look() == ["one"]


def test_what_is_no_file_is_refused_and_opening_it_does_not_hang(tail: Tail, path: Path) -> None:
    os.mkfifo(path)
    assert tail.look() == []
    assert tail.state == "refused"
    assert tail.slugs == ["not-readable"]


def test_a_line_of_many_blocks_costs_each_byte_one_look(tail: Tail, path: Path) -> None:
    reads: list[tuple[int, int]] = []
    append(path, "one\n")
    tail.look()
    inner = tail.follower._file
    assert inner is not None
    read = inner.handle.read

    def counted(offset: int, n: int) -> bytes:
        reads.append((offset, n))
        return read(offset, n)

    inner.handle.read = counted  # type: ignore[method-assign]
    for _ in range(20):
        append(path, "x" * 100_000)
        tail.look()
    assert sum(n for _, n in reads) < 2_000_000 + 20 * 400


def test_what_nobody_finished_is_told_at_the_end(tail: Tail, path: Path) -> None:
    append(path, "one\ntw")
    tail.look()
    (rest,) = tail.follower.rest()
    assert isinstance(rest, Span)
    assert rest.handle.read(rest.offset, rest.length) == b"tw"


def test_a_line_end_alone_finishes_a_line(tail: Tail, path: Path) -> None:
    append(path, "one\ntwo")
    assert tail.look() == ["one"]
    append(path, "\n")
    assert tail.look() == ["two"]
    assert tail.look() == []


def test_a_renamed_file_that_is_cut_is_not_followed_any_more(tail: Tail, path: Path) -> None:
    old = path.with_suffix(".1")
    append(path, "one\ntwo\n")
    tail.look()
    path.rename(old)
    append(path, "three\n")
    assert tail.look() == ["three"]
    old.write_text("")
    for _ in range(3):
        assert tail.look() == []
    append(old, "one\ntwo\nlate\n")
    append(path, "four\n")
    assert tail.look() == ["four"]
    assert tail.look() == []


def test_after_a_restart_renamed_files_of_before_are_not_followed(tail: Tail, path: Path) -> None:
    old = path.with_suffix(".1")
    append(path, "one\n")
    tail.look()
    path.rename(old)
    append(path, "two\n")
    assert tail.look() == ["two"]
    append(old, "torn")
    tail.look()
    path.write_text("")
    tail.look()
    assert tail.why == ["trace-truncated"]
    append(old, " and late\n")
    append(path, "three\n")
    assert tail.look() == ["three"]
    assert tail.lines == ["three"]
    append(old, "torn again")
    assert tail.follower.rest() == []
