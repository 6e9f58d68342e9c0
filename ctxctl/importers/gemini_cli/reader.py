"""Reads the files of Gemini CLI: chats, saved histories, recorded replies and printed output.

A chat is one document or JSON lines.  Recorded replies (`*.responses`) hold what the model said without what
it was asked; printed output is that of `gemini --output-format stream-json`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.importers.gemini_cli import is_lines, layout_score
from ctxctl.importers.gemini_cli.chat import Chat, is_sent
from ctxctl.importers.gemini_cli.parts import PartCutter
from ctxctl.ingest.build import Json, canonical
from ctxctl.ingest.document import document
from ctxctl.ingest.lines import Line, Report
from ctxctl.ingest.parts import Part, count, string
from ctxctl.ingest.run import Run
from ctxctl.providers.usage import usage_record
from ctxctl.trace.source import Source

_NAME: Final = "gemini-cli"
_HEAD: Final = 64 * 1024
_GREETING: Final = "Got it. Thanks for the context!"
"""What the CLI lets the model say to the set-up; nobody was asked."""


def read_document(name: str, source: Source, report: Report) -> Iterator[Json]:
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
    run.opened(session=run.session, kind=string(head.get("kind")))
    return Chat(run, kind=string(head.get("kind")))


def _saved(run: Run, history: list[Any]) -> None:
    """A history as it would be sent again: each answer in it is one request's."""
    window, cutter = run.thread(), PartCutter()
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


class LineReader(Run):
    """JSON lines: a chat of newer versions, recorded replies, or what was printed."""

    def __init__(self, name: str, report: Report) -> None:
        super().__init__(name, report)
        self._chat: Chat | None = None
        self._held: tuple[Json, Line] | None = None
        """The last message, which may come again with more in it, and its line."""
        self._done: set[str] = set()
        self._replies: RecordedReplies | None = None
        self._printed: PrintedStream | None = None

    def events(self, source: Source) -> Iterator[Json]:
        """The events of the file."""
        for record in self.records(source):
            if isinstance(record.get("method"), str) and "response" in record:
                self._replies = self._replies or RecordedReplies(self)
                self._replies.take(record)
            elif isinstance(record.get("type"), str) and "id" not in record:
                self._printed = self._printed or PrintedStream(self)
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


_ASKED: Final = ("generateContent", "generateContentStream")


