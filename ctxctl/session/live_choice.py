"""Choose the session to follow: the named one, or the newest under a directory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

from ctxctl.errors import UnreadableError
from ctxctl.importers.session_places import APART, DEPTH, MOST, PARTS, files_below, session_places
from ctxctl.trace.reader import no_events
from ctxctl.trace.source import open_source
from ctxctl.trace.spool import compression
from ctxctl.trace.unknown_file import is_native

_SEARCH_INTERVAL: Final = 2.0
"""Shortest seconds between two searches for a newer session. They take at most a twentieth of the time."""
_HEAD: Final = 1 << 16
_MAX_TRIED: Final = 200
"""Most of the newest files whose heads one search reads until one is a session."""


class SessionChoice:
    """Finds the session to follow. It reads the file system only from time to time."""

    def __init__(self, path: str | Path | None, format_name: str | None, *, pin: bool) -> None:
        self._format = format_name
        self._pin = pin
        self._given = None if path is None else Path(path)
        self._file: Path | None = None
        self._is_folder = False
        """Whether the given path was last seen to be a directory."""
        self._roots: tuple[Path, ...] = ()
        self.name = "the places where runtimes write" if path is None else str(path)
        """The place searched, for messages."""
        self.not_read: dict[str, str] = {}
        """Directories that the last search could not list, with the reasons."""
        self._look_around()
        self._again_at = 0.0
        self._kinds: dict[tuple[str, int, int], bool] = {}
        self._found: Path | None = None

    def _look_around(self) -> None:
        """Determine what to search: a path may come into being later, also as a directory."""
        given = self._given
        if given is None:
            self._roots = (Path(), *(place.path for place in session_places() if place.path.is_dir()))
            return
        self._is_folder = given.is_dir()
        if self._is_folder and not self._is_capture(given):
            self._file, self._roots = None, (given,)
        else:
            self._file, self._roots = given, ()

    @property
    def several(self) -> bool:
        """Whether a directory is searched, so that the session may change."""
        return self._file is None

    def newest(self, now: float, at: Path | None) -> Path | None:
        """Return the session to follow; `at` is the one followed now. None if there is none yet."""
        if self._file is not None and not self._is_folder and self._file.is_dir():
            # The file that was waited for.
            self._look_around()
            self._again_at = now
        if self._file is not None:
            return self._file
        if at == self._given:
            at = None
        if self._pin and at is not None:
            return at
        if now < self._again_at:
            return self._found or at
        began = time.monotonic()
        if self._given is None or self._found is None:
            self._look_around()
        if self._file is not None:
            return self._file
        self._found = self._search() or self._found
        self._again_at = now + max(_SEARCH_INTERVAL, 20 * (time.monotonic() - began))
        return self._found or at

    def every(self) -> Iterator[Path]:
        """Yield all current sessions, the last written first. A directory may be one whole capture."""
        if self._file is not None:
            if self._file.exists():
                yield self._file
            return
        self.not_read = {}
        given: set[Path] = set()
        whole: dict[Path, Path | None] = {}
        for root in self._roots:
            for _, found, inode, size in sorted(self._dated(root, MOST, DEPTH), reverse=True):
                path = Path(found.removesuffix("-wal"))
                if not size or PARTS.search(str(path)):
                    continue
                if path.parent not in whole:
                    folder = self._whole(path)
                    whole[path.parent] = folder if folder != path else None
                path = whole[path.parent] or path
                if path not in given and (path.is_dir() or self._is_session(str(path), inode, size)):
                    given.add(path)
                    yield path

    def _search(self) -> Path | None:
        self.not_read = {}
        files: list[tuple[int, str, int, int]] = []
        for root in self._roots:
            # The working directory may be anything. Files deep below it are not sessions.
            deep = 2 if root == Path() and len(self._roots) > 1 else DEPTH
            files += self._dated(root, MOST - len(files), deep)
        files.sort(reverse=True)
        for _, found, inode, size in files[:_MAX_TRIED]:
            name = found.removesuffix("-wal")  # a database's writes go to its log
            if size and not PARTS.search(name) and self._is_session(name, inode, size):
                return self._whole(Path(name))
        return None

    def _dated(self, top: Path, most: int, deep: int) -> Iterator[tuple[int, str, int, int]]:
        """Yield time, name, inode and size of the files below a directory."""
        for name, state in files_below(top, most, deep, self._note):
            yield state.mtime_ns, name, state.inode, state.size

    def _note(self, path: str, error: OSError) -> None:
        self.not_read[path] = error.strerror or type(error).__name__

    def _is_session(self, name: str, inode: int, size: int) -> bool:
        key = (name, inode, min(size, _HEAD))
        known = self._kinds.get(key)
        if known is None:
            try:
                known = self._kinds[key] = self._recognised(name)
            except FileNotFoundError:  # it was removed meanwhile
                return False
            except OSError as error:
                self._note(name, error)
                return False
        return known

    def _recognised(self, name: str) -> bool:
        with open(name, "rb") as file:
            head = file.read(_HEAD)
        if is_native(head):
            return self._format in (None, "native")
        from ctxctl.importers import registry

        found = registry.of_file(Path(name), head)
        return found is not None and (self._format is None or registry.is_named(found, self._format))

    def _whole(self, path: Path) -> Path:
        """Return the directory that is one capture and contains the file, else the file."""
        for root in self._roots:
            try:
                inside = path.relative_to(root).parts[:-1]
            except ValueError:
                continue
            at = root
            for part in inside:
                at = at / part
                if self._is_capture(at):
                    return at
            break
        return path

    def _is_capture(self, path: Path) -> bool:
        """Return whether a directory is one session in several files."""
        from ctxctl.importers import registry
        from ctxctl.ingest.folder import Folder

        try:
            folder = Folder(str(path), path)
        except UnreadableError:  # it may become readable later; the search reports it
            return False
        apart = any(name.endswith(".jsonl") and not PARTS.search(name) for name in folder.files)
        return len(folder.files) < MOST and any(
            candidate.detect_folder is not None and candidate.detect_folder(folder) >= 50
            for candidate in registry.built_in()
            if not (apart and candidate.name in APART)
        )


def kind_of(path: Path, format_name: str | None) -> Literal["native", "capture", "unknown"] | None:
    """Return the kind of a file by its head; `unknown` may change as it grows; None without a file."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return "unknown" if path.exists() else None
    if not head:
        return None
    if format_name is not None or compression(head[:4]) is not None:
        return "capture"
    if is_native(head):
        return "native"
    from ctxctl.importers import registry

    if registry.of_file(path, head) is not None:
        return "capture"
    return "native" if len(head) == _HEAD else "unknown"


def no_session_error(path: Path | None, searched: str, not_read: Mapping[str, str]) -> UnreadableError:
    """Return the error for a path that never held an event; `not_read`: what was unreadable, and why."""
    if path is None:
        found = f"there is no trace and no known capture in {searched}"
        if not_read:
            first, why = next(iter(not_read.items()))
            more = f", and {len(not_read) - 1} more" if len(not_read) > 1 else ""
            found += f", as far as it can be read ({first}: {why}{more})"
        return UnreadableError("nothing-known-in-directory", found)
    if not path.exists():
        return UnreadableError("no-such-file", f"nothing to follow appeared: {path}")
    if path.is_dir():
        return UnreadableError("nothing-known-in-directory", f"{path} holds no trace and no known capture")
    with open_source(path) as source:
        return no_events(source)


def warm_up(encoding: str | None) -> None:
    """Load what the first step will need, while there is nothing else to do."""
    from ctxctl.tokens import ranks
    from ctxctl.trace import reader  # noqa: F401

    if encoding is None or encoding in ranks.NAMES:
        ranks.get_encoding(encoding or "o200k_base").encode_ordinary("warm")
