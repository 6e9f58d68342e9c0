"""Reads an iFlow transcript's lines in the order of the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ctxctl.importers.claude_code import texts
from ctxctl.importers.iflow import transcripts
from ctxctl.ingest import build
from ctxctl.ingest.build import Json
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.folder import Folder, read_several
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parts import Part, count, string
from ctxctl.ingest.run import Run
from ctxctl.providers.dialects.anthropic import Anthropic
from ctxctl.providers.dialects.base import CallTitles
from ctxctl.trace.source import Source

_NAME = "iflow"
_DIALECT = Anthropic()
_COUNTS = ("input_tokens", "output_tokens")


class _Answer:
    """An answer whose lines are still coming."""

    def __init__(self, line: int, model: str | None) -> None:
        self.line = line
        self.model = model
        self.usage: dict[str, int] = {}

    def merge(self, message: Json) -> None:
        """Take over a line's counts, the largest of each; iFlow writes 0 where the provider gives none."""
        self.model = self.model or string(message.get("model"))
        usage = message.get("usage")
        for name in _COUNTS:
            found = count(usage.get(name)) if isinstance(usage, dict) else None
            if found:
                self.usage[name] = max(found, self.usage.get(name, 0))


class Session:
    """Reads one transcript."""

    def __init__(self, name: str, report: Report) -> None:
        self._run = Run(name, report)
        self._names = CallTitles()
        self._calls: set[str] = set()
        """The ids of the tool calls so far: later lines of an answer repeat earlier ones."""
        self._answer: _Answer | None = None

    def events(self, source: Source) -> Iterator[Json]:
        """The session's steps, as its lines come."""
        run = self._run
        for record in run.records(source):
            run.make.at(record.get("timestamp"))
            run.make.by(record.get("version"))
            message = record.get("message")
            if not isinstance(message, dict):
                continue
            run.session = string(record.get("sessionId")) or run.session
            window = run.thread("sidechain" if record.get("isSidechain") is True else None)
            uuid = string(record.get("uuid")) or f"line-{run.line.number}"
            if record.get("type") == "assistant":
                self._take_answer_line(window, message, uuid)
            elif record.get("type") == "user":
                self._finish_answer(window)
                self._user(window, record, message, uuid)
            yield from run.drain()
        for window in run.threads.values():
            self._finish_answer(window)
        if not run.make.count:
            run.opened()
        yield from run.finish()

    def _take_answer_line(self, window: Conversation, message: Json, uuid: str) -> None:
        """Take a line of an answer: before its first line, the request was complete."""
        line = self._run.line.number
        if self._answer is None:
            self._answer = _Answer(line, string(message.get("model")))
            step = string(message.get("id")) or uuid
            window.request(step, line=line, model=self._answer.model, native_id=step, derived=True)
        self._answer.merge(message)
        parts = _DIALECT.message(
            {"role": "assistant", "content": message.get("content")}, 1, line, self._names
        )
        fresh = [part for part in parts if not (part.kind == "tool_call" and part.item in self._calls)]
        self._calls.update(part.item for part in fresh if part.kind == "tool_call" and part.item)
        window.append(*_named(fresh, uuid))

    def _finish_answer(self, window: Conversation) -> None:
        """End the answer: tell what it was billed."""
        answer, self._answer = self._answer, None
        if answer is None or not answer.usage:
            return
        record: Json = {**answer.usage}
        if answer.model is not None:
            record["model"] = answer.model
        window.usage(record, line=answer.line)

    def _user(self, window: Conversation, record: Json, message: Json, uuid: str) -> None:
        content = message.get("content")
        blocks = content if isinstance(content, list) else [content]
        told = [_unwrapped(block) for block in blocks if block is not None and block != ""]
        parts = _DIALECT.message({"role": "user", "content": told}, 1, self._run.line.number, self._names)
        results = any(part.kind == "tool_result" for part in parts)
        for part in parts:
            if part.kind == "user_message" and part.text is not None:
                meta = record.get("isMeta") is True
                part.kind = texts.META.kind if meta else texts.reading_of(part.text).kind
        if not results and any(part.kind in ("user_message", "image") for part in parts):
            window.turn = uuid
        window.append(*_named(parts, uuid))


def _named(parts: list[Part], uuid: str) -> list[Part]:
    for index, part in enumerate(parts):
        part.wire = ""
        if not part.item and part.source is None:
            part.item = uuid if index == 0 else f"{uuid}/{index}"
    return parts


def _unwrapped(block: Any) -> Any:
    """A tool's result without the client's wrappers: the model gets what its function answered."""
    if not isinstance(block, dict) or not isinstance(block.get("content"), dict):
        return block
    inner: Any = block["content"]
    parts = inner.get("responseParts")
    held = parts if isinstance(parts, dict) else inner
    answered = held.get("functionResponse") if isinstance(held, dict) else None
    response = answered.get("response") if isinstance(answered, dict) else None
    if not isinstance(response, dict):
        return {**block, "content": build.canonical(inner)}
    output = response.get("output")
    text = output if isinstance(output, str) and len(response) == 1 else build.canonical(response)
    return {**block, "content": text}


def read(source: Source, report: Report) -> Iterator[Json]:
    """The session's steps, as its lines come."""
    return Session(_NAME, report).events(source)


class _Transcripts:
    """Reads each of several transcripts by itself."""

    def events(self, source: Source, report: Report) -> Iterator[Json]:
        """The session's events."""
        return read(source, report)


def read_folder(folder: Folder, report: Report) -> Iterator[Json]:
    """Each session in the order of the files' names."""
    yield from read_several(folder, [(name, _Transcripts()) for name in transcripts(folder)], report)
