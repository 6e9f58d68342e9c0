"""Token counts that survive the run: equal content is never tokenised twice, whichever run or process asks.

One SQLite file (WAL), keyed by content.  Nothing here is worth an error: whatever goes wrong with the file is
a miss, a file that is not a sound database is made anew, and a file that cannot be used is left alone.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ctxctl.cache_database import CacheDatabase
from ctxctl.tokens.ranks import PUBLISHED_SHA256, RANKS_OF
from ctxctl.user_folders import user_folder

if TYPE_CHECKING:
    import sqlite3

    _Work = Callable[[sqlite3.Connection], None]

FILE_NAME: Final = "counts-1.sqlite3"
"""The number is that of the table's layout: another layout takes another file."""

RULES: Final = 1
"""Version of what `counter` calls a count; raised when any count it stores would come out differently."""

MAX_FILE_BYTES: Final = 256 << 20
"""A file that has grown beyond this (some six million contents) is started afresh."""

_LAYOUT: Final = 0x63747801
_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS counts (key BLOB PRIMARY KEY, tokens INTEGER NOT NULL) WITHOUT ROWID"
)
_PROBE: Final = "SELECT key, tokens FROM counts LIMIT 1"
_FLUSH_AT: Final = 512
_SIZES: Final = (2, 8, 32, 128, 500)
_ASK_AT_ONCE: Final = _SIZES[-1]
_WRITE_AT_ONCE: Final = 256
"""Rows of one statement; some builds of SQLite take 999 values at most."""
_KEEP_AT_MOST: Final = 65_536
_ABSENT_AT_MOST: Final = 32_768
"""Keys that are known not to be in the file; more than that are forgotten, and looked for again."""
_GIVE_UP_AFTER: Final = 8


def default_path() -> Path | None:
    """Where counts are kept: in `CTXCTL_CACHE_DIR`, else the user's cache directory.

    None if `CTXCTL_CACHE` is ``off``: nothing is to be kept.
    """
    if os.environ.get("CTXCTL_CACHE", "").strip().lower() in {"off", "0", "no", "false"}:
        return None
    directory = os.environ.get("CTXCTL_CACHE_DIR")
    if directory:
        return Path(directory) / FILE_NAME
    return user_folder("cache") / FILE_NAME


