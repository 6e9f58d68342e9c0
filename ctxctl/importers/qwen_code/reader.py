"""Reads Qwen Code's chats: Claude Code's envelope around Gemini's contents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ctxctl.ingest.build import Json
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parents import Kinship, Lineage, circle
from ctxctl.ingest.parts import Part, count, mapping, string
from ctxctl.ingest.run import Run
from ctxctl.model import vocab
from ctxctl.providers.dialects.base import CallTitles
from ctxctl.providers.dialects.gemini import Gemini
from ctxctl.providers.usage import usage_record
from ctxctl.trace.source import Source

_DIALECT = Gemini()
_SHOWN = 40


class Qwen:
    """Reads one session; a record whose parent is not the last one goes back to that parent."""

    def __init__(self, name: str, report: Report) -> None:
        self._run = Run(name, report)
        self._window: Conversation | None = None
        self._names = CallTitles()
        self._rows: dict[str, int] = {}
        """By uuid, the size of the window after that record."""
        self._lines: dict[str, int] = {}
        """By uuid, the hash of its line."""
        self._lineage: Lineage[str] = Lineage()
        self._last: str | None = None
        self._results = 0

    def events(self, source: Source) -> Iterator[Json]:
        """Yield the session's steps as its lines are read."""
        for record in self._run.records(source):
            self._run.make.at(record.get("timestamp"))
            self._record(record)
            yield from self._run.drain()
        yield from self._run.finish()

    def _record(self, record: Json) -> None:
        native = string(record.get("uuid"))
        if native is not None and self._is_repeated(native):
            return
        if self._window is None:
            self._run.session = string(record.get("sessionId"))
            self._window = self._run.thread()
            self._run.understood.version(record.get("version"), self._run.line.number)
            self._run.opened(version=string(record.get("version")), cwd=string(record.get("cwd")))
        window = self._window
        parent = self._parent(native, string(record.get("parentUuid")))
        if parent is not None and parent != self._last and parent in self._rows:
            size = self._rows[parent]
            if size < len(window.rows):
                window.splice(size, len(window.rows) - size, cause="branched")
        kind = record.get("type")
        if kind == "assistant":
            self._answer(window, record, native)
        elif kind in ("user", "tool_result"):
            parts = self._parts(record, native)
            if kind == "user" and record.get("subtype") is None:
                window.turn = native or window.turn
            window.append(*parts)
        elif kind == "system" and record.get("subtype") == "chat_compression":
            self._compressed(window, record.get("systemPayload"))
        if native is not None:
            self._rows[native] = len(window.rows)
            self._last = native

    def _is_repeated(self, native: str) -> bool:
        """Whether a uuid was there before; told, unless its line says what it said then."""
        mark = hash(self._run.line.data)
        if native not in self._rows:
            self._lines[native] = mark
            return False
        if self._lines[native] != mark:
            message = f"record {native[:_SHOWN]} was there before, with other contents: the first one counts"
            self._run.problem("duplicate-uuid", message)
        return True

    def _parent(self, native: str | None, parent: str | None) -> str | None:
        """The record that one follows; None where it would follow itself, which is told."""
        if native is None or parent is None or self._lineage.enter(native, parent) is not Kinship.CIRCLE:
            return parent
        line = self._run.line
        self._run.report(circle(line.number, line.offset, native, parent, "follow the line before it"))
        return None

    def _answer(self, window: Conversation, record: Json, native: str | None) -> None:
        line = self._run.line.number
        limit = count(record.get("contextWindowSize"))
        if limit is not None:
            window.tell(
                vocab.BUDGET_APPLIED,
                {"budget_id": "context-window", "target": "model", "max_tokens": limit},
                line=line,
            )
        model = string(record.get("model"))
        window.request(native, line=line, model=model, derived=True)
        window.usage(_bill(record.get("usageMetadata"), model), line=line)
        # Thoughts are shown and stored, and not sent back.
        window.append(*(part for part in self._parts(record, native) if part.kind != "reasoning"))

    def _parts(self, record: Json, native: str | None) -> list[Part]:
        message = record.get("message")
        if not isinstance(message, dict):
            message = _result_of(record.get("toolCallResult"))
        return self._cut(message, native) if message is not None else []

    def _cut(self, content: Json, native: str | None) -> list[Part]:
        parts = _DIALECT.message(content, 1, self._run.line.number, self._names)
        for index, part in enumerate(parts):
            part.wire = ""
            if not part.item and part.source is None and native is not None:
                part.item = native if index == 0 else f"{native}/{index}"
        return [part for part in parts if part.text != ""]

    def _compressed(self, window: Conversation, payload: Any) -> None:
        payload = payload if isinstance(payload, dict) else {}
        info = mapping(payload.get("info"))
        native = {
            n: v for n in ("originalTokenCount", "newTokenCount") if (v := count(info.get(n))) is not None
        }
        history = payload.get("compressedHistory")
        line, asked = self._run.line.number, window.unbilled(native.get("originalTokenCount"))
        if not isinstance(history, list):
            window.compacted([], None, line=line, metadata={"native": native}, request=asked)
            return
        parts = [part for one in history if isinstance(one, dict) for part in self._cut(one, None)]
        summary = next((part for part in parts if part.kind == "user_message"), None)
        if summary is not None:
            summary.kind = "thread_summary"
        window.compact(parts, summary=summary, line=line, metadata={"native": native}, request=asked)
        self._rows.clear()


def _result_of(result: Any) -> Json | None:
    """The result of a tool of which only the display is stored."""
    if not isinstance(result, dict) or "result" not in result:
        return None
    answer = {"id": result.get("callId"), "name": result.get("name"), "response": result["result"]}
    return {"role": "user", "parts": [{"functionResponse": answer}]}


def _bill(usage: Any, model: str | None) -> Json | None:
    """A bill in Gemini's fields; the total shows whether the answer's count leaves thoughts out."""
    if not isinstance(usage, dict):
        return None
    given, made = count(usage.get("promptTokenCount")), count(usage.get("candidatesTokenCount"))
    thoughts, total = count(usage.get("thoughtsTokenCount")), count(usage.get("totalTokenCount"))
    apart = given is not None and made is not None and thoughts and total == given + made + thoughts
    return usage_record(
        input_tokens=given, output_tokens=(made or 0) + (thoughts or 0) if apart else made,
        cached=usage.get("cachedContentTokenCount"), reasoning=thoughts, model=model, bill=usage,
    )  # fmt: skip
