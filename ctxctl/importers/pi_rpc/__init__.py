"""What pi prints of a run: ``pi --mode json`` and ``pi --mode rpc``, one event a line.

Also as the agentv test runner keeps it: whole in `target-execution.json` and `result.json`, line by line in
`transcript-raw.jsonl`.
"""

from __future__ import annotations

from typing import Final

from ctxctl.ingest.about import About, HeldAgainst, absent, derived, native
from ctxctl.ingest.declaration import Format

_EVENTS: Final = tuple(
    f'"type":"{name}"'.encode()
    for name in ("agent_start", "turn_start", "message_start", "message_update", "message_end", "turn_end")
)
_RUNNER: Final = (b'"agentv.raw_provider_log_line', b'"agentv.target_execution')
_TYPES: Final = frozenset({
    "", "agent_end", "agent_start", "auto_retry_end", "auto_retry_start", "compaction_end",
    "compaction_start", "extension_ui_request", "extension_ui_response", "message_end", "message_start",
    "message_update", "queue_update", "response", "session", "session_info_changed", "thinking_level_changed",
    "tool_execution_end", "tool_execution_start", "tool_execution_update", "turn_end", "turn_start",
})  # fmt: skip
"""Types of the events of pi 0.73 (`AgentEvent`, `AgentSessionEvent` and `RpcResponse` of its packages)."""

ABOUT: Final = About(
    reads="Streams of pi's own events, plain or as kept by the agentv test runner.",
    places=(
        "pi --mode json --print … > run.jsonl",
        "agentv results: sample-*/stdout.txt, transcript-raw.jsonl",
    ),
    turns="A turn is what a user's message sets off; each assistant's message is the answer to one request.",
    claims={
        "item_ids": native("tool call ids; messages have none"),
        "messages": native(),
        "reasoning": native("where the provider gives its text"),
        "reminders": native("commands that the person ran, in pi's wording"),
        "compaction": native("that there was one; not what it kept"),
        "summary": native(),
        "order": derived("the messages in the order in which they ended"),
        "requests": derived("one for each assistant's message"),
        "turns": native(),
        "threads": native(),
        "model": native(),
        "times": native(),
        "input_tokens": native(),
        "cached_tokens": native(),
        "output_tokens": native(),
        "system_prompt": absent(),
        "tool_definitions": absent(),
        "limit": absent(),
    },
    limits=("After a compaction, what it kept beside the summary is not in the stream.",),
    held_against=HeldAgainst(client="pi session format", newest="3", records=_TYPES),
    origin="pi-mono: print-mode.ts, rpc-mode.ts, agent events; agentv 2026",
)


def detect(head: bytes) -> int:
    """How sure the beginning looks like pi's events, or like a runner's record of them."""
    if any(mark in head for mark in _RUNNER):
        return 90 if _is_pi(head) else 0
    found = {mark for mark in _EVENTS if mark in head.replace(b'": "', b'":"')}
    return 92 if len(found) >= 2 and head.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"{") else 0


def _is_pi(head: bytes) -> bool:
    marks = (b'"pi-cli', b"# Pi CLI stream log", b'\\"type\\":\\"agent_start\\"', b'"argv": [\n      "pi"')
    return any(mark in head for mark in marks)


FORMAT: Final = Format(
    name="pi-rpc",
    title="pi event stream",
    detect=detect,
    reader="ctxctl.importers.pi_rpc.reader:Stream",
    about=ABOUT,
)
