"""Reads Kimi Code's wire log, a ledger of what entered the context, and of each request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from ctxctl.ingest.build import Json
from ctxctl.ingest.chat import Chat, texts, tools
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parts import Part, count, mapping, string
from ctxctl.ingest.run import Run
from ctxctl.providers.usage import millisecond_clock, usage_record
from ctxctl.trace.source import Source

_FIXED: Final = ("system_prompt", "tool_definition")


class Kimi:
    """Reads one agent's log; a sub-agent has one of its own."""

    def __init__(self, name: str, report: Report) -> None:
        self._run = Run(name, report)
        self._window: Conversation = self._run.thread()
        self._chat = Chat()
        self._model: str | None = None
        self._toolsets: dict[str, tuple[Any, int]] = {}
        """Tool definitions and their line, by hash."""
        self._toolset: str | None = None
        self._billed = True
        self._message = 0
        self._messages: dict[str, int] = {}
        """By item, the ordinal of its message."""
        self._prompts: list[str] = []
        """The items of user messages in the window."""
        self._handlers: dict[str, Callable[[Json], None]] = {
            "metadata": self._opened,
            "config.update": self._config,
            "llm.tools_snapshot": self._snapshot,
            "llm.request": self._request,
            "usage.record": self._usage_record,
            "context.append_message": self._append_message,
            "context.append_loop_event": self._loop_event,
            "context.apply_compaction": self._compaction,
            "context.clear": self._clear,
        }
        self._events: dict[str, Callable[[Json], None]] = {
            "content.part": self._content,
            "tool.call": self._call,
            "tool.result": self._result,
            "step.end": self._step_end,
        }

    def events(self, source: Source) -> Iterator[Json]:
        """Yield the log's steps as its lines are read."""
        for record in self._run.records(source):
            time = record.get("time", record.get("created_at"))
            if isinstance(time, int | float) and not isinstance(time, bool):
                self._run.make.at(millisecond_clock(time))
            handler = self._handlers.get(str(record.get("type")))
            if handler is not None:
                handler(record)
            yield from self._run.drain()
        yield from self._run.finish()

    # -- what the context is made of --------------------------------------------------------------------

    def _opened(self, record: Json) -> None:
        version = string(record.get("protocol_version"))
        self._run.understood.version(version, self._line)
        self._run.opened(version=version)

    def _config(self, record: Json) -> None:
        self._model = string(record.get("modelAlias")) or self._model
        prompt = string(record.get("systemPrompt"))
        if prompt is not None:
            part = Part("system_prompt", prompt, "system", key="system", line=self._line)
            rows = self._window.rows
            at = next((i for i, row in enumerate(rows) if row[1] == "system_prompt"), None)
            self._window.splice(0 if at is None else at, 0 if at is None else 1, [part])

    def _snapshot(self, record: Json) -> None:
        native = string(record.get("hash"))
        if native is not None:
            self._toolsets[native] = record.get("tools"), self._line

    def _use_toolset(self, native: str | None) -> None:
        """Set the tools, which requests name by the hash of a snapshot."""
        if native is None or native == self._toolset or native not in self._toolsets:
            return
        self._toolset = native
        rows = self._window.rows
        old = [i for i, row in enumerate(rows) if row[1] == "tool_definition"]
        at = old[0] if old else sum(1 for row in rows if row[1] == "system_prompt")
        definitions, line = self._toolsets[native]
        self._window.splice(at, len(old), tools(definitions, line=line))

    def _append_message(self, record: Json) -> None:
        message = record.get("message")
        if not isinstance(message, dict):
            return
        origin = mapping(message.get("origin"))
        injected = origin.get("kind") == "injection"
        variant = string(origin.get("variant"))
        kind = "policy_note" if injected else None
        parts = self._chat.cut(
            {"role": message.get("role"), "content": message.get("content"),
             "tool_call_id": message.get("toolCallId")},
            kind=kind, line=self._line,
        )  # fmt: skip
        for part in parts:
            if injected and variant is not None:
                part.title = variant
                part.native = {**(part.native or {}), "variant": variant}
        self._put(parts)
        if not injected and message.get("role") == "user":
            self._prompts += [part.item for part in parts]

    def _loop_event(self, record: Json) -> None:
        event = record.get("event")
        if isinstance(event, dict):
            handler = self._events.get(str(event.get("type")))
            if handler is not None:
                handler(event)

    def _content(self, event: Json) -> None:
        part = event.get("part")
        if not isinstance(part, dict):
            return
        native = string(event.get("uuid"))
        if part.get("type") == "think":
            text = string(part.get("think"))
            made = [] if text is None else [Part("reasoning", text, "assistant", line=self._line)]
        else:
            made = texts([part], "assistant_message", "assistant", line=self._line)
        for one in made:
            one.item = native or ""
        self._put(made)

    def _call(self, event: Json) -> None:
        call = {"id": event.get("toolCallId"), "name": event.get("name"), "arguments": event.get("args")}
        self._put([self._chat.call(call, line=self._line)])

    def _result(self, event: Json) -> None:
        result = event.get("result")
        output = result.get("output") if isinstance(result, dict) else result
        native = {"isError": True} if isinstance(result, dict) and result.get("isError") is True else None
        call = string(event.get("toolCallId"))
        self._put(self._chat.result(call, output, line=self._line, native=native))

    def _put(self, parts: list[Part]) -> None:
        self._message += 1
        self._window.append(*parts)
        for part in parts:
            self._messages[part.item] = self._message

    # -- requests ---------------------------------------------------------------------------------------

    def _request(self, record: Json) -> None:
        self._use_toolset(string(record.get("toolsHash")))
        name = string(record.get("turnStep"))
        if name is not None:
            self._window.turn = name.partition(".")[0]
        kind = string(record.get("kind"))
        limit = count(record.get("maxTokens"))
        model = string(record.get("model")) or self._model
        marks: Json = {"purpose": kind} if kind not in (None, "loop") else {}
        if limit is not None:
            marks["max_output_tokens"] = limit
        self._window.request(name or kind, line=self._line, model=model, derived=True, **marks)
        self._billed = False

    def _step_end(self, event: Json) -> None:
        self._bill(event.get("usage"), None)

    def _usage_record(self, record: Json) -> None:
        # This repeats what the step's end said; only a compaction's bill stands here alone.
        self._bill(record.get("usage"), string(record.get("model")))

    def _bill(self, usage: Any, model: str | None) -> None:
        if self._billed or not isinstance(usage, dict):
            return
        made = usage_record(
            input_tokens=usage.get("inputOther"), output_tokens=usage.get("output"),
            cached=usage.get("inputCacheRead"), cache_write=usage.get("inputCacheCreation"),
            excludes_cache=True, model=model or self._model, bill=usage,
        )  # fmt: skip
        self._billed = made is not None
        self._window.usage(made, line=self._line)

    # -- compactions ------------------------------------------------------------------------------------

    def _compaction(self, record: Json) -> None:
        text = string(record.get("contextSummary")) or string(record.get("summary"))
        kept_prompts = count(record.get("keptUserMessageCount"))
        taken = count(record.get("compactedCount"))
        keep: set[str] = set()
        if kept_prompts is not None:
            keep.update(self._prompts[len(self._prompts) - min(kept_prompts, len(self._prompts)) :])
        elif taken is not None:
            keep.update(item for item, ordinal in self._messages.items() if ordinal > taken)
        rows = self._window.rows
        head = sum(1 for row in rows if row[1] in _FIXED)
        stays = [row for row in rows[head:] if row[0].item in keep]
        left = [row[0].ref for row in rows[head:] if row[0].item not in keep]
        self._window.splice(head, len(rows) - head)
        self._window.rows += stays
        summary = Part("thread_summary", text, "user", line=self._line) if text is not None else None
        if summary is not None:
            at = len(self._window.rows) if kept_prompts is not None else head
            self._window.splice(at, 0, [summary])
        told = {n: record[n] for n in ("tokensBefore", "tokensAfter", "compactedCount") if n in record}
        self._window.compacted(
            left, summary.block().ref if summary is not None else None, line=self._line,
            metadata={"native": told}, request=self._window.unbilled(count(told.get("tokensBefore"))),
        )  # fmt: skip
        self._message = 0
        self._messages = {row[0].item: 0 for row in stays}
        self._prompts = [item for item in self._prompts if item in keep]

    def _clear(self, _record: Json) -> None:
        rows = self._window.rows
        head = sum(1 for row in rows if row[1] in _FIXED)
        self._window.splice(head, len(rows) - head, cause="cleared")
        self._messages.clear()
        self._prompts.clear()
        self._message = 0

    @property
    def _line(self) -> int:
        return self._run.line.number
