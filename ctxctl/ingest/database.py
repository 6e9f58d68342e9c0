"""Captures that are SQLite databases, read from a copy in memory."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final

import orjson

from ctxctl.errors import UnreadableError
from ctxctl.ingest.build import Json
from ctxctl.ingest.database_check import DEFINED, add_index, damage, definitions_fit, quoted, whole_rows
from ctxctl.ingest.lines import WHOLE_FILE
from ctxctl.ingest.run import Run
from ctxctl.trace.inputs import note_file
from ctxctl.trace.source import Source
from ctxctl.trace.spool import no_space

MAGIC: Final = b"SQLite format 3\0"
MAX_DATABASE: Final = 512 << 20
SCHEMA: Final = 1 << 20
"""The most bytes of table definitions that detection looks at."""
_IN_LOG: Final = 1 << 16
"""The most bytes of one definition in a write-ahead log: SQLite reads it before anybody could look at it."""
_TABLE: Final = 1 << 12
"""The most bytes of one table's definition."""
STEPS: Final = 200_000_000
"""Instructions of SQLite's machine after which a reading is given up: a view may be a bomb."""
MAX_VALUE: Final = 64 << 20
"""The most bytes of a row."""
_VALUE: Final = 1 << 20
"""Bytes that a row may have in a file of any size; further ones a row has in a file only that has as many."""
READ: Final = 32 << 20
"""Bytes that may be read of the rows of a file of any size."""
_TIMES_READ: Final = 8
"""How often as many bytes as the file has may be read beyond these: no importer reads a table thrice."""
_CELL: Final = 8
"""Bytes that a value counts as beside those of its text."""
_VIRTUAL: Final = 2
"""What `PRAGMA table_xinfo` says of a column that is computed as it is read, and is not in the file."""
_COLUMNS: Final = 100
"""The most columns of a table: a row of few bytes that lacks all of them would have each of them."""
_DEFAULTS: Final = 2000
"""The most characters of the defaults of a table's columns: they stand in each row that lacks the column."""
_SHOWN: Final = 80
_MOST_SHOWN: Final = 5
_LEGACY: Final = b"\x01\x01"
_LOOK: Final = 1_000_000
"""Instructions of SQLite's machine for the table definitions of a file of an unknown format."""
_DEFINED: Final = re.compile(rb"CREATE TABLE (?:IF NOT EXISTS )?[`\"\[']?(\w+)", re.IGNORECASE)
_DEFINITIONS: Final = "SELECT sql FROM sqlite_master WHERE type = 'table' AND sql IS NOT NULL"

_OF_SYSTEM: Final = frozenset({
    sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY
})  # fmt: skip
"""What SQLite says where the system failed, and not the file."""
_BROKEN: Final = (sqlite3.Error, OverflowError, IndexError, ValueError)
"""What a damaged file raises: names that are no UTF-8 among it."""

Reader = Callable[[Run, sqlite3.Connection], Iterator[Json]]
Key = tuple[str, str]
"""A table and a column of it."""


def read_database(
    run: Run, source: Source, reader: Reader, *, keys: Collection[Key] = (), steps: int | None = None
) -> Iterator[Json]:
    """Yield what `reader` makes of a database, whose rows are `sqlite3.Row`s, and close the run.

    What a write-ahead log beside the file holds is read with it, so that a database in use is shown as its
    program sees it.  What is read is what the file holds (`_Gate`).  Problems: `document-too-large`,
    `bad-database`, `log-not-read`.

    Args:
        run: The import.
        source: The file.
        reader: Asks the database.
        keys: The columns by which it looks for rows, again and again; each gets an index where it has none.
        steps: Instructions of SQLite's machine after which a query ends; `STEPS` unless given.
    """
    run.line = WHOLE_FILE
    data, why = _with_log(source, source.read(0, MAX_DATABASE + 1))
    if why:
        run.problem("log-not-read", f"the log beside the database cannot be read: {why}")
    if len(data) > MAX_DATABASE:
        run.problem("document-too-large", f"a database of more than {MAX_DATABASE >> 20} MiB; not read")
        return
    with closing(sqlite3.connect(":memory:")) as database:
        gate = _Gate(len(data))
        try:
            _load(database, data, gate, steps or STEPS, keys)
            if gate.damage:
                message = (
                    f"the database is damaged ({gate.damage}): only the rows that can still be read are shown"
                )
                run.problem("bad-database", message)
            yield from reader(run, database)
        except _BROKEN as error:
            run.problem("bad-database", f"the database cannot be read: {gate.why or error}")
        if gate.passed_over:
            run.problem("bad-database", _computed(gate.passed_over))
    yield from run.finish()


