"""Messages that a person took back: opencode deletes them, and its table of events still tells of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from heapq import merge
from typing import Any, Final

from ctxctl.formats.build import Json
from ctxctl.formats.kit.database import value
from ctxctl.formats.kit.parts import count
from ctxctl.formats.opencode.parts import Native
from ctxctl.formats.opencode.session import time_of

Whole = tuple[Json, list[Native]]
"""A message and its parts."""

_REMOVALS: Final = (
    "SELECT seq, data FROM event WHERE aggregate_id = ? AND type LIKE 'message.removed%' ORDER BY seq"
)
_HISTORY: Final = (
    "SELECT seq, type, data FROM event WHERE aggregate_id = ? AND "
    "(type LIKE 'message.updated%' OR type LIKE 'message.part.%') ORDER BY seq"
)


class Undone:
    """What was removed from a session, and when."""

    def __init__(self) -> None:
        self.messages: list[Whole] = []
        """Those removed, as they were last; in order of time."""
        self._gone: list[tuple[int, str]] = []
        """Place among the events, and message."""
        self._begun: dict[str, int] = {}
        """By message: its first place among the events."""

    def before(self, native: str) -> list[str]:
        """The messages that were removed before this one was made; each is told once."""
        begun = self._begun.get(native)
        if begun is None or not self._gone:
            return []
        found = [gone for at, gone in self._gone if at < begun]
        self._gone = [one for one in self._gone if one[0] >= begun]
        return found

    def take(self, seq: int, native: str) -> None:
        """A removal."""
        self._gone.append((seq, native))

    def begin(self, seq: int, native: str) -> None:
        """A message was told of."""
        self._begun.setdefault(native, seq)


def of(database: sqlite3.Connection, session: str) -> Undone:
    """What was removed from a session; nothing in a database without a table of events."""
    found = Undone()
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


def merged(kept: Iterable[Whole], undone: Undone) -> Iterator[Whole]:
    """The session's messages with those that were removed, in order of time."""
    return merge(kept, undone.messages, key=_order) if undone.messages else iter(kept)


def _read(database: sqlite3.Connection, session: str, found: Undone, gone: set[str]) -> None:
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
        found.messages.append(({**info, "id": native}, [Native(own[key], 1) for key in sorted(own)]))
    found.messages.sort(key=_order)


def _order(message: Whole) -> tuple[int, str]:
    info = message[0]
    return count(time_of(info, "created")) or 0, str(info["id"])


def _field(value: Any, name: str) -> str | None:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) and found else None
