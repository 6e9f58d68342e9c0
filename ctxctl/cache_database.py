"""A SQLite file of the user's cache: opened or made, guarded while it is replaced, removed when damaged.

What it holds can always be made again, so whoever keeps something here takes each error for "not there".
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ctxctl.user_folders import make_private

if TYPE_CHECKING:
    import sqlite3

BUSY_SECONDS: Final = 0.5
"""How long an opening waits for others, and SQLite for a lock."""


class CacheDatabase:
    """One file of one table, which several processes may share and anybody may have damaged.

    Args:
        path: The file; its directory is made where there is none.
        layout: The number that tells the file from another program's, kept as SQLite's `user_version`.
        table: The statement that makes the table.
        probe: A query that fails where the table is not the one that `table` makes.
        pragmas: Statements for a new file, before its table is made.
    """

    def __init__(
        self, path: Path, layout: int, table: str, probe: str, pragmas: tuple[str, ...] = ()
    ) -> None:
        self.path = path
        self._layout = layout
        self._table = table
        self._probe = probe
        self._pragmas = pragmas

    def connect(self) -> sqlite3.Connection:
        """Open, or make, the database; any thread may use it, one at a time.

        Raises OSError for a file that is not this user's own or stays guarded by others,
        sqlite3.DatabaseError for one of another program.
        """
        with self._guarded(exclusive=False):
            return self._opened()

    def remove(self) -> None:
        """Remove the file; raises OSError."""
        with self._guarded(exclusive=True):
            self._unlink()

    def remove_if_damaged(self) -> None:
        """Remove a file that is no sound database, unless another process has just replaced it."""
        with contextlib.suppress(OSError), self._guarded(exclusive=True):
            if not self._is_sound():
                self._unlink()

    def is_damage(self, error: Exception) -> bool:
        """Whether what SQLite could not do is the file's own fault; a header can say that it is read-only."""
        return "no such" in str(error) or ("readonly" in str(error) and os.access(self.path, os.W_OK))

    def _opened(self) -> sqlite3.Connection:
        import sqlite3

        with contextlib.suppress(FileExistsError):
            # Only a new file is opened here: closing a descriptor of an old one drops SQLite's locks on it.
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        status = os.lstat(self.path)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
            raise OSError("not a file of ours")
        connection = sqlite3.connect(
            self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Make the table of a new file; raises sqlite3.DatabaseError for a file of another layout."""
        import sqlite3

        (layout,) = connection.execute("PRAGMA user_version").fetchone()
        if layout == 0:
            for pragma in (*self._pragmas, "PRAGMA journal_mode = WAL"):
                connection.execute(pragma)
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(self._table)
                connection.execute(f"PRAGMA user_version = {self._layout}")
        elif layout != self._layout:
            raise sqlite3.DatabaseError("the file belongs to somebody else")
        # A row lost with the power costs making it again.
        connection.execute("PRAGMA synchronous = NORMAL")

    def _is_sound(self) -> bool:
        """Whether the file can be read and written; one that is busy or not ours is left as it is."""
        import sqlite3

        try:
            with contextlib.closing(self._opened()) as connection:
                connection.execute(self._probe).fetchall()
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(f"PRAGMA user_version = {self._layout}")
                connection.execute("ROLLBACK")
                return bool(connection.execute("PRAGMA quick_check").fetchall() == [("ok",)])
        except OSError:
            return True
        except sqlite3.Error as error:
            return "locked" in str(error)

    def _unlink(self) -> None:
        for suffix in ("-wal", "-shm", ""):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{self.path}{suffix}")

    @contextlib.contextmanager
    def _guarded(self, *, exclusive: bool) -> Iterator[None]:
        """Nobody opens the file while somebody removes it: a new one must not meet an old write-ahead log."""
        import fcntl

        make_private(self.path.parent)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self.path.with_suffix(".lock"), flags, 0o600)
        mode = (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB
        try:
            deadline = time.monotonic() + BUSY_SECONDS
            while True:
                try:
                    fcntl.flock(descriptor, mode)
                    break
                except BlockingIOError:
                    # Held for the milliseconds of an opening or a removal, unless its owner is stopped.
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.005)
            yield
        finally:
            os.close(descriptor)
