"""A directory that holds one capture in several files, or several captures."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from ctxctl.errors import CtxctlError, PluginError, UnreadableError
from ctxctl.ingest.build import Maker, Place
from ctxctl.ingest.lines import Report
from ctxctl.ingest.understood import account_of
from ctxctl.model import vocab
from ctxctl.model.problem import Problem
from ctxctl.trace.inputs import MAX_FILES, files_under
from ctxctl.trace.source import Source, open_source


class Folder:
    """The regular files under a directory, by name; links are not followed."""

    def __init__(self, name: str, path: Path, most: int = MAX_FILES) -> None:
        """List the directory; raises UnreadableError where the system does not."""
        self.name = name
        """The path as the user typed it."""
        self.path = path
        try:
            listing = files_under(path, most)
        except OSError as error:
            slug = "not-readable" if isinstance(error, PermissionError) else "read-failed"
            raise UnreadableError(slug, f"cannot list {name}: {error.strerror}") from None
        self.files: tuple[str, ...] = listing.files
        """Paths relative to the folder, `/`-separated, sorted; see `files_under`."""
        self.unlisted: tuple[str, ...] = listing.unlisted
        """Directories below it that the system did not list."""
        self.lacking: list[Problem] = [_not_readable(path, one) for one in self.unlisted]
        """What of it nobody could look at."""
        if listing.is_cut:
            said = f"it holds more files than are looked at: {len(self.files):,} of them are"
            self.lacking.append(Problem(0, 0, "too-many-files", said))
        self.beside: tuple[Path, ...] = ()
        """Other files that the user named along with it; a format may complete its capture from them."""

    def open(self, relative: str) -> Source:
        """One of the files; the caller closes it.  Raises what `open_source` raises."""
        return open_source(self.path / relative)

    def head(self, relative: str, size: int) -> bytes:
        """The first bytes of one of the files (decompressed); empty if it cannot be read here."""
        try:
            with self.open(relative) as source:
                return source.read(0, size)
        except (CtxctlError, OSError):
            return b""

    def note_unread(self, relative: str) -> None:
        """Where the system does not let one of the files be read, count it as lacking."""
        if why_unread(self.path / relative) is not None:
            self.lacking.append(_not_readable(self.path, relative))


def why_unread(path: Path) -> str | None:
    """Why the system does not let a file be read, or a directory be listed; None: it does, or it is gone."""
    try:
        if path.is_dir():
            with os.scandir(path):
                return None
        os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
    except FileNotFoundError:
        return None
    except OSError as error:
        return error.strerror
    return None


def unread_words(path: Path) -> str:
    """Why something could not be looked at, as far as the system still says so."""
    return why_unread(path) or "it could not be read at first"


def _not_readable(path: Path, relative: str) -> Problem:
    return Problem(0, 0, "not-readable", f"{relative}: {unread_words(path / relative)}")


class Importer(Protocol):
    """Reads the captures of one format."""

    def events(self, source: Source, report: Report) -> Iterator[dict[str, Any]]:
        """See `ctxctl.ingest.declaration.Format`."""
        ...


def read_several(
    folder: Folder, captures: list[tuple[str, Importer]], report: Report
) -> Iterator[dict[str, Any]]:
    """The events of a directory's captures, one after the other; ids and sessions are told apart.

    Problems name the file.  A session that an earlier file has told already becomes a session of its own.
    Sessions end with their file, so that a replay finishes their last steps there.
    """
    taken: dict[str, int] = {}
    for number, (name, importer) in enumerate(captures, 1):
        last: dict[str, dict[str, Any]] = {}
        for event in _one(importer, folder, name, report):
            event = told_apart(event, name, number)
            session = event["session_id"]
            if isinstance(session, str) and taken.setdefault(session, number) != number:
                event["session_id"] = f"{session}~{number}"
            event.setdefault("metadata", {}).setdefault("ctxctl", {}).setdefault("source_file", name)
            last[event["session_id"]] = event
            yield event
        for at, (session, event) in enumerate(last.items(), 1):
            if event["event_type"] != vocab.SESSION_ENDED:
                yield _ended(session, event, f"{number}:ended-{at}", name)


def _ended(session: str, last: dict[str, Any], event_id: str, name: str) -> dict[str, Any]:
    make = Maker(last["source"], "")
    make.file = name
    ended = make.event(vocab.SESSION_ENDED, {}, Place(session), time=last["time"])
    return {**ended, "event_id": event_id}


def _one(importer: Importer, folder: Folder, name: str, report: Report) -> Iterator[dict[str, Any]]:
    try:
        source = folder.open(name)
    except UnreadableError as error:
        report(Problem(0, 0, error.slug, f"{name}: {error.message}"))
        return
    with source:
        try:
            yield from importer.events(source, _Named(report, name))
        except PluginError as error:
            report(Problem(0, 0, error.slug, f"{name}: {error.message}"))


class _Named:
    """Passes problems on with the name of their file."""

    def __init__(self, report: Report, name: str) -> None:
        self.understood = account_of(report)
        self._report = report
        self._name = name

    def __call__(self, problem: Problem) -> None:
        self._report(Problem(problem.line, problem.byte, problem.slug, f"{self._name}: {problem.message}"))


def told_apart(event: dict[str, Any], session: str, number: int) -> dict[str, Any]:
    """An event of one of several captures, with an id of its own, and with a session where its runtime knows
    none."""
    event = {"session_id": session, **event}
    if event["session_id"] == vocab.UNNAMED_SESSION:
        event["session_id"] = session
    if "event_id" in event:
        event["event_id"] = f"{number}:{event['event_id']}"
    return event
