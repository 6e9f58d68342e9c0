"""The file that a recorder appends to: shared with other processes, kept through rotation and deletion."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import suppress
from time import monotonic, sleep
from typing import Final

import orjson

HEAD: Final = 1 << 16
"""Bytes of a file that tell whether it is a trace."""
LOOK: Final = 0.25
"""Seconds between two checks whether the file still has its name."""
_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_LOOKS: Final = 5
_MOMENT: Final = 0.0002
_AGAIN: Final = 60.0
"""Seconds until a rotation that did not work is tried again."""


class RefusedError(OSError):
    """The name leads to something that must not be written to; `strerror` says why."""


class Sink:
    """Appends lines to a file, each with one `os.write`.

    Args:
        path: The file, made with mode 0600, and its directory with 0700, where they are missing.
        fsync: Wait until each line is on the disk.
        rotate_bytes: The file is renamed (`run.jsonl` to `run.1.jsonl`) before it grows beyond this size.
    """

    def __init__(self, path: str, *, fsync: bool = False, rotate_bytes: int | None = None) -> None:
        self.path = path if os.path.isabs(path) else os.path.join(_here(), path)
        self._fsync = fsync
        self._limit = rotate_bytes
        self._fd = -1
        self._size = 0
        self._name_checked_at = 0.0
        self._torn = False
        self._is_name_kept = False
        """Whether the directory, in which a new file is a name, is on the disk too."""
        self._no_rotation_before = 0.0
        self._identity = (0, 0)
        self._key: tuple[int, ...] = ()
        self.only_traces = False
        """Whether a file that is found under the name is refused unless it is a trace: from the second on,
        somebody else may have given the name to a file of their own."""
        self.files = 0
        """The number of files begun or found so far; when it changes, earlier lines are in another file."""
        self.unsynced = 0
        """Lines in the file that the system could not confirm to be on the disk."""
        self.sync_error: str | None = None
        self.why: str | None = None
        """Why the present file was opened: `opened`, `rotated`, `deleted`, `replaced` …"""
        self.first = False
        """Whether this is the file's first writer: it made the file, and nothing was rotated away."""

    def prepare(self, size: int, now: float | None = None) -> int:
        """Make the file ready for `size` bytes more: open it, find it again, or rotate it.

        Returns the number of files so far.  Raises OSError.  `now`: `monotonic()`, if the caller has it.
        """
        if now is None:
            now = monotonic()
        if self._fd < 0:
            self._open("opened")
            self._name_checked_at = now
        else:
            # Asked each time: a descriptor that somebody else closed may belong to another file by now.
            # Read as a tuple, which costs less: inode, device and links are 1 to 3, the size is 6.
            found = os.fstat(self._fd)
            if found[1:4] != self._key or now - self._name_checked_at > LOOK:
                self._check_name(found, now)
            if found[6] != self._size and found[1:4] == self._key:
                # Somebody else has written, and may have been killed in the middle of a line.
                self._torn = self._torn or self._is_torn(found[6])
                self._size = found[6]
        if self._limit is not None and self._size > 0 and self._size + size > self._limit:
            self._rotate(now)
        return self.files

    def append(self, line: bytes) -> None:
        """Append whole lines.  Raises OSError; then none of them counts as written."""
        data = b"\n" + line if self._torn else line
        self._torn = True
        done = os.write(self._fd, data)
        self._size += done
        if done != len(data) or self._is_glued(done):
            # Others may have appended meanwhile, and the rest would stand behind theirs: write it all again.
            data = b"\n" + line
            again = os.write(self._fd, data)
            self._size += again
            if again != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._torn = False
        if self._fsync:
            try:
                os.fsync(self._fd)
                if not self._is_name_kept:
                    _sync_directory(os.path.dirname(self.path))
                    self._is_name_kept = True
            except OSError as error:
                self.unsynced += 1
                self.sync_error = error.strerror

    def close(self) -> None:
        """Close the file; a later `append` opens it again."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def abandon(self) -> None:
        """Forget the descriptor without closing it: it is another file's by now."""
        self._fd = -1

    def forked(self) -> None:
        """Close the file in a child process.

        The child opens it anew, as only a descriptor of its own makes a rotation's lock hold between the two.
        """
        with suppress(OSError):
            self.close()
        self._torn = self.first = False

    # -- inside ---------------------------------------------------------------------------------------------

    def _open(self, why: str) -> None:
        fd, made = self._opened()
        try:
            found = os.fstat(fd)
            _refuse(found)
            size = found.st_size
            if self.only_traces and not begins_as_trace(os.pread(fd, HEAD, 0)):
                raise RefusedError(errno.EPERM, "it is not a trace")
            torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
        except BaseException:
            os.close(fd)
            raise
        self._fd, self._size, self._torn = fd, size, torn
        self._identity = found.st_dev, found.st_ino
        self._key = found[1:4]
        self.files += 1
        self._is_name_kept = False
        self.only_traces = True
        self.why = why
        if why != "rotated":
            self.first = made and self._is_alone()

    def _opened(self) -> tuple[int, bool]:
        """Return the file's descriptor, and whether this call made the file: true for one writer only."""
        try:
            return os.open(self.path, _FLAGS | os.O_EXCL, 0o600), True
        except FileNotFoundError:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
        except FileExistsError:
            return os.open(self.path, _FLAGS, 0o600), False
        try:
            return os.open(self.path, _FLAGS | os.O_EXCL, 0o600), True
        except FileExistsError:
            return os.open(self.path, _FLAGS, 0o600), False

    def _check_name(self, own: os.stat_result, now: float) -> None:
        """Go on with another file if this one has lost its name."""
        if own.st_ino != self._identity[1] or own.st_dev != self._identity[0]:
            # Somebody closed the descriptor, and the number is another file's now: it must not be written to.
            self.abandon()
            self._open("closed")
            return
        self._name_checked_at = now
        try:
            there = os.stat(self.path, follow_symlinks=False)
        except FileNotFoundError:
            there = None
        if there is not None and (there.st_dev, there.st_ino) == self._identity:
            return
        self.close()
        self._open("deleted" if own.st_nlink == 0 else "replaced" if there is not None else "renamed")

    def _is_torn(self, size: int) -> bool:
        """Whether the file ends within a line that nobody is writing."""
        for _ in range(_LOOKS):
            if not size or os.pread(self._fd, 1, size - 1) == b"\n":
                return False
            # A long line that is still being written is visible from its beginning on.
            sleep(_MOMENT)
            size = os.fstat(self._fd).st_size
        return True

    def _is_glued(self, done: int) -> bool:
        """Whether what was just written stands behind half a line.

        Another writer was killed in the middle of that line while this one waited for its turn.  The file's
        size is not the expected one then.
        """
        end = os.lseek(self._fd, 0, os.SEEK_CUR)
        if end == self._size:
            return False
        self._size = end
        return end > done and os.pread(self._fd, 1, end - done - 1) != b"\n"

    def _rotate(self, now: float) -> None:
        if now < self._no_rotation_before:
            return
        try:
            # One process at a time; the others go on with the new file when they look.
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._no_rotation_before = now + LOOK
            return
        try:
            own, there = os.fstat(self._fd), os.stat(self.path, follow_symlinks=False)
            if (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino):
                os.rename(self.path, self._free_name())
        except OSError:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
            self._no_rotation_before = now + _AGAIN
            return
        self.close()
        self._open("rotated")

    def _free_name(self) -> str:
        number = 1
        while not _is_free(name := self._numbered(number)):
            number += 1
        return name

    def _is_alone(self) -> bool:
        """Whether no earlier file was rotated away, as far as can be seen."""
        try:
            return _is_free(self._numbered(1))
        except OSError:
            return False

    def _numbered(self, number: int) -> str:
        """Return the name of a file that was rotated away."""
        stem, dot = os.path.splitext(self.path)
        return f"{stem}.{number}{dot}"


