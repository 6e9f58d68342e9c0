"""A directory that holds one capture in several files, or several captures."""

from __future__ import annotations

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
        self.name = name
        """The path as the user typed it."""
        self.path = path
        self.files: tuple[str, ...] = files_under(path, most)
        """Paths relative to the folder, `/`-separated, sorted; see `files_under`."""
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
