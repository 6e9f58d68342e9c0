"""pi and OpenClaw sessions: ``~/.pi/agent/sessions/…/*.jsonl``, ``~/.openclaw/agents/…/sessions/*.jsonl``.

JSON Lines: a header, then entries.  Version 1 is linear; since version 2 every entry has an `id` and a
`parentId`, and a session that goes back and on from there has branches.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ctxctl.ingest.about import About, HeldAgainst, absent, derived, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import first_lines, layout_of_head

_LINES: Final = 40
TRAJECTORY = re.compile(rb'"traceSchema":\s?"openclaw-trajectory"')
_ROLES: Final = ("toolResult", "bashExecution")
_ENTRIES: Final[dict[str, tuple[str, ...]]] = {
    "compaction": ("summary", "tokensBefore"),
    "branch_summary": ("fromId", "summary"),
    "model_change": ("provider", "modelId"),
    "thinking_level_change": ("thinkingLevel",),
    "custom_message": ("customType", "content"),
}

HELD_AGAINST: Final = HeldAgainst(
    client="pi's session file, version",
    newest="3",
    oldest="1",
    records=frozenset(
        {
            "",
            "session",
            "message",
            "compaction",
            "branch_summary",
            "custom_message",
            "context_edit",
            "leaf",
            # Settings, names and bills, of which the model gets nothing.
            "model_change",
            "thinking_level_change",
            "session_info",
            "label",
            "custom",
            "usage",
            # OpenClaw's trajectories.
            "session.started",
            "trace.metadata",
            "trace.artifacts",
            "context.compiled",
            "prompt.submitted",
            "prompt.skipped",
            "model.completed",
            "session.ended",
        }
    ),
)
"""The types of entries; roles of messages are reported by themselves."""

ABOUT: Final = About(
    reads="Session files of pi (versions 1 to 3) and of OpenClaw, which keeps its own in the same shape; "
    "OpenClaw's trajectories.",
    places=(
        "~/.pi/agent/sessions/--<folder>--/*.jsonl",
        "~/.openclaw/agents/<agent>/sessions/*.jsonl, *.trajectory.jsonl",
    ),
    turns="A turn is what a user's message sets off; each assistant's message is the answer to one request.",
    claims={
        "item_ids": native("entry and tool call ids; version 1 has only the latter"),
        "messages": native(),
        "reasoning": native("where the provider gives its text"),
        "reminders": native("texts that extensions inject; commands that the person ran, in pi's wording"),
        "compaction": native(),
        "summary": native("its text; the sentence that pi wraps around it is left out"),
        "order": derived("history as pi builds it from the entries on the path to the request"),
        "requests": derived("one for each assistant's message"),
        "turns": native(),
        "threads": native("branches of one session are changes of its window"),
        "model": native(),
        "times": native(),
        "input_tokens": native(),
        "cached_tokens": native(),
        "output_tokens": native(),
        "system_prompt": native("pi since 0.87, by sections; OpenClaw's trajectories"),
        "tool_definitions": native(
            "pi since 0.87, with the schema that the model is held to rebuilt from the log's; "
            "OpenClaw's trajectories"
        ),
        "limit": absent(),
    },
    limits=(
        "The requests that write summaries, and those that keep a cache warm, are not in the file.",
        "Which models take later changes of the prompt in their place, and which are held to the tools' "
        "schemas, is known for pi's own list of models (0.87.1); settings of the person's own may differ.",
        "A prompt that an extension sends in the place of pi's own is not in the file.",
        "Answers that failed or were broken off are left out of later requests, as pi leaves them out today; "
        "versions of 2025 may have sent what there was of them.",
        "OpenClaw repeats a run's outcome with the bill of all its requests (`api: cli`): not counted twice.",
        "Sub-agents have sessions of their own.",
        "A trajectory tells of the first request of each attempt, and bills attempts, not requests.",
    ),
    origin="pi-mono: session-manager.ts, messages.ts, transform-messages.ts, transcript.ts (0.87.1 held "
    "against its requests); OpenClaw's leaf entries",
    held_against=HELD_AGAINST,
)


def detect(head: bytes) -> int:
    """How sure the first lines look like a session's; 0 for the event streams that begin the same way."""
    best = 0
    for line, value in first_lines(head, _LINES):
        if value is None:
            best = max(best, _torn(line))
            continue
        score = _score(value) if isinstance(value, dict) else 0
        if score < 0:
            return 0
        best = max(best, score)
    return best or _message(head)


def _score(value: dict[str, Any]) -> int:
    kind = value.get("type")
    if kind in ("agent_start", "turn_start", "message_start", "message_end"):
        return -1
    if kind == "session" and all(isinstance(value.get(name), str) for name in ("id", "cwd", "timestamp")):
        return 90
    if value.get("traceSchema") == "openclaw-trajectory":
        return 90
    message = value.get("message")
    if kind == "message" and isinstance(message, dict):
        if message.get("role") in _ROLES or {"api", "provider", "stopReason"} <= message.keys():
            return 95
        return 60 if message.get("role") == "user" and "timestamp" in message else 0
    wanted = _ENTRIES.get(kind) if isinstance(kind, str) else None
    return 85 if wanted is not None and all(key in value for key in wanted) else 0


def _torn(line: bytes) -> int:
    """The score of a line that is longer than the head, or damaged."""
    if not line.startswith((b'{"type":"message"', b'{"type": "message"')):
        return 0
    marks = (b'"role":"toolResult"', b'"toolCallId":', b'"stopReason":', b'"cacheWrite":', b'"parentId":')
    return 80 if sum(mark in line for mark in marks) >= 2 else 0


def _message(head: bytes) -> int:
    """The score of one message by itself, however it is laid out."""
    layout = layout_of_head(head)
    return 85 if layout.has("role", "content", "api", "provider", "usage", "stopReason") else 0


FORMAT: Final = Format(
    name="pi",
    title="pi or OpenClaw session",
    detect=detect,
    reader="ctxctl.importers.pi.reader:read",
    about=ABOUT,
)
