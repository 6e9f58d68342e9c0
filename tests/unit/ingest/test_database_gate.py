"""What is read of a database is what its file holds, whatever the SQL in it makes up."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ctxctl.ingest import database, database_check
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


PAGE = 512
CLAIMED = 1_000_000
"""Characters that each text is said to have."""


def going_round(path: Path, rows: int) -> Path:
    """A table whose texts go on in one page each that goes on in itself, again and again."""
    with closing(sqlite3.connect(path)) as opened:
        opened.execute(f"PRAGMA page_size = {PAGE}")
        opened.execute("CREATE TABLE t (a TEXT)")
        opened.execute("CREATE INDEX i ON t (a) WHERE a = ''")
        opened.executemany("INSERT INTO t VALUES (?)", [("x" * 17_000,)] * rows)
        opened.commit()
    data = bytearray(path.read_bytes())
    for start in range(0, len(data), PAGE):
        if data[start] == 0x0D:
            for at in range(start + 8, start + 8 + 2 * int.from_bytes(data[start + 3 : start + 5], "big"), 2):
                _claim(data, start + int.from_bytes(data[at : at + 2], "big"))
    path.write_bytes(data)
    return path


def _claim(data: bytearray, cell: int) -> None:
    """Let a row be as long as it is said to be: its length, its row id, the head of the record, the text."""
    length = (data[cell] & 0x7F) << 14 | (data[cell + 1] & 0x7F) << 7 | data[cell + 2]
    longer = (CLAIMED - length) // (PAGE - 4) * (PAGE - 4)  # as much of it as before stands in the cell
    head = cell + 4 if data[cell + 3] < 0x80 else cell + 5
    for at, more in ((cell, longer), (head + 1, 2 * longer)):
        value = ((data[at] & 0x7F) << 14 | (data[at + 1] & 0x7F) << 7 | data[at + 2]) + more
        data[at : at + 3] = bytes([0x80 | value >> 14, 0x80 | value >> 7 & 0x7F, value & 0x7F])
    least = (PAGE - 12) * 32 // 255 - 23
    here = least + (length - least) % (PAGE - 4)
    pointer = head + (here if here <= PAGE - 35 else least)
    first = int.from_bytes(data[pointer : pointer + 4], "big")
    data[(first - 1) * PAGE : (first - 1) * PAGE + 4] = first.to_bytes(4, "big")


def test_rows_that_go_round_in_a_circle_come_to_no_more_than_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "READ", 2 * CLAIMED)
    path = going_round(tmp_path / "round.db", 60)
    with closing(sqlite3.connect(path)) as opened:
        claimed = sum(length for (length,) in opened.execute("SELECT length(a) FROM t"))
    assert claimed > 30 * path.stat().st_size
    sorted_bytes = 0

    def sorting(_run: object, found: sqlite3.Connection) -> Any:
        nonlocal sorted_bytes
        (sorted_bytes,) = found.execute("SELECT sum(length(a)) FROM t").fetchone()
        yield {}

    run = Run()
    with open_source(path) as source:
        list(database.read_database(run, source, sorting))  # type: ignore[arg-type]
    assert 0 < sorted_bytes < path.stat().st_size + 3 * CLAIMED
    assert any("the database is damaged" in told and "2nd reference" in told for told in run.told)


def test_rows_of_a_damaged_file_are_read_as_far_as_they_come_out(tmp_path: Path) -> None:
    path = made(
        tmp_path / "damaged.db",
        "PRAGMA page_size = 512",
        "CREATE TABLE t (n INTEGER PRIMARY KEY, a TEXT CHECK (length(a) > 0))",
        "CREATE TABLE u (n INTEGER)",
        *[f"INSERT INTO t VALUES ({n}, '{n:0100}')" for n in range(200)],
        "INSERT INTO u VALUES (7)",
    )
    data = bytearray(path.read_bytes())
    page = max(at for at in range(0, len(data), 512) if b"%0100d" % 150 in data[at : at + 512])
    data[page] = 0xFF
    path.write_bytes(data)
    rows, told = read(path, "SELECT n FROM t ORDER BY a")
    assert rows[:100] == [(n,) for n in range(100)]
    assert len(rows) < 150
    assert [one for one in told if "the database is damaged" in one]
    assert read(path, "SELECT n FROM u")[0] == [(7,)]


def test_definitions_of_any_size_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(
        tmp_path / "defined.db", f"CREATE TABLE t (a /* {'x' * 3000} */ TEXT)", "INSERT INTO t VALUES (1)"
    )
    assert read(path, "SELECT a FROM t") == ([("1",)], [])
    monkeypatch.setattr(database_check, "DEFINED", 2000)
    rows, told = read(path, "SELECT a FROM t")
    assert rows == []
    assert told == [
        "bad-database: the database cannot be read: the definitions of its tables come to more than 4 MiB"
    ]
    assert list(database.schemas(path, lambda: b"")) == []


def test_definitions_that_go_round_in_a_circle_are_not_followed() -> None:
    head = b"SQLite format 3\0" + (512).to_bytes(2, "big") + bytes(82)
    page = (
        b"\x05"
        + bytes(2)
        + (1).to_bytes(2, "big")
        + bytes(7)
        + (14).to_bytes(2, "big")
        + (1).to_bytes(4, "big")
    )
    asked: list[int] = []

    def pages(at: int, size: int) -> bytes:
        asked.append(at)
        return (head + page if not at else page).ljust(512, b"\0")[:size]

    assert not database_check.definitions_fit(pages)
    assert len(asked) <= 20_001


def test_rows_that_break_a_rule_of_their_table_are_no_damage(tmp_path: Path) -> None:
    path = made(tmp_path / "rules.db", "CREATE TABLE t (a)", "INSERT INTO t VALUES (NULL)")
    with closing(sqlite3.connect(path)) as opened:
        opened.execute("PRAGMA writable_schema = ON")
        opened.execute("UPDATE sqlite_master SET sql = 'CREATE TABLE t (a NOT NULL)'")
        opened.commit()
    with closing(sqlite3.connect(path)) as opened:
        assert opened.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok"
        assert database_check.damage(opened) == ""


@pytest.mark.parametrize("definition", ["a TEXT, b TEXT", "a TEXT UNIQUE, b TEXT", "a TEXT, b TEXT AS (a)"])
def test_rows_are_looked_for_in_an_index_whatever_the_file_has(definition: str, tmp_path: Path) -> None:
    path = made(tmp_path / "keys.db", f"CREATE TABLE t ({definition})")
    with closing(sqlite3.connect(path)) as opened:
        opened.executemany("INSERT INTO t (a) VALUES (?)", [(f"{n:05}",) for n in range(1000)])
        opened.commit()
    found = 0

    def looking(_run: object, database: sqlite3.Connection) -> Any:
        nonlocal found
        for n in range(1000):
            found += len(database.execute("SELECT a FROM t WHERE a = ?", (f"{n:05}",)).fetchall())
        yield {}

    for keys, most in (
        ([("t", "a"), ("t", "no"), ("none", "a")], 1000),
        ([], 999 if "UNIQUE" not in definition else 1000),
    ):
        run, found = Run(), 0
        with open_source(path) as source:
            list(database.read_database(run, source, looking, keys=keys, steps=100_000))  # type: ignore[arg-type]
        assert found == 1000 if most == 1000 else found < 1000, (keys, run.told)