def _computed(columns: dict[str, None]) -> str:
    names = ", ".join(list(columns)[:_MOST_SHOWN])
    return f"columns that the file has computed, or filled with a long default, are not read: {names}"


class _TooMuchError(sqlite3.DataError):
    """More was read of a database than its file can hold."""


class _Gate:
    """Lets through what a file holds, and nothing that SQL in it makes up.

    A few bytes of SQL make values of any size: a column that is computed as it is read, or has a long text as
    its default, is taken as empty; a virtual table, or one of very many columns, is not read at all.  What is
    left can still be more than the file, as damaged pages may lead to one row again and again.  So the bytes
    that are read are counted.
    """

    def __init__(self, size: int) -> None:
        self.value = _longest(size)
        self.why = ""
        """Why the reading ended, where the library would say it in words of its own."""
        self.damage = ""
        """What is wrong with the pages of the file, in SQLite's words."""
        self.passed_over: dict[str, None] = {}
        """The columns that were asked for and whose values are made up."""
        self._size = size
        self._most = self._left = READ + _TIMES_READ * size
        self._tables: list[str] = []
        self._made_up: set[tuple[str, str]] = set()
        self._refused: dict[str, str] = {}
        """By table that is not read, why not."""

    def watch(self, database: sqlite3.Connection) -> None:
        """Stand before all queries to come."""
        found = database.execute("SELECT name, rootpage FROM sqlite_master WHERE type = 'table'").fetchall()
        self._tables = [str(name) for name, _ in found]
        for name, page in found:
            if not page:
                self._refused[str(name).lower()] = "is a virtual table"
                continue
            columns = database.execute(f"PRAGMA table_xinfo({quoted(name)})").fetchall()
            if len(columns) > _COLUMNS:
                self._refused[str(name).lower()] = f"has {len(columns):,} columns"
            left = _DEFAULTS
            for column in columns:
                left -= len(str(column[4] or ""))
                if column[6] == _VIRTUAL or left < 0:
                    self._made_up.add((str(name).lower(), str(column[1]).lower()))
        database.row_factory = self._row
        database.set_authorizer(self._asked)

    def readable(self) -> list[str]:
        """The tables that are read, in the order of the file."""
        return [name for name in self._tables if not self.refuses(name)]

    def refuses(self, table: str) -> bool:
        """Whether a table is not read at all."""
        return table.lower() in self._refused

    def _asked(self, action: int, table: str | None, column: str | None, *_where: str | None) -> int:
        if action != sqlite3.SQLITE_READ or table is None:
            return sqlite3.SQLITE_OK
        if self.refuses(table):
            self.why = f"{table[:_SHOWN]} {self._refused[table.lower()]}, as no program's table of its kind"
            return sqlite3.SQLITE_DENY
        if (table.lower(), str(column).lower()) in self._made_up:
            self.passed_over[f"{str(column)[:_SHOWN]} of {table[:_SHOWN]}"] = None
            return sqlite3.SQLITE_IGNORE
        return sqlite3.SQLITE_OK

    def _row(self, cursor: sqlite3.Cursor, values: tuple[Any, ...]) -> sqlite3.Row:
        texts = sum([len(one) for one in values if isinstance(one, str | bytes)])
        self._left -= texts + _CELL * len(values)
        if self._left < 0:
            raise _TooMuchError(
                f"its rows come to more than {self._most:,} bytes, and the file has {self._size:,}"
            )
        return sqlite3.Row(cursor, values)


