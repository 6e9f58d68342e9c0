"""Reads what `opencode export` writes, one document with a session's messages; hands other files on.

Databases go to `database`, logs of hooks and of runs to `log`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ctxctl.importers.opencode import NAME, SQLITE, is_log
from ctxctl.importers.opencode.log import Log
from ctxctl.importers.opencode.parts import NativePart
from ctxctl.importers.opencode.session import Bounds, Session, time_of
from ctxctl.ingest.build import Json, canonical, digest_of
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
    yield from run.drain()
    began = count(time_of(info, "created"))
    bounds = Bounds(run, source)
    session = Session(run, run.thread(), bounds, version=info.get("version"), began=began)
    ids = _Ids()
    for message in messages:
        head = message.get("info") if isinstance(message, dict) else None
        if not isinstance(head, dict):
            run.problem("not-a-record", "a message without `info`; skipped")
            continue
        if ids.met(message, string(head.get("id"))):
            continue
        head, parts = ids.told_apart(head, message.get("parts"))
        found = (
            [NativePart(part, 1) for part in parts if isinstance(part, dict)]
            if isinstance(parts, list)
            else []
        )
        session.message(head, found)
        yield from session.hand_on()
        if bounds.exceeded():
            break
    yield from session.hand_on(at_end=True)
    ids.tell(run)
    yield from run.finish()


class _Ids:
    """Tells messages, parts and calls apart that bear one id.

    What blanks secrets in an export takes ids for some, and puts the same word in the place of each: by it
    they would be one message, and the requests and bills of all but the first would be lost.
    """

    def __init__(self) -> None:
        self._messages: set[str] = set()
        """Digests of those with an id: an export may hold one twice."""
        self._borne: dict[tuple[str, str], int] = {}
        self._shared: dict[str, int] = {}
        """How many messages bore the id of another, by id."""

    def met(self, message: Json, native: str | None) -> bool:
        """Whether the very same message came before."""
        if native is None:
            return False
        digest = digest_of(canonical(message))
        if digest in self._messages:
            return True
        self._messages.add(digest)
        return False

    def told_apart(self, head: Json, parts: Any) -> tuple[Json, Any]:
        """A message and its parts, those with a taken id with one of their own."""
        own = self._own("id", head)
        if own is not head:
            self._shared[head["id"]] = self._shared.get(head["id"], 0) + 1
        if isinstance(parts, list):
            parts = [self._own("callID", self._own("part", part, "id")) for part in parts]
        return own, parts

    def _own(self, kind: str, record: Any, field: str | None = None) -> Any:
        field = field or kind
        native = string(record.get(field)) if isinstance(record, dict) else None
        if native is None:
            return record
        times = self._borne[kind, native] = self._borne.get((kind, native), 0) + 1
        return record if times == 1 else {**record, field: f"{native}#{times}"}

    def tell(self, run: Run) -> None:
        """Report the ids that several messages bear."""
        for native, more in self._shared.items():
            message = f"{more + 1} different messages have the id {native[:80]}: each is read"
            run.problem("duplicate-uuid", message)


def _session(messages: list[Json]) -> str | None:
    for message in messages:
        info = message.get("info") if isinstance(message, dict) else None
        if isinstance(info, dict) and string(info.get("sessionID")) is not None:
            return string(info.get("sessionID"))
    return None
