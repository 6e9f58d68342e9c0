"""A file of opencode's: its database, a log of hooks or of a run, or an export."""

from __future__ import annotations

from collections.abc import Iterator

from ctxctl.importers.opencode import NAME, SQLITE, export, is_log
from ctxctl.importers.opencode.log import Log
from ctxctl.ingest.build import Json
from ctxctl.ingest.lines import Report
from ctxctl.trace.source import Source


def read(source: Source, report: Report) -> Iterator[Json]:
    """The file's events."""
    head = source.read(0, 64 * 1024)
    if head.startswith(SQLITE):
        from ctxctl.importers.opencode import database  # slow to import

        return database.events(NAME, source, report)
    if is_log(head):
        return Log(NAME, report).events(source)
    return export.events(NAME, source, report)
