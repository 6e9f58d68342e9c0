"""Reads `crush.db`: one session after the other, those of sub-agents as threads of the one that called them.

What a message is in a request is as `Message.ToAIMessage` and `preparePrompt` of Crush have it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any, Final

from ctxctl.importers.crush import KNOWN, NAME
from ctxctl.ingest.build import Json
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.database import read_database, value
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parents import Kinship, Lineage, circle
from ctxctl.ingest.parts import Part, call_title, moment, string
from ctxctl.ingest.run import Run
from ctxctl.model import vocab
from ctxctl.providers.usage import stated_total
from ctxctl.trace.source import Source

_GOES_ON: Final = "The previous session was interrupted because it got too long"
"""How a message begins with which Crush goes on after a compaction."""
_FAILED: Final = ("error", "canceled", "permission_denied")
_MESSAGES: Final = "SELECT * FROM messages WHERE session_id = ? ORDER BY created_at, rowid"


def read(source: Source, report: Report) -> Iterator[Json]:
    """The events of a database."""
    return read_database(Run(NAME, report), source, _sessions, keys=[("messages", "session_id")])


def _sessions(run: Run, database: sqlite3.Connection) -> Iterator[Json]:
    rows = [dict(row) for row in database.execute("SELECT * FROM sessions ORDER BY created_at, rowid")]
    lineage = _lineage(run, rows)
    families: dict[str, list[Json]] = {}
    for row in rows:
        families.setdefault(lineage.top(str(row["id"])), []).append(row)
    for root, members in families.items():
        run.session = root
        for row in members:
            yield from _session(run, database, row, root)
        yield from run.end_session()


def _lineage(run: Run, rows: list[Json]) -> Lineage[str]:
    """The sessions that called, or whose agents called, others; one that is not there called nobody.

    Where they go round in a circle, its last session is nobody's.
    """
    lineage: Lineage[str] = Lineage()
    known = {str(row["id"]) for row in rows}
    for row in rows:
        native, parent = str(row["id"]), string(row.get("parent_session_id"))
        if parent is None or parent == native or parent not in known:
            lineage.enter(native, None)
        elif lineage.enter(native, parent) is Kinship.CIRCLE:
            line = run.line
            names = f"session {native}", f"session {parent}"
            run.report(circle(line.number, line.offset, *names, "begin a conversation"))
    return lineage


def _session(run: Run, database: sqlite3.Connection, row: Json, root: str) -> Iterator[Json]:
    native = str(row["id"])
    run.make.at(moment(row.get("created_at")))
    session: Session | None = None
    for found in database.execute(_MESSAGES, (row["id"],)):
        message = dict(found)
        if session is None:
            if native == root:
                run.opened(session=native, title=string(row.get("title")))
            conversation = run.thread(None if native == root else native, origin=_origin(row, root))
            session = Session(run, conversation, string(row.get("summary_message_id")))
        parts = value(message.get("parts"))
        if isinstance(parts, list):
            session.message(message, [part for part in parts if isinstance(part, dict)])
        else:
            run.problem("not-a-record", "a message whose parts are not JSON; skipped")
        yield from run.drain()
    if session is not None:
        session.totals(row, whole=native == root)
        yield from run.drain()


def _origin(row: Json, root: str) -> Json:
    """Where a sub-agent's session comes from: its id is that of the message and of the call."""
    native, parent = str(row["id"]), string(row.get("parent_session_id"))
    if native == root or parent is None:
        return {}
    call = native.partition("$$")[2] or None
    return {"parent_thread": vocab.MAIN_THREAD if parent == root else parent, "parent_tool_call": call}


