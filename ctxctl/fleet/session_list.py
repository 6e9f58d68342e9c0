"""The sessions under some directories: which there are, what is known of them, and reading the others.

What was found out about a file is kept with the file's state, in one row for each directory, so that the next
list costs a look at the directory and none into files.  Nothing here raises for what a file holds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from ctxctl.fleet.session_files import ListPlace, PlaceFiles, open_for_writing
from ctxctl.model.session_list import LIVE_SECONDS, ListedSession, Live, SessionFacts
from ctxctl.trace.inputs import FileState, Inputs, file_state
from ctxctl.typed_decoding import from_msgpack

if TYPE_CHECKING:
    from ctxctl.fleet.asking import Asker, Question
    from ctxctl.fleet.store import AnswerStore

WORK: Final = "ctxctl.analysis.session_facts:work"
_AGAIN: Final = 60.0
"""Seconds after which a session that goes on is read again, at least."""


class ReadSession(msgspec.Struct, frozen=True, array_like=True):
    """What `WORK` says of a session, with the files that it rests on."""

    facts: SessionFacts
    files: dict[str, FileState | None]
    listings: list[tuple[str, str, str]]
    """Directory, pattern, digest."""
    keep: bool
    """Whether it is the same tomorrow, as long as no file changes."""


class _Known(msgspec.Struct, array_like=True):
    """What is known of a file or a directory."""

    state: FileState | None
    format: str | None
    """None: no session."""
    directory: str | None = None
    read: ReadSession | None = None
    failed: str | None = None


class _Row(msgspec.Struct, array_like=True):
    """What is kept of one place."""

    names: bytes
    """Digest of the names of all files."""
    known: dict[str, _Known]


class _Place:
    """One place, with what is known of its files."""

    def __init__(self, place: ListPlace, key: bytes, row: _Row | None) -> None:
        self.place = place
        self.key = key
        self.row = row or _Row(b"", {})
        self.changed = False
        self.not_read: dict[str, str] = {}
        """What could not be looked at the last time, and why."""

    def look(self) -> Iterator[tuple[ListedSession, _Known]]:
        """The sessions there are now."""
        files = PlaceFiles(self.place)
        before, same = self.row.known, files.digest == self.row.names
        self.row = _Row(files.digest, {})
        self.changed = self.changed or not same
        for path in files.candidates():
            state, known = files.state(path), before.get(path)
            if known is None or known.state != state:
                known = _recognised(files, path, state, known)
                self.changed = True
            if path not in files.not_read:
                self.row.known[path] = known
            if known.format is not None:
                read = known.read
                outdated = read is not None and not (
                    _same_files(read, files.states) and (same or _same_listings(read))
                )
                session = ListedSession(
                    path, known.format, known.directory, files.written(path), state.size if state else 0
                )
                yield _told(session, known, outdated=outdated), known
        self.not_read = files.not_read


class SessionList:
    """Lists sessions, the one written last first, and reads those that are not known.

    Args:
        places: Where to look.
        store: Where what was found out is kept; None: nowhere.
        question: What each session is asked (`WORK`).
    """

    def __init__(self, places: Sequence[ListPlace], store: AnswerStore | None, question: Question) -> None:
        self._store = store
        self._question = question
        self._places = [_Place(place, *self._kept(place)) for place in places]
        self._found: dict[str, tuple[ListedSession, _Known, _Place]] = {}
        self._read_at: dict[str, float] = {}

    @property
    def places(self) -> list[str]:
        """The directories that are looked at, whether they exist or not."""
        return [one.place.path for one in self._places]

    @property
    def not_read(self) -> dict[str, str]:
        """By path, why the system did not let a file or directory be read at the last `scan`."""
        return {path: why for one in self._places for path, why in one.not_read.items()}

    def scan(self, now: float, *, live: bool = True) -> list[ListedSession]:
        """The sessions that there are now.

        Args:
            now: Seconds since the epoch.
            live: Whether to look which of them go on.
        """
        self._found = {}
        for place in self._places:
            for session, known in place.look():
                self._found.setdefault(session.path, (session, known, place))
        opened = open_for_writing(_Written(self._found)) if live else set[str]()
        for path, (session, known, place) in self._found.items() if live else ():
            if sign := _live(session, opened, now):
                self._found[path] = (replace(session, live=sign), known, place)
        return sorted((one for one, _, _ in self._found.values()), key=lambda one: (-one.written, one.path))

    def unread(self, sessions: Iterable[ListedSession], now: float) -> list[ListedSession]:
        """Those of some sessions that are to be read, in the order given."""
        return [
            one
            for one in sessions
            if (one.outdated or (one.facts is None and one.failed is None))
            and self._read_at.get(one.path, -_AGAIN) + _AGAIN < now
        ]

    def read(
        self, asker: Asker, sessions: Sequence[ListedSession], stop: Callable[[], bool] | None = None
    ) -> Generator[ListedSession]:
        """Read sessions of the last `scan` in this order; each as it is then known.

        Args:
            asker: Of the directory `/`.
            sessions: Which.
            stop: Where given, one other process reads, and no more once this says so.
        """
        from ctxctl.fleet.asking import Failed
        from ctxctl.fleet.captures import CaptureFile

        if not sessions:
            return
        captures = [CaptureFile(one.path.lstrip("/"), one.format) for one in sessions]
        for capture, data in asker.ask(self._question, captures, largest_first=False, stop=stop):
            path = f"/{capture.name}"
            self._read_at[path] = time.time()
            session, known, place = self._found[path]
            if isinstance(data, Failed):
                known.failed, known.read = data.message, None
            else:
                known.failed, known.read = None, from_msgpack(data, ReadSession)
            place.changed = True
            told = _told(session, known, outdated=False)
            self._found[path] = (told, known, place)
            yield told

    def save(self) -> None:
        """Keep what was found out."""
        for one in self._places if self._store is not None else ():
            if one.changed:
                one.changed = False
                known = {path: _lasting(what) for path, what in one.row.known.items()}
                try:
                    data = msgspec.msgpack.encode(_Row(one.row.names, known))
                except UnicodeEncodeError:  # a file's name is no text
                    continue
                assert self._store is not None
                self._store.put(one.key, data)
                self._store.flush()

    def _kept(self, place: ListPlace) -> tuple[bytes, _Row | None]:
        digest = blake2b(self._question.rests_on.encode(), digest_size=16)
        way = f"{place.owners}\0{place.deep}\0{place.named is None}"
        digest.update(self._question.words + os.fsencode(f"\0{place.path}\0{way}"))
        key = digest.digest()
        for _, data in self._store.get_all([key]) if self._store is not None else ():
            try:
                return key, from_msgpack(data, _Row)
            except (msgspec.MsgspecError, ValueError):
                break
        return key, None


class _Written:
    """The paths of sessions, and of the logs of those that are databases."""

    def __init__(self, found: Container[str]) -> None:
        self._found = found

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and path.removesuffix("-wal") in self._found


def _live(session: ListedSession, opened: set[str], now: float) -> Live:
    if session.path in opened or f"{session.path}-wal" in opened:
        return "open"
    return "written" if -LIVE_SECONDS <= now - session.written <= LIVE_SECONDS else ""


def _recognised(files: PlaceFiles, path: str, state: FileState | None, before: _Known | None) -> _Known:
    """What the beginning of a file tells; what was read of it before stays as long as the file only grew."""
    from ctxctl.importers.whereabouts import recorded_directory

    found = files.recognised(path)
    if found is None:
        return _Known(state, None)
    known = _Known(state, found, recorded_directory(path))
    if before is not None and before.format == found and _grew(before.state, state):
        known.read = before.read
    return known


def _grew(before: FileState | None, now: FileState | None) -> bool:
    return (
        before is not None and now is not None and before.device == now.device
        and before.inode == now.inode and before.size <= now.size
    )  # fmt: skip


def _told(session: ListedSession, known: _Known, *, outdated: bool) -> ListedSession:
    facts = None if known.read is None else known.read.facts
    where = (None if facts is None else facts.directory) or known.directory
    return replace(session, directory=where, facts=facts, failed=known.failed, outdated=outdated)


def _same_files(read: ReadSession, states: dict[str, FileState]) -> bool:
    return all(
        state == (states[path] if path in states else file_state(path)) for path, state in read.files.items()
    )


def _same_listings(read: ReadSession) -> bool:
    inputs = Inputs()
    inputs.listings = {(directory, pattern): digest for directory, pattern, digest in read.listings}
    return inputs.unchanged()


def _lasting(known: _Known) -> _Known:
    """What may be kept: nothing that would be another tomorrow though no file changes."""
    if known.failed is None and (known.read is None or known.read.keep):
        return known
    return _Known(known.state, known.format, known.directory)
