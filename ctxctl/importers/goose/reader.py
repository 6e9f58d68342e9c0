"""Reads goose's sessions as steps: from its `sessions.db`, an export, or JSON lines."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any, Final

from ctxctl.importers.goose import NAME, SQLITE
from ctxctl.importers.goose_recordings.reader import parts_of, tool_parts
from ctxctl.ingest.build import Json
from ctxctl.ingest.database import read_database, value
from ctxctl.ingest.document import document
from ctxctl.ingest.lines import WHOLE_FILE, Report
from ctxctl.ingest.parts import Part, mapping, moment, string
from ctxctl.ingest.run import Run
from ctxctl.ingest.skim import layout_of_head
from ctxctl.providers.usage import stated_total
from ctxctl.trace.source import Source

_FOR_PEOPLE: Final = ("actionRequired", "systemNotification", "toolConfirmationRequest")


class Session:
    """Takes the messages of one session in order."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._window = run.thread()
        self._model: str | None = None
        self._answering = False
        self._turns = 0
        self._titles: dict[str, str] = {}
        self._hidden: set[str] = set()
        """The items that are no longer sent, as the file says today."""
        self._compacted = False
        """Whether what goose adds to a summary comes next."""
        self._prompt = ""
        """The digest of the last prompt."""
        self._called: Any = None
        """The time of the message with the last call, as long as only results came since."""
        self.summed_up: int | None = None
        """Position of the last message that only the agent sees; None if it was not looked up."""

    def head(self, head: Json) -> None:
        """Take the session's description."""
        model = head.get("model_config")
        self._model = string(model.get("model_name")) if isinstance(model, dict) else None
        self._run.opened(session=self._run.session, cwd=string(head.get("working_dir")))
        tools = tool_parts(head.get("tools"))
        for part in tools:
            part.line = self._run.line.number
        self._window.append(*tools)

    def totals(self, head: Json) -> None:
        """Report the session's own counts: of all requests, and of the last one."""
        sent, wrote = head.get("input_tokens"), head.get("output_tokens")
        self._window.stated(
            stated_total(
                "session", usd=head.get("accumulated_cost"),
                input_tokens=head.get("accumulated_input_tokens"),
                output_tokens=head.get("accumulated_output_tokens"),
            ),
            stated_total("request", input_tokens=sent, output_tokens=wrote), line=self._run.line.number,
        )  # fmt: skip

    def message(self, message: Json, position: int) -> None:
        """Take one message."""
        role = message.get("role")
        if role not in ("user", "assistant"):
            self._run.problem("unknown-record", "a line that is no message; skipped")
            return
        self._run.make.at(moment(message.get("created")))
        parts = self._parts(message, position)
        marks = mapping(message.get("metadata"))
        hidden = marks.get("agentVisible") is False
        if not parts or (hidden and self._never_sent(parts, position)):
            return
        for_agent = not hidden and marks.get("userVisible") is False
        if for_agent and self._hidden and self._is_text(parts):
            self._compact(parts)
            return
        added = self._compacted and (for_agent or role == "user")
        self._compacted = self._compacted and for_agent
        if role == "assistant" and added:
            for part in parts:
                part.kind = "policy_note"
        elif role == "assistant":
            self._answer(message, parts)
        else:
            self._answering = False
            self._asked(message, parts, again=added)
        self._window.append(*parts)
        if hidden:
            self._hidden.update(part.item for part in parts)

    def _never_sent(self, parts: list[Part], position: int) -> bool:
        """Whether a message that the agent does not see is a notice or a command, and no history.

        History is hidden by the summary that comes after it.
        """
        if self.summed_up is not None and position > self.summed_up:
            return True
        first = parts[0]
        command = first.kind == "user_message" and len(parts) == 1 and (first.text or "").startswith("/")
        return command or any(part.kind == "custom" and part.title == "error" for part in parts)

    def _asked(self, message: Json, parts: list[Part], *, again: bool) -> None:
        """Take a user's message; after a summary goose sends the last prompt once more."""
        prompts = [part.mark for part in parts if part.kind == "user_message"]
        if not prompts:
            return
        self._called = None
        if again and prompts[0] == self._prompt:
            return
        self._prompt = prompts[0]
        self._turns += 1
        self._window.turn = string(message.get("id")) or f"turn-{self._turns}"

    def _parts(self, message: Json, position: int) -> list[Part]:
        content = message.get("content")
        sent = [
            block
            for block in (content if isinstance(content, list) else [{"type": "text", "text": content}])
            if isinstance(block, dict) and string(block.get("type")) not in (None, *_FOR_PEOPLE)
        ]
        parts = parts_of({**message, "content": sent}, position)
        for part in parts:
            part.line = self._run.line.number
            if part.kind == "tool_call" and part.item and part.title is not None:
                self._titles[part.item] = part.title
            elif part.kind == "tool_result":
                part.title = self._titles.get(part.item.removesuffix("/result"), part.title)
        return parts

    @staticmethod
    def _is_text(parts: list[Part]) -> bool:
        return bool(parts) and all(part.kind in ("user_message", "assistant_message") for part in parts)

    def _answer(self, message: Json, parts: list[Part]) -> None:
        """Take an assistant's message; those that follow one another are one answer.

        Of calls that the model made at once goose stores each with its result, in messages of one time.
        """
        calls = all(part.kind in ("tool_call", "reasoning") for part in parts)
        made = message.get("created")
        at_once = calls and made is not None and made == self._called
        self._called = made if calls else None
        if not self._answering and not at_once:
            line = self._run.line.number
            self._window.request(string(message.get("id")), line=line, model=self._model, derived=True)
        self._answering = True

    def _compact(self, parts: list[Part]) -> None:
        """Take a message that only the agent sees: a summary of those that it no longer sees."""
        parts[0].kind = "thread_summary"
        self._compacted, self._called = True, None
        hidden, self._hidden = self._hidden, set()
        self._answering = False
        self._window.compact(
            parts,
            summary=parts[0],
            keep=lambda item: item not in hidden,
            line=self._run.line.number,
            metadata={"ctxctl": {"derived": True}},
            request=self._window.unbilled(),
        )


