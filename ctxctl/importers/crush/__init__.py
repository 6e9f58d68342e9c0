"""Crush: a project's ``.crush/crush.db``, and ``.opencode/opencode.db`` of its forerunner in Go."""

from __future__ import annotations

from typing import Final

from ctxctl.ingest.about import About, HeldAgainst, absent, derived, in_totals, native
from ctxctl.ingest.declaration import Format

NAME: Final = "crush"
_SQLITE: Final = b"SQLite format 3\0"
_COLUMNS: Final = (b"parent_session_id", b"message_count", b"prompt_tokens", b"completion_tokens", b"parts")
"""What the definitions of its tables name."""
KNOWN: Final = frozenset({
    "text", "reasoning", "tool_call", "tool_result", "finish", "binary", "image_url", "shell_command",
})  # fmt: skip
"""The types of a message's parts."""
_TOTALS: Final = ("prompt_tokens", "completion_tokens")
"""Counts of a session's last request, in the table of sessions."""

ABOUT: Final = About(
    reads="The database of a project's sessions; also that of opencode's former version in Go, which Crush"
    " goes back to.",
    places=("<project>/.crush/crush.db", "<project>/.opencode/opencode.db (opencode in Go)"),
    turns="A turn is what a user's message sets off; one step is one answer, a row of its own.",
    claims={
        "item_ids": native("tool call ids; message ids and the place in the message"),
        "messages": native(),
        "reasoning": native("where the provider gives its text"),
        "compaction": derived("an answer that is marked as a summary takes the place of what was before it"),
        "summary": native(),
        "order": derived("the messages as stored"),
        "requests": native("one for each answer, failed ones too"),
        "turns": derived("a user's message that Crush did not write by itself"),
        "threads": native("sub-agents have sessions of their own, which name their call"),
        "model": native(),
        "times": native(),
        "system_prompt": absent(),
        "tool_definitions": absent(),
        "input_tokens": in_totals("for a session's last request only, by the client's own count"),
        "cached_tokens": absent("these counts include them, by rules that differ between versions", _TOTALS),
        "output_tokens": in_totals("likewise"),
        "limit": absent(),
    },
    limits=(
        "Crush puts a reminder of the to-do list in front of the history that it does not store.",
        "the small model's requests for titles are not stored",
        "older versions keep only which summary was the last one: earlier ones are read as answers",
    ),
    origin="charmbracelet/crush: internal/message, internal/agent, internal/db; databases of 2025 and 2026",
    held_against=HeldAgainst("Crush", records=KNOWN, key=""),
)


def detect(head: bytes) -> int:
    """How sure the definitions of a database's tables are Crush's."""
    return 92 if head.startswith(_SQLITE) and all(column in head for column in _COLUMNS) else 0


FORMAT: Final = Format(
    name=NAME,
    title="Crush sessions",
    detect=detect,
    reader="ctxctl.importers.crush.reader:read",
    about=ABOUT,
)
