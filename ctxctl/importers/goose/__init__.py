"""goose sessions: ``~/.local/share/goose/sessions/*.jsonl`` (until 1.9), ``sessions.db`` since; exports."""

from __future__ import annotations

from typing import Any, Final

from ctxctl.ingest.about import About, absent, derived, in_totals, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import first_lines, layout_of_head

NAME: Final = "goose"
_LINES: Final = 20
SQLITE: Final = b"SQLite format 3\0"
_BLOCKS: Final = ("toolRequest", "toolResponse", "toolConfirmationRequest", "redactedThinking")

ABOUT: Final = About(
    reads="Session files (a head and messages, JSON lines), exported sessions, `sessions.db`.",
    places=(
        "~/.local/share/goose/sessions/*.jsonl",
        "~/.local/share/goose/sessions/sessions.db",
        "goose session export --format json",
    ),
    turns="A turn is what a user's text sets off; assistant's messages in a row are one answer, and"
    " so are calls that were stored with one time.",
    claims={
        "item_ids": native("tool call ids; message ids where there are any"),
        "tool_definitions": native("where the head lists them"),
        "messages": native(),
        "reasoning": native("where the provider gives its text"),
        "compaction": derived("from which messages the agent no longer sees"),
        "summary": native(),
        "order": derived("the messages as stored"),
        "requests": derived("one for each answer"),
        "turns": native(),
        "threads": native("sub-agents have sessions of their own"),
        "model": native("sessions.db and exports, as configured last"),
        "times": native(),
        "system_prompt": absent(),
        "input_tokens": in_totals("of the session, and of its last request"),
        "cached_tokens": absent(),
        "output_tokens": in_totals("likewise"),
        "limit": absent(),
    },
    limits=("goose adds notes of its own to a request (time, to-do list) that it does not store.",),
    origin="block/goose 1.x: conversation/message.rs, session_manager.rs, session/legacy.rs",
)


def detect(head: bytes) -> int:
    """How sure the beginning looks like a session's."""
    if head.startswith(SQLITE):
        return 92 if all(mark in head for mark in (b"content_json", b"session_id", b"working_dir")) else 0
    layout = layout_of_head(head)
    if layout.has("working_dir", "conversation"):
        return 90
    best = 0
    for _, value in first_lines(head, _LINES):
        if isinstance(value, dict):
            best = max(best, _score(value))
    return best


def _score(value: dict[str, Any]) -> int:
    if "working_dir" in value and "message_count" in value:
        return 92
    content = value.get("content")
    if value.get("role") not in ("user", "assistant") or not isinstance(content, list):
        return 0
    if any(isinstance(block, dict) and block.get("type") in _BLOCKS for block in content):
        return 92
    return 60 if isinstance(value.get("created"), int) else 0


FORMAT: Final = Format(
    name=NAME,
    title="goose session",
    detect=detect,
    reader="ctxctl.importers.goose.reader:read",
    about=ABOUT,
)
