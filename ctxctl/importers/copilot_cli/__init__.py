"""GitHub Copilot CLI: a session's event log (``~/.copilot/session-state/<id>/events.jsonl``) and the stream
that ``copilot --json`` and the Copilot SDK give.

One step is one model request, which `assistant.turn_start` begins; a turn is what one prompt sets off.
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from ctxctl.importers.copilot_cli import records
from ctxctl.ingest.about import About, HeldAgainst, absent, native
from ctxctl.ingest.declaration import Format

_BOM: Final = b"\xef\xbb\xbf"
_LINES: Final = 40
_SURE: Final = 95
_LIKELY: Final = 85
_TYPE: Final = re.compile(
    r"(session|assistant|user|tool|subagent|hook|system|model|permission|skill|mcp)\.[a-z_.]+|abort"
)

_TOTALS: Final = ("data.modelMetrics", "data.preTruncationTokensInMessages")
"""A session's sums by model, and the size of a history before it was cut."""

_ABOUT: Final = About(
    reads="The events of a Copilot CLI session, JSON Lines, from 0.0.354 to 1.0.102: the log on disk, or the "
    "stream of copilot --json with its transient events.",
    places=("~/.copilot/session-state/*/events.jsonl", "copilot -p PROMPT --json > run.jsonl"),
    turns="A turn is what a person's `user.message` sets off (its interaction id); a request is what "
    "`assistant.turn_start` begins, or in older versions what a message of the model answers.",
    claims={
        "sources": absent(),
        "item_ids": native(),
        "limit": native("where truncation or usage events name it; from about 1.0.100 with every request"),
        "truncation": absent("only how many tokens and messages left"),
        "system_prompt": native("in the log from about 1.0.60; not in the stream"),
        "tool_definitions": absent("only their tokens, at the end of the session"),
        "messages": native(
            "as sent, with what Copilot put around a prompt; before 1.0 as typed; not what it sent of a call "
            "that failed"
        ),
        "reasoning": native("a summary, or sealed"),
        "reminders": native("date, notices, skills"),
        "compaction": native(),
        "summary": native("where the event carries it"),
        "order": native(),
        "requests": native(),
        "turns": native(),
        "threads": native("sub-agents, by the call that started them"),
        "model": native(),
        "times": native(),
        "input_tokens": native(
            "where usage events were kept (1.0.102 keeps them); else a session's total", _TOTALS
        ),
        "cached_tokens": native(
            "where usage events were kept (1.0.102 keeps them); else a session's total", _TOTALS
        ),
        "output_tokens": native("", _TOTALS),
    },
    limits=(
        "Truncation tells how many messages left, not which: the window shown keeps them.",
        "Of a call that failed 1.0.102 logs a short message and sends a longer one, which is not recorded; a "
        "session that is resumed sends the short one.",
        "A resumed session leaves its earlier reasoning out where the provider is OpenAI's Responses.",
        "A compaction is taken to leave the system prompt, the summary and what came after it began; the "
        "text that Copilot puts around a summary is not recorded, and the request that asked for it no step: "
        "what it was billed is told with the compaction.",
        "The context of a sub-agent is recorded in part before about 1.0.100: its prompt is taken from the "
        "call that started it.",
        "The totals of `session.shutdown` are kept as an event; of a single request, they are its bill.",
    ),
    held_against=HeldAgainst("Copilot CLI", records.NEWEST, records.OLDEST, records.ALL),
    origin="github/copilot-sdk (session events), logs of the CLI, and runs of 1.0.102 beside what they sent",
)


def detect(head: bytes) -> int:
    """How sure the first lines look like session events."""
    best = 0
    body = head.removeprefix(_BOM).lstrip()
    for line in body.split(b"\n")[:_LINES]:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        best = max(best, _score(value))
    if best or not body.startswith(b"{"):
        return best
    start = body[:200].replace(b" ", b"")
    return _LIKELY if b'"type":"session.start"' in start and b'"data":{' in start else 0


def _score(value: Any) -> int:
    if not isinstance(value, dict) or not isinstance(value.get("data"), dict) or "parentId" not in value:
        return 0
    kind = value.get("type")
    if not isinstance(kind, str) or _TYPE.fullmatch(kind) is None or "event_type" in value:
        return 0
    if kind == "session.start":
        return _SURE if "copilotVersion" in value["data"] or "producer" in value["data"] else _LIKELY
    return _LIKELY if isinstance(value.get("id"), str) else 0


FORMAT: Final = Format(
    name="copilot-cli",
    title="Copilot CLI session",
    detect=detect,
    reader="ctxctl.importers.copilot_cli.reader:Session",
    about=_ABOUT,
)
