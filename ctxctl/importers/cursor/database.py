"""Cursor's databases: the CLI's `store.db` (messages by digest), the editor's `state.vscdb` (bubbles)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any, Final

from ctxctl.importers.cursor.parts import call, content, user_parts
from ctxctl.ingest.build import Json, canonical
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.database import read_database, value
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parts import Part, string
from ctxctl.ingest.run import Run
from ctxctl.providers.usage import millisecond_clock
from ctxctl.trace.source import Source

_ID: Final = 32
_FIRST_FIELD: Final = 0x0A
"""The tag of field 1 in protocol buffers, a string of bytes."""
AGAIN: Final = 4 << 20
"""Bytes of messages that a database may list again, whatever its size, beside as many as it has."""


def events(name: str, source: Source, report: Report) -> Iterator[Json]:
    """The events of the conversations in a database."""
    return read_database(Run(name, report), source, _read, keys=[("blobs", "id"), ("cursorDiskKV", "key")])


def _read(run: Run, database: sqlite3.Connection) -> Iterator[Json]:
    names = {row["name"] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "cursorDiskKV" in names:
        yield from _composers(run, database)
    else:
        yield from _store(run, database)


class _Again:
    """Counts the bytes of messages that are listed again: few bytes of a list can name one of any length."""

    def __init__(self, run: Run, database: sqlite3.Connection) -> None:
        facts = (database.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
        pages, each = (int(row[0]) for row in facts)
        self._run = run
        self._most = self._left = AGAIN + pages * each
        self._seen: set[str] = set()

    @property
    def ended(self) -> bool:
        """Whether more was listed again than may be."""
        return self._left < 0

    def is_over(self, native: str, data: Any) -> bool:
        """Take what is listed next; whether that is more than may be listed again, which is told."""
        if native not in self._seen:
            self._seen.add(native)
            return False
        self._left -= len(data) if isinstance(data, str | bytes) else 0
        if not self.ended:
            return False
        message = f"the messages that are listed again come to more than {self._most:,} bytes"
        self._run.problem("windows-too-large", f"{message}: the rest of the capture is not read")
        return True


# -- store.db -------------------------------------------------------------------------------------------


def _store(run: Run, database: sqlite3.Connection) -> Iterator[Json]:
    head = _head(database)
    run.session = string(head.get("agentId"))
    created = head.get("createdAt")
    run.make.at(millisecond_clock(created) if isinstance(created, int) else created)
    run.opened(session=run.session, title=string(head.get("name")))
    root = string(head.get("latestRootBlobId"))
    data = _blob(database, root)
    if data is None:
        run.problem(
            "missing-blob", f"the messages' list, blob {root}, is not in the database; nothing to show"
        )
        return
    window, model, unread = run.thread(), string(head.get("lastUsedModel")), 0
    again = _Again(run, database)
    for turn, native in enumerate(_ids(data), 1):
        held = _blob(database, native)
        if again.is_over(native, held):
            break
        message = value(held)
        if not isinstance(message, dict):
            unread += 1
            continue
        _message(window, message, native, turn, model)
        yield from run.drain()
    if unread:
        run.problem("missing-blob", f"{unread} messages are missing or not JSON; not read")


def _head(database: sqlite3.Connection) -> Json:
    for row in database.execute("SELECT value FROM meta ORDER BY key"):
        text = row["value"]
        try:
            found = value(bytes.fromhex(text)) if isinstance(text, str) else value(text)
        except ValueError:
            found = value(text)
        if isinstance(found, dict):
            return found
    return {}


def _blob(database: sqlite3.Connection, native: str | None) -> bytes | None:
    row = database.execute("SELECT data FROM blobs WHERE id = ?", (native,)).fetchone()
    data = row["data"] if row is not None else None
    return data.encode() if isinstance(data, str) else data


def _ids(data: bytes) -> Iterator[str]:
    """The digests that the root begins with: one field 1 of 32 bytes for each message."""
    at = 0
    while at + 2 + _ID <= len(data) and data[at] == _FIRST_FIELD and data[at + 1] == _ID:
        yield data[at + 2 : at + 2 + _ID].hex()
        at += 2 + _ID


def _message(window: Conversation, message: Json, native: str, turn: int, model: str | None) -> None:
    role = str(message.get("role"))
    parts = content(role, message.get("content"))
    for index, part in enumerate(parts):
        if not part.item and part.source is None:
            part.place = f"{native[:16]}/{turn}" + (f"/{index}" if index else "")
    if role == "assistant":
        window.request(model=model, derived=True)
    elif any(part.kind == "user_message" for part in parts):
        window.turn = f"turn-{turn}"
    window.append(*parts)


# -- state.vscdb ----------------------------------------------------------------------------------------


def _composers(run: Run, database: sqlite3.Connection) -> Iterator[Json]:
    # `;` follows `:`.
    rows = database.execute(
        "SELECT key, value FROM cursorDiskKV WHERE key >= 'composerData:' AND key < 'composerData;' "
        "ORDER BY key"
    )
    found = False
    again = _Again(run, database)
    for key, text in [(row["key"], row["value"]) for row in rows]:
        composer = value(text)
        if isinstance(composer, dict):
            found = True
            native = str(key).partition(":")[2]
            run.session = native
            run.opened(session=native, title=string(composer.get("name")))
            _Bubbles(run, composer).read(_bubbles(database, native, composer, again))
            yield from run.drain()
            if again.ended:
                return
    if not found:
        run.problem("no-records", "the database holds no conversation (composerData)")


def _bubbles(database: sqlite3.Connection, composer: str, head: Json, again: _Again) -> Iterator[Any]:
    listed = head.get("fullConversationHeadersOnly")
    if not isinstance(listed, list) or not listed:
        inline = head.get("conversation")
        yield from inline if isinstance(inline, list) else []
        return
    for one in listed:
        native = one.get("bubbleId") if isinstance(one, dict) else None
        key = f"bubbleId:{composer}:{native}"
        row = database.execute("SELECT value FROM cursorDiskKV WHERE key = ?", (key,)).fetchone()
        held = row["value"] if row is not None else None
        if again.is_over(key, held):
            return
        bubble = value(held)
        yield {**one, **bubble} if isinstance(bubble, dict) and isinstance(one, dict) else None


class _Bubbles:
    """A conversation's bubbles: 1 is the person's, 2 the assistant's; a tool's call and result are one."""

    def __init__(self, run: Run, composer: Json) -> None:
        self._run = run
        self._window = run.thread()
        config = composer.get("modelConfig")
        self._model = string(config.get("modelName")) if isinstance(config, dict) else None
        self._answering = False
        self._missing = 0

    def read(self, bubbles: Iterator[Any]) -> None:
        """Read all bubbles in order."""
        for bubble in bubbles:
            if isinstance(bubble, dict):
                self._bubble(bubble)
            else:
                self._missing += 1
        if self._missing:
            self._run.problem("missing-blob", f"{self._missing} bubbles are listed and not there")

    def _bubble(self, bubble: Json) -> None:
        native = string(bubble.get("bubbleId"))
        created = bubble.get("createdAt")
        self._run.make.at(millisecond_clock(created) if isinstance(created, int) else created)
        text = string(bubble.get("text"))
        if bubble.get("type") == 1:
            self._answering = False
            self._window.turn = native
            self._append(user_parts(text) if text is not None else [], native)
            return
        info = bubble.get("modelInfo")
        model = string(info.get("modelName")) if isinstance(info, dict) else None
        if not self._answering:
            self._answering = True
            self._window.request(native, model=model or self._model, derived=True)
        self._append(_said(bubble, text), native)
        tool = bubble.get("toolFormerData")
        if isinstance(tool, dict):
            self._tool(tool, native)

    def _tool(self, tool: Json, native: str | None) -> None:
        made = call(tool)
        made.item = made.item or (f"{native}/call" if native is not None else "")
        self._window.append(made)
        result = tool.get("result")
        if result is not None:
            text = result if isinstance(result, str) else canonical(result)
            self._window.append(
                Part("tool_result", text, "tool", key=f"{made.item}/result", title=made.title)
            )
            self._answering = False

    def _append(self, parts: list[Part], native: str | None) -> None:
        for index, part in enumerate(parts):
            if not part.item and part.source is None and native is not None:
                part.item = native if index == 0 else f"{native}/{index}"
        self._window.append(*parts)


def _said(bubble: Json, text: str | None) -> list[Part]:
    thinking = bubble.get("thinking")
    thought = string(thinking.get("text")) if isinstance(thinking, dict) else None
    parts = [Part("reasoning", thought, "assistant")] if thought is not None else []
    if text is not None:
        parts.append(Part("assistant_message", text, "assistant"))
    return parts