class Session:
    """Takes the messages of one session in order.

    Args:
        run: The import.
        conversation: The session's thread.
        summary: The id of the message that is the session's last summary.
    """

    def __init__(self, run: Run, conversation: Conversation, summary: str | None) -> None:
        self._run = run
        self._window = conversation
        self._summary = summary
        self._titles: dict[str, str] = {}
        """What each call is called, for its result."""

    def message(self, message: Json, parts: list[Json]) -> None:
        """Take one message with its parts."""
        self._run.make.at(moment(message.get("created_at")))
        role, native = message.get("role"), string(message.get("id")) or ""
        for part in parts:
            if string(part.get("type")) not in KNOWN:
                self._run.understood.unknown(str(part.get("type")), size=0)
        if role == "assistant":
            self._answer(message, native, parts)
        elif role == "tool":
            self._window.append(*(made for part in _of(parts, "tool_result") for made in self._result(part)))
        elif role == "user":
            self._asked(native, parts)
        else:
            self._run.problem("unknown-record", f"a message of the role {str(role)[:40]}; skipped")

    def totals(self, row: Json, *, whole: bool) -> None:
        """Report what the table of sessions has: the session's cost, and the counts of its last request.

        `whole`: whether it is no sub-agent's session; a sub-agent's cost is in that of the calling session.
        """
        sent, wrote = row.get("prompt_tokens"), row.get("completion_tokens")
        self._window.stated(
            stated_total("session", usd=row.get("cost")) if whole else None,
            stated_total("request", input_tokens=sent, output_tokens=wrote),
        )

    def _asked(self, native: str, parts: list[Json]) -> None:
        text = _text(parts)
        goes_on = text.startswith(_GOES_ON)
        if not goes_on or self._window.turn is None:
            self._window.turn = native or self._window.turn
        made = [Part("policy_note" if goes_on else "user_message", text, "user", key=native)] if text else []
        for at, ran in enumerate(_of(parts, "shell_command"), 1):
            told = f"$ {ran.get('command')}\n{ran.get('output')}\n(exit code {ran.get('exit_code')})"
            made.append(
                Part(
                    "runtime_state",
                    told,
                    "user",
                    key=f"{native}/shell-{at}",
                    title=string(ran.get("command")),
                )
            )
        for kind in ("binary", "image_url"):
            made += [_file(held, f"{native}/{kind}-{at}") for at, held in enumerate(_of(parts, kind), 1)]
        self._window.append(*made)

    def _answer(self, message: Json, native: str, parts: list[Json]) -> None:
        """Take an answer: what stands before it was sent; one without any content is left out later on."""
        summary = message.get("is_summary_message") == 1 or (native != "" and native == self._summary)
        finish = next((part for part in _of(parts, "finish")), {})
        reason = string(finish.get("reason"))
        self._window.request(
            native or None,
            model=string(message.get("model")),
            outcome=reason if reason in _FAILED else None,
            purpose="compaction" if summary else None,
        )
        text = _text(parts)
        if summary:
            if text:
                made = Part("thread_summary", text, "user", key=native)
                self._window.compact([made], summary=made)
            return
        answer = [Part("assistant_message", text, "assistant", key=native)] if text else []
        for at, thought in enumerate(_of(parts, "reasoning"), 1):
            said = string(thought.get("thinking"))
            if said:
                answer.append(Part("reasoning", said, "assistant", key=f"{native}/reasoning-{at}"))
        answer += [
            self._call(call, f"{native}/call-{at}") for at, call in enumerate(_of(parts, "tool_call"), 1)
        ]
        self._window.append(*answer)

    def _call(self, call: Json, otherwise: str) -> Part:
        name, given = string(call.get("name")) or "tool", call.get("input")
        arguments = value(given)
        key = string(call.get("id")) or otherwise
        title = self._titles[key] = call_title(name, arguments)
        text = f"{name} {given if isinstance(given, str) else '{}'}"
        return Part("tool_call", text, "assistant", key=key, title=title)

    def _result(self, result: Json) -> list[Part]:
        call = string(result.get("tool_call_id"))
        key = f"{call}/result" if call is not None else None
        title = self._titles.get(call or "", string(result.get("name")) or None)
        marks = {"is_error": True} if result.get("is_error") is True else None
        made = [
            Part(
                "tool_result", string(result.get("content")) or "", "tool", key=key, title=title, native=marks
            )
        ]
        if string(result.get("data")):
            made.append(_file(result, f"{key}/data" if key is not None else None, "tool"))
        return made


def _of(parts: list[Json], kind: str) -> list[Json]:
    """The contents of the parts of a kind."""
    held = (part.get("data") for part in parts if part.get("type") == kind)
    return [one for one in held if isinstance(one, dict)]


def _text(parts: list[Json]) -> str:
    """A message's text as it is sent: of several, Crush takes the first one."""
    return next(
        (str(one["text"]) for one in _of(parts, "text") if isinstance(one.get("text"), str)), ""
    ).strip()


def _file(held: Json, key: str | None, role: str = "user") -> Part:
    """A file or an image beside a message: its bytes are not text."""
    mime = next((string(held.get(name)) for name in ("MIMEType", "mime_type") if held.get(name)), None)
    data: Any = next((held[name] for name in ("Data", "data", "url") if isinstance(held.get(name), str)), "")
    kind = "external_resource" if mime is not None and not mime.startswith("image/") else "image"
    size = len(data) * 3 // 4
    return Part(kind, None, role, key=key, title=string(held.get("Path")), mime_type=mime, byte_size=size)
