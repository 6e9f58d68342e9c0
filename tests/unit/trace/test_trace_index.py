"""The step index: kept for the file it was made of, and for no other."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from ctxctl.trace.cache_files import cache_directory
from ctxctl.trace.index import Span, StepIndex
from ctxctl.trace.source import Source, open_source

DATA = b"".join(b"%08d\n" % number for number in range(20_000))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "t.jsonl"
    path.write_bytes(DATA)
    return path


def build(covered: int = len(DATA)) -> StepIndex:
    index = StepIndex()
    for step in range(10):
        index.append(
            "s" if step < 5 else None, "main", 1 + step // 3, 1 + step % 3, step * 100, step * 100 + 90, step
        )
    index.covered, index.lines = covered, 20_000
    return index


def saved(path: Path, covered: int = len(DATA)) -> None:
    with open_source(path) as source:
        assert build(covered).save(source)


def loaded(path: Path) -> StepIndex | None:
    with open_source(path) as source:
        return StepIndex.load(source)


def test_rows() -> None:
    index = build()
    assert len(index) == 10
    assert index[0] == Span("s", "main", 1, 1, 0, 90, 0)
    assert index[9].session is None
    assert index.find("s", "main", 2, 1) == 3
    assert index.find(None, "main", 2, 3) == 5
    assert index.find("s", "main", 2, 3) is None
    assert index.find("s", "other", 1, 1) is None
    index.extend_row(0, 95)
    assert index[0].end == 95
    assert [span.line for span in index] == list(range(10))


def test_comes_back_as_it_was(file: Path) -> None:
    saved(file)
    index = loaded(file)
    assert index is not None
    assert list(index) == list(build())
    assert (index.covered, index.lines) == (len(DATA), 20_000)
    assert index.find("s", "main", 2, 1) == 3
    assert index.append("s", "side", 9, 9, 0, 1, 1) == 10
    assert index[10].thread == "side"


def test_a_file_that_only_grew_keeps_its_index(file: Path) -> None:
    saved(file)
    with file.open("ab") as more:
        more.write(b"more\n")
    index = loaded(file)
    assert index is not None
    assert index.covered == len(DATA)


def test_another_file_of_that_name_has_none(file: Path, tmp_path: Path) -> None:
    saved(file)
    (tmp_path / "new").write_bytes(DATA)
    os.replace(tmp_path / "new", file)
    assert loaded(file) is None


@pytest.mark.parametrize("at", [0, 500, len(DATA) // 16, len(DATA) - 5])
def test_an_edit_in_place_is_seen(file: Path, at: int) -> None:
    saved(file)
    with file.open("r+b") as edit:
        edit.seek(at)
        edit.write(b"X")
        edit.seek(0, os.SEEK_END)
        edit.write(b"grown\n")
    assert loaded(file) is None


def test_an_edit_anywhere_that_keeps_the_size_is_seen_by_its_time(file: Path) -> None:
    saved(file)
    with file.open("r+b") as edit:
        edit.seek(9001)
        edit.write(b"X")
    os.utime(file, ns=(1, 1))
    assert loaded(file) is None


def test_a_file_cut_short_and_filled_again_is_seen(file: Path) -> None:
    saved(file)
    with file.open("r+b") as edit:
        edit.truncate(0)
        edit.write(DATA[::-1] + b"more\n")
    assert loaded(file) is None
    saved(file)
    os.truncate(file, 10)
    assert loaded(file) is None


def test_a_damaged_index_is_none(file: Path) -> None:
    saved(file)
    directory = cache_directory()
    assert directory is not None
    (path,) = (directory / "index").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    sound = path.read_bytes()
    for at in range(0, len(sound), 37):
        damaged = bytearray(sound)
        damaged[at] ^= 0x55
        path.write_bytes(damaged)
        assert loaded(file) is None, at
    for length in (0, 5, 30, len(sound) - 1):
        path.write_bytes(sound[:length])
        assert loaded(file) is None
    path.write_bytes(sound)
    assert loaded(file) is not None
    path.unlink()
    path.symlink_to(file)
    assert loaded(file) is None


def test_no_cache_no_index(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXCTL_CACHE", "off")
    with open_source(file) as source:
        assert build().save(source) is False
        assert StepIndex.load(source) is None
    monkeypatch.delenv("CTXCTL_CACHE")
    monkeypatch.setenv("CTXCTL_CACHE_DIR", str(file / "not a directory"))
    with open_source(file) as source:
        assert build().save(source) is False
    assert build().save(Source.from_bytes("memory", DATA)) is False
    assert StepIndex.load(Source.from_bytes("memory", DATA)) is None


def test_readers_beside_one_writer() -> None:
    index = StepIndex()
    stop = threading.Event()
    wrong: list[Span] = []

    def read() -> None:
        while not stop.is_set():
            for row in range(len(index)):
                span = index[row]
                if span.start != span.line or span.turn != span.line:
                    wrong.append(span)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(3000):
        index.append("s", "main", number, 1, number, number + 1, number)
    stop.set()
    reader.join()
    assert wrong == []


def test_keys_of_events_seen_come_back_and_a_file_without_all_of_them_is_none(file: Path) -> None:
    index = build()
    index.seen.update({0, 5, (1 << 64) - 1})
    with open_source(file) as source:
        assert index.save(source)
    again = loaded(file)
    assert again is not None
    assert again.seen == index.seen
    assert list(again) == list(index)