def for_agent(marks: Any) -> bool:
    """Whether only the agent sees a message, as its metadata has it."""
    return isinstance(marks, dict) and marks.get("userVisible") is False and marks.get("agentVisible") is True


def events(name: str, source: Source, report: Report) -> Iterator[Json]:
    """The events of a session file: a head and messages, a line each."""
    run = Run(name, report)
    session: Session | None = None
    position, described = 0, {}
    for record in run.records(source):
        if session is None:
            run.session = string(record.get("id")) if "role" not in record else None
            session = Session(run)
        if "role" in record:
            position += 1
            session.message(record, position)
        elif position == 0:
            described = record
            session.head(record)
        else:
            run.problem("unknown-record", "a line that is no message; skipped")
        yield from run.drain()
    if session is not None:
        session.totals(described)
    yield from run.finish()


def exported_events(name: str, source: Source, report: Report) -> Iterator[Json]:
    """The events of an exported session: one document."""
    run = Run(name, report)
    run.line = WHOLE_FILE
    value = document(source, run.report)
    head = value if isinstance(value, dict) else {}
    run.session = string(head.get("id"))
    session = Session(run)
    session.head(head)
    found = head.get("conversation", head.get("messages"))
    messages: list[Any] = found if isinstance(found, list) else []
    marks = [one.get("metadata") if isinstance(one, dict) else None for one in messages]
    session.summed_up = max((at for at, one in enumerate(marks, 1) if for_agent(one)), default=0)
    for position, message in enumerate(messages, 1):
        if isinstance(message, dict):
            session.message(message, position)
        else:
            run.problem("not-a-record", "a message that is not a JSON object; skipped")
        yield from run.drain()
    session.totals(head)
    yield from run.finish()


def database_events(name: str, source: Source, report: Report) -> Iterator[Json]:
    """The events of a database: every session of it, message by message as they were stored."""
    return read_database(Run(name, report), source, _sessions)


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
            known.pop(native).totals(heads.get(native, {}))
            yield from run.end_session()
        yield from run.drain()


def _summed_up(database: sqlite3.Connection) -> dict[Any, int]:
    """By session, the position of the last message that only the agent sees."""
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


def read(source: Source, report: Report) -> Iterator[Json]:
    """The file's events: of its database, of an export, or of a session's lines."""
    head = source.read(0, 64 * 1024)
    if head.startswith(SQLITE):
        return database_events(NAME, source, report)
    if layout_of_head(head).has("conversation"):
        return exported_events(NAME, source, report)
    return events(NAME, source, report)
