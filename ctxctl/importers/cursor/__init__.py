"""Cursor: agent transcripts, logs of its hooks, and the databases of the CLI and of the editor."""

from __future__ import annotations

from typing import Any, Final

from ctxctl.ingest.about import About, HeldAgainst, absent, derived, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.skim import first_lines

NAME: Final = "cursor"
_LINES: Final = 20
SQLITE: Final = b"SQLite format 3\0"
_HOOKS: Final = ("evt", "payload")

_EVENTS: Final = frozenset(
    {
        "sessionStart", "sessionEnd", "beforeSubmitPrompt", "afterAgentResponse", "afterAgentThought",
        "preToolUse", "postToolUse", "postToolUseFailure", "beforeReadFile", "afterFileEdit",
        "beforeShellExecution", "afterShellExecution", "beforeMCPExecution", "afterMCPExecution",
        "beforeTabFileRead", "afterTabFileEdit", "subagentStart", "subagentStop", "preCompact", "stop",
    }
)  # fmt: skip
"""The hooks that Cursor's documentation names."""
ABOUT: Final = About(
    reads="Transcripts of agents and their sub-agents (3.x), logs of hooks, the CLI's `store.db`, the "
    "editor's `state.vscdb`.",
    places=(
        "~/.cursor/projects/<project>/agent-transcripts/<id>/<id>.jsonl (and subagents/)",
        "a log that hooks of ~/.cursor/hooks.json write: {ts, evt, cwd, payload}",
        "~/.cursor/chats/<project>/<id>/store.db",
        "~/.config/Cursor/User/globalStorage/state.vscdb",
    ),
    turns="A turn is what a user's message sets off. A step is an assistant's message of a transcript or a "
    "database, and a generation of a hook log, which may be several requests.",
    claims={
        "item_ids": native("tool call ids in hook logs and databases; transcripts have none"),
        "sources": native("files that a hook log shows being read"),
        "system_prompt": native("in `store.db`"),
        "messages": native(
            "transcripts lack the tools' results; hook logs have the runtime's summary of them"
        ),
        "reasoning": native("where it is not redacted"),
        "reminders": native("what the editor puts around the person's words"),
        "order": derived("the messages as stored"),
        "requests": derived("one for each answer, or generation"),
        "turns": native("generation ids; counted in transcripts"),
        "threads": native("sub-agents; in a hook log by when they begin"),
        "model": native("hook logs and databases"),
        "times": native("hook logs and `state.vscdb`"),
        "input_tokens": native("hook logs: of a whole generation, over all its requests"),
        "cached_tokens": native("hook logs"),
        "output_tokens": native("hook logs"),
        "tool_definitions": absent(),
        "compaction": absent(),
        "limit": absent(),
    },
    limits=(
        "Counts on bubbles of `state.vscdb` are not read: what they count is not documented.",
        "Messages in a `store.db` that are not JSON are not read.",
    ),
    held_against=HeldAgainst("Cursor", "3.7.19", "3.7.19", _EVENTS, key=""),
    origin="captures of Cursor 3.7; documentation of its hooks",
)


def detect(head: bytes) -> int:
    """How sure the beginning looks like one of Cursor's files."""
    if head.startswith(SQLITE):
        store = b"CREATE TABLE blobs" in head and b"CREATE TABLE meta" in head
        return 92 if store or b"cursorDiskKV" in head else 0
    best = 0
    for _, value in first_lines(head, _LINES):
        if isinstance(value, dict):
            best = max(best, _score(value))
    return best


def detect_folder(folder: Folder) -> int:
    """How sure a directory holds transcripts: of one agent, or of several."""
    lines = [name for name in folder.files if name.endswith(".jsonl")]
    heads = [folder.head(name, 1 << 16) for name in lines[:3]]
    looked = [0 if is_hooks(head) else detect(head) for head in heads]
    return min(looked) if looked and len(lines) == len(folder.files) else 0


def is_hooks(head: bytes) -> bool:
    """Whether a file is a log of what its hooks were given."""
    return head.count(b'"payload"') > 0 and b'"hook_event_name"' in head


def _score(value: dict[str, Any]) -> int:
    if all(name in value for name in _HOOKS):
        payload = value["payload"]
        return 95 if isinstance(payload, dict) and "hook_event_name" in payload else 0
    message = value.get("message")
    if value.get("role") in ("user", "assistant") and isinstance(message, dict):
        plain = value.keys() <= {"role", "message", "timestamp"} and message.keys() <= {"content", "role"}
        return 90 if plain and isinstance(message.get("content"), list) else 0
    return 70 if value.get("type") == "turn_ended" and "status" in value and len(value) <= 4 else 0


FORMAT: Final = Format(
    name=NAME,
    title="Cursor agent",
    detect=detect,
    reader="ctxctl.importers.cursor.reader:read",
    about=ABOUT,
    detect_folder=detect_folder,
    folder_reader="ctxctl.importers.cursor.reader:read_folder",
)
