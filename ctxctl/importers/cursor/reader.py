"""A file of Cursor's: a database, a log of hooks, or a transcript."""

from __future__ import annotations

from collections.abc import Iterator

from ctxctl.importers.cursor import NAME, SQLITE, is_hooks, transcript
from ctxctl.ingest.build import Json
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.lines import Report
from ctxctl.trace.source import Source


def read(source: Source, report: Report) -> Iterator[Json]:
    """The file's events."""
    head = source.read(0, 1 << 16)
    if head.startswith(SQLITE):
        from ctxctl.importers.cursor import database  # slow to import

        return database.events(NAME, source, report)
    if is_hooks(head):
        from ctxctl.importers.cursor.hooks import Hooks

        return Hooks(NAME, report).events(source)
    return transcript.events(NAME, source, report)


def read_folder(folder: Folder, report: Report) -> Iterator[Json]:
    """Every transcript below a directory."""
    return transcript.folder_events(NAME, folder, report)
