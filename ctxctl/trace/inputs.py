"""The inputs of an import: files, and directories in which it searches for files by name.

A cached import is valid only while all of them are unchanged, and none may be overwritten. `recording` notes
the inputs within a `with` block. Code that opens a file other than by `open_source`, or lists a directory,
must report it here.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG
from typing import Final, NamedTuple

import msgspec
import xxhash

from ctxctl.user_folders import own_below
from ctxctl.whole_file import note_read

YOUNG: Final = 2.0
"""Seconds: a more recent change may be followed by another one with the same time."""
DIGESTED: Final = 256 << 20
"""Most bytes of a young file that are digested, because its times are not conclusive."""
MAX_FILES: Final = 20_000
MAX_DEPTH: Final = 8
UNDER: Final = "/"
"""Replaces a pattern: all files under a directory."""


class FileState(msgspec.Struct, frozen=True, array_like=True):
    """A file's status. A change of its contents shows here, unless the clock is too coarse."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    def settled(self, now: float) -> bool:
        """Return whether its last change is long enough before a time, in seconds since the epoch."""
        return max(self.mtime_ns, self.ctime_ns) / 1e9 < now - YOUNG


class Inputs:
    """Files and listings that were read, with their first state."""

    def __init__(self) -> None:
        self.files: dict[str, FileState | None] = {}
        """States by absolute path; None if there was no file."""
        self.listings: dict[tuple[str, str], str] = {}
        """Digests of the paths found, by absolute directory and pattern."""
        self.steady = True
        """False once something changed while it was read."""
        self.young: dict[str, bytes] = {}
        """Files that had just changed, each with a digest of all of it; empty if it is too large."""

    @property
    def settled(self) -> bool:
        """Whether the states of files alone show that they are unchanged."""
        return self.steady and not self.young

    def file(self, path: str | Path) -> None:
        """Note that a file is about to be read or searched."""
        name = absolute_path(path)
        state = file_state(name)
        known = self.files.setdefault(name, state)
        if known != state:
            self.steady = False
        elif state is not None and name not in self.young and not state.settled(time.time()):
            self.young[name] = whole_digest(name)

    def listing(self, directory: str | Path, pattern: str, found: list[str]) -> None:
        """Note that a directory was listed, and what a pattern found there."""
        key = (absolute_path(directory), pattern)
        if self.listings.setdefault(key, _digest(found)) != _digest(found):
            self.steady = False

    def absorb(self, other: Inputs) -> None:
        """Add the inputs of a part."""
        self.steady = self.steady and other.steady
        for name, held in other.young.items():
            self.steady = self.steady and self.young.setdefault(name, held) == held
        for name, state in other.files.items():
            self.steady = self.steady and self.files.setdefault(name, state) == state
        for key, digest in other.listings.items():
            self.steady = self.steady and self.listings.setdefault(key, digest) == digest

    def unchanged(self, but: str | None = None) -> bool:
        """Return whether everything is unchanged, young files to the byte; `but` excludes one file."""
        files = [name for name in self.files if name != but]
        try:
            return (
                all(file_state(name) == self.files[name] for name in files)
                and all(self._holds(name) for name in files if name in self.young)
                and all(
                    _digest_of(directory, pattern) == known
                    for (directory, pattern), known in self.listings.items()
                )
            )
        except OSError:
            return False

    def _holds(self, name: str) -> bool:
        """Return whether a young file is unchanged; False if it is too large to know."""
        return bool(self.young[name]) and whole_digest(name) == self.young[name]


def real_place(path: str | Path) -> Path:
    """Return the path of a file: its name in its directory, by the real path of that.

    A link to a file keeps its own name, because the files beside it count, not those beside its target.
    """
    head, name = os.path.split(path)
    try:
        if name in ("", os.curdir, os.pardir):
            return Path(os.path.realpath(path))
        return Path(os.path.realpath(head), name)
    except (OSError, ValueError):  # an invalid path is reported when it is opened
        return Path(path)


def absolute_path(path: str | Path) -> str:
    """Return an absolute path of the same file. `abspath` alone resolves `link/..` wrongly.

    Raises OSError with the path, if it is relative to a directory that was removed.
    """
    name = os.fspath(path)
    try:
        return os.path.abspath(real_place(name) if os.pardir in name.split(os.sep) else name)
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from None


_RECORDING: Final[ContextVar[Inputs | None]] = ContextVar("inputs", default=None)


@contextmanager
def recording() -> Iterator[Inputs]:
    """Note the inputs within this context, on this thread. An outer `recording` gets them too."""
    inputs = Inputs()
    token = _RECORDING.set(inputs)
    try:
        yield inputs
    finally:
        _RECORDING.reset(token)
        note_inputs(inputs)


