"""What ``claude -p --output-format stream-json`` prints: Claude Code's messages as they come."""

from __future__ import annotations

import re
from typing import Any, Final

from ctxctl.ingest.about import About, HeldAgainst, absent, derived, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import text_of_head, values_of_head

_SURE: Final = 94
_LIKELY: Final = 70
_FOREIGN: Final = ("sessionId", "parentUuid", "direction", "event_type", "payload")
_INIT_KEYS: Final = ("tools", "mcp_servers", "claude_code_version")
_RESULT_KEYS: Final = ("total_cost_usd", "num_turns", "modelUsage")
_PIECES: Final = ("message_", "content_block_")
_TORN: Final = re.compile(
    rb'"type"\s*:\s*"(?:system|user|assistant)".*"parent_tool_use_id"\s*:|"subtype"\s*:\s*"init".*"mcp_servers"',
    re.DOTALL,
)

HELD: Final = HeldAgainst(
    client="Claude Code",
    newest="2.1.222",
    oldest="2.0.75",
    records=frozenset(
        {
            "system", "assistant", "user", "result", "stream_event", "rate_limit_event", "tool_progress",
            "tool_use_summary", "auth_status", "prompt_suggestion", "keep_alive", "control_request",
            "control_response", "control_cancel_request", "streamlined_text",
            "streamlined_tool_use_summary",
        }
    ),
    key="",
)  # fmt: skip
"""The types of lines that a run prints, and of those that the SDK exchanges with it."""


ABOUT: Final = About(
    reads=(
        "The messages that a run of Claude Code prints as JSON lines (or, with --output-format json"
        " --verbose, as one array; without --verbose, its result alone), with or without partial messages;"
        " also logs that moved a line's fields under `message`."
    ),
    places=("claude -p --output-format stream-json --verbose … > run.jsonl",),
    turns=(
        "A turn is a run, from its `init` to its `result`, or what a prompt sets off that the stream"
        " repeats (--replay-user-messages); a step is one message id."
    ),
    claims={
        "item_ids": native("uuid of the line, id of the tool call; of partial messages derived"),
        "system_prompt": absent(),
        "tool_definitions": absent("the tools' names only"),
        "messages": native("but the prompt itself only where the stream repeats it"),
        "reasoning": native(),
        "reminders": absent("what Claude Code adds to a request is not in its stream"),
        "compaction": native("compact_boundary; what left is derived"),
        "summary": native(),
        "order": derived("as the lines come; a message's blocks stand before its calls' results"),
        "requests": native("message id"),
        "turns": native("runs; prompts where the stream repeats them"),
        "threads": native("sub-agents by the call that began them"),
        "model": native(),
        "times": native("of messages, in newer versions"),
        "input_tokens": native("of each message; a run's totals are separate"),
        "cached_tokens": native(),
        "output_tokens": native(
            "where the answer's end is told: a line with a stop reason, partial messages, or the result"
            " for the run's last call"
        ),
        "limit": native("the model's context window, from the result at the end of the run"),
    },
    limits=(
        "the totals of a `result` also hold calls without a line in the stream (an answer without"
        " content, a compaction); its modelUsage also holds calls beside the conversation",
        "outputs of hooks are not counted as context: whether they reached the model is not told",
        "lines that moved their fields under `message` lost which sub-agent they are of",
    ),
    held_against=HELD,
    origin="claude 2.0.75 to 2.1.222",
)


def detect(head: bytes) -> int:
    """How sure the head looks like such a stream's."""
    best = 0
    for value in values_of_head(head):
        for one in value[:5] if isinstance(value, list) else (value,):
            best = max(best, _score(one) if isinstance(one, dict) else 0)
        if best == _SURE:
            return best
    torn = text_of_head(head)
    if best == 0 and torn[:1] in (b"{", b"[") and _TORN.search(torn[:8192]):
        return 0 if any(f'"{key}"'.encode() in torn[:8192] for key in _FOREIGN) else _SURE
    return best


def _score(value: dict[str, Any]) -> int:
    """How sure one line is of such a stream."""
    kind = value.get("type")
    if not isinstance(kind, str) or any(key in value for key in _FOREIGN):
        return 0
    inner = value.get("message")
    inner = inner if isinstance(inner, dict) else {}
    if kind == "stream_event":
        event = value.get("event")
        piece = event.get("type") if isinstance(event, dict) else None
        return _SURE if isinstance(piece, str) and piece.startswith(_PIECES) else 0
    if kind in ("assistant", "user"):
        if inner.get("role") != kind:
            return 0
        if "parent_tool_use_id" in value and "session_id" in value:
            return _SURE
        own = inner.get("type") == "message" and str(inner.get("id")).startswith("msg_")
        return _LIKELY if own and "uuid" not in value else 0
    holder = value if "subtype" in value else inner
    if kind == "system":
        named = holder.get("subtype") == "init" and "session_id" in holder
        return _SURE if named and any(key in holder for key in _INIT_KEYS) else 0
    told = kind == "result" and "subtype" in holder and "session_id" in holder
    return _SURE if told and any(key in holder for key in _RESULT_KEYS) else 0


FORMAT: Final = Format(
    name="claude-stream-json",
    title="Claude Code stream-json",
    detect=detect,
    reader="ctxctl.importers.claude_stream.reader:read",
    about=ABOUT,
)