class RecordedReplies:
    """A line for each call: one request, of which nothing is known but the bill and the answer."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._window = run.thread()

    def take(self, record: Json) -> None:
        """One call and its reply, whole or as it was streamed."""
        if record["method"] not in _ASKED:
            return
        response = record["response"]
        chunks = [
            one for one in (response if isinstance(response, list) else [response]) if isinstance(one, dict)
        ]
        line = self._run.line.number
        model = next((name for one in chunks if (name := string(one.get("modelVersion"))) is not None), None)
        # What it was asked is not known: the answers are told of, but no request is said to carry them.
        self._window.splice(0, len(self._window))
        self._window.request(line=line, model=model, derived=True)
        self._window.usage(_bill(chunks, model), line=line)
        parts = _answer(chunks)
        for part in parts:
            part.line = line
        self._window.append(*parts)


def _answer(chunks: list[Json]) -> list[Part]:
    """The parts of an answer; texts that follow each other are one."""
    made: list[Json] = []
    for chunk in chunks:
        for piece in _pieces(chunk):
            text = piece.get("text")
            before = made[-1] if made else {}
            same = piece.get("thought") is before.get("thought")
            if isinstance(text, str) and isinstance(before.get("text"), str) and same:
                before["text"] += text
            else:
                made.append(dict(piece))
    thoughts = [
        Part("reasoning", one["text"], "assistant")
        for one in made
        if one.get("thought") is True and isinstance(one.get("text"), str)
    ]
    return [*thoughts, *PartCutter().model(made, None)]


def _pieces(chunk: Json) -> list[Json]:
    candidates = chunk.get("candidates")
    first: Any = candidates[0] if isinstance(candidates, list) and candidates else None
    content = first.get("content") if isinstance(first, dict) else None
    parts = content.get("parts") if isinstance(content, dict) else None
    return [one for one in parts if isinstance(one, dict)] if isinstance(parts, list) else []


def _bill(chunks: list[Json], model: str | None) -> Json | None:
    """The last bill of a stream: each one is of the whole request so far."""
    for chunk in reversed(chunks):
        usage = chunk.get("usageMetadata")
        if isinstance(usage, dict) and count(usage.get("promptTokenCount")) is not None:
            thoughts = count(usage.get("thoughtsTokenCount"))
            said = count(usage.get("candidatesTokenCount"))
            return usage_record(
                input_tokens=usage["promptTokenCount"] + (count(usage.get("toolUsePromptTokenCount")) or 0),
                output_tokens=None if said is None and thoughts is None else (said or 0) + (thoughts or 0),
                cached=usage.get("cachedContentTokenCount"),
                reasoning=thoughts,
                provider="google",
                model=model,
                native=usage,
            )
    return None


class PrintedStream:
    """Puts pieces of texts together; an answer begins where the model speaks after anything else."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._cutter = PartCutter()
        self._model: str | None = None
        self._answering = False
        self._turns = 0
        self._text: list[str] = []
        self._at = 0
        """Line of the last piece."""
        self._calls: list[Part] = []

    def take(self, record: Json) -> None:
        """Take one event of the stream."""
        kind = record.get("type")
        self._run.make.at(record.get("timestamp"))
        if kind == "init":
            self._run.session = string(record.get("session_id"))
            self._model = string(record.get("model"))
            self._run.opened(session=self._run.session)
        elif kind == "message":
            self._message(record)
        elif kind == "tool_use":
            self._answer()
            call = self._cutter.call(record.get("tool_id"), record.get("tool_name"), record.get("parameters"))
            call.line = self._run.line.number
            self._calls.append(call)
        elif kind == "tool_result":
            self._result(record)

    def finish(self) -> None:
        """End what the stream left open."""
        self._settle()

    def _message(self, record: Json) -> None:
        content = record.get("content")
        if record.get("role") == "assistant":
            self._answer()
            if self._calls:
                self._flush()
            self._at = self._run.line.number
            self._text.append(content if isinstance(content, str) else canonical(content))
        else:
            self._settle()
            self._turns += 1
            window = self._run.thread()
            window.turn = f"turn-{self._turns}"
            parts = self._cutter.user(content, None)
            for part in parts:
                part.line = self._run.line.number
            window.append(*parts)

    def _result(self, record: Json) -> None:
        self._settle()
        error, output = record.get("error"), record.get("output")
        failed = record.get("status") == "error"
        if isinstance(error, dict) and not isinstance(output, str):
            output = string(error.get("message")) or canonical(error)
        text = output if isinstance(output, str) else ""
        parts = self._cutter.result(record.get("tool_id"), None, text, failed=failed)
        for part in parts:
            part.line = self._run.line.number
        self._run.thread().append(*parts)

    def _answer(self) -> None:
        """The model speaks: the window as it is was its request."""
        if not self._answering:
            self._answering = True
            self._run.thread().request(line=self._run.line.number, model=self._model, derived=True)

    def _settle(self) -> None:
        """End the answer."""
        self._flush()
        self._answering = False

    def _flush(self) -> None:
        pieces, self._text = self._text, []
        calls, self._calls = self._calls, []
        text, line, several = "".join(pieces), self._at, len(pieces) > 1
        parts = [Part("assistant_message", text, "assistant", line=line, derived=several)] if text else []
        self._run.thread().append(*parts, *calls)


def read(source: Source, report: Report) -> Iterator[Json]:
    """The file's events: one document, or lines."""
    head = source.read(0, _HEAD)
    if layout_score(head) and not is_lines(head):
        return read_document(_NAME, source, report)
    return LineReader(_NAME, report).events(source)
