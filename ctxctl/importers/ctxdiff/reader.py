"""Reads a project's runs and their calls as steps; ctxdiff's blocks become items.

Texts are as they were; everything else comes from the JSON that ctxdiff made of it.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from typing import Any, Final

import orjson

from ctxctl.ingest.build import VERSION_DIGITS, Json
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.database import read_database, value
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parts import Part, count, string
from ctxctl.ingest.run import Run
from ctxctl.listdiff import same_start
from ctxctl.providers.dialects import by_name
from ctxctl.providers.dialects.base import CallTitles
from ctxctl.providers.dialects.slots import structured
from ctxctl.providers.usage import usage_record
from ctxctl.trace.source import Source

SCHEMA: Final = 2
"""The newest schema of ctxdiff that this was held against."""
NAME: Final = "ctxdiff"
_RUNS: Final = "SELECT * FROM run ORDER BY rowid"
_CALLS: Final = "SELECT * FROM call WHERE run_id = ? ORDER BY seq"
_HELD: Final = "SELECT block_id FROM call_block WHERE call_id = ? ORDER BY position"
_BLOCK: Final = "SELECT * FROM block WHERE content_hash = ?"
_KEYS: Final = (("call", "run_id"), ("call_block", "call_id"), ("block", "content_hash"))
_COUNTS: Final = (
    ("prompt_tokens", "completion_tokens"),
    ("input_tokens", "output_tokens"),
    ("prompt_token_count", "candidates_token_count"),
    ("inputTokens", "outputTokens"),
)
"""The fields of input and output tokens of OpenAI, Anthropic (and OpenAI's Responses), Gemini and Bedrock."""
_PROVIDERS: Final = {"openai": "openai", "anthropic": "anthropic", "gemini": "google", "bedrock": "aws"}
_LEAVE_OUT: Final = ("anthropic", "bedrock")
"""Providers whose count of input leaves out what was read from the cache or written to it."""
_ROOM: Final = 16 << 20
"""Characters that the blocks of one call may hold, whatever the size of the database."""
_TIMES: Final = 4
"""Characters more for each of its bytes: a block that a call names several times is written once."""
_CACHED: Final = ("cache_control", "cachePoint")


def events(source: Source, report: Report) -> Iterator[Json]:
    """The events of a database."""
    room = _ROOM + _TIMES * source.size
    return read_database(
        Run(NAME, report), source, lambda run, database: _Reader(run, database, room).runs(), keys=_KEYS
    )


class _Thread:
    """The conversation of one agent in one run."""

    def __init__(self, window: Conversation) -> None:
        self.window = window
        self.names = CallTitles()
        self.held: list[str] = []
        """The digests of the blocks of its last call."""


class _Reader:
    def __init__(self, run: Run, database: sqlite3.Connection, room: int) -> None:
        self._run = run
        self._room = room
        self._database = database
        self._unlike = 0
        """The number of blocks whose text is not the one that was sent."""
        self._missing = 0
        self._blocks: dict[str, tuple[Json, bool]] = {}
        """By digest, a block, and whether its text is another one: calls name one block again and again."""
        self._marked: dict[str, bool] = {}
        """By digest, whether a block marks the end of what is to be cached."""

    def runs(self) -> Iterator[Json]:
        """Yield one run after the other; each is a session."""
        for row in self._database.execute(_RUNS).fetchall():
            yield from self._session(dict(row))
        if self._unlike:
            message = (
                f"{self._unlike} blocks whose text is not the one that ctxdiff took the digest of: "
                "redacted before they were written"
            )
            self._run.problem("redacted-blocks", message)
        if self._missing:
            self._run.problem("missing-block", f"{self._missing} blocks of calls are not in the database")

    def _session(self, row: Json) -> Iterator[Json]:
        run, native = self._run, string(row.get("id"))
        run.session = native
        run.make.at(string(row.get("started_at")))
        version, schema = string(row.get("ctxdiff_version")), row.get("schema_version")
        run.make.by(version)
        if isinstance(schema, int) and schema > SCHEMA:
            run.problem(
                "newer-version", f"schema {schema} of ctxdiff is newer than {SCHEMA}, the newest known"
            )
        run.opened(session=native, project=string(row.get("project")), version=version)
        threads: dict[str | None, _Thread] = {}
        for call in self._database.execute(_CALLS, (row.get("id"),)).fetchall():
            record = dict(call)
            agent = string(record.get("agent"))
            if agent not in threads:
                threads[agent] = _Thread(run.thread(agent))
            self._call(record, threads[agent])
            yield from run.drain()
        yield from run.end_session()

    def _call(self, call: Json, thread: _Thread) -> None:
        window = thread.window
        held = [str(one[0]) for one in self._database.execute(_HELD, (call.get("id"),))]
        shared = same_start(held, thread.held)
        blocks = self._named_blocks(held[shared:])
        held = held[: shared + len(blocks)]
        window.replace([part(block, thread.names) for block in blocks], at=shared)
        thread.held = held
        last = blocks[-1] if blocks else None
        if window.turn is None or (last is not None and is_prompt(last)):
            window.turn = f"turn-{call.get('seq')}"
        params = value(call.get("params"))
        asked: Json = params if isinstance(params, dict) else {}
        model = string(asked.get("model")) or string(asked.get("modelId"))
        step, error = string(call.get("step")), string(call.get("error"))
        marks: Json = {"label": step} if step is not None else {}
        window.request(model=model, native_id=string(call.get("id")), error=error, **marks)
        window.usage(self._bill(call, asked, model, held))

    def _named_blocks(self, digests: list[str]) -> list[Json]:
        """The blocks of a call: the first ones, where they hold more than there is room for."""
        found: list[Json] = []
        left = self._room
        for digest in digests:
            block = self._block(digest)
            left -= len(block["text"]) if isinstance(block.get("text"), str) else 0
            if left < 0:
                message = (
                    f"a call names blocks so often that they hold more than {self._room:,} characters:"
                    f" {len(digests) - len(found)} of them are left out"
                )
                self._run.problem("windows-too-large", message)
                break
            found.append(block)
        return found

    def _block(self, digest: str) -> Json:
        known = self._blocks.get(digest)
        if known is None:
            row = self._database.execute(_BLOCK, (digest,)).fetchone()
            if row is None:
                self._missing += 1
                return {
                    "role": "user",
                    "kind": "image",
                    "text": "block not in the database",
                    "content_hash": digest,
                }
            block = dict(row)
            known = self._blocks[digest] = block, block.get("kind") != "image" and _digest(block) != digest
        self._unlike += known[1]
        return known[0]

    def _bill(self, call: Json, asked: Json, model: str | None, held: list[str]) -> Json | None:
        usage = value(call.get("usage"))
        if not isinstance(usage, dict):
            return None
        label = string(call.get("provider")) or ""
        if (label in _LEAVE_OUT or _partial(usage)) and self._caches(asked, held):
            return None
        sent, answered = next((names for names in _COUNTS if usage.get(names[0]) is not None), ("", ""))
        return usage_record(
            input_tokens=usage.get(sent), output_tokens=usage.get(answered), model=model,
            provider=_PROVIDERS.get(label), native=usage,
        )  # fmt: skip

    def _caches(self, asked: Json, held: list[str]) -> bool:
        """Whether a call marks what is to be cached: then its bill has a part that ctxdiff does not keep."""
        if any(mark in asked for mark in _CACHED):
            return True
        return any(self._is_marked(digest) for digest in held)

    def _is_marked(self, digest: str) -> bool:
        known = self._marked.get(digest)
        if known is None:
            held = self._blocks.get(digest)
            text: Any = held[0].get("text") if held is not None else None
            known = isinstance(text, str) and any(f'"{mark}"' in text for mark in _CACHED)
            self._marked[digest] = known
        return known


def _partial(usage: Json) -> bool:
    return "inputTokens" in usage


def _digest(block: Json) -> str:
    """As ctxdiff's `models.content_hash` takes it."""
    parts = (str(block.get("role")), str(block.get("kind")), str(block.get("text")))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()


_KINDS: Final = {
    "system": "system_prompt",
    "developer": "developer_instruction",
    "user": "user_message",
    "assistant": "assistant_message",
    "model": "assistant_message",
    "tool": "tool_result",
    "function": "tool_result",
}
_ANTHROPIC: Final = (
    "tool_use",
    "tool_result",
    "thinking",
    "redacted_thinking",
    "document",
    "server_tool_use",
)
_ITEMS: Final = (
    "function_call",
    "function_call_output",
    "reasoning",
    "custom_tool_call",
    "custom_tool_call_output",
)
_RESULTS: Final = frozenset({"functionResponse", "function_response", "toolResult"})
_GEMINI: Final = ("functionCall", "function_call", "functionResponse", "function_response", "executableCode")


def part(block: Json, names: CallTitles) -> Part:
    """Make an item of a block; `names` has the names of the thread's tool calls so far."""
    role, text = string(block.get("role")) or "user", block.get("text")
    text = text if isinstance(text, str) else ""
    kind = block.get("kind")
    digest = string(block.get("content_hash"))
    if kind == "image":
        return Part(
            "image", None, _role(role), title=text, version=(digest or "")[:VERSION_DIGITS] or None,
            estimate=count(block.get("token_count")) or None, native={"type": "image"},
        )  # fmt: skip
    value = _loaded(text) if kind in ("tool_schema", "content_part") else None
    if kind == "tool_schema":
        return _tool(text, value)
    found = _piece(role, value, names) if isinstance(value, dict) else None
    return found if found is not None else Part(_KINDS.get(role, "user_message"), text, _role(role))


def is_prompt(block: Json) -> bool:
    """Whether a block at the end of a request is the user's own."""
    if block.get("role") != "user":
        return False
    value = _loaded(block.get("text")) if block.get("kind") == "content_part" else None
    if not isinstance(value, dict):
        return True
    return value.get("type") != "tool_result" and _RESULTS.isdisjoint(value)


def _tool(text: str, value: Any) -> Part:
    holder = value if isinstance(value, dict) else {}
    inner = holder.get("function")
    name = string((inner if isinstance(inner, dict) else holder).get("name"))
    key = f"tool:{name}" if name is not None else None
    return Part("tool_definition", text, "system", key=key, title=name)


def _piece(role: str, value: Json, names: CallTitles) -> Part | None:
    """One part of a message, read by the dialect that has such parts; None where no dialect has."""
    kind = value.get("type")
    made: list[Part] = []
    if kind in _ANTHROPIC:
        made = by_name("anthropic").message({"role": role, "content": [value]}, 1, names=names)
    elif kind in _ITEMS:
        made = by_name("openai-responses").message(value, 1, names=names)
    elif isinstance(value.get("function"), dict):
        made = by_name("openai-chat").message({"role": "assistant", "tool_calls": [value]}, 1, names=names)
    elif set(value) == {"name", "arguments"}:
        made = by_name("openai-chat").message({"role": "assistant", "function_call": value}, 1, names=names)
    elif any(isinstance(value.get(name), dict) for name in _GEMINI):
        made = by_name("gemini").message({"role": role, "parts": [value]}, 1, names=names)
    elif "toolUse" in value or "toolResult" in value:
        return _converse(value, names)
    elif isinstance(value.get("text"), str):
        return Part(_KINDS.get(role, "user_message"), value["text"], _role(role))
    if len(made) != 1:
        return structured("custom", value, _role(role), title=string(kind))
    made[0].wire = ""
    return made[0]


def _converse(value: Json, names: CallTitles) -> Part | None:
    """A call or a result of Bedrock's Converse."""
    use, result = value.get("toolUse"), value.get("toolResult")
    if isinstance(use, dict):
        key, name = string(use.get("toolUseId")), string(use.get("name")) or "tool"
        title = names.call(key, name, use.get("input"))
        return structured("tool_call", use.get("input") or {}, "assistant", name=name, key=key, title=title)
    if isinstance(result, dict):
        key = string(result.get("toolUseId"))
        own = f"{key}/result" if key is not None else None
        return structured("tool_result", result.get("content"), "tool", key=own, title=names.result(key))
    return None


def _role(role: str) -> str:
    return {"model": "assistant", "developer": "system", "function": "tool"}.get(role, role)


def _loaded(text: Any) -> Any:
    if not isinstance(text, str) or text[:1] not in ("{", "["):
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
