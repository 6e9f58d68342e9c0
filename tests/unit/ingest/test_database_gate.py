"""What is read of a database is what its file holds, whatever the SQL in it makes up."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ctxctl.ingest import database
from ctxctl.ingest.second_look import look_again
from ctxctl.trace.source import open_source

Reader = Callable[[sqlite3.Connection], list[Any]]


class Run:
    """Keeps what was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def problem(self, slug: str, message: str) -> None:
        self.told.append(f"{slug}: {message}")

    def finish(self) -> list[object]:
        return []


def made(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as opened:
        for statement in statements:
            opened.execute(statement)
        opened.commit()
    return path


def read(path: Path, query: str) -> tuple[list[Any], list[str]]:
    """The rows of a query, and what was told."""
    run, rows = Run(), []

    def reader(_run: object, found: sqlite3.Connection) -> Any:
        for row in found.execute(query):
            rows.append(tuple(row))
            yield {}

    with open_source(path) as source:
        list(database.read_database(run, source, reader))  # type: ignore[arg-type]
    return rows, run.told


def test_a_column_that_is_computed_is_empty_and_told(tmp_path: Path) -> None:
    path = made(
        tmp_path / "computed.db",
        "CREATE TABLE t (a TEXT, long TEXT GENERATED ALWAYS AS (hex(zeroblob(100000))) VIRTUAL)",
        "INSERT INTO t VALUES ('one'), ('two')",
    )
    rows, told = read(path, "SELECT * FROM t ORDER BY long, a")
    assert rows == [("one", None), ("two", None)]
    assert len(told) == 1
    assert told[0].startswith("bad-database: columns that the file has computed, or filled")
    assert told[0].endswith(": long of t")
    assert read(path, "SELECT a FROM t") == ([("one",), ("two",)], []), "nobody asked for it"
    with open_source(path) as source:
        assert database.first_rows(source, "SELECT long FROM t", 1) == [(None,)]
        assert [fields["long"] for _, _, fields in database.rows_of_tables(source, 9)] == [None, None]


def test_a_column_that_was_computed_when_it_was_written_is_read(tmp_path: Path) -> None:
    path = made(
        tmp_path / "stored.db",
        "CREATE TABLE t (a TEXT, twice TEXT GENERATED ALWAYS AS (a || a) STORED)",
        "INSERT INTO t VALUES ('one')",
    )
    assert read(path, "SELECT * FROM t") == ([("one", "oneone")], [])


def test_a_virtual_table_is_not_read(tmp_path: Path) -> None:
    path = made(
        tmp_path / "virtual.db",
        "CREATE TABLE t (a TEXT)",
        "INSERT INTO t VALUES ('role')",
        "CREATE VIRTUAL TABLE v USING rtree(id, low, high)",
        "INSERT INTO v VALUES (1, 2, 3)",
    )
    rows, told = read(path, "SELECT * FROM v")
    assert rows == []
    assert told == [
        "bad-database: the database cannot be read: v is a virtual table, as no program's table of its kind"
    ]
    assert read(path, "SELECT * FROM t") == ([("role",)], []), "one that nobody asks for does no harm"
    with open_source(path) as source:
        assert {table for table, _, _ in database.rows_of_tables(source, 9)} >= {"t"}
        assert look_again(source, ("messages",), {}).hits == {}


def test_a_table_of_very_many_columns_is_not_read(tmp_path: Path) -> None:
    names = ", ".join(f"c{at}" for at in range(1500))
    path = made(
        tmp_path / "wide.db",
        f"CREATE TABLE t ({names})",
        "INSERT INTO t (c0) VALUES ('one')",
        "CREATE TABLE u (a)",
    )
    assert read(path, "SELECT * FROM t ORDER BY c0") == (
        [],
        ["bad-database: the database cannot be read: t has 1,500 columns, as no program's table of its kind"],
    )
    assert read(path, "SELECT * FROM u") == ([], [])
    made(path, "INSERT INTO u VALUES ('two')")
    with open_source(path) as source:
        assert list(database.rows_of_tables(source, 9)) == [("u", 1, {"a": "two"})]


def test_long_defaults_are_not_read(tmp_path: Path) -> None:
    path = made(
        tmp_path / "defaults.db",
        "CREATE TABLE t (a TEXT)",
        "INSERT INTO t VALUES ('one'), ('two')",
        "ALTER TABLE t ADD COLUMN short TEXT DEFAULT 'x'",
        f"ALTER TABLE t ADD COLUMN long TEXT DEFAULT '{'x' * 3000}'",
    )
    rows, told = read(path, "SELECT * FROM t")
    assert rows == [("one", "x", None), ("two", "x", None)]
    assert len(told) == 1
    assert told[0].endswith(": long of t")


def test_rows_that_come_to_more_than_the_file_are_not_all_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here by defaults; damaged pages may do the same."""
    monkeypatch.setattr(database, "READ", 10_000)
    monkeypatch.setattr(database, "_DEFAULTS", 10_000)
    lines = ",".join(["('one')"] * 2000)
    path = made(
        tmp_path / "defaults.db",
        "CREATE TABLE t (a TEXT)",
        f"INSERT INTO t VALUES {lines}",
        f"ALTER TABLE t ADD COLUMN long TEXT DEFAULT '{'x' * 2000}'",
    )
    size = path.stat().st_size
    rows, told = read(path, "SELECT * FROM t")
    assert 0 < sum(len(long) for _, long in rows) <= 10_000 + 8 * size
    assert len(told) == 1
    assert "its rows come to more than" in told[0]
    assert len(read(path, "SELECT a FROM t")[0]) == 2000


def test_no_value_is_longer_than_the_file(tmp_path: Path) -> None:
    path = made(tmp_path / "small.db", "CREATE TABLE t (a TEXT)", "INSERT INTO t VALUES ('one')")
    assert len(read(path, "SELECT hex(zeroblob(500000)) FROM t")[0]) == 1
    rows, told = read(path, "SELECT hex(zeroblob(600000)) FROM t")
    assert (rows, told) == ([], ["bad-database: the database cannot be read: string or blob too big"])
    made(path, f"INSERT INTO t VALUES ('{'x' * 2_000_000}')")
    assert read(path, "SELECT length(a) FROM t") == ([(3,), (2_000_000,)], [])
