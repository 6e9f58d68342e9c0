"""Which files of a directory are sessions: by whose directory it is, and by the first bytes of each.

And which of them a program is writing to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from hashlib import blake2b, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from ctxctl.fleet.captures import NATIVE
from ctxctl.trace.inputs import MAX_DEPTH, FileState

if TYPE_CHECKING:
    from ctxctl.fleet.store import AnswerStore
    from ctxctl.ingest.declaration import Format

_MOST: Final = 100_000
"""Files looked at in one place."""
_NEWEST: Final = 300
"""Files looked into where anything may lie: those that were written last."""
_HEAD: Final = 1 << 14
"""Bytes by which a format recognises a file in a place of its own."""
_SURE: Final = 50
_NAMES: Final = re.compile(r"\.(?:jsonl?|db|vscdb|md|ya?ml)(?:\.(?:gz|zst))?$", re.IGNORECASE)
"""How names of sessions end; where anything may lie, nothing else is looked into."""
_PROCESSES: Final = "/proc"
_WRITING: Final = os.O_WRONLY | os.O_RDWR
_IN_ONE: Final = re.compile(r"/(?: \([\d.x]+\))?$")
"""How a place ends whose directories are one session each."""


class ListPlace(NamedTuple):
    """A directory whose sessions are listed."""

    path: str
    """Absolute."""
    owners: tuple[str, ...] = ()
    """Formats of what is written there; none: whatever is recognised."""
    named: Mapping[str, str] | None = None
    """The captures in it, by absolute path, and their formats, where somebody has found them already."""
    deep: bool = True
    """Whether what lies in directories below it counts, too."""


class PlaceFiles:
    """The files of a place as they are now, and which of them, or of their directories, are sessions."""

    def __init__(self, place: ListPlace) -> None:
        from ctxctl.importers.session_places import files_below

        self.place = place
        self.not_read: dict[str, str] = {}
        """Files and directories that the system does not let be read, and why."""
        depth = MAX_DEPTH if place.deep else 0
        self.states = dict(files_below(Path(place.path), _MOST, depth, self._note))
        self._folders: dict[str, FileState] = {}

    def _note(self, path: str, error: OSError) -> None:
        self.not_read[path] = error.strerror or type(error).__name__

    @cached_property
    def digest(self) -> bytes:
        """Of the names of all files."""
        return sha256("\0".join(sorted(self.states)).encode("utf-8", "surrogateescape")).digest()

    @cached_property
    def _below(self) -> dict[str, list[FileState]]:
        """By directory, the states of all files below it."""
        found: dict[str, list[FileState]] = {}
        top = len(self.place.path)
        for path, state in self.states.items():
            at = path.rfind("/")
            while at > top:
                found.setdefault(path[:at], []).append(state)
                at = path.rfind("/", 0, at)
        return found

    def state(self, path: str) -> FileState | None:
        """The state of a file; of a directory one that changes with each of its files."""
        found = self.states.get(path) or self._folders.get(path)
        if found is None and (below := self._all_below(path)):
            digest = int.from_bytes(sha256(repr(sorted(below, key=_inode)).encode()).digest()[:7], "big")
            found = self._folders[path] = FileState(
                below[0].device, digest, sum(s.size for s in below), max(s.mtime_ns for s in below), 0
            )
        return found

    def _all_below(self, path: str) -> list[FileState] | None:
        if path.rstrip("/") == self.place.path.rstrip("/"):
            return list(self.states.values())
        return self._below.get(path)

    def written(self, path: str) -> float:
        """When a session, or what belongs to it, was written last: seconds since the epoch."""
        times = [found.mtime_ns for found in (self.state(path), self.states.get(f"{path}-wal")) if found]
        stem = path.rpartition(".")[0]
        if (
            stem and path in self.states
        ):  # a client keeps a session's further files in a directory of its name
            times += [found.mtime_ns for found in self._below.get(stem, ())]
        return max(times, default=0) / 1e9

    def candidates(self) -> Iterator[str]:
        """Files and directories that may be sessions."""
        if self.place.named is not None:
            yield from self.place.named
            return
        from ctxctl.importers.session_places import PARTS

        whole = tuple(f"{folder}/" for folder in self._whole_folders())
        yield from (folder[:-1] for folder in whole)
        states = self.states
        if not self.place.owners:
            states = dict(sorted(states.items(), key=lambda one: -one[1].mtime_ns)[:_NEWEST])
        for path, state in states.items():
            if (
                state.size
                and _NAMES.search(path)
                and not PARTS.search(path)
                and "/subagents/" not in path[len(self.place.path) :]
                and not (whole and path.startswith(whole))
            ):
                yield path

    def _whole_folders(self) -> Iterator[str]:
        """Directories that are one session each, as far as their names tell: the outermost ones."""
        if not any(_IN_ONE.search(place) for one in self._owners for place in one.about.places):
            return
        found = ""
        for folder in sorted(self._below):
            if (not found or not folder.startswith(found)) and self._format_of_folder(folder) is not None:
                found = f"{folder}/"
                yield folder

    @cached_property
    def _owners(self) -> tuple[Format, ...]:
        from ctxctl.importers import registry

        return tuple(registry.by_name(name) for name in self.place.owners)

    def recognised(self, path: str) -> str | None:
        """The format of a file or a directory; None where it is no session."""
        if self.place.named is not None:
            return self._as_named(self.place.named.get(path), path)
        if path not in self.states:
            return self._format_of_folder(path)
        try:
            with open(path, "rb", buffering=0) as file:
                head = file.read(_HEAD) or b""
        except OSError as error:
            self._note(path, error)
            return None
        scores = [(one.detect(head), -n, one.name) for n, one in enumerate(self._owners)]
        best = max(scores, default=(0, 0, ""))
        return best[2] if best[0] >= _SURE else self._by_content(path)

    def _as_named(self, found: str | None, path: str) -> str | None:
        from ctxctl.fleet.captures import UNREAD
        from ctxctl.ingest.folder import unread_words

        if found != UNREAD:
            return found
        self.not_read.setdefault(path, unread_words(Path(path)))
        return None

    def _by_content(self, path: str) -> str | None:
        """The format of a file that its first bytes do not tell."""
        from ctxctl.importers import registry
        from ctxctl.trace.unknown_file import is_native

        try:
            with open(path, "rb", buffering=0) as file:
                head = file.read(registry.HEAD) or b""
        except OSError as error:
            self._note(path, error)
            return None
        if is_native(head):
            return NATIVE
        found = registry.of_file(Path(path), head)
        names = self.place.owners
        return None if found is None or (names and found.name not in names) else found.name

    def _format_of_folder(self, path: str) -> str | None:
        from ctxctl.ingest.folder import Folder

        folder = Folder(path, Path(path))
        for one in self._owners:
            in_one = any(_IN_ONE.search(place) for place in one.about.places)
            if in_one and one.detect_folder is not None and one.detect_folder(folder) >= _SURE:
                return one.name
        return None


def _inode(state: FileState) -> int:
    return state.inode


def machine_places(store: AnswerStore | None, rests_on: str) -> list[ListPlace]:
    """Where clients write sessions of this user; kept, as asking every format takes longer than to list.

    None where nobody knows the user's own directory.
    """
    try:
        home = str(Path.home())
    except RuntimeError:
        return []
    key = blake2b(f"{rests_on}\0places\0".encode() + os.fsencode(home), digest_size=16).digest()
    for _, data in store.get_all([key]) if store is not None else ():
        with suppress(msgspec.MsgspecError, ValueError):
            kept = msgspec.msgpack.decode(data, type=list[tuple[str, list[str]]])
            return [ListPlace(path, tuple(owners)) for path, owners in kept]
    from ctxctl.importers.session_places import session_places

    found = [(str(place.path), [one.name for one in place.owners]) for place in session_places()]
    if store is not None:
        with suppress(UnicodeEncodeError):
            store.put(key, msgspec.msgpack.encode(found))
            store.flush()
    return [ListPlace(path, tuple(owners)) for path, owners in found]


def open_for_writing(files: Container[str]) -> set[str]:
    """Those of some absolute paths that another process has open for writing, as far as one may look."""
    found: set[str] = set()
    own = str(os.getpid())
    try:
        with os.scandir(_PROCESSES) as entries:
            numbers = [entry.name for entry in entries if entry.name.isdigit() and entry.name != own]
    except OSError:
        return found
    for number in numbers:
        folder = f"{_PROCESSES}/{number}/fd"
        try:
            descriptors = os.listdir(folder)
        except OSError:  # somebody else's, or it has ended
            continue
        for descriptor in descriptors:
            try:
                path = os.readlink(f"{folder}/{descriptor}")
            except OSError:
                continue
            if path in files and path not in found and _is_writing(number, descriptor):
                found.add(path)
    return found


def _is_writing(number: str, descriptor: str) -> bool:
    try:
        with open(f"{_PROCESSES}/{number}/fdinfo/{descriptor}", encoding="ascii") as file:
            flags = next((line.split()[1] for line in file if line.startswith("flags:")), "0")
        return bool(int(flags, 8) & _WRITING)
    except (OSError, ValueError, IndexError):
        return False