def _sync_directory(path: str) -> None:
    """Wait until the names in a directory are on the disk.  Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _is_free(name: str) -> bool:
    """Whether nothing has a name.

    Raises OSError where that cannot be told: what is renamed to it might take the place of another file.
    """
    try:
        os.lstat(name)
    except FileNotFoundError:
        return True
    return False


def _here() -> str:
    """Return the working directory as it is now: a program may change it later."""
    try:
        return os.getcwd()
    except OSError:  # deleted
        return ""


def _refuse(found: os.stat_result) -> None:
    """Raise RefusedError for anything but this user's own regular file under one name."""
    why = None
    if not stat.S_ISREG(found.st_mode):
        why = "it is not a regular file"
    elif found.st_uid != os.geteuid():
        why = "it belongs to another user"
    elif found.st_nlink > 1:
        why = "it has a second name (a hard link)"
    if why is not None:
        raise RefusedError(errno.EPERM, why)


def begins_as_trace(head: bytes) -> bool:
    """Whether a file of these first bytes is a trace; a recorder may have been killed within any line."""
    if not head.strip():
        return True
    for line in head.split(b"\n")[:50]:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict) and isinstance(value.get("event_type"), str):
            return True
    # The first line is torn, or longer than what was read: it begins as every line of a recorder does.
    return head.lstrip().startswith(b'{"schema_version":"')
