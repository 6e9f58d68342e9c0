"""goose's `sessions.db`, read from a copy in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

import orjson

from ctxctl.formats.build import Json
from ctxctl.formats.goose.sessions import Session
from ctxctl.formats.kit.parts import string
from ctxctl.formats.kit.run import Run
from ctxctl.formats.lines import Line, Report
from ctxctl.trace.source import Source

MAX_DATABASE: Final = 512 << 20
_STEPS: Final = 200_000_000
"""Instructions of SQLite's machine after which a reading is given up: a view may be a bomb."""
_LEGACY: Final = b"\x01\x01"


def events(name: str, source: Source, report: Report) -> Iterator[Json]:
    """The events of a database: every session of it, in the order of their beginnings."""
    run = Run(name, report)
    run.line = Line(1, 0, b"")
    data = source.read(0, MAX_DATABASE + 1)
    if len(data) > MAX_DATABASE:
        run.problem("document-too-large", f"a database of more than {MAX_DATABASE >> 20} MiB; not read")
        return
    # A copy in memory has no write-ahead log beside it; bytes 18 and 19 would ask for one.
    data = data[:18] + _LEGACY + data[20:]
    with closing(sqlite3.connect(":memory:")) as database:
        try:
            database.deserialize(data)
            database.row_factory = sqlite3.Row
            database.execute("PRAGMA trusted_schema = OFF")
            database.set_progress_handler(lambda: 1, _STEPS)
            yield from _sessions(run, database)
        except (sqlite3.Error, OverflowError) as error:
            run.problem("bad-database", f"the database cannot be read: {error}")
    yield from run.finish()


def _sessions(run: Run, database: sqlite3.Connection) -> Iterator[Json]:
    heads = {
        row["id"]: dict(row) for row in database.execute("SELECT * FROM sessions ORDER BY created_at, id")
    }
    open_sessions: dict[Any, tuple[Session, int]] = {}
    for row in database.execute("SELECT * FROM messages ORDER BY id"):
        record = dict(row)
        native = record.get("session_id")
        run.session = str(native)
        if native not in open_sessions:
            session = Session(run)
            session.head(_head(heads.get(native, {})))
            open_sessions[native] = session, 0
        session, position = open_sessions[native]
        open_sessions[native] = session, position + 1
        message = _message(record)
        if message is None:
            run.problem("not-a-record", "a message whose content is not JSON; skipped")
        else:
            session.message(message, position + 1)
        yield from run.drain()


def _head(record: Json) -> Json:
    return {**record, "model_config": _json(record.get("model_config_json"))}


def _message(record: Json) -> Json | None:
    content = _json(record.get("content_json"))
    if not isinstance(content, list):
        return None
    return {
        "id": string(record.get("message_id")),
        "role": record.get("role"),
        "created": record.get("created_timestamp"),
        "content": content,
        "metadata": _json(record.get("metadata_json")),
    }


def _json(text: Any) -> Any:
    if not isinstance(text, str | bytes):
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