def note_inputs(known: Inputs) -> None:
    """Note the use of something that depends on these inputs."""
    inputs = _RECORDING.get()
    if inputs is not None:
        inputs.absorb(known)
    note_read(known.files)


def note_file(path: str | Path) -> None:
    """Note that a file is about to be read, or that its existence matters."""
    inputs = _RECORDING.get()
    if inputs is not None:
        inputs.file(path)
    note_read((os.fspath(path),))


class Listing(NamedTuple):
    """What is under a directory; names are relative to it, `/`-separated and sorted."""

    files: tuple[str, ...]
    """Regular files."""
    unlisted: tuple[str, ...]
    """Directories that the system did not list."""
    is_cut: bool
    """Whether there may be more."""


def files_under(directory: Path, most: int = MAX_FILES) -> Listing:
    """Return the regular files under a directory: about `most` at most, `MAX_DEPTH` deep.

    Links are not followed; `.git`, `node_modules` and ctxctl's own files are left out. All files returned may
    be read. Raises OSError if the directory itself cannot be listed.
    """
    found, is_cut = _under(directory, most)
    unlisted = tuple(name[:-1] for name in found if name.endswith("/"))
    files = tuple(name for name in found if not name.endswith("/")) if unlisted else tuple(found)
    inputs = _RECORDING.get()
    if inputs is not None:
        inputs.listing(directory, UNDER, found)
        for name in files:
            inputs.file(os.path.join(directory, name))
    return Listing(files, unlisted, is_cut)


def find_files(directory: Path, pattern: str) -> list[Path]:
    """Return the paths under a directory that match a pattern (`*.jsonl`, `**/agent-*.jsonl`), sorted.

    Raises OSError if the directory cannot be listed.
    """
    inputs = _RECORDING.get()
    try:
        found = _found(directory, pattern)
    except OSError:
        if inputs is not None:
            inputs.steady = False  # the error may pass, so a result without these files is not cached
        raise
    if inputs is not None:
        inputs.listing(directory, pattern, found)
    return [directory / name for name in found]


def file_state(path: str) -> FileState | None:
    """Return a file's state; None if it cannot be reached."""
    try:
        now = os.stat(path)
    except (OSError, ValueError):
        return None
    return FileState(now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)


def whole_digest(path: str) -> bytes:
    """Return a digest of a file; empty if it is too large (`DIGESTED`), missing or unreadable."""
    digest, left = xxhash.xxh3_128(), DIGESTED
    try:
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb", buffering=0) as file:
            if not S_ISREG(os.fstat(file.fileno()).st_mode):
                return b""
            while data := file.read(1 << 20):
                left -= len(data)
                if left < 0:
                    return b""
                digest.update(data)
    except (OSError, ValueError):
        return b""
    return digest.digest()


_LISTED: Final[dict[tuple[str, str], tuple[FileState, list[str], str]]] = {}
"""Results of one-level patterns by directory, each with a digest and the directory's state: many captures of
one directory search the same."""


def _digest_of(directory: str, pattern: str) -> str:
    """Return a digest of what a pattern finds in a directory."""
    if pattern != UNDER:
        state = file_state(directory)
        if state is None:
            return _NOTHING
        known = _LISTED.get((directory, pattern))
        if known is not None and known[0] == state:
            return known[2]
    return _digest(_found(Path(directory), pattern))


def _found(directory: Path, pattern: str) -> list[str]:
    if pattern == UNDER:
        return _under(directory)[0]
    state = file_state(str(directory))
    if state is None:
        return []
    key = (str(directory), pattern)
    known = _LISTED.get(key)
    if known is not None and known[0] == state:
        return known[1]
    settled = state.settled(time.time())
    found = sorted(str(path.relative_to(directory)) for path in directory.glob(pattern))
    if settled and "/" not in pattern and "**" not in pattern:
        _LISTED[key] = (state, found, _digest(found))
    return found


def _under(top: Path, most: int = MAX_FILES) -> tuple[list[str], bool]:
    """Return `files_under` with unlisted directories as `name/`, and whether there may be more."""
    found: list[str] = []
    own = own_below(top)
    waiting = [(top, "")] if "" not in own else []
    while waiting and len(found) < most:
        folder, prefix = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    name = f"{prefix}{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        passed = entry.name in (".git", "node_modules") or name in own
                        if name.count("/") < MAX_DEPTH and not passed:
                            waiting.append((Path(entry.path), f"{name}/"))
                    elif entry.is_file(follow_symlinks=False):
                        found.append(name)
        except (FileNotFoundError, NotADirectoryError):
            continue  # it was removed
        except OSError:
            if not prefix:  # a directory without any visible entry is not an empty one
                raise
            found.append(prefix)
    return sorted(found), bool(waiting)


def _digest(names: list[str]) -> str:
    return sha256("\0".join(names).encode("utf-8", "surrogateescape")).hexdigest()


_NOTHING: Final = _digest([])