class CountCache:
    """Counts by key; every method is thread-safe, none raises, and several processes may share the file.

    The file is opened by the first `get`.  New counts are buffered and written some hundreds at a time, by
    `flush` and by `close`; what a write cannot bring in because the file is busy stays buffered for the
    next one.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._database = CacheDatabase(self.path, _LAYOUT, _TABLE, _PROBE)
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._owner = 0
        self._failures = 0
        self._new: dict[bytes, int] = {}
        self._absent: set[bytes] = set()
        """Keys that `get_all` did not find."""

    @staticmethod
    def key(encoding: str, text: bytes) -> bytes:
        """Key (16 bytes) of a text in UTF-8 under an encoding: of all that decides its count, and no more."""
        base = RANKS_OF.get(encoding, encoding)
        person = f"{base}:{PUBLISHED_SHA256.get(base, '')[:16]}:{RULES}:"
        made = blake2b(person.encode(), digest_size=16)
        made.update(text)  # not one behind the other: a text may have a hundred megabytes
        return made.digest()

    def get(self, key: bytes) -> tuple[int, bool] | None:
        """(tokens, exact) if this or another run has counted the text."""
        with self._lock:
            stored = self._new.get(key)
            if stored is None and key not in self._absent:
                stored = self._read(key)
        return None if stored is None else _count(stored)

    def get_all(self, keys: Iterable[bytes]) -> dict[bytes, tuple[int, bool]]:
        """What `get` gives for each of many keys, those left out of which nothing is known.

        One question to the file, and the thread that asks it waits for others but once: beside a busy thread
        each question costs a millisecond, however small.  `get` does not look again for what was missing;
        what other processes count meanwhile is counted here too.
        """
        wanted = set(keys)
        with self._lock:
            found = {key: stored for key in wanted if (stored := self._new.get(key)) is not None}
            asked = [key for key in wanted if key not in found]
            if len(self._absent) > _ABSENT_AT_MOST:
                self._absent.clear()
            for at in range(0, len(asked), _ASK_AT_ONCE):
                part = asked[at : at + _ASK_AT_ONCE]
                counts = self._read_all(part)
                if counts is not None:
                    found.update(counts)
                    self._absent.difference_update(counts)
                    self._absent.update(key for key in part if key not in counts)
        return {key: _count(stored) for key, stored in found.items()}

    def put(self, key: bytes, tokens: int, exact: bool = True) -> None:
        """Remember a count (`tokens` is not negative)."""
        with self._lock:
            if len(self._new) >= _KEEP_AT_MOST:
                return
            self._new[key] = tokens if exact else ~tokens
            if len(self._new) % _FLUSH_AT == 0:
                self._write()

    def flush(self) -> None:
        """Write what is buffered; what cannot be written now stays buffered."""
        with self._lock:
            self._write()

    def close(self) -> None:
        """Write what is buffered and let the file go; the cache may be used again afterwards."""
        with self._lock:
            self._write()
            self._disconnect()

    def __enter__(self) -> CountCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, key: bytes) -> int | None:
        found: list[int] = []

        def select(connection: sqlite3.Connection) -> None:
            found.extend(
                row[0] for row in connection.execute("SELECT tokens FROM counts WHERE key = ?", (key,))
            )

        self._attempt(select)
        return found[0] if found and type(found[0]) is int else None

    def _read_all(self, keys: list[bytes]) -> dict[bytes, int] | None:
        """What the file holds of some keys; None if it could not be asked."""
        rows: list[str] = []

        def select(connection: sqlite3.Connection) -> None:
            # One row, as the interpreter lets other threads go first at each; few statements, to be kept.
            room = next(size for size in _SIZES if size >= len(keys))
            marks = ",".join("?" * room)
            query = f"SELECT group_concat(hex(key) || ' ' || tokens) FROM counts WHERE key IN ({marks})"
            padded = keys + keys[-1:] * (room - len(keys))
            rows.extend(row[0] for row in connection.execute(query, padded) if isinstance(row[0], str))

        if not self._attempt(select):
            return None
        found = {}
        for entry in rows[0].split(",") if rows else ():
            with contextlib.suppress(ValueError):  # who knows what is in the file
                key, tokens = entry.split(" ")
                found[bytes.fromhex(key)] = int(tokens)
        return found

    def _write(self) -> None:
        if not self._new:
            return
        rows = sorted(self._new.items())

        def insert(connection: sqlite3.Connection) -> None:
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                for at in range(0, len(rows), _WRITE_AT_ONCE):
                    part = rows[at : at + _WRITE_AT_ONCE]
                    marks = ",".join(["(?,?)"] * len(part))
                    values = [value for row in part for value in row]
                    connection.execute(f"INSERT OR REPLACE INTO counts VALUES {marks}", values)

        if self._attempt(insert):
            self._new.clear()

    def _attempt(self, work: _Work) -> bool:
        """Run `work` on the open database; whether it succeeded.  A damaged file is replaced, once a call."""
        try:
            import sqlite3
        except ImportError:
            # Python can be built without it.
            self._failures = _GIVE_UP_AFTER
            return False
        for last in (False, True):
            if self._failures >= _GIVE_UP_AFTER:
                return False
            try:
                work(self._open())
                self._failures = 0
                return True
            except (sqlite3.OperationalError, OSError) as error:
                # Busy, read-only, full: none is the file's own fault.
                if last or not self._database.is_damage(error):
                    self._failures += "locked" not in str(error)
                    return False
                self._rebuild()
            except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError):
                self._failures += 1
                if last:
                    return False
                self._rebuild()
        return False

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and self._owner == os.getpid():
            return self._connection
        # After a fork the connection is the parent's: closing it here would break the parent's locks.
        self._connection = None
        if _size(self.path) > MAX_FILE_BYTES:
            self._database.remove()
        self._connection = self._database.connect()
        self._owner = os.getpid()
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None and self._owner == os.getpid():
            with contextlib.suppress(Exception):
                self._connection.close()
        self._connection = None

    def _rebuild(self) -> None:
        """Let go of a file that is no sound database, and remove it."""
        self._disconnect()
        self._database.remove_if_damaged()


class LastingCache(CountCache):
    """One that stays open for all captures that a process reads: what `flush` and `close` would write waits
    until there are some hundreds of counts, or for `end`.
    """

    def flush(self) -> None:
        """See above."""

    def close(self) -> None:
        """See above."""

    def end(self) -> None:
        """Write what is buffered and let the file go."""
        super().close()


_LASTING: Final[list[dict[Path, LastingCache]]] = []
"""The caches of a process that keeps them open; empty in any other."""


def counts_at(path: Path) -> CountCache:
    """The cache of a file, to be closed by the caller."""
    return _LASTING[-1].setdefault(path, LastingCache(path)) if _LASTING else CountCache(path)


@contextlib.contextmanager
def kept_open() -> Iterator[None]:
    """In here, each file's cache is opened once, however often it is asked for."""
    _LASTING.append({})
    try:
        yield
    finally:
        for cache in _LASTING.pop().values():
            cache.end()


def _count(stored: int) -> tuple[int, bool]:
    """(tokens, exact) as it is stored: an estimate as the complement."""
    return (stored, True) if stored >= 0 else (~stored, False)


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
