"""Reads HAIL, the interchange lines that opensession makes of other agents' sessions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.ingest import build
from ctxctl.ingest.build import Json, Place
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parts import Part, call_title, count, mapping, string
from ctxctl.ingest.run import Run
from ctxctl.providers.usage import stated_total, usage_record
from ctxctl.trace.source import Source

_ANSWERS: Final = ("AgentMessage", "Thinking")
_CALLS: Final = (
    "ToolCall", "ShellCommand", "FileEdit", "FileRead", "FileCreate", "FileDelete", "CodeSearch",
    "FileSearch", "WebSearch", "WebFetch", "ImageGenerate", "VideoGenerate", "AudioGenerate",
)  # fmt: skip
_SKIPPED: Final = ("TaskStart", "TaskEnd", "Custom")


class Hail:
    """Reads one session's lines."""

    def __init__(self, name: str, report: Report) -> None:
        self._run = Run(name, report)
        self._window: Conversation = self._run.thread()
        self._model: str | None = None
        self._answering = False
        self._place: Place | None = None
        self._thought: str | None = None
        self._titles: dict[str, str] = {}
        self._total = 0
        self._seen: set[str] = set()

    def events(self, source: Source) -> Iterator[Json]:
        """Yield the session's steps as its lines are read."""
        for record in self._run.records(source):
            kind = record.get("type")
            if kind == "header":
                self._header(record)
            elif kind == "event":
                self._run.make.at(record.get("timestamp"))
                self._event(record)
            elif kind == "stats":
                total = stated_total(
                    "session", input_tokens=record.get("total_input_tokens"),
                    output_tokens=record.get("total_output_tokens"), model=self._model,
                )  # fmt: skip
                self._window.stated(total, line=self._run.line.number)
            yield from self._run.drain()
        yield from self._run.finish()

    def _header(self, record: Json) -> None:
        agent = mapping(record.get("agent"))
        model = string(agent.get("model"))
        self._model = model if model != "unknown" else None
        if not self._run.threads or not self._window.steps:
            self._run.session = self._window.session = string(record.get("session_id"))
        version = string(record.get("version")) or ""
        self._run.understood.version(version.removeprefix("hail-"), self._run.line.number)
        self._run.opened(version=version or None, agent=string(agent.get("tool")))

    def _event(self, record: Json) -> None:
        native = string(record.get("event_id"))
        if native is not None:
            if native in self._seen:
                return
            self._seen.add(native)
        told = record.get("event_type")
        told = told if isinstance(told, dict) else {"type": told}
        kind, data = told.get("type"), told.get("data")
        data = data if isinstance(data, dict) else {}
        if kind == "Custom" and data.get("kind") == "token_count":
            self._count(record.get("attributes"))
        if kind == "Custom" and data.get("kind") == "context_compacted":
            self._compacted(native)
        if not isinstance(kind, str) or kind in _SKIPPED:
            return
        text = _text(record.get("content"))
        if kind in _ANSWERS or kind in _CALLS:
            self._answer(kind, data, text, native, record)
        elif kind == "ToolResult":
            self._answering = False
            self._thought = None
            call = string(data.get("call_id"))
            title = self._titles.get(call or "") or string(data.get("name"))
            key = f"{call}/result" if call is not None else native
            self._append(Part("tool_result", text, "tool", key=key, title=title))
        elif kind == "UserMessage":
            self._answering = False
            self._window.turn = native or self._window.turn
            self._append(Part("user_message", text, "user", key=native))
        elif text:
            self._append(Part("custom", text, "system", key=native, native={"type": kind}))

    def _answer(self, kind: str, data: Json, text: str, native: str | None, record: Json) -> None:
        if kind == "Thinking":
            # It is told twice: as it was shown, and as it was stored.
            if text == self._thought:
                return
            self._thought = text
        if not self._answering:
            self._answering = True
            line = self._run.line.number
            self._place = self._window.request(line=line, model=self._model, derived=True)
        if kind == "Thinking":
            self._append(Part("reasoning", text, "assistant", key=native))
        elif kind == "AgentMessage":
            self._append(Part("assistant_message", text, "assistant", key=native))
        else:
            self._call(kind, data, native, record)

    def _call(self, kind: str, data: Json, native: str | None, record: Json) -> None:
        name = string(data.get("name")) or kind
        arguments = {n: v for n, v in data.items() if n != "name"}
        if not arguments and (text := _text(record.get("content"))):
            arguments = {"content": text}
        title = call_title(name, arguments)
        attributes = record.get("attributes")
        semantic = attributes.get("semantic.call_id") if isinstance(attributes, dict) else None
        for key in (native, string(semantic)):
            if key is not None:
                self._titles[key] = title
        text = f"{name} {build.canonical(arguments)}"
        self._append(Part("tool_call", text, "assistant", key=native, title=title))

    def _compacted(self, native: str | None) -> None:
        """Take a compaction of Codex, which keeps the prompts and appends a summary."""
        prompts = {row[0].item for row in self._window.rows if row[1] == "user_message"}
        self._answering, self._thought = False, None
        self._window.compact(
            [], keep=prompts.__contains__, line=self._run.line.number, compaction_id=native,
            loss_notes=["The summary is not recorded, nor whether all prompts stayed."],
            metadata={"ctxctl": {"derived": True}}, request=self._window.unbilled(),
        )  # fmt: skip

    def _append(self, part: Part) -> None:
        part.line = self._run.line.number
        if part.kind not in ("reasoning",):
            self._thought = None
        self._window.append(part)

    def _count(self, attributes: Any) -> None:
        """Take a count, which Codex repeats; it is new where the session's total has grown by it."""
        if not isinstance(attributes, dict) or self._place is None:
            return
        given, total = count(attributes.get("input_tokens")), count(attributes.get("input_tokens_total"))
        if given is None or total is None or total <= self._total:
            return
        grown = total - self._total
        self._total = total
        if grown != given:
            return
        record = usage_record(
            input_tokens=given,
            output_tokens=attributes.get("output_tokens"),
            model=self._model,
            bill=attributes,
        )
        self._window.usage(record, line=self._run.line.number, place=self._place)


def _text(content: Any) -> str:
    """The texts of the blocks; of a block without text, its JSON."""
    blocks = content.get("blocks") if isinstance(content, dict) else None
    made = []
    for block in blocks if isinstance(blocks, list) else []:
        if isinstance(block, dict):
            known = (block.get(name) for name in ("text", "code", "content", "diff"))
            made.append(next((v for v in known if isinstance(v, str)), None) or build.canonical(block))
    return "\n".join(made)
