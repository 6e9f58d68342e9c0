"""Sources: files, stdin, gzip, zstd, memory."""

from __future__ import annotations

import gzip
import io
import os
import sys
import tempfile
from pathlib import Path

import pytest

from ctxctl.errors import UnreadableError
from ctxctl.trace import spool
from ctxctl.trace.source import Source, open_source

DATA = b"".join(b"line %d\n" % number for number in range(50_000))


def whole(source: Source) -> bytes:
    return source.read(0, 1 << 30)


def test_plain_file(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(DATA)
    with open_source(path) as source:
        assert (source.name, source.path, source.size, source.spooled) == (str(path), path, len(DATA), False)
        assert whole(source) == DATA
        assert source.read(len(DATA) - 3, 100) == DATA[-3:]
        assert source.read(len(DATA), 100) == b""
        before = source.identity()
        with path.open("ab") as file:
            file.write(b"more\n")
        assert source.refresh() == len(DATA) + 5
        after = source.identity()
        assert (after.device, after.inode, after.head) == (before.device, before.inode, before.head)
        assert after.size == before.size + 5


def test_gzip_by_content_not_by_name(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(gzip.compress(DATA) + gzip.compress(b"second member\n") + bytes(512))
    with open_source(path) as source:
        assert whole(source) == DATA + b"second member\n"
        assert source.spooled
        assert source.path == path
        assert source.problems == ()


def test_gzip_that_ends_early(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl.gz"
    path.write_bytes(gzip.compress(DATA)[:-2000])
    with open_source(path) as source:
        assert DATA.startswith(whole(source))
        assert [problem.slug for problem in source.problems] == ["damaged-compression"]


def test_gzip_with_a_wrong_checksum(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(DATA))
    packed[-6] ^= 1
    path = tmp_path / "t.jsonl.gz"
    path.write_bytes(packed)
    with open_source(path) as source:
        assert [problem.slug for problem in source.problems] == ["damaged-compression"]


def test_zstd(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    packed = zstandard.compress(DATA)
    path = tmp_path / "t.jsonl.zst"
    path.write_bytes(packed + zstandard.compress(b"second frame\n"))
    with open_source(path) as source:
        assert whole(source) == DATA + b"second frame\n"
    path.write_bytes(packed[:-100])
    with open_source(path) as source:
        assert DATA.startswith(whole(source))
        assert [problem.slug for problem in source.problems] == ["damaged-compression"]


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_bomb(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "RATIO_FLOOR", 1 << 20)
    zeros = bytes(64 << 20)
    packed = gzip.compress(zeros) if kind == "gzip" else pytest.importorskip("zstandard").compress(zeros)
    path = tmp_path / "bomb"
    path.write_bytes(packed)
    with pytest.raises(UnreadableError) as caught:
        open_source(path)
    assert caught.value.slug == "decompression-bomb"


def test_empty_gzip(tmp_path: Path) -> None:
    path = tmp_path / "t.gz"
    path.write_bytes(gzip.compress(b""))
    with pytest.raises(UnreadableError) as caught:
        open_source(path)
    assert caught.value.slug == "empty-file"


@pytest.mark.parametrize("packed", [False, True])
def test_stdin_pipe(monkeypatch: pytest.MonkeyPatch, packed: bool) -> None:
    reading, writing = os.pipe()
    data = gzip.compress(DATA[:3000]) if packed else DATA[:3000]
    os.write(writing, data)
    os.close(writing)
    with os.fdopen(reading) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        with open_source("-") as source:
            assert whole(source) == DATA[:3000]
            assert source.spooled
            assert source.path is None


def test_stdin_redirected_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(DATA)
    with path.open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        with open_source("-") as source:
            assert whole(source) == DATA


def test_stdin_closed_or_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UnreadableError) as caught:
        open_source("-")
    assert caught.value.slug == "not-readable"
    with open(os.devnull) as null:
        monkeypatch.setattr(sys, "stdin", null)
        with pytest.raises(UnreadableError) as caught:
            open_source("-")
    assert caught.value.slug == "empty-file"


def test_memory_and_open_files() -> None:
    assert whole(Source.from_bytes("m", DATA)) == DATA
    with tempfile.TemporaryFile() as file:
        file.write(DATA)
        source = Source.from_file("f", file)
    assert whole(source) == DATA
    assert source.spooled
    source.close()
    source.close()


def test_a_source_that_is_gone_reads_nothing() -> None:
    file = io.BytesIO(DATA)
    source = Source.from_bytes("m", file.getvalue())
    source.close()
    assert source.size == len(DATA)


def test_reads_that_come_in_pieces_are_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(DATA)
    pread = os.pread
    with open_source(path) as source:
        monkeypatch.setattr(os, "pread", lambda fd, n, at: pread(fd, min(n, 3), at))
        assert source.read(5, 10) == DATA[5:15]
        assert source.read(len(DATA) - 4, 10) == DATA[-4:]
