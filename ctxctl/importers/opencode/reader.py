"""Reads what `opencode export` writes, one document with a session's messages; hands other files on.

Databases go to `database`, logs of hooks and of runs to `log`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ctxctl.importers.opencode import NAME, SQLITE, is_log
from ctxctl.importers.opencode.log import Log
from ctxctl.importers.opencode.parts import NativePart
from ctxctl.importers.opencode.session import Session, time_of
from ctxctl.ingest.build import Json
from ctxctl.ingest.document import document
from ctxctl.ingest.lines import WHOLE_FILE, Report
from ctxctl.ingest.parts import count, moment, string
from ctxctl.ingest.run import Run
from ctxctl.trace.source import Source


def read(source: Source, report: Report) -> Iterator[Json]:
    """The file's events."""
    head = source.read(0, 64 * 1024)
    if head.startswith(SQLITE):
        from ctxctl.importers.opencode import database  # slow to import

        return database.events(NAME, source, report)
    if is_log(head):
        return Log(NAME, report).events(source)
    return export_events(NAME, source, report)


def export_events(name: str, source: Source, report: Report) -> Iterator[Json]:
    """The events of what `opencode export` wrote."""
    run = Run(name, report)
    run.line = WHOLE_FILE
    value = document(source, run.report)
    info = value.get("info") if isinstance(value, dict) else None
    info = info if isinstance(info, dict) else {}
    messages = value.get("messages") if isinstance(value, dict) else value
    messages = messages if isinstance(messages, list) else []
    run.session = string(info.get("id")) or _session(messages)
    run.make.at(moment(time_of(info, "created")))
    run.make.by(info.get("version"))
    run.opened(
        session=run.session,
        version=info.get("version"),
        title=info.get("title"),
        parent_session=string(info.get("parentID")),
    )
    began = count(time_of(info, "created"))
    session = Session(run, run.thread(), version=info.get("version"), began=began)
    seen: set[str] = set()
    for message in messages:
        head = message.get("info") if isinstance(message, dict) else None
        if not isinstance(head, dict):
            run.problem("not-a-record", "a message without `info`; skipped")
            continue
        native = string(head.get("id"))
        if native is not None and native in seen:
            continue
        seen.add(native or "")
        parts = message.get("parts")
        found = (
            [NativePart(part, 1) for part in parts if isinstance(part, dict)]
            if isinstance(parts, list)
            else []
        )
        session.message(head, found)
        yield from run.drain()
    yield from run.finish()


def _session(messages: list[Json]) -> str | None:
    for message in messages:
        info = message.get("info") if isinstance(message, dict) else None
        if isinstance(info, dict) and string(info.get("sessionID")) is not None:
            return string(info.get("sessionID"))
    return None
