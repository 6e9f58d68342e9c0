"""goose's sessions: the messages as it stores them, as steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.formats.build import Json
from ctxctl.formats.calls.times import moment
from ctxctl.formats.goose_recordings.messages import parts_of, tool_parts
from ctxctl.formats.kit.document import document
from ctxctl.formats.kit.parts import Part, string
from ctxctl.formats.kit.run import Run
from ctxctl.formats.lines import Line, Report
from ctxctl.model import vocab
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
        """Items that are no longer sent, as the file says today."""

    def head(self, head: Json) -> None:
        """The session's description."""
        model = head.get("model_config")
        self._model = string(model.get("model_name")) if isinstance(model, dict) else None
        told = {
            "format": self._run.name,
            "session": self._run.session,
            "cwd": string(head.get("working_dir")),
        }
        self._run.emit(
            vocab.SOURCE_OPENED, {name: value for name, value in told.items() if value is not None}
        )
        tools = tool_parts(head.get("tools"))
        for part in tools:
            part.line = self._run.line.number
        self._window.append(*tools)

    def message(self, message: Json, position: int) -> None:
        """One message."""
        role = message.get("role")
        if role not in ("user", "assistant"):
            self._run.problem("unknown-record", "a line that is no message; skipped")
            return
        self._run.make.at(moment(message.get("created")))
        parts = self._parts(message, position)
        marks = message.get("metadata")
        marks = marks if isinstance(marks, dict) else {}
        hidden = marks.get("agentVisible") is False
        if not hidden and marks.get("userVisible") is False and self._hidden and self._is_text(parts):
            self._compact(parts)
            return
        if not parts:
            return
        if role == "assistant":
            self._answer(message)
        else:
            self._answering = False
            if any(part.kind == "user_message" for part in parts):
                self._turns += 1
                self._window.turn = string(message.get("id")) or f"turn-{self._turns}"
        self._window.append(*parts)
        if hidden:
            self._hidden.update(part.item for part in parts)

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

    def _answer(self, message: Json) -> None:
        """An assistant's message; those that follow one another are one answer."""
        if not self._answering:
            self._answering = True
            line = self._run.line.number
            self._window.request(string(message.get("id")), line=line, model=self._model, derived=True)

    def _compact(self, parts: list[Part]) -> None:
        """What only the agent sees, after messages that it no longer sees: a summary of them."""
        parts[0].kind = "thread_summary"
        hidden, self._hidden = self._hidden, set()
        self._answering = False
        self._window.compact(
            parts,
            summary=parts[0],
            keep=lambda item: item not in hidden,
            line=self._run.line.number,
            metadata={"ctxctl": {"derived": True}},
        )


def events(name: str, source: Source, report: Report) -> Iterator[Json]:
    """The events of a session file: a head and messages, a line each."""
    run = Run(name, report)
    session: Session | None = None
    position = 0
    for record in run.records(source):
        if session is None:
            run.session = string(record.get("id")) if "role" not in record else None
            session = Session(run)
        if "role" in record:
            position += 1
            session.message(record, position)
        elif position == 0:
            session.head(record)
        else:
            run.problem("unknown-record", "a line that is no message; skipped")
        yield from run.drain()
    yield from run.finish()


def exported(name: str, source: Source, report: Report) -> Iterator[Json]:
    """The events of an exported session: one document."""
    run = Run(name, report)
    run.line = Line(1, 0, b"")
    value = document(source, run.report)
    head = value if isinstance(value, dict) else {}
    run.session = string(head.get("id"))
    session = Session(run)
    session.head(head)
    found = head.get("conversation", head.get("messages"))
    messages: list[Any] = found if isinstance(found, list) else []
    for position, message in enumerate(messages, 1):
        if isinstance(message, dict):
            session.message(message, position)
        else:
            run.problem("not-a-record", "a message that is not a JSON object; skipped")
        yield from run.drain()
    yield from run.finish()
