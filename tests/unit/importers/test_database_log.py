"""Databases in use: what stands in the write-ahead log beside the file is read too."""

from __future__ import annotations

import errno
import hashlib
import os
import sqlite3
from pathlib import Path

import pytest

from ctxctl.errors import UnreadableError
from ctxctl.importers import registry
from ctxctl.ingest import database
from ctxctl.trace.source import open_source


def rows_of(path: Path) -> list[str]:
    class Run:
        def problem(self, slug: str, message: str) -> None:
            raise AssertionError(message)

        def finish(self) -> list[object]:
            return []

    def reader(_run: object, found: sqlite3.Connection) -> list[str]:
        return [row["a"] for row in found.execute("SELECT a FROM t ORDER BY rowid")]

    with open_source(path) as source:
        return list(database.read_database(Run(), source, reader))  # type: ignore[arg-type]


@pytest.fixture
def in_use(tmp_path: Path) -> Path:
    path = tmp_path / "in-use.db"
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("PRAGMA wal_autocheckpoint = 0")
    writer.execute("CREATE TABLE t (a TEXT)")
    writer.execute("INSERT INTO t VALUES ('in the file')")
    writer.commit()
    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    writer.execute("INSERT INTO t VALUES ('in the log')")
    writer.commit()
    copy = tmp_path / "copy.db"
    for suffix in ("", "-wal"):
        Path(f"{copy}{suffix}").write_bytes(Path(f"{path}{suffix}").read_bytes())
    writer.close()
    return copy


def test_rows_in_the_log_are_read_and_the_files_stay_as_they_are(in_use: Path) -> None:
    def state() -> list[str]:
        return [
            f"{p.name} {hashlib.sha256(p.read_bytes()).hexdigest()}" for p in sorted(in_use.parent.iterdir())
        ]

    before = state()
    assert rows_of(in_use) == ["in the file", "in the log"]
    assert state() == before


def test_a_log_that_is_none_is_passed_over(in_use: Path) -> None:
    Path(f"{in_use}-wal").write_bytes(b"no log at all" * 100)
    assert rows_of(in_use) == ["in the file"]


def test_a_log_that_the_system_does_not_read_is_told_with_its_name(
    in_use: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_path: Path) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(Path, "read_bytes", fails)
    with pytest.raises(UnreadableError) as caught:
        rows_of(in_use)
    assert caught.value.message == "cannot read copy.db-wal: Input/output error"


def test_names_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "odd.db"
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE t (a TEXT)")
        made.execute("CREATE VIEW vvvvvvvv AS SELECT a FROM t")
    made.close()
    path.write_bytes(path.read_bytes().replace(b"vvvvvvvv", b"\xff\xfe\xad\x80vvvv"))
    with open_source(path) as source:
        assert database.first_rows(source, "SELECT a FROM t", 1) == []
        assert registry.detect(source) is None
