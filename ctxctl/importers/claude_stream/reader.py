"""Reads the lines of a stream as steps, one for each id of the model's messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from ctxctl.importers.claude_code import blocks
from ctxctl.importers.claude_code.texts import META, TextReading
from ctxctl.importers.claude_stream.thread import OpenCompaction, StreamThread, of_entries, user_entries
from ctxctl.ingest.build import Json
from ctxctl.ingest.document import document
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parts import Part, count, shallow, string
from ctxctl.ingest.run import Run
from ctxctl.ingest.skim import text_of_head
from ctxctl.model import vocab
from ctxctl.providers.usage import stated_total
from ctxctl.trace.source import Source

NAME: Final = "claude-stream-json"
_SUMMARY: Final = TextReading("thread_summary", "compact-summary", False)
_SESSION: Final = re.compile(rb'"session_id"\s*:\s*"([0-9A-Za-z_-]{1,128})"')
_WINDOW: Final = re.compile(rb'"([^"\\\s]{1,128})"\s*:\s*\{[^{}]*"contextWindow"\s*:\s*(\d{1,12})')
_HEAD: Final = 64 * 1024
_TAIL: Final = 256 * 1024
_TOLD: Final = ("model", "claude_code_version", "cwd", "tools", "mcp_servers", "permissionMode")
_TASKS: Final = ("Task", "Agent")
_USAGE: Final = (
    ("input_tokens", "input_tokens"), ("cached", "cache_read_input_tokens"),
    ("cache_write", "cache_creation_input_tokens"), ("output_tokens", "output_tokens"),
)  # fmt: skip
_MODEL_USAGE: Final = (
    ("input_tokens", "inputTokens"), ("cached", "cacheReadInputTokens"),
    ("cache_write", "cacheCreationInputTokens"), ("output_tokens", "outputTokens"),
)  # fmt: skip
"""The names of a total's counts in a result's `usage`, and in its `modelUsage`."""


def read(source: Source, report: Report) -> Iterator[Json]:
    """The stream's events."""
    run = Run(NAME, report)
    stream = Stream(run)
    head = source.read(0, _HEAD)
    named = _SESSION.search(head)
    run.session = named.group(1).decode() if named is not None else None
    stream.look_ahead(source)
    for record in _records(source, run, head):
        stream.take(record)
        yield from run.drain()
    yield from stream.finish()


def _records(source: Source, run: Run, head: bytes) -> Iterator[Json]:
    if not text_of_head(head).startswith(b"["):
        yield from run.records(source)
        return
    found = document(source, run.report)
    for record in found if isinstance(found, list) else []:
        if isinstance(record, dict):
            yield record
        else:
            run.problem("not-a-record", "not a JSON object; skipped")


