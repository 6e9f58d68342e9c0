"""opencode's `opencode.db`: sessions, messages and parts as rows of JSON.

opencode deletes messages that a person takes back; its table of events still tells of them.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator
from heapq import merge
from typing import Any, Final

from ctxctl.importers.opencode.parts import NativePart
from ctxctl.importers.opencode.session import Bounds, Session, time_of
from ctxctl.ingest.build import Json
from ctxctl.ingest.database import read_database, value
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parents import Kinship, Lineage, circle
from ctxctl.ingest.parts import count, string
from ctxctl.ingest.run import Run
from ctxctl.model import vocab
from ctxctl.trace.source import Source

_MESSAGES = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
_KEYS = (("message", "session_id"), ("part", "message_id"), ("event", "aggregate_id"))
_PARTS = "SELECT id, data FROM part WHERE message_id = ? ORDER BY id"


def events(name: str, source: Source, report: Report) -> Iterator[Json]:
    """The events of a database: one session after the other, child sessions as threads of their parents'."""
    run = Run(name, report)
    bounds = Bounds(run, source)
    return read_database(run, source, lambda run, database: _sessions(run, database, bounds), keys=_KEYS)


def _sessions(run: Run, database: sqlite3.Connection, bounds: Bounds) -> Iterator[Json]:
    rows = [dict(row) for row in database.execute("SELECT * FROM session ORDER BY time_created, id")]
    lineage = _lineage(run, rows)
    calls: dict[str, str | None] = {}
    """By session, the tool call that began it."""
    ends = {lineage.top(native): native for native in (str(row["id"]) for row in rows)}
    """By root, the last of its sessions."""
    for row in rows:
        native = str(row["id"])
        run.session = root = lineage.top(native)
        run.make.by(row.get("version"))
        if native == root:
            run.opened(session=native, version=string(row.get("version")))
        origin = _origin(native, root, lineage.parent(native), calls)
        yield from _session(run, database, row, origin, calls, bounds)
        if bounds.exceeded():
            return
        if ends[root] == native:
            yield from run.end_session()
    _count_others(run, database)


def _lineage(run: Run, rows: list[Json]) -> Lineage[str]:
    """The parents of the sessions; where they go round in a circle, its last session is none's child."""
    lineage: Lineage[str] = Lineage()
    for row in rows:
        native, parent = str(row["id"]), string(row.get("parent_id"))
        if lineage.enter(native, parent) is Kinship.CIRCLE and parent is not None:
            line = run.line
            names = f"session {native}", f"session {parent}"
            run.report(circle(line.number, line.offset, *names, "begin a conversation"))
    return lineage


def _count_others(run: Run, database: sqlite3.Connection) -> None:
    """Report messages in the table of a coming version, which is not read."""
    try:
        for (data,) in database.execute("SELECT data FROM session_message"):
            run.understood.unknown("session_message", size=len(data) if isinstance(data, str) else 0)
    except sqlite3.OperationalError:
        return


def _session(
    run: Run,
    database: sqlite3.Connection,
    row: Json,
    origin: Json,
    calls: dict[str, str | None],
    bounds: Bounds,
) -> Iterator[Json]:
    native = str(row["id"])
    yield from run.drain()
    session: Session | None = None
    undone = removed_messages(database, native)
    for info, parts in with_removed(_messages(run, database, native), undone):
        for one in parts:
            _remember(one.part, calls)
        if session is None:
            thread = native if native != run.session else None
            conversation = run.thread(thread, origin={**origin, "agent_type": info.get("agent")})
            began = count(row.get("time_created"))
            session = Session(run, conversation, bounds, version=row.get("version"), began=began)
        for gone in undone.before(str(info["id"])):
            session.remove(gone)
        session.message(info, parts)
        yield from session.hand_on()
        if bounds.over:
            return
    if session is not None:
        yield from session.hand_on(at_end=True)


def _messages(run: Run, database: sqlite3.Connection, native: str) -> Iterator[Whole]:
    for row in database.execute(_MESSAGES, (native,)).fetchall():
        info = value(row["data"])
        if not isinstance(info, dict):
            run.problem("not-a-record", "a message whose data are not JSON; skipped")
            continue
        parts = []
        for one in database.execute(_PARTS, (row["id"],)):
            part = value(one["data"])
            if isinstance(part, dict):
                parts.append(NativePart({**part, "id": str(one["id"])}, 1))
        yield {**info, "id": str(row["id"])}, parts


