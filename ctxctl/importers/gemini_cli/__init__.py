"""Gemini CLI: chats (``~/.gemini/tmp/<project>/chats/``), saved histories, recorded replies, printed runs."""

from __future__ import annotations

from typing import Any, Final

import orjson

from ctxctl.ingest.about import About, HeldAgainst, absent, derived, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import first_lines, layout_of_head

_LINES: Final = 20
_SAID: Final = ("user", "gemini", "info", "error", "warning")

HELD_AGAINST: Final = HeldAgainst(
    client="Gemini CLI",
    records=frozenset(
        {
            "",
            "user",
            "gemini",
            "info",
            "error",
            "warning",
            # What `--output-format stream-json` prints.
            "init",
            "message",
            "tool_use",
            "tool_result",
            "result",
        }
    ),
)
"""Types of messages and of printed events; chats name no version."""

ABOUT: Final = About(
    reads="Recorded chats (one document up to 0.3x, JSON lines since), `/chat save` checkpoints, recorded "
    "replies (`*.responses`), and what `--output-format stream-json` prints.",
    places=(
        "~/.gemini/tmp/<project>/chats/session-*.json, session-*.jsonl",
        "~/.gemini/tmp/<project>/checkpoint-*.json",
        "gemini --output-format stream-json -p … > run.jsonl",
        "gemini --record-responses FILE",
    ),
    turns="A turn is a user's message, but for those that answer calls; each `gemini` message is one request,"
    " unless it holds calls only or was made up by the CLI.",
    claims={
        "item_ids": native("message and tool call ids; checkpoints and printed events have few"),
        "messages": native("recorded replies: answers only"),
        "reasoning": native("recorded replies; the summaries in chats are for people and are not sent again"),
        "reminders": native("files that a message refers to; the set-up, in checkpoints"),
        "order": derived("history as the CLI builds it from the messages"),
        "requests": derived("one for each `gemini` message"),
        "turns": native(),
        "threads": native("a sub-agent's chat is a file of its own"),
        "model": native(),
        "times": native(),
        "input_tokens": native("not in checkpoints; printed events give a run's totals"),
        "cached_tokens": native("likewise"),
        "output_tokens": native("likewise"),
        "system_prompt": absent(),
        "tool_definitions": absent(),
        "compaction": derived("where the chat's file rewrites its history (0.4x); else a cut not recorded"),
        "summary": native("where the chat's file rewrites its history"),
        "truncation": derived("results that the CLI masked, where the file rewrites its history"),
        "limit": absent(),
    },
    limits=(
        "Recorded replies do not tell what was asked: their windows are empty.",
        "Replies are not told apart by what they were for (routing, loop checks, summaries).",
        "A chat that was taken up again sends the results of its earlier calls twice, as its history then "
        "has them.",
    ),
    origin="gemini-cli 0.1 to 0.5x: chatRecordingService.ts, chatRecordingTypes.ts, "
    "stream-json-formatter.ts; 0.61.0 checked against its requests",
    held_against=HELD_AGAINST,
)


def detect(head: bytes) -> int:
    """How sure the beginning looks like one of the CLI's files."""
    best = layout_score(head)
    for line, value in first_lines(head, _LINES):
        if isinstance(value, dict):
            best = max(best, _score(value))
        elif line.startswith((b'{"method":"generateContent', b'{"method": "generateContent')):
            best = max(best, 90)
    return best


def layout_score(head: bytes) -> int:
    """How sure one document is a chat or a saved history, by its keys."""
    layout = layout_of_head(head)
    if layout.has("sessionId", "projectHash"):
        return 92
    if layout.has("clientHistory", "toolCall") or layout.has("history[].role", "history[].parts", "authType"):
        return 90
    if layout.has("messages[].toolCalls[].resultDisplay") and layout.values.get("messages[].type") == "user":
        return 80
    saved = layout.has("[].role", "[].parts") and layout.any("[].parts[].text", "[].parts[].functionCall")
    return 80 if saved and layout.values.get("[].role") in ("user", "model") else 0


def is_lines(head: bytes) -> bool:
    """Whether one of the first lines is a record by itself, and no part of a document."""
    rows = head.removeprefix(b"\xef\xbb\xbf").strip().split(b"\n")[:_LINES]
    if len(rows) == 1:
        return False
    for row in rows:
        try:
            value = orjson.loads(row)
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict) and ("projectHash" in value or _score(value)):
            return True
    return False


def _score(value: dict[str, Any]) -> int:
    kind = value.get("type")
    if isinstance(value.get("method"), str) and "response" in value:
        return 92 if value["method"].startswith(("generateContent", "countTokens", "embedContent")) else 0
    if kind == "gemini" and "id" in value and "content" in value:
        return 90
    if "$rewindTo" in value or ("$set" in value and len(value) == 1):
        return 70
    if (
        kind == "init"
        and isinstance(value.get("session_id"), str)
        and "model" in value
        and "subtype" not in value
    ):
        return 80
    if kind == "tool_use" and isinstance(value.get("tool_name"), str) and "tool_id" in value:
        return 90
    if kind == "tool_result" and "tool_id" in value and "status" in value:
        return 90
    if kind in _SAID and "timestamp" in value and "content" in value and isinstance(value.get("id"), str):
        return 55 if value.keys() <= {"id", "type", "timestamp", "content", "displayContent"} else 0
    return 0


FORMAT: Final = Format(
    name="gemini-cli",
    title="Gemini CLI chat",
    detect=detect,
    reader="ctxctl.importers.gemini_cli.reader:read",
    about=ABOUT,
)