def first_rows(source: Source, query: str, most: int) -> list[tuple[Any, ...]]:
    """The first rows of a query of our own; none where the database cannot be read."""
    data, _ = _with_log(source, source.read(0, MAX_DATABASE + 1))
    if len(data) > MAX_DATABASE:
        return []
    with closing(sqlite3.connect(":memory:")) as database:
        try:
            _load(database, data, _Gate(len(data)))
            return [tuple(row) for row in database.execute(query).fetchmany(most)]
        except _BROKEN:
            return []


def rows_of_tables(source: Source, most: int) -> Generator[tuple[str, int, Json], None, None]:
    """The first rows of each table, with the table's name and the row's number in it, columns by name.

    Nothing where the database cannot be read; close it to be done sooner.
    """
    data, _ = _with_log(source, source.read(0, MAX_DATABASE + 1))
    if len(data) > MAX_DATABASE:
        return
    with closing(sqlite3.connect(":memory:")) as opened:
        try:
            gate = _Gate(len(data))
            _load(opened, data, gate)
            names = opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for (name,) in names:
                if gate.refuses(str(name)):
                    continue
                found = opened.execute(f"SELECT * FROM {quoted(name)}")
                columns = [str(column[0]) for column in found.description]
                for number, row in enumerate(islice(found, most), 1):
                    yield str(name), number, dict(zip(columns, row, strict=False))
        except _BROKEN:
            return


def _longest(size: int) -> int:
    """The most bytes of a row of a file."""
    return min(MAX_VALUE, max(_VALUE, size))


def _load(
    database: sqlite3.Connection, data: bytes, gate: _Gate, steps: int = STEPS, keys: Collection[Key] = ()
) -> None:
    """Fill an empty database in memory; no code in the file runs, and queries end at `steps`.

    Of a file whose pages are damaged it gets what rows come out of them, in the order of the file.
    """
    if not definitions_fit(lambda at, size: data[at : at + size]):
        gate.why = f"the definitions of its tables come to more than {DEFINED >> 20} MiB"
        raise sqlite3.DataError(gate.why)
    _fill(database, data, gate.value)
    gate.damage = damage(database)
    if gate.damage:
        with closing(sqlite3.connect(":memory:")) as damaged:
            _fill(damaged, data, gate.value)
            damaged.set_progress_handler(lambda: 1, steps)
            first = _Gate(len(data))
            first.watch(damaged)
            data = whole_rows(damaged, first.readable(), READ + len(data))
        _fill(database, data, gate.value)
    database.set_progress_handler(lambda: 1, steps)
    for table, column in keys:
        add_index(database, table, column)
    gate.watch(database)


def _fill(database: sqlite3.Connection, data: bytes, longest: int) -> None:
    # A copy in memory has no write-ahead log beside it; bytes 18 and 19 would ask for one.
    database.deserialize(data[:18] + _LEGACY + data[20:])
    database.execute("PRAGMA trusted_schema = OFF")
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, longest)
    _without_views(database)


def _with_log(source: Source, data: bytes) -> tuple[bytes, str]:
    """The database as it is with its write-ahead log; both are copied first, and the originals never opened.

    Where the log belongs to another state of the file, the file alone counts (`_merged`).
    """
    path = source.path
    if path is None or source.spooled or len(data) > MAX_DATABASE:
        return data, ""
    return _merged(path, data)


def schemas(path: Path | None, data: Callable[[], bytes]) -> Iterator[bytes]:
    """The magic of a database and the definitions of its tables, wherever in the file they lie.

    What detection looks at.  The file is opened read-only, and only its pages with definitions are read.  For
    whom that is not enough, then come the definitions as they are with the write-ahead log beside it: those
    of a young database stand nowhere else.  `data` gives the bytes of a database that is no file of its own
    (it came through a pipe, or was compressed), or that has a log.  Nothing where they cannot be read.
    """
    first = _definitions_in(data()) if path is None else _definitions_of(path)
    if first is not None:
        yield first
    if path is None or not _log_of(path).is_file():
        return
    whole = data()
    merged = _merged(path, whole)[0] if len(whole) <= MAX_DATABASE else whole
    second = _definitions_in(merged) if merged is not whole else None
    if second is not None and second != first:
        yield second


