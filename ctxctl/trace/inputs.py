"""What an import reads or looks for: files, and directories in which it looks for files by name.

An import may be kept only as long as all of that is as it was, and nothing of it may be written over.
`recording` notes what is looked at in a `with` block; whoever opens a file other than by `open_source`, or
lists a directory, says so here.
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
"""Seconds: what was changed so little before it was looked at may change again without its times telling."""
DIGESTED: Final = 256 << 20
"""Bytes up to which all of a young file is digested: what it holds then tells what its times do not."""
MAX_FILES: Final = 20_000
MAX_DEPTH: Final = 8
UNDER: Final = "/"
"""In place of a pattern: all files under a directory."""


class FileState(msgspec.Struct, frozen=True, array_like=True):
    """What a file system tells of a file; other contents show here, unless the clock is too coarse."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    def settled(self, now: float) -> bool:
        """Return whether its last change lies long enough back, at a time in seconds since the epoch."""
        return max(self.mtime_ns, self.ctime_ns) / 1e9 < now - YOUNG


class Inputs:
    """Files and listings that were looked at, with what was found at the first look."""

    def __init__(self) -> None:
        self.files: dict[str, FileState | None] = {}
        """By absolute path; None if there was no file."""
        self.listings: dict[tuple[str, str], str] = {}
        """By absolute directory and pattern, a digest of the paths found."""
        self.steady = True
        """False once something changed while it was looked at."""
        self.young: dict[str, bytes] = {}
        """Files that had changed just before, each with a digest of all of it; empty: too large for one."""

    @property
    def settled(self) -> bool:
        """Whether the states of files alone tell that they are as they were."""
        return self.steady and not self.young

    def file(self, path: str | Path) -> None:
        """A file is about to be read, or looked for."""
        name = absolute_path(path)
        state = file_state(name)
        known = self.files.setdefault(name, state)
        if known != state:
            self.steady = False
        elif state is not None and name not in self.young and not state.settled(time.time()):
            self.young[name] = whole_digest(name)

    def listing(self, directory: str | Path, pattern: str, found: list[str]) -> None:
        """A directory was listed: what a pattern found there."""
        key = (absolute_path(directory), pattern)
        if self.listings.setdefault(key, _digest(found)) != _digest(found):
            self.steady = False

    def absorb(self, other: Inputs) -> None:
        """What was looked at in a part of this is a part of it."""
        self.steady = self.steady and other.steady
        for name, held in other.young.items():
            self.steady = self.steady and self.young.setdefault(name, held) == held
        for name, state in other.files.items():
            self.steady = self.steady and self.files.setdefault(name, state) == state
        for key, digest in other.listings.items():
            self.steady = self.steady and self.listings.setdefault(key, digest) == digest

    def unchanged(self, but: str | None = None) -> bool:
        """Return whether everything is as it was found, young files to the byte; one file may be left out."""
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
        """Return whether a young file is what it was; of one too large nobody knows."""
        return bool(self.young[name]) and whole_digest(name) == self.young[name]


def real_place(path: str | Path) -> Path:
    """Where a file lies, however its path is spelled: its name in its directory, by that one's real path.

    A link to a file keeps its own name and place: what lies beside it counts, and not beside its target.
    """
    head, name = os.path.split(path)
    try:
        if name in ("", os.curdir, os.pardir):
            return Path(os.path.realpath(path))
        return Path(os.path.realpath(head), name)
    except (OSError, ValueError):  # no path at all: opening it says so
        return Path(path)


def absolute_path(path: str | Path) -> str:
    """An absolute path of the same file; `abspath` alone takes `link/..` for the directory of the link.

    Raises OSError, which names the path, where it is relative to a directory that is gone.
    """
    name = os.fspath(path)
    try:
        return os.path.abspath(real_place(name) if os.pardir in name.split(os.sep) else name)
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from None


_RECORDING: Final[ContextVar[Inputs | None]] = ContextVar("inputs", default=None)


@contextmanager
def recording() -> Iterator[Inputs]:
    """Note what is looked at in here, by this thread; who records around it gets that too."""
    inputs = Inputs()
    token = _RECORDING.set(inputs)
    try:
        yield inputs
    finally:
        _RECORDING.reset(token)
        note_inputs(inputs)


def note_inputs(known: Inputs) -> None:
    """Say that something is used that rests on these inputs."""
    inputs = _RECORDING.get()
    if inputs is not None:
        inputs.absorb(known)
    note_read(known.files)


def note_file(path: str | Path) -> None:
    """Say that a file is about to be read, or that its being there matters."""
    inputs = _RECORDING.get()
    if inputs is not None:
        inputs.file(path)
    note_read((os.fspath(path),))


class Listing(NamedTuple):
    """What is under a directory; names are relative to it, `/`-separated and sorted."""

    files: tuple[str, ...]
    """The regular files."""
    unlisted: tuple[str, ...]
    """Directories that the system did not list."""
    is_cut: bool
    """Whether there may be more."""


def files_under(directory: Path, most: int = MAX_FILES) -> Listing:
    """The regular files under a directory: `most` or hardly more, `MAX_DEPTH` deep; links are not followed,
    `.git`, `node_modules` and what ctxctl keeps for itself left out.  All of them may be read.

    Raises OSError where the system fails to list the directory itself.
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

    Raises OSError where the directory cannot be listed.
    """
    inputs = _RECORDING.get()
    try:
        found = _found(directory, pattern)
    except OSError:
        if inputs is not None:
            inputs.steady = False  # it may pass: what is made without the files is not to be kept
        raise
    if inputs is not None:
        inputs.listing(directory, pattern, found)
    return [directory / name for name in found]


def file_state(path: str) -> FileState | None:
    """Return a file's state; None if there is none that can be reached."""
    try:
        now = os.stat(path)
    except (OSError, ValueError):
        return None
    return FileState(now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)


def whole_digest(path: str) -> bytes:
    """Return a digest of all of a file; empty if it is too large (`DIGESTED`), none, or cannot be read."""
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
"""What patterns of one level found in directories, with a digest of that, and the state that the directory
had: many captures of one directory look for the same."""


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
    """As `files_under`; a directory that could not be listed is `name/`.  And whether there may be more."""
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
            continue  # it is gone
        except OSError:
            if not prefix:  # a directory of which nothing can be seen is not an empty one
                raise
            found.append(prefix)
    return sorted(found), bool(waiting)


def _digest(names: list[str]) -> str:
    return sha256("\0".join(names).encode("utf-8", "surrogateescape")).hexdigest()


_NOTHING: Final = _digest([])
