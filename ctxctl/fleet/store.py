"""What was answered about single captures, kept from run to run in one SQLite file of the user's cache.

Rows are opaque here: a key, bytes, and a digest over both.  Whatever is wrong with the file (damaged, another
program's, of another layout, not ours, full disk, busy) is a row that is not there; a file that is no sound
database is made anew.  Nothing raises.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import xxhash

from ctxctl.cache_database import CacheDatabase

if TYPE_CHECKING:
    import sqlite3

    _Work = Callable[[sqlite3.Connection], None]

FILE_NAME: Final = "answers-1.sqlite3"
"""The number is that of the table's layout: another layout takes another file."""
_LAYOUT: Final = 0x63747821
_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS answers"
    " (key BLOB NOT NULL UNIQUE, sum BLOB NOT NULL, data BLOB NOT NULL, used INTEGER NOT NULL)"
)
_PROBE: Final = "SELECT key, sum, data, used FROM answers LIMIT 1"
_ASK_AT_ONCE: Final = 500
_FLUSH_AT: Final = 1 << 20
"""Bytes that are held back before they are written."""
_DAY: Final = 86_400
_AFTER_TRIM: Final = 0.75
"""Of the bytes that are allowed, what is left when the oldest rows are dropped."""


class AnswerStore:
    """Bytes by key, for one process at a time that may share the file with others; nothing raises.

    Args:
        path: The file; its directory is made where there is none.
        most: Bytes that it may take; the rows that were not used for longest are dropped first.
    """

    def __init__(self, path: Path, most: int) -> None:
        self.path = path
        self._database = CacheDatabase(path, _LAYOUT, _TABLE, _PROBE, ("PRAGMA auto_vacuum = INCREMENTAL",))
        self._most = most
        self._connection: sqlite3.Connection | None = None
        self._usable = True
        self._new: dict[bytes, bytes] = {}
        self._size = 0

    def get_all(self, keys: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """The rows that there are of these keys, sound ones only."""
        wanted = list(keys)
        for at in range(0, len(wanted), _ASK_AT_ONCE):
            part = wanted[at : at + _ASK_AT_ONCE]
            rows: list[tuple[object, object, object, object]] = []
            if not self._attempt(lambda connection, part=part, rows=rows: _select(connection, part, rows)):  # type: ignore[misc]
                return
            old = []
            for key, check, data, used in rows:
                if type(key) is bytes and type(data) is bytes and check == _check(key, data):
                    if type(used) is int and used < _today():
                        old.append(key)
                    yield key, data
            if old:
                self._attempt(lambda connection, old=old: _touch(connection, old))  # type: ignore[misc]

    def put(self, key: bytes, data: bytes) -> None:
        """Keep a row; it is written by `flush`, or once there is much to write."""
        self._new[key] = data
        self._size += len(data)
        if self._size >= _FLUSH_AT:
            self.flush()

    def flush(self) -> None:
        """Write what is held back; what cannot be written is forgotten."""
        rows, self._new, self._size = self._new, {}, 0
        if rows and self._attempt(lambda connection: _insert(connection, rows)):
            self._attempt(lambda connection: _trim(connection, self._most))

    def close(self) -> None:
        """Write what is held back and let the file go."""
        self.flush()
        self._let_go()

    def __enter__(self) -> AnswerStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _attempt(self, work: _Work) -> bool:
        """Do something with the open database; whether that succeeded.  A damaged file is replaced, once."""
        try:
            import sqlite3
        except ImportError:  # Python can be built without it
            return False
        for last in (False, True):
            if not self._usable:
                return False
            try:
                if self._connection is None:
                    self._connection = self._database.connect()
                work(self._connection)
                return True
            except (sqlite3.OperationalError, OSError) as error:
                # Busy, read-only, full, not ours: no reason to remove it, and no use to ask again.
                self._usable = "locked" in str(error)
                if last or not self._database.is_damage(error):
                    return False
                self._usable = True
                self._make_anew()
            except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, TypeError):
                self._usable = not last
                if not last:
                    self._make_anew()
        return False

    def _make_anew(self) -> None:
        """Let go of a file that is no sound database, and remove it."""
        self._let_go()
        self._database.remove_if_damaged()

    def _let_go(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(Exception):
                self._connection.close()
        self._connection = None


def _check(key: bytes, data: bytes) -> bytes:
    return xxhash.xxh3_128_digest(key + data)


def _today() -> int:
    return int(time.time()) // _DAY


def _select(
    connection: sqlite3.Connection, keys: list[bytes], rows: list[tuple[object, object, object, object]]
) -> None:
    marks = ",".join("?" * len(keys))
    rows += connection.execute(f"SELECT key, sum, data, used FROM answers WHERE key IN ({marks})", keys)


def _touch(connection: sqlite3.Connection, keys: list[bytes]) -> None:
    """Note the day of the last use."""
    with connection:
        marks = ",".join("?" * len(keys))
        connection.execute(f"UPDATE answers SET used = ? WHERE key IN ({marks})", [_today(), *keys])


def _insert(connection: sqlite3.Connection, rows: dict[bytes, bytes]) -> None:
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            "INSERT OR REPLACE INTO answers (key, sum, data, used) VALUES (?, ?, ?, ?)",
            [(key, _check(key, data), data, _today()) for key, data in rows.items()],
        )


def _trim(connection: sqlite3.Connection, most: int) -> None:
    """Drop the oldest rows of a file that has become too large."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (page,) = connection.execute("PRAGMA page_size").fetchone()
    over = int((pages - free) * page - most * _AFTER_TRIM)
    if pages * page <= most:
        return
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        number = 0
        for (size,) in connection.execute("SELECT length(data) FROM answers ORDER BY used, rowid"):
            if over <= 0:
                break
            over -= size
            number += 1
        oldest = "SELECT rowid FROM answers ORDER BY used, rowid LIMIT ?"
        connection.execute(f"DELETE FROM answers WHERE rowid IN ({oldest})", [number])
    # A step of its own for each page, and `execute` makes one alone.
    connection.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)")