class Stream:
    """The messages of one or several runs.

    Args:
        run: The import.
        repeats: Prompts are told only where the stream repeats them; False where they are known as sent.
    """

    def __init__(self, run: Run, *, repeats: bool = True) -> None:
        self._run = run
        self._repeats = repeats
        self.windows: dict[str, int] = {}
        """The size of the context window in tokens, by model."""
        self._lanes: dict[tuple[str | None, str | None], StreamThread] = {}
        self._kinds: dict[str, str | None] = {}
        """By call, the type of the sub-agent that it began."""
        self._seen: dict[str, list[str | None]] = {}
        """The uuids of lines, and the versions of what a user line held beside results."""
        self._turns = 0
        self._turn_is_new = False
        """Whether the present turn has had no request yet."""
        self._turn: str | None = None
        self._error: str | None = None
        self._asked = False
        self._ended: set[str | None] = set()
        """The sessions that had the end of a run."""

    def look_ahead(self, source: Source) -> None:
        """Take over the sizes of the models' windows, which the stream tells only when a run is over."""
        tail = source.read(max(0, source.size - _TAIL), _TAIL)
        at = tail.rfind(b'"modelUsage"')
        for name, size in _WINDOW.findall(tail, at) if at >= 0 else ():
            self.windows[name.decode("utf-8", "replace")] = int(size)

    def take(self, value: Json) -> None:
        """Take the next line of the stream."""
        value = _unwrapped(value)
        run = self._run
        run.make.at(value.get("timestamp"))
        run.session = string(value.get("session_id")) or run.session
        kind = value.get("type")
        run.met(kind)
        if kind in ("assistant", "user") and isinstance(value.get("message"), dict):
            if kind == "assistant":
                self._assistant(value, value["message"])
            elif self._repeats or value.get("isReplay") is not True:
                self.user(value, value["message"])
        elif kind == "stream_event" and isinstance(value.get("event"), dict):
            self._answering(value).streamed(value["event"], run.line.number)
        elif kind == "system":
            self._system(value)
        elif kind == "result":
            self._result(value)

    def finish(self) -> Iterator[Json]:
        """End what the stream left open."""
        for lane in self._lanes.values():
            lane.close()
            lane.compact([])
        if not self._asked:
            reason = f"the run ended with: {self._error}" if self._error else "it holds no answer of a model"
            self._run.problem("no-model-calls", f"no request to a model in it: {reason}")
        yield from self._run.finish()

    def turn(self, uuid: str | None) -> None:
        """Begin a turn with a prompt or a run; what comes before its first request belongs to the same
        turn."""
        if self._turn_is_new and self._turn is not None:
            return
        self._turns += 1
        self._turn_is_new = True
        self._turn = uuid or f"turn-{self._turns}"

    def user(self, value: Json, message: Json) -> None:
        """Take a user message: results of calls, a prompt, or what Claude Code puts in."""
        run, lane = self._run, self._thread_of(value)
        line = run.line.number
        native = string(value.get("uuid"))
        before = self._seen.get(native) if native is not None else None
        uuid = self._unique_uuid(native)
        base = uuid or ""
        lane.flush()
        content = message.get("content")
        reading = META if value.get("isSynthetic") is True or value.get("isMeta") is True else None
        if lane.boundary is not None and not _has_results(content):
            _, others = user_entries(content, base, line, {}, _SUMMARY)
            lane.compact(of_entries(others, keyed=uuid is not None))
            return
        results, others = user_entries(content, base, line, lane.titles, reading)
        versions = [entry.version for entry in others]
        if others and versions == before:
            others = []
        if native is not None and others:
            self._seen[native] = versions
        prompt = reading is None and not results and any(e.kind == "user_message" for e in others)
        if prompt and value.get("parent_tool_use_id") is None:
            self.turn(uuid)
        lane.told(results + others, uuid)

    def _unique_uuid(self, uuid: str | None) -> str | None:
        """The id to use for a line; where it was used before, another one, and a problem."""
        if uuid is None or uuid not in self._seen:
            if uuid is not None:
                self._seen[uuid] = []
            return uuid
        message = f"uuid {uuid} was used before; what the line repeats is left out"
        self._run.problem("duplicate-uuid", message)
        return f"{uuid}~{self._run.line.number}"

    def _assistant(self, value: Json, message: Json) -> None:
        if value.get("is_api_error_message") is True or value.get("isApiErrorMessage") is True:
            # This is shown to the person; the next request leaves it out.
            self._error = _said(message) or string(value.get("error"))
            return
        base, line = self._unique_uuid(string(value.get("uuid"))), self._run.line.number
        uuids = value.get("supersedes_uuids")
        if isinstance(uuids, list):
            self._thread_of(value).retract(uuids)
        if message.get("model") == "<synthetic>":
            self._thread_of(value).local(message, base, line)
            return
        self._answering(value).message(message, base, line, string(value.get("request_id")))
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("name") in _TASKS and isinstance(block.get("id"), str):
                given = block.get("input")
                kind = given.get("subagent_type") if isinstance(given, dict) else None
                self._kinds[block["id"]] = string(kind)

    def _answering(self, value: Json) -> StreamThread:
        """The thread of an answer, in the turn that it belongs to."""
        if self._turn is None:
            self.turn(None)
        lane = self._thread_of(value)
        lane.conversation.turn = self._turn
        self._asked, self._turn_is_new = True, False
        return lane

    def _system(self, value: Json) -> None:
        subtype = value.get("subtype")
        if subtype == "init":
            self._run.make.by(value.get("claude_code_version"))
            told = {name: shallow(value[name]) for name in _TOLD if value.get(name) is not None}
            self._run.opened(**told)
            self.turn(string(value.get("uuid")))
        elif subtype == "compact_boundary":
            lane = self._thread_of(value)
            lane.close()
            meta = value.get("compact_metadata")
            uuid = string(value.get("uuid"))
            lane.boundary = OpenCompaction(
                uuid, meta if isinstance(meta, dict) else {}, self._run.line.number
            )
        uuids = value.get("retracted_message_uuids")
        if isinstance(uuids, list):
            self._thread_of(value).retract(uuids)

    def _result(self, value: Json) -> None:
        """Take the end of a run, with its totals."""
        usage, models = value.get("usage"), value.get("modelUsage")
        usage = usage if isinstance(usage, dict) else {}
        models = models if isinstance(models, dict) else {}
        for (_, call), lane in self._lanes.items():
            lane.close(usage or None if call is None else None)
        for name, held in models.items():
            size = count(held.get("contextWindow")) if isinstance(held, dict) else None
            if size:
                self.windows[name] = size
        self._totals(value, usage, models)
        if value.get("is_error") is True:
            self._error = self._error or string(value.get("result")) or string(value.get("subtype"))
        self._turn, self._turn_is_new = None, False

    def _totals(self, value: Json, usage: Json, models: Json) -> None:
        """Report the totals of a run's end: `usage` is the turn's; the cost and `modelUsage` are the
        process's, so at the
        first end they are the turn's too."""
        session, usd = self._run.session, value.get("total_cost_usd")
        by_model = {
            name: _total("session", held, _MODEL_USAGE, usd=held.get("costUSD"), model=name)
            for name, held in models.items()
            if isinstance(held, dict)
        }
        turn = _total("turn", usage, _USAGE)
        if session in self._ended:
            totals = [turn, stated_total("session", usd=usd, by_model=by_model.values())]
        elif any(by_model.values()):
            totals = [stated_total("turn", usd=usd, by_model=by_model.values())]
        else:
            totals = [_total("turn", usage, _USAGE, usd=usd)]
        if not any(totals):
            return
        self._ended.add(session)
        if self._turn is None or self._turn_is_new:  # the answers were not logged
            counts = _counts(turn)
            alike = [name for name, one in by_model.items() if len(by_model) == 1 or _counts(one) == counts]
            lane, model = self._answering(value), next(iter(alike), None)
            conversation = lane.conversation
            lane.tell_window(model, self._run.line.number)
            conversation.request(line=self._run.line.number, model=model, derived=True)
            if text := string(value.get("result")):
                conversation.append(Part("assistant_message", text, "assistant", line=self._run.line.number))
        self._thread_of({}).conversation.stated(*totals, line=self._run.line.number)

    def _thread_of(self, value: Json) -> StreamThread:
        """The main thread, or the thread of the sub-agent that a call began."""
        call = string(value.get("parent_tool_use_id"))
        key = self._run.session, call
        lane = self._lanes.get(key)
        if lane is None:
            if call is None:
                conversation = self._run.thread(None)
            else:
                origin = {"parent_thread": vocab.MAIN_THREAD, "parent_tool_call": call}
                kind = self._kinds.get(call)
                if kind is not None:
                    origin["agent_type"] = kind
                conversation = self._run.thread(f"agent-{call}", origin=origin)
            lane = self._lanes[key] = StreamThread(conversation, self.windows)
        return lane


def _unwrapped(value: Json) -> Json:
    """A line whose fields stand under `message`, as it was printed."""
    inner = value.get("message")
    if not isinstance(inner, dict) or "subtype" in value or value.get("type") in ("assistant", "user"):
        return value
    return {**inner, **{name: field for name, field in value.items() if name != "message"}}


def _total(scope: str, held: Json, keys: Iterable[tuple[str, str]], **more: Any) -> Json | None:
    counts: dict[str, Any] = {name: held.get(key) for name, key in keys}
    return stated_total(scope, excludes_cache=True, **counts, **more)


def _counts(total: Json | None) -> list[Any]:
    return [(total or {}).get(name) for name in ("input_tokens", "cached_tokens", "output_tokens")]


def _has_results(content: Any) -> bool:
    return isinstance(content, list) and any(
        isinstance(block, dict) and block.get("type") == "tool_result" for block in content
    )


def _said(message: Json) -> str | None:
    texts = [b.get("text") for b in blocks.blocks_of(message.get("content")) if isinstance(b, dict)]
    return string(next((text for text in texts if isinstance(text, str)), None))
