"""A trace that grows while it is read: addresses that stay, whatever parts the bytes are in."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxctl.errors import UnreadableError
from ctxctl.trace.follow import OpenFile, PathFiles
from ctxctl.trace.growing import SCRATCH, GrowingSource, GrowingTrace
from ctxctl.trace.reader import Trace

ALPHABET = b"abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def source(tmp_path: Path) -> Iterator[GrowingSource]:
    """The alphabet, in four parts of two files."""
    (tmp_path / "one").write_bytes(b"abcdefg?nopq")
    (tmp_path / "two").write_bytes(b"??hijklm" + b"rstuvwxyz")
    made = GrowingSource("t", tmp_path / "one")
    one, two = (PathFiles(tmp_path / name).open() for name in ("one", "two"))
    for file, offset, length in ((one, 0, 7), (two, 2, 6), (one, 8, 4), (two, 8, 9)):
        made.add(file, offset, length)
    for file in (one, two):
        file.close()
    yield made
    made.close()


def test_any_stretch_reads_the_same_as_if_it_were_one_file(source: GrowingSource) -> None:
    assert source.size == 26
    for start in range(28):
        for n in range(28):
            assert source.read(start, n) == ALPHABET[start : start + n], (start, n)


def test_a_part_that_was_cut_meanwhile_ends_the_stretch(source: GrowingSource, tmp_path: Path) -> None:
    with (tmp_path / "two").open("r+b") as file:
        file.truncate(5)
    assert source.read(5, 20) == b"fghij"
    assert source.read(13, 4) == b"nopq"


def test_a_second_source_over_the_same_bytes_outlives_the_first(source: GrowingSource) -> None:
    twin = source.again()
    source.close()
    assert twin.read(0, 30) == ALPHABET
    twin.close()


def test_lines_that_may_still_change_have_an_address_for_a_while(source: GrowingSource) -> None:
    places = [source.scratch(b"line %d" % number) for number in range(9)]
    assert all(place >= SCRATCH for place in places)
    assert [source.read(place, 4) for place in places] == [b"", *[b"line"] * 8]
    assert [source.read(place + 5, 9) for place in places[1:]] == [b"%d" % n for n in range(1, 9)]
    assert source.read(places[-1] + 6, 1) == b""


def test_a_file_that_cannot_be_read_says_so(source: GrowingSource, tmp_path: Path) -> None:
    folder = OpenFile(os.open(tmp_path, os.O_RDONLY))
    source.add(folder, 0, 4)
    folder.close()
    with pytest.raises(UnreadableError) as caught:
        source.read(26, 4)
    assert caught.value.slug == "read-failed"


def lines(first: int, count: int) -> bytes:
    made = b""
    for number in range(first, first + count):
        event = {
            "schema_version": "0.1.1", "event_id": f"e{number}", "source": "s",
            "time": "2026-01-01T00:00:00Z", "event_type": "context.item.added",
            "data": {"item_id": f"i{number}", "content": "x" * number},
        }  # fmt: skip
        made += json.dumps(event).encode() + b"\n"
    return made


def test_what_was_read_so_far_is_a_trace_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(lines(0, 3) + b"not an event\n" + lines(3, 2))
    file = PathFiles(path).open()
    trace = GrowingTrace(GrowingSource("run", path))
    trace.source.add(file, 0, path.stat().st_size)
    reading = trace.reading()
    assert [event.event_id for batch in reading.run() for event in batch] == ["e0", "e1", "e2", "e3", "e4"]

    def told(of: Trace) -> list[tuple[str | None, int, int]]:
        return [(event.event_id, event.line, event.offset) for batch in of.batches() for event in batch]

    assert told(trace) == told(Trace(trace.source))
    assert [line for _, line, _ in told(trace)] == [1, 2, 3, 5, 6]
    file.close()
    trace.close()


def test_passes_end_where_the_reading_one_is(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(lines(0, 2))
    file = PathFiles(path).open()
    trace = GrowingTrace(GrowingSource("run", path))
    trace.source.add(file, 0, path.stat().st_size)
    reading = trace.reading()
    assert list(trace.events(stop=1)) == []
    assert sum(len(batch) for batch in reading.run()) == 2
    size = path.stat().st_size
    with path.open("ab") as more:
        more.write(lines(2, 1))
    trace.source.add(file, size, path.stat().st_size - size)
    assert [event.event_id for event in trace.events()] == ["e0", "e1"]
    assert sum(len(batch) for batch in reading.run()) == 1
    assert [event.event_id for event in trace.events()] == ["e0", "e1", "e2"]
    file.close()
    trace.close()
