"""goose's `sessions.db`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from ctxctl.formats.build import Json
from ctxctl.formats.goose.sessions import Session, for_agent
from ctxctl.formats.kit.database import read, value
from ctxctl.formats.kit.parts import string
from ctxctl.formats.kit.run import Run
from ctxctl.formats.lines import Line, Report
from ctxctl.trace.source import Source


def events(name: str, source: Source, report: Report) -> Iterator[Json]:
    """The events of a database: every session of it, message by message as they were stored."""
    run = Run(name, report)
    run.line = Line(1, 0, b"")
    return read(run, source, _sessions)


def _sessions(run: Run, database: sqlite3.Connection) -> Iterator[Json]:
    heads = {row["id"]: dict(row) for row in database.execute("SELECT * FROM sessions")}
    ends = {row[0] for row in database.execute("SELECT MAX(id) FROM messages GROUP BY session_id")}
    summed_up = _summed_up(database)
    known: dict[Any, Session] = {}
    for position, row in enumerate(database.execute("SELECT * FROM messages ORDER BY id"), 1):
        record = dict(row)
        native = record.get("session_id")
        run.session = str(native)
        if native not in known:
            head = heads.get(native, {})
            known[native] = Session(run)
            known[native].summed_up = summed_up.get(native, 0)
            known[native].head({**head, "model_config": value(head.get("model_config_json"))})
        message = _message(record)
        if message is None:
            run.problem("not-a-record", "a message whose content is not JSON; skipped")
        else:
            known[native].message(message, position)
        if record.get("id") in ends:
            del known[native]
            yield from run.end_session()
        yield from run.drain()


def _summed_up(database: sqlite3.Connection) -> dict[Any, int]:
    """By session: where, among all messages, the last stands that only the agent sees."""
    found: dict[Any, int] = {}
    for position, row in enumerate(database.execute("SELECT * FROM messages ORDER BY id"), 1):
        record = dict(row)
        if for_agent(value(record.get("metadata_json"))):
            found[record.get("session_id")] = position
    return found


def _message(record: Json) -> Json | None:
    content = value(record.get("content_json"))
    if not isinstance(content, list):
        return None
    return {
        "id": string(record.get("message_id")),
        "role": record.get("role"),
        "created": record.get("created_timestamp"),
        "content": content,
        "metadata": value(record.get("metadata_json")),
    }
