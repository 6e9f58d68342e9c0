"""Whether a database's pages can hold what they say, asked before any query goes over them.

A page of a damaged file, or of one made to do harm, can say that a row goes on in a page that another row
goes on in, or in itself: a file of three megabytes then has rows of gigabytes, which SQLite sorts in files of
its own before it gives the first one.  SQLite finds that where it is asked to, in a walk over the pages that
takes as long as reading them; but first it reads the definitions of all tables, unasked.  Those are looked at
here, as https://www.sqlite.org/fileformat2.html has them.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Final

Read = Callable[[int, int], bytes]
"""Takes an offset and a size."""

DEFINED: Final = 4 << 20
"""The most bytes of a file's definitions, of all tables, indices and triggers."""
_OBJECTS: Final = 20_000
"""The most of them, and the most pages that they lie on."""
_HEAD: Final = 100
_LEAF: Final = 0x0D
_INTERIOR: Final = 0x05
_AFTER_PAGES: Final = 100
"""Instructions of SQLite's machine within which it walks over the pages, and has not come far with the rows:
what it checks of these may be SQL in the file."""

_OF_ROWS: Final = re.compile(
    r"^(NULL|non-\w+|NUMERIC|TEXT) value in |^row(id)? |^(wrong # of|non-unique) entr|^CHECK constraint"
)
"""How findings about rows begin, whose pages were found to be whole before (`src/pragma.c` of SQLite)."""


def definitions_fit(read: Read) -> bool:
    """Whether a file's definitions are as few as a program's: SQLite reads them all before anything else.

    Of what is no such file, it is SQLite that says so.
    """
    head = read(0, _HEAD)
    size = int.from_bytes(head[16:18], "big")
    size = 65_536 if size == 1 else size
    if len(head) < _HEAD or size < 512:
        return True
    objects = total = 0
    pages = [1]
    for _ in range(_OBJECTS):
        if not pages:
            return True
        number = pages.pop()
        page = read((number - 1) * size, size)
        start = _HEAD if number == 1 else 0
        for lengths, below in _cells(page, start):
            objects += 1
            total += lengths
            if below:
                pages.append(below)
            if objects > _OBJECTS or total > DEFINED:
                return False
    return False


def _cells(page: bytes, start: int) -> Iterator[tuple[int, int]]:
    """Of each cell of a table's page, the bytes of its row and the page below it; 0 where it has none."""
    kind = page[start] if len(page) > start else 0
    if kind not in (_LEAF, _INTERIOR):
        return
    count = int.from_bytes(page[start + 3 : start + 5], "big")
    first = start + (8 if kind == _LEAF else 12)
    for at in range(first, first + 2 * count, 2):
        cell = int.from_bytes(page[at : at + 2], "big")
        if kind == _LEAF:
            yield _varint(page, cell), 0
        else:
            yield 0, int.from_bytes(page[cell : cell + 4], "big")
    if kind == _INTERIOR:
        yield 0, int.from_bytes(page[start + 8 : start + 12], "big")


def _varint(page: bytes, at: int) -> int:
    value = 0
    for byte in page[at : at + 8]:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return value


def damage(database: sqlite3.Connection) -> str:
    """What is wrong with a database's pages, in SQLite's words; empty where nothing is.

    Takes the handler of the connection's progress away.  Raises sqlite3.Error where it cannot be read at all.
    """
    database.execute("PRAGMA ignore_check_constraints = ON")
    database.set_progress_handler(lambda: 1, _AFTER_PAGES)
    try:
        found = database.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if "interrupted" in str(error):  # the pages are whole, and it has come to the rows
            return ""
        raise
    finally:
        database.set_progress_handler(None, 0)
    said = "" if found is None or found[0] == "ok" else str(found[0])
    said = said.rpartition("\n")[2]  # behind the name of the database, where that is said
    return "" if _OF_ROWS.search(said) else said


def whole_rows(database: sqlite3.Connection, names: list[str], most: int) -> bytes:
    """A database of the rows that come out of a damaged one, table by table, at most so many bytes of them.

    Of its definitions it has the names of tables and columns, and the columns of indices.
    """
    with closing(sqlite3.connect(":memory:")) as copy:
        for name in names:
            with suppress(sqlite3.Error):  # the rows before it are there, and so are other tables
                for size in _copied(database, copy, name):
                    most -= size
                    if most < 0:
                        return copy.serialize()
        return copy.serialize()


def _copied(database: sqlite3.Connection, copy: sqlite3.Connection, name: str) -> Iterator[int]:
    """Copy a table, and tell the bytes of each row."""
    table = quoted(name)
    columns = [str(column[1]) for column in database.execute(f"PRAGMA table_info({table})")]
    listed = ", ".join(map(quoted, columns))
    copy.execute(f"CREATE TABLE {table} ({listed})")
    for index in _indices(database, table, set(columns)):
        copy.execute(f"CREATE INDEX {quoted(f'{name} {index}')} ON {table} ({', '.join(map(quoted, index))})")
    marks = ", ".join("?" * len(columns))
    for row in database.execute(f"SELECT {listed} FROM {table}"):
        copy.execute(f"INSERT INTO {table} VALUES ({marks})", tuple(row))
        yield sum([len(one) for one in row if isinstance(one, str | bytes)]) + 8 * len(columns)


def _indices(database: sqlite3.Connection, table: str, columns: set[str]) -> set[tuple[str, ...]]:
    found = set()
    for index in database.execute(f"PRAGMA index_list({table})").fetchall():
        names = tuple(row[2] for row in database.execute(f"PRAGMA index_info({quoted(str(index[1]))})"))
        if names and columns.issuperset(names):
            found.add(names)
    return found


def add_index(database: sqlite3.Connection, table: str, column: str) -> None:
    """Index a column of a copy that is read, unless an index begins with it or there is no such column.

    Where its program's indices are gone, each look for a row would read all of them, however long they are.
    """
    with suppress(sqlite3.Error):  # it is a view, or computed: rows are looked for without
        for index in database.execute(f"PRAGMA index_list({quoted(table)})").fetchall():
            first = database.execute(f"PRAGMA index_info({quoted(str(index[1]))})").fetchone()
            if first is not None and first[2] == column and not index[4]:
                return
        columns = {str(row[1]) for row in database.execute(f"PRAGMA table_info({quoted(table)})")}
        if column in columns:
            name = f"ctxctl {table} {column}"
            database.execute(f"CREATE INDEX {quoted(name)} ON {quoted(table)} ({quoted(column)})")


def quoted(name: object) -> str:
    """A name as SQL has it."""
    doubled = str(name).replace('"', '""')
    return f'"{doubled}"'