def table_names(head: bytes) -> set[str]:
    """The names of the tables whose definitions stand in the bytes."""
    return {found[1].decode("ascii", "replace") for found in _DEFINED.finditer(head)}


def _definitions_in(data: bytes) -> bytes | None:
    if len(data) > MAX_DATABASE or not definitions_fit(lambda at, size: data[at : at + size]):
        return None
    return _definitions(":memory:", len(data), data)


def _definitions_of(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            fit = definitions_fit(lambda at, size: os.pread(file.fileno(), size, at))
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    if not fit:
        return None
    return _definitions(f"{path.absolute().as_uri()}?mode=ro&immutable=1", size)


def _definitions(uri: str, size: int, data: bytes = b"") -> bytes | None:
    try:
        with closing(sqlite3.connect(uri, uri=not data)) as database:
            if data:
                database.deserialize(data[:18] + _LEGACY + data[20:])
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _longest(size))
            database.set_progress_handler(lambda: 1, _LOOK)
            made = bytearray(MAGIC)
            for (text,) in database.execute(_DEFINITIONS):
                made += b"\n" + str(text)[:_TABLE].encode("utf-8", "replace")
                if len(made) > SCHEMA:
                    break
            return bytes(made[:SCHEMA])
    except _BROKEN:
        return None


def _merged(path: Path, data: bytes) -> tuple[bytes, str]:
    """The database with its log, and why without: as it is where there is none, or one of another state.

    Raises UnreadableError (`read-failed`, `no-space`) where the system fails: without what the log holds, an
    older state would be shown as if it were the present one.
    """
    log = _bytes_of_log(_log_of(path))
    if not log:
        return data, ""
    try:
        return _checkpointed(data, log), ""
    except OSError as error:
        raise no_space(path.name, error.strerror) from None
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _OF_SYSTEM:
            raise no_space(path.name, str(error)) from None
        return data, str(error)


def _bytes_of_log(log: Path) -> bytes:
    """What a log holds; nothing where it is not there, is no file or too large."""
    try:
        size = log.stat().st_size
        if not 0 < size <= MAX_DATABASE or log.is_symlink() or not log.is_file():
            return b""
        return log.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise UnreadableError("read-failed", f"cannot read {log.name}: {error.strerror}") from None


def _checkpointed(data: bytes, log: bytes) -> bytes:
    """A database into which its log was written.  Raises OSError and sqlite3.Error."""
    folder = tempfile.mkdtemp(prefix="ctxctl-")
    try:
        copy = Path(folder) / "copy.db"
        copy.write_bytes(data)
        copy.with_name("copy.db-wal").write_bytes(log)
        with closing(sqlite3.connect(copy)) as database:
            database.execute("PRAGMA locking_mode = EXCLUSIVE")  # nobody else has it: no index is shared
            database.execute("PRAGMA trusted_schema = OFF")
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _IN_LOG)
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return copy.read_bytes()
    finally:
        with suppress(OSError):
            shutil.rmtree(folder, ignore_errors=True)


def _log_of(path: Path) -> Path:
    """The write-ahead log beside a database, where it has one."""
    log = path.with_name(f"{path.name}-wal")
    note_file(log)
    return log


def _without_views(database: sqlite3.Connection) -> None:
    """Drop the views: one in a table's place may give rows without end, and no runtime has one there."""
    for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'view'").fetchall():
        database.execute(f"DROP VIEW {quoted(name)}")


def value(text: Any) -> Any:
    """The JSON value of a column; None for what is none."""
    if not isinstance(text, str | bytes):
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