def _remember(part: Json, calls: dict[str, str | None]) -> None:
    state = part.get("state")
    meta = state.get("metadata") if isinstance(state, dict) else None
    child = string(meta.get("sessionId")) if isinstance(meta, dict) else None
    if child is not None:
        calls[child] = string(part.get("callID"))


def _origin(native: str, root: str, parent: str | None, calls: dict[str, str | None]) -> Json:
    if native == root or parent is None:
        return {}
    return {
        "parent_thread": vocab.MAIN_THREAD if parent == root else parent,
        "parent_tool_call": calls.get(native),
    }


Whole = tuple[Json, list[NativePart]]
"""A message and its parts."""

_REMOVALS: Final = (
    "SELECT seq, data FROM event WHERE aggregate_id = ? AND type LIKE 'message.removed%' ORDER BY seq"
)
_HISTORY: Final = (
    "SELECT seq, type, data FROM event WHERE aggregate_id = ? AND "
    "(type LIKE 'message.updated%' OR type LIKE 'message.part.%') ORDER BY seq"
)


class RemovedMessages:
    """What was removed from a session, and when."""

    def __init__(self) -> None:
        self.messages: list[Whole] = []
        """The removed messages as they were last, in order of time."""
        self._gone: deque[tuple[int, str]] = deque()
        """The removals in their order: the place among the events, and the message."""
        self._begun: dict[str, int] = {}
        """By message, its first place among the events."""

    def before(self, native: str) -> list[str]:
        """The messages that were removed before this one was made; each is returned once."""
        begun = self._begun.get(native, 0)
        found = []
        while self._gone and self._gone[0][0] < begun:
            found.append(self._gone.popleft()[1])
        return found

    def take(self, seq: int, native: str) -> None:
        """Take the next removal."""
        self._gone.append((seq, native))

    def begin(self, seq: int, native: str) -> None:
        """Note the first mention of a message."""
        self._begun.setdefault(native, seq)


def removed_messages(database: sqlite3.Connection, session: str) -> RemovedMessages:
    """What was removed from a session; nothing in a database without a table of events."""
    found = RemovedMessages()
    try:
        removals = database.execute(_REMOVALS, (session,)).fetchall()
    except sqlite3.OperationalError:
        return found
    gone = set()
    for row in removals:
        native = _field(value(row["data"]), "messageID")
        if native is not None and (seq := count(row["seq"])) is not None:
            found.take(seq, native)
            gone.add(native)
    if gone:
        _read(database, session, found, gone)
    return found


def with_removed(kept: Iterable[Whole], undone: RemovedMessages) -> Iterator[Whole]:
    """The session's messages with those that were removed, in order of time."""
    return merge(kept, undone.messages, key=_order) if undone.messages else iter(kept)


def _read(database: sqlite3.Connection, session: str, found: RemovedMessages, gone: set[str]) -> None:
    infos: dict[str, Json] = {}
    parts: dict[str, dict[str, Json]] = {}
    for row in database.execute(_HISTORY, (session,)):
        data, kind = value(row["data"]), str(row["type"])
        if not isinstance(data, dict):
            continue
        if kind.startswith("message.updated"):
            info = data.get("info")
            native = _field(info, "id")
            if native is None or not isinstance(info, dict):
                continue
            found.begin(count(row["seq"]) or 0, native)
            if native in gone:
                infos[native] = info
        elif kind.startswith("message.part.updated"):
            part = data.get("part")
            native, key = _field(part, "messageID"), _field(part, "id")
            if native in gone and key is not None and isinstance(part, dict):
                parts.setdefault(str(native), {})[key] = part
    for native, info in infos.items():
        own = parts.get(native, {})
        found.messages.append(({**info, "id": native}, [NativePart(own[key], 1) for key in sorted(own)]))
    found.messages.sort(key=_order)


def _order(message: Whole) -> tuple[int, str]:
    info = message[0]
    return count(time_of(info, "created")) or 0, str(info["id"])


def _field(value: Any, name: str) -> str | None:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) and found else None
