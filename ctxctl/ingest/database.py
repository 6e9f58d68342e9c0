"""Captures that are SQLite databases, read from a copy in memory."""

from __future__ import annotations

import re
import sqlite3
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, Final

import orjson

from ctxctl.ingest.build import Json
from ctxctl.ingest.lines import WHOLE_FILE
from ctxctl.ingest.run import Run
from ctxctl.trace.inputs import note_file
from ctxctl.trace.source import Source

MAGIC: Final = b"SQLite format 3\0"
MAX_DATABASE: Final = 512 << 20
SCHEMA: Final = 1 << 20
"""The most bytes of table definitions that detection looks at."""
_TABLE: Final = 1 << 12
"""The most bytes of one table's definition."""
STEPS: Final = 200_000_000
"""Instructions of SQLite's machine after which a reading is given up: a view may be a bomb."""
MAX_VALUE: Final = 64 << 20
"""The most bytes of a row; a generated column may claim any size."""
_LEGACY: Final = b"\x01\x01"
_LOOK: Final = 1_000_000
"""Instructions of SQLite's machine for the table definitions of a file of an unknown format."""
_DEFINED: Final = re.compile(rb"CREATE TABLE (?:IF NOT EXISTS )?[`\"\[']?(\w+)", re.IGNORECASE)
_DEFINITIONS: Final = "SELECT sql FROM sqlite_master WHERE type = 'table' AND sql IS NOT NULL"

_BROKEN: Final = (sqlite3.Error, OverflowError, IndexError, ValueError)
"""What a damaged file raises: names that are no UTF-8 among it."""

Reader = Callable[[Run, sqlite3.Connection], Iterator[Json]]


def read_database(run: Run, source: Source, reader: Reader, *, steps: int | None = None) -> Iterator[Json]:
    """Yield what `reader` makes of a database, whose rows are `sqlite3.Row`s, and close the run.

    What a write-ahead log beside the file holds is read with it, so that a database in use is shown as its
    program sees it.  Problems: `document-too-large`, `bad-database`.
    """
    run.line = WHOLE_FILE
    data = _with_log(source, source.read(0, MAX_DATABASE + 1))
    if len(data) > MAX_DATABASE:
        run.problem("document-too-large", f"a database of more than {MAX_DATABASE >> 20} MiB; not read")
        return
    with closing(sqlite3.connect(":memory:")) as database:
        try:
            database.row_factory = sqlite3.Row
            _load(database, data, steps or STEPS)
            yield from reader(run, database)
        except _BROKEN as error:
            run.problem("bad-database", f"the database cannot be read: {error}")
    yield from run.finish()


def first_rows(source: Source, query: str, most: int) -> list[tuple[Any, ...]]:
    """The first rows of a query of our own; none where the database cannot be read."""
    data = _with_log(source, source.read(0, MAX_DATABASE + 1))
    if len(data) > MAX_DATABASE:
        return []
    with closing(sqlite3.connect(":memory:")) as database:
        try:
            _load(database, data)
            return database.execute(query).fetchmany(most)
        except _BROKEN:
            return []


def rows_of_tables(source: Source, most: int) -> Generator[tuple[str, int, Json], None, None]:
    """The first rows of each table, with the table's name and the row's number in it, columns by name.

    Nothing where the database cannot be read; close it to be done sooner.
    """
    data = _with_log(source, source.read(0, MAX_DATABASE + 1))
    if len(data) > MAX_DATABASE:
        return
    with closing(sqlite3.connect(":memory:")) as opened:
        try:
            _load(opened, data)
            names = opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for (name,) in names:
                quoted = str(name).replace('"', '""')
                found = opened.execute(f'SELECT * FROM "{quoted}"')
                columns = [str(column[0]) for column in found.description]
                for number, row in enumerate(islice(found, most), 1):
                    yield str(name), number, dict(zip(columns, row, strict=False))
        except _BROKEN:
            return


def _load(database: sqlite3.Connection, data: bytes, steps: int = STEPS) -> None:
    """Fill an empty database in memory; no code in the file runs, and queries end at `steps`."""
    # A copy in memory has no write-ahead log beside it; bytes 18 and 19 would ask for one.
    database.deserialize(data[:18] + _LEGACY + data[20:])
    database.execute("PRAGMA trusted_schema = OFF")
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
    database.set_progress_handler(lambda: 1, steps)
    _without_views(database)


def _with_log(source: Source, data: bytes) -> bytes:
    """The database as it is with its write-ahead log; both are copied first, and the originals never opened.

    Where the log cannot be read, or belongs to another state of the file, the file alone counts.
    """
    path = source.path
    if path is None or source.spooled or len(data) > MAX_DATABASE:
        return data
    return _merged(path, data)


def schemas(path: Path | None, data: Callable[[], bytes]) -> Iterator[bytes]:
    """The magic of a database and the definitions of its tables, wherever in the file they lie.

    What detection looks at.  The file is opened read-only, and only its pages with definitions are read.  For
    whom that is not enough, then come the definitions as they are with the write-ahead log beside it: those
    of a young database stand nowhere else.  `data` gives the bytes of a database that is no file of its own
    (it came through a pipe, or was compressed), or that has a log.  Nothing where they cannot be read.
    """
    if path is None:
        first = _definitions(None, data())
    else:
        first = _definitions(f"{path.absolute().as_uri()}?mode=ro&immutable=1", b"")
    if first is not None:
        yield first
    if path is None or not _log_of(path).is_file():
        return
    whole = data()
    merged = _merged(path, whole) if len(whole) <= MAX_DATABASE else whole
    second = _definitions(None, merged) if merged is not whole else None
    if second is not None and second != first:
        yield second


def table_names(head: bytes) -> set[str]:
    """The names of the tables whose definitions stand in the bytes."""
    return {found[1].decode("ascii", "replace") for found in _DEFINED.finditer(head)}


def _definitions(uri: str | None, data: bytes) -> bytes | None:
    if len(data) > MAX_DATABASE:
        return None
    try:
        with closing(sqlite3.connect(uri or ":memory:", uri=uri is not None)) as database:
            if uri is None:
                database.deserialize(data[:18] + _LEGACY + data[20:])
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
            database.set_progress_handler(lambda: 1, _LOOK)
            made = bytearray(MAGIC)
            for (text,) in database.execute(_DEFINITIONS):
                made += b"\n" + str(text)[:_TABLE].encode("utf-8", "replace")
                if len(made) > SCHEMA:
                    break
            return bytes(made[:SCHEMA])
    except _BROKEN:
        return None


def _merged(path: Path, data: bytes) -> bytes:
    log = _log_of(path)
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


def _log_of(path: Path) -> Path:
    """The write-ahead log beside a database, where it has one."""
    log = path.with_name(f"{path.name}-wal")
    note_file(log)
    return log


def _without_views(database: sqlite3.Connection) -> None:
    """Drop the views: one in a table's place may give rows without end, and no runtime has one there."""
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
