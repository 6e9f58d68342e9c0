"""opencode sessions: ``opencode export``, the log of a plug-in's hooks, ``opencode run --format json``.

A session is messages with parts; an assistant's message is one request in the versions since 1.0, and
several, each behind a `step-start`, in older ones.
"""

from __future__ import annotations

from typing import Final

from ctxctl.ingest.about import About, HeldAgainst, absent, derived, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import layout_of_head

NAME: Final = "opencode"
_HOOKS: Final = (
    b'["event",{"event":',
    b'["chat.message",',
    b'["chat.params",',
    b'["experimental.chat.',
    b'["tool.definition",',
    b'["tool.execute.',
)
SQLITE: Final = b"SQLite format 3\0"
_TABLES: Final = frozenset({"session", "message", "part"})
_COLUMNS: Final = (b"message_id", b"session_id", b"project_id", b"time_created")
_PRINTED: Final = (b'"messageID":', b'"sessionID":', b'"part":{')

HELD_AGAINST: Final = HeldAgainst(
    client="opencode",
    newest="1.18.33",
    oldest="1.2.27",
    key="",
    records=frozenset(
        {
            "text",
            "reasoning",
            "file",
            "tool",
            "step-start",
            "step-finish",
            "compaction",
            "subtask",
            # Told to no model: what changed, what was tried again, whom the person named.
            "snapshot",
            "patch",
            "retry",
            "agent",
        }
    ),
)
"""The types of the parts of messages."""

ABOUT: Final = About(
    reads="Exports of sessions, logs of the calls that a plug-in's hooks get (child sessions are threads), "
    "the events that `opencode run --format json` prints, and `opencode.db`.",
    places=(
        "~/.local/share/opencode/opencode.db",
        "opencode export <session> > session.json",
        "a plug-in that logs its hooks: one JSON array a line",
    ),
    turns="A turn is a user's message, but for those by which opencode goes on or compacts by itself; each "
    "`step-start` of an assistant's message is one request.",
    claims={
        "sources": absent(),
        "item_ids": native("part and tool call ids"),
        "limit": native("logs of hooks: the model's context window"),
        "truncation": derived("results that opencode pruned, in its wording, from the time when it did"),
        "system_prompt": native("logs of hooks only"),
        "tool_definitions": derived(
            "logs of hooks only: names and descriptions; the parameters as sent are not there"
        ),
        "messages": native(),
        "reasoning": native("where the provider gives its text"),
        "reminders": native(
            "texts that opencode puts into a user's message; of plan mode only that they were"
        ),
        "compaction": native(),
        "summary": native(),
        "order": derived("tools, system prompt, history as opencode builds it from the messages"),
        "requests": derived("one for each step of an assistant's message"),
        "turns": native(),
        "threads": native(),
        "model": native(),
        "times": native(),
        "input_tokens": native(),
        "cached_tokens": native(),
        "output_tokens": native(),
    },
    limits=(
        "The request that has a session's title written, and those that failed and were sent again, are not "
        "recorded.",
        "Of the request for a summary the history is rebuilt (from 1.18.15 on as the one text that is sent); "
        "its system prompt and its instructions are not recorded.",
        "What a session that branched off took over from another is context, and no request of its own; "
        "messages that the person took back are read from the database's events.",
        "Logs of hooks list the tools that opencode defined; which of them an agent lacks is told in part.",
        "What was printed by `run --format json` has no user's message.",
    ),
    origin="opencode 1.2, 1.14 and 1.18.33: message-v2.ts, compaction.ts, plug-in hooks; the last one "
    "checked against its requests",
    held_against=HELD_AGAINST,
)


def detect(head: bytes) -> int:
    """How sure the beginning looks like an export, like one of the logs, or like the database."""
    if head.startswith(SQLITE):
        from ctxctl.ingest.database import table_names  # slow to import

        known = table_names(head) >= _TABLES and all(name in head for name in _COLUMNS)
        return 92 if known else 0
    if is_log(head):
        return 95
    layout = layout_of_head(head)
    if layout.has("info.id", "info.projectID", "info.directory"):
        return 95
    if layout.has("messages[].info", "messages[].parts") or layout.has("messages[].info.sessionID"):
        return 90
    return 85 if layout.has("[].info.sessionID", "[].info.role", "[].parts") else 0


def is_log(head: bytes) -> bool:
    """Whether a file is what hooks were given or a run printed, by its first lines."""
    for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n")[:20]:
        row = line.strip().replace(b'": ', b'":').replace(b'", ', b'",')
        if row.startswith(_HOOKS):
            return True
        if row.startswith(b'{"type":"') and all(mark in row for mark in _PRINTED):
            return True
    return False


FORMAT: Final = Format(
    name=NAME,
    title="opencode session",
    detect=detect,
    reader="ctxctl.importers.opencode.reader:read",
    about=ABOUT,
)
