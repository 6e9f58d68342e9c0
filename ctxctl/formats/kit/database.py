"""Captures that are SQLite databases, read from a copy in memory."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, Final

import orjson

from ctxctl.formats.build import Json
from ctxctl.formats.kit.run import Run
from ctxctl.trace.source import Source

MAGIC: Final = b"SQLite format 3\0"
MAX_DATABASE: Final = 512 << 20
YOUNG: Final = 1 << 16
"""Bytes of a file whose tables may stand in its log only."""
STEPS: Final = 200_000_000
"""Instructions of SQLite's machine after which a reading is given up: a view may be a bomb."""
MAX_VALUE: Final = 64 << 20
"""Bytes of the largest row; a generated column may claim any size."""
_LEGACY: Final = b"\x01\x01"

Reader = Callable[[Run, sqlite3.Connection], Iterator[Json]]


def read(run: Run, source: Source, reader: Reader, *, steps: int | None = None) -> Iterator[Json]:
    """What `reader` makes of a database; rows are `sqlite3.Row`s.  Closes the run.

    What a write-ahead log beside the file holds is read with it, so that a database in use is shown as its
    program sees it.  Problems: `document-too-large`, `bad-database`.
    """
    data = _with_log(source, source.read(0, MAX_DATABASE + 1))
    if len(data) > MAX_DATABASE:
        run.problem("document-too-large", f"a database of more than {MAX_DATABASE >> 20} MiB; not read")
        return
    # A copy in memory has no write-ahead log beside it; bytes 18 and 19 would ask for one.
    data = data[:18] + _LEGACY + data[20:]
    with closing(sqlite3.connect(":memory:")) as database:
        try:
            database.deserialize(data)
            database.row_factory = sqlite3.Row
            database.execute("PRAGMA trusted_schema = OFF")
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
            database.set_progress_handler(lambda: 1, steps or STEPS)
            _without_views(database)
            yield from reader(run, database)
        except (sqlite3.Error, OverflowError, IndexError) as error:
            run.problem("bad-database", f"the database cannot be read: {error}")
    yield from run.finish()


def rows(source: Source, query: str, most: int) -> list[tuple[Any, ...]]:
    """The first rows of a query that is ours; none where the database cannot be read."""
    data = _with_log(source, source.read(0, MAX_DATABASE + 1))
    if len(data) > MAX_DATABASE:
        return []
    with closing(sqlite3.connect(":memory:")) as database:
        try:
            database.deserialize(data[:18] + _LEGACY + data[20:])
            database.execute("PRAGMA trusted_schema = OFF")
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
            database.set_progress_handler(lambda: 1, STEPS)
            _without_views(database)
            return database.execute(query).fetchmany(most)
        except (sqlite3.Error, OverflowError, IndexError):
            return []


def tables(source: Source, most: int) -> Generator[tuple[str, int, Json], None, None]:
    """The first rows of each table, with the table's name and the row's number in it, columns by name.

    Nothing where the database cannot be read; close it to be done sooner.
    """
    data = _with_log(source, source.read(0, MAX_DATABASE + 1))
    if len(data) > MAX_DATABASE:
        return
    with closing(sqlite3.connect(":memory:")) as opened:
        try:
            opened.deserialize(data[:18] + _LEGACY + data[20:])
            opened.execute("PRAGMA trusted_schema = OFF")
            opened.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
            opened.set_progress_handler(lambda: 1, STEPS)
            _without_views(opened)
            names = opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for (name,) in names:
                quoted = str(name).replace('"', '""')
                found = opened.execute(f'SELECT * FROM "{quoted}"')
                columns = [str(column[0]) for column in found.description]
                for number, row in enumerate(islice(found, most), 1):
                    yield str(name), number, dict(zip(columns, row, strict=False))
        except (sqlite3.Error, OverflowError, IndexError):
            return


def _with_log(source: Source, data: bytes) -> bytes:
    """The database as it is with its write-ahead log; both are copied first, and the originals never opened.

    Where the log cannot be read, or belongs to another state of the file, the file alone counts.
    """
    path = source.path
    if path is None or source.spooled or len(data) > MAX_DATABASE:
        return data
    return _merged(path, data)


def head(path: Path | None, data: bytes) -> bytes:
    """The first bytes of a file; of a database that is young, those that it has with its log.

    Until a program first moves its log into the file, not even the tables stand there.
    """
    if path is None or not data.startswith(MAGIC) or len(data) >= YOUNG:
        return data
    return _merged(path, data)[:YOUNG]


def _merged(path: Path, data: bytes) -> bytes:
    log = path.with_name(f"{path.name}-wal")
    try:
        size = log.stat().st_size
        if not 0 < size <= MAX_DATABASE or log.is_symlink() or not log.is_file():
            return data
        with tempfile.TemporaryDirectory(prefix="ctxctl-") as folder:
            copy = Path(folder) / "copy.db"
            copy.write_bytes(data)
            copy.with_name("copy.db-wal").write_bytes(log.read_bytes())
            with closing(sqlite3.connect(copy)) as database:
                database.execute("PRAGMA trusted_schema = OFF")
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return copy.read_bytes()
    except (OSError, sqlite3.Error):
        return data


def _without_views(database: sqlite3.Connection) -> None:
    """A view in a table's place may give rows without end; no runtime has one there."""
    for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'view'").fetchall():
        quoted = str(name).replace('"', '""')
        database.execute(f'DROP VIEW "{quoted}"')


def value(text: Any) -> Any:
    """The JSON value of a column; None for what is none."""
    if not isinstance(text, str | bytes):
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
