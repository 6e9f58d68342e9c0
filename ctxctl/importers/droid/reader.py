"""Reads Factory Droid's sessions: Anthropic messages in an envelope.

A session's bills stand with its messages, or as a sum in the settings beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import orjson

from ctxctl.errors import CtxctlError
from ctxctl.ingest.about import IN_USAGE
from ctxctl.ingest.build import Json
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.lines import Line, Report
from ctxctl.ingest.parts import Part, count, string
from ctxctl.ingest.run import Run
from ctxctl.providers.dialects.anthropic import Anthropic
from ctxctl.providers.dialects.base import CallTitles
from ctxctl.providers.usage import total_of, usage_record
from ctxctl.trace.source import Source, open_source

_DIALECT = Anthropic()


class Droid:
    """One session, message by message."""

    def __init__(self, name: str, report: Report) -> None:
        self._run = Run(name, report)
        self._window: Conversation | None = None
        self._names = CallTitles()
        self._ends: dict[str, int] = {}
        """By message id, the size of the window after it."""
        self._settings = Settings()
        self._billed = self._compacted = False
        self._model: str | None = None
        """The model of the last request."""

    def events(self, source: Source) -> Iterator[Json]:
        """Yield the session's steps as its lines are read."""
        self._settings = settings_of(source)
        for record in self._run.records(source):
            self._run.make.at(record.get("timestamp"))
            kind = record.get("type")
            if kind == "session_start":
                self._start(record)
            elif kind == "message" and isinstance(record.get("message"), dict):
                self._message(self._thread(), record, record["message"])
            elif kind == "compaction_state":
                self._compaction(self._thread(), record)
            yield from self._run.drain()
        self._bill_sum()
        yield from self._run.finish()

    def _thread(self) -> Conversation:
        if self._window is None:
            self._window = self._run.thread()
        return self._window

    def _start(self, record: Json) -> None:
        if self._window is not None:
            return
        self._run.session = string(record.get("id")) or string(record.get("sessionId"))
        self._run.understood.version(record.get("version"), self._run.line.number)
        self._run.opened(session=self._run.session, cwd=string(record.get("cwd")))

    def _message(self, window: Conversation, record: Json, message: Json) -> None:
        native = string(record.get("id"))
        if native is not None and native in self._ends:
            return
        line = self._run.line.number
        one = {"role": message.get("role"), "content": message.get("content")}
        parts = _DIALECT.message(one, 1, line, self._names)
        for index, part in enumerate(parts):
            part.wire = ""
            if not part.item and part.source is None and native is not None:
                part.item = native if index == 0 else f"{native}/{index}"
        if record.get("visibility") == "llm_only":
            for part in parts:
                part.kind = "policy_note" if part.kind == "user_message" else part.kind
        if record.get("visibility") == "user_only":
            return
        if message.get("role") == "assistant":
            model = self._model = string(message.get("model")) or self._settings.model
            window.request(native, line=line, model=model, derived=True)
            billed = bill_of(record, message, model)
            self._billed = self._billed or billed is not None
            window.usage(billed, line=line)
        elif any(part.kind == "user_message" for part in parts):
            window.turn = native or window.turn
        window.append(*parts)
        if native is not None:
            self._ends[native] = len(window.rows)

    def _compaction(self, window: Conversation, record: Json) -> None:
        """Put a summary in the place of what came up to the anchor; what came after it stays."""
        text = _summary(record)
        anchor = record.get("anchorMessage")
        end = self._ends.get(str(anchor.get("id"))) if isinstance(anchor, dict) else None
        gone = window.rows[: len(window.rows) if end is None else end]
        summary = Part("thread_summary", text, "user", line=self._run.line.number) if text else None
        told = {n: v for n in ("summaryTokens", "removedCount") if (v := count(record.get(n))) is not None}
        notes = ["Which messages stayed is not recorded."] if end is None else None
        refs = [row[0].ref for row in gone]
        window.splice(0, len(gone), [summary] if summary is not None else [])
        window.compacted(
            refs, summary.block().ref if summary is not None else None, line=self._run.line.number,
            compaction_id=string(record.get("id")), metadata={"native": told}, loss_notes=notes,
            request=window.unbilled(),
        )  # fmt: skip
        self._ends = {}
        self._compacted = True

    def _bill_sum(self) -> None:
        """Bill the session's sum to its only request; of several requests, it belongs to none.

        A compaction is a request too, of which the session holds the summary only.
        """
        window, told = self._window, self._settings
        if window is None or not window.steps or told.usage is None or self._billed:
            return
        whole = bill(told.usage, self._model)
        if window.steps == 1 and not self._compacted:
            window.usage(whole)
            return
        window.stated(total_of("session", whole))
        message = (
            "the bill in the settings beside the session is the sum of its requests: given to none of them"
        )
        self._run.problem("summed-usage", message, Line(0, 0, b""))
        self._run.understood.explained.update(IN_USAGE)


def _summary(record: Json) -> str | None:
    text: Any = record.get("summaryText")
    if text is None and isinstance(record.get("summary"), dict):
        text = record["summary"].get("body")
    return string(text)


_MOST: Final = 1 << 20
"""The most bytes of settings that are read."""


class Settings(NamedTuple):
    """What `<session>.settings.json` tells of the session."""

    name: str = ""
    """The file's name; empty where there is none."""
    model: str | None = None
    usage: Json | None = None
    """The tokens of the session, summed."""


def settings_of(source: Source) -> Settings:
    """The settings beside a session's file; nothing where that is a stream, a copy, or stands alone."""
    if source.path is None or source.spooled or source.path.suffix != ".jsonl":
        return Settings()
    beside = source.path.with_suffix(".settings.json")
    try:
        with open_source(beside) as file:
            told = orjson.loads(file.read(0, _MOST)) if file.size <= _MOST else None
    except (CtxctlError, OSError, orjson.JSONDecodeError):
        return Settings()
    if not isinstance(told, dict):
        return Settings()
    usage = told.get("tokenUsage")
    usage = usage if isinstance(usage, dict) and any(count(value) for value in usage.values()) else None
    return Settings(beside.name, string(told.get("model")), usage)


def bill(usage: Any, model: str | None) -> Json | None:
    """The record of a bill in Anthropic's names or in Droid's; both count the input without the cache.

    Droid does not tell whether `thinkingTokens` are among its `outputTokens`: they are kept as they stand.
    """
    if not isinstance(usage, dict):
        return None
    if "inputTokens" not in usage:
        return _DIALECT.usage({"usage": usage}, model)
    return usage_record(
        input_tokens=usage["inputTokens"],
        output_tokens=usage.get("outputTokens"),
        cached=usage.get("cacheReadTokens"),
        cache_write=usage.get("cacheCreationTokens"),
        excludes_cache=True,
        model=model,
        native=usage,
    )


def bill_of(record: Json, message: Json, model: str | None) -> Json | None:
    """The bill that stands with an assistant's message."""
    told = (message.get("usage"), record.get("usage"), record.get("tokenUsage"))
    return next((made for one in told if (made := bill(one, model)) is not None), None)
