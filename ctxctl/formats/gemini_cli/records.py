"""Chats on disk, one document or JSON lines; saved histories; recorded replies; what was printed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.formats.build import Json
from ctxctl.formats.gemini_cli import is_lines, layout_score
from ctxctl.formats.gemini_cli.chat import Chat, is_sent
from ctxctl.formats.gemini_cli.contents import Cutter
from ctxctl.formats.gemini_cli.printed import Printed
from ctxctl.formats.gemini_cli.replies import Replies
from ctxctl.formats.kit.document import document
from ctxctl.formats.kit.parts import Part, string
from ctxctl.formats.kit.run import Run
from ctxctl.formats.lines import Line, Report
from ctxctl.model import vocab
from ctxctl.trace.source import Source

_NAME: Final = "gemini-cli"
_HEAD: Final = 64 * 1024
_GREETING: Final = "Got it. Thanks for the context!"
"""What the CLI lets the model say to the set-up; nobody was asked."""


def whole(name: str, source: Source, report: Report) -> Iterator[Json]:
    """A document: a chat, or a saved history."""
    run = Run(name, report)
    run.line = Line(1, 0, b"")
    value = document(source, run.report)
    history = value
    if isinstance(value, dict):
        messages = value.get("messages")
        if isinstance(messages, list):
            yield from _chat(run, value, messages)
            return
        history = value.get("clientHistory", value.get("history"))
    _saved(run, history if isinstance(history, list) else [])
    yield from run.finish()


def _chat(run: Run, head: Json, messages: list[Any]) -> Iterator[Json]:
    chat = _begin(run, head)
    seen: set[str] = set()
    for message in messages:
        if not isinstance(message, dict):
            run.problem("not-a-record", "a message that is not a JSON object; skipped")
            continue
        native = string(message.get("id"))
        if native is None or native not in seen:
            chat.message(message)
        if native is not None:
            seen.add(native)
        yield from run.drain()
    yield from run.finish()


def _begin(run: Run, head: Json) -> Chat:
    run.session = string(head.get("sessionId"))
    run.make.at(head.get("startTime"))
    told = {"format": run.name, "session": run.session, "kind": string(head.get("kind"))}
    run.emit(vocab.SOURCE_OPENED, {name: value for name, value in told.items() if value is not None})
    return Chat(run, kind=string(head.get("kind")))


def _saved(run: Run, history: list[Any]) -> None:
    """A history as it would be sent again: each answer in it is one request's."""
    window, cutter = run.thread(), Cutter()
    turns = 0
    for content in history:
        if not isinstance(content, dict):
            run.problem("not-a-record", "a content that is not a JSON object; skipped")
            continue
        parts = content.get("parts")
        if content.get("role") == "model":
            made = cutter.model(parts, None)
            if not _is_greeting(made):
                window.request(line=1, derived=True)
        else:
            made = cutter.user(parts, None)
            if any(part.kind == "user_message" for part in made):
                turns += 1
                window.turn = f"turn-{turns}"
        window.append(*made)


def _is_greeting(made: list[Part]) -> bool:
    return len(made) == 1 and made[0].text is not None and made[0].text.startswith(_GREETING)


class Lines(Run):
    """JSON lines: a chat of newer versions, recorded replies, or what was printed."""

    def __init__(self, name: str, report: Report) -> None:
        super().__init__(name, report)
        self._chat: Chat | None = None
        self._held: tuple[Json, Line] | None = None
        """The last message, which may come again with more in it, and its line."""
        self._done: set[str] = set()
        self._replies: Replies | None = None
        self._printed: Printed | None = None

    def events(self, source: Source) -> Iterator[Json]:
        """The events of the file."""
        for record in self.records(source):
            if isinstance(record.get("method"), str) and "response" in record:
                self._replies = self._replies or Replies(self)
                self._replies.take(record)
            elif isinstance(record.get("type"), str) and "id" not in record:
                self._printed = self._printed or Printed(self)
                self._printed.take(record)
            else:
                self._recorded(record)
            yield from self.drain()
        self._release()
        if self._printed is not None:
            self._printed.finish()
        yield from self.finish()

    def _recorded(self, record: Json) -> None:
        """A line of a chat: its head, a message (again, if it changed), a change of the head, a rewind."""
        if isinstance(record.get("type"), str):
            self._message(record)
        elif isinstance(record.get("$rewindTo"), str):
            self._release()
            if not self._of().rewind(record["$rewindTo"]):
                self.problem("missing-parent", "a rewind to a message that is not there; passed over")
            self._done.discard(record["$rewindTo"])
        elif isinstance(record.get("$set"), dict):
            messages = record["$set"].get("messages")
            if isinstance(messages, list):
                self._release()
                self._of().restart(messages)
                found = (one.get("id") for one in messages if isinstance(one, dict))
                self._done.update(native for native in found if isinstance(native, str))
        elif "sessionId" in record and self._chat is None:
            self._chat = _begin(self, record)
            for message in record["messages"] if isinstance(record.get("messages"), list) else []:
                if isinstance(message, dict):
                    self._message(message)

    def _message(self, record: Json) -> None:
        native = string(record.get("id"))
        if record.get("type") not in ("user", "gemini") and not is_sent(record):
            return
        if native in self._done:
            self._of().again(record)
            return
        if self._held is not None and self._held[0].get("id") != native:
            self._release()
        self._held = record, self.line

    def _release(self) -> None:
        held, self._held = self._held, None
        if held is None:
            return
        message, line = held
        native = string(message.get("id"))
        if native is not None:
            self._done.add(native)
        here, self.line = self.line, line
        self._of().message(message)
        self.line = here

    def _of(self) -> Chat:
        if self._chat is None:
            self._chat = Chat(self)
        return self._chat


def read(source: Source, report: Report) -> Iterator[Json]:
    """The file's events: one document, or lines."""
    head = source.read(0, _HEAD)
    if layout_score(head) and not is_lines(head):
        return whole(_NAME, source, report)
    return Lines(_NAME, report).events(source)
