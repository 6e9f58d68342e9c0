"""Tells Amplifier's files from others by their first bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

_BOM: Final = b"\xef\xbb\xbf"
_LINES: Final = 40
_SURE: Final = 97
_LIKELY: Final = 85
_POSSIBLE: Final = 65
_SCHEMA: Final = re.compile(rb'"schema"\s*:\s*\{\s*"name"\s*:\s*"amplifier\.log"')
_NAMES: Final = frozenset(
    {
        "session:start", "session:end", "session:fork", "session:resume", "session:config", "prompt:submit",
        "prompt:complete", "provider:request", "provider:response", "provider:error", "provider:retry",
        "llm:request", "llm:response", "llm:request:raw", "llm:response:raw", "content_block:start",
        "content_block:end", "tool:pre", "tool:post", "tool:error", "context:compaction", "context:budget",
        "context:pre_compact", "context:post_compact", "context:include", "mentions:resolved",
        "artifact:write",
        "execution:start", "execution:end", "orchestrator:complete", "thinking:final", "thinking:delta",
        "context:tool_result_ingress_truncated", "cleanup:store_begin", "cleanup:store_end",
    }
)  # fmt: skip
KNOWN: Final = frozenset(
    {
        *_NAMES, "context:clear", "context:cleared", "orchestrator:steering_injected", "llm:request:debug",
        "llm:response:debug", "cleanup:render_begin", "cleanup:render_end", "cleanup:finally_begin",
        "cleanup:finally_end", "user:notification", "policy:violation", "approval:required",
        "approval:granted", "approval:denied", "artifact:read", "plan:start", "plan:end",
        "content_block:delta",
    }
)  # fmt: skip
"""The events that are known: those of amplifier-core, and those that modules of 2026 were seen to emit."""
_ROW: Final = frozenset(
    {"role", "content", "metadata", "tool_calls", "name", "tool_call_id", "timestamp", "thinking_block"}
)
_CARD: Final = 64 * 1024
_OF_CARDS: Final = frozenset({"session_id", "bundle", "turn_count"})
"""Fields of the session's own `metadata.json`."""
_ROLES: Final = ("user", "assistant", "tool", "system", "developer")


def log_score(head: bytes) -> int:
    """How sure the first bytes are those of an event log: 0 to 100."""
    if _SCHEMA.search(head) is not None:
        return _SURE
    scores = [_event(value) for value in _objects(head)]
    return max(scores, default=0)


def _event(value: dict[str, Any]) -> int:
    name = value.get("event", value.get("type"))
    if not isinstance(name, str) or name not in _NAMES or not isinstance(value.get("data"), dict):
        return 0
    named = "session_id" in value or "session_id" in value["data"]
    return _LIKELY if named and ("ts" in value or "timestamp" in value) else 0


def metadata_score(head: bytes) -> int:
    """How sure a document is the `metadata.json` of a session: who and when, and nothing that a model saw."""
    body = head.removeprefix(_BOM).strip()
    try:
        value = orjson.loads(body) if body.startswith(b"{") and len(body) < _CARD else None
    except orjson.JSONDecodeError:
        return 0
    if not isinstance(value, dict) or "session_id" not in value:
        return 0
    second = value.get("format") == "context-intelligence"
    return _LIKELY if second or set(value) >= _OF_CARDS else 0


def transcript_score(head: bytes) -> int:
    """How sure the first bytes are those of a transcript, or of the messages of context-persistent."""
    rows = list(_objects(head))
    if not rows or not all(
        set(row) <= _ROW and row.get("role") in _ROLES and "content" in row for row in rows
    ):
        return 0
    if any(_ours(row) for row in rows):
        return _LIKELY
    # Messages with a time of their own are written by many programs.
    return _POSSIBLE if all(isinstance(row.get("metadata"), dict) for row in rows) else 0


def _ours(row: dict[str, Any]) -> bool:
    """Marks that no other runtime's messages have: calls with `tool`, blocks with `visibility`."""
    calls, content, meta = row.get("tool_calls"), row.get("content"), row.get("metadata")
    if isinstance(calls, list) and any(
        isinstance(c, dict) and "tool" in c and "arguments" in c for c in calls
    ):
        return True
    if isinstance(content, list) and any(isinstance(b, dict) and "visibility" in b for b in content):
        return True
    return isinstance(meta, dict) and isinstance(meta.get("timestamp"), str)


def _objects(head: bytes) -> Iterator[dict[str, Any]]:
    lines = head.removeprefix(_BOM).split(b"\n")
    for line in lines[:_LINES]:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict):
            yield value
