"""A file of goose's: its database, an export, or a session's lines."""

from __future__ import annotations

from collections.abc import Iterator

from ctxctl.formats.build import Json
from ctxctl.formats.goose import NAME, SQLITE, sessions
from ctxctl.formats.kit.skim import skim
from ctxctl.formats.lines import Report
from ctxctl.trace.source import Source


def read(source: Source, report: Report) -> Iterator[Json]:
    """The file's events."""
    head = source.read(0, 64 * 1024)
    if head.startswith(SQLITE):
        from ctxctl.formats.goose import database  # slow to import

        return database.events(NAME, source, report)
    if skim(head).has("conversation"):
        return sessions.exported(NAME, source, report)
    return sessions.events(NAME, source, report)
