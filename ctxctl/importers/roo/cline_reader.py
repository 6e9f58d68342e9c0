"""Reads sessions of Cline's SDK: the whole history of messages in one document, and compactions beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

from ctxctl.importers.roo.parts import ENVIRONMENT, moment
from ctxctl.ingest import build
from ctxctl.ingest.build import Json
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.document import document
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parts import Part, count, mapping, string
from ctxctl.ingest.run import Run
from ctxctl.providers.dialects.anthropic import Anthropic
from ctxctl.providers.dialects.base import CallTitles
from ctxctl.providers.usage import usage_record
from ctxctl.trace.source import Source

_NAME: Final = "cline"
_DIALECT = Anthropic()
_TYPED: Final = re.compile(r'<user_input mode="([a-z]{1,20})">(.*)</user_input>\Z', re.DOTALL)
"""What the person typed, as the session keeps it: the model gets what is inside."""


def read(source: Source, report: Report) -> Iterator[Json]:
    """Read a session's messages, or those that a compaction left."""
    run = Run(_NAME, report)
    value = document(source, run.report)
    if isinstance(value, dict):
        _Session(run, value).read()
    yield from run.finish()


class _Session:
    def __init__(self, run: Run, head: Json) -> None:
        self._run = run
        self._head = head
        self._names = CallTitles()
        run.session = string(head.get("sessionId")) or string(head.get("session_id"))
        agent = string(head.get("agent"))
        self._window: Conversation = run.thread(None if agent in (None, "lead", "main") else agent)

    def read(self) -> None:
        """Read every message."""
        self._run.opened(session=self._run.session, updated_at=string(self._head.get("updated_at")))
        origin = self._head.get("origin")
        self._run.make.by(origin.get("version") if isinstance(origin, dict) else None)
        prompt = string(self._head.get("system_prompt"))
        if prompt is not None:
            # The person's and the workspace's rules are sent behind it, and are not stored.
            self._window.append(Part("system_prompt", prompt, "system", key="system", derived=True))
        messages = self._head.get("messages")
        for index, message in enumerate(messages if isinstance(messages, list) else []):
            if isinstance(message, dict) and message.get("role") in ("user", "assistant"):
                self._message(message, index)
            else:
                self._run.problem("unknown-record", "a message of neither user nor assistant; skipped")

    def _message(self, message: Json, index: int) -> None:
        self._run.make.at(moment(message.get("ts")))
        parts = self._cut(message, string(message.get("id")) or f"message-{index}")
        metadata = message.get("metadata")
        if isinstance(metadata, dict) and (
            "compaction" in str(metadata.get("kind")) or "tokensBefore" in metadata
        ):
            self._compaction(metadata, parts)
        elif message["role"] == "user":
            if any(part.kind == "user_message" for part in parts):
                self._window.turn = string(message.get("id")) or f"message-{index}"
            self._window.append(*parts)
        else:
            self._answer(message, parts)

    def _compaction(self, metadata: Json, parts: list[Part]) -> None:
        for part in parts:
            if part.kind in ("user_message", "assistant_message"):
                part.kind = "thread_summary"
        summary = next((part for part in parts if part.kind == "thread_summary"), None)
        before = count(metadata.get("tokensBefore"))
        told = {"native": {"tokensBefore": before}} if before else None
        kept = {row[0].item for row in self._window.rows if row[1] == "system_prompt"}
        head = self._window.rows[: len(kept)]
        self._window.splice(len(head), len(self._window.rows) - len(head), parts)
        self._window.compacted(
            [], summary.block().ref if summary is not None else None, metadata=told,
            request=self._window.unbilled(before),
        )  # fmt: skip

    def _answer(self, message: Json, parts: list[Part]) -> None:
        info = mapping(message.get("modelInfo"))
        model = string(info.get("id")) or string(info.get("modelId"))
        self._window.request(string(message.get("id")), model=model, derived=True)
        metrics = message.get("metrics")
        if isinstance(metrics, dict):
            self._window.usage(_bill(metrics, string(info.get("provider")), model))
        self._window.append(*parts)

    def _cut(self, message: Json, place: str) -> list[Part]:
        content = message.get("content")
        blocks = content if isinstance(content, list) else [content]
        made: list[Part] = []
        for block in blocks:
            if isinstance(block, dict) and block.get("type") == "file":
                made.append(_file(block))
            elif block is not None and block != "":
                one = {
                    "role": message["role"],
                    "content": block if isinstance(block, str) else [_as_sent(block)],
                }
                made += _DIALECT.message(one, 1, names=self._names)
        for at, part in enumerate(made):
            part.wire = ""
            typed = _TYPED.match(part.text) if part.kind == "user_message" and part.text is not None else None
            if typed is not None:
                part.reword(typed[2])
                part.derived, part.native = True, {**(part.native or {}), "mode": typed[1]}
            if part.native is not None and part.native.get("type") == ENVIRONMENT:
                part.source = part.title = ENVIRONMENT
            if not part.item and part.source is None:
                part.item = f"{place}/{at}"
        return made


def _as_sent(block: Any) -> Any:
    """A block as it goes to the model: a tool's result of records goes as their JSON."""
    content = block.get("content") if isinstance(block, dict) else None
    if not isinstance(content, list) or not content or block.get("type") != "tool_result":
        return block
    if any(not isinstance(one, dict) or "type" in one for one in content):
        return block
    try:
        return {**block, "content": orjson.dumps(content).decode("utf-8", "replace")}
    except TypeError:  # nested too deep
        return block


def _file(block: Json) -> Part:
    """A file that came with a message; its path is its identity."""
    path = string(block.get("path"))
    text = block.get("content")
    if isinstance(text, str):
        return Part("external_resource", text, "user", source=path, title=path)
    version = build.digest_of(build.canonical(block))[: build.VERSION_DIGITS]
    return Part("external_resource", None, "user", source=path, title=path, version=version)


def _bill(metrics: Json, provider: str | None, model: str | None) -> Json | None:
    """What an answer cost: `inputTokens` is the whole context, what the cache held included."""
    return usage_record(
        input_tokens=metrics.get("inputTokens"), output_tokens=metrics.get("outputTokens"),
        cached=metrics.get("cacheReadTokens"), cache_write=metrics.get("cacheWriteTokens"),
        provider=provider, model=model, native={"cost": metrics["cost"]} if "cost" in metrics else None,
    )  # fmt: skip
