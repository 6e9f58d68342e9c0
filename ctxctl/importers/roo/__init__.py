"""Roo Code and Cline: tasks (``…/globalStorage/<extension>/tasks/<id>/``), and sessions of Cline's SDK."""

from __future__ import annotations

from typing import Final

from ctxctl.ingest.about import About, HeldAgainst, absent, derived, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.skim import layout_of_head

ABOUT: Final = About(
    reads="A task's directory, or one of its files: the history of messages "
    "(`api_conversation_history.json`), the chat (`ui_messages.json`), the files in context "
    "(`task_metadata.json`). Roo Code 3, Cline 1 to 3.",
    places=(
        "~/.config/Code/User/globalStorage/rooveterinaryinc.roo-cline/tasks/<id>/",
        "~/.config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks/<id>/",
    ),
    turns="A turn is what a message with a person's words sets off. A step is a request that the chat "
    "announces (`api_req_started`); in a history without its chat, each answer counts as one.",
    claims={
        "item_ids": native("tool call ids and the editor's state; else by place in the history"),
        "sources": native("the editor's state"),
        "messages": native("in a chat alone: derived from what it showed"),
        "reasoning": native("where the history keeps it; what the chat shows of it was not sent back"),
        "reminders": native("`environment_details`, in each message of the user"),
        "compaction": native("older versions delete what they condense: then the chat tells of it"),
        "summary": native(),
        "truncation": native("cut off by a marker, in later versions"),
        "order": derived("the history as the runtime sends it"),
        "wrapper": native("tool results keep their headings"),
        "requests": derived("by time, of the history and the chat"),
        "turns": derived("by the marks around a person's words"),
        "threads": native("a task is a session"),
        "model": native("where the chat names it (Cline)"),
        "times": native(),
        "input_tokens": native("in the chat, not in the history"),
        "cached_tokens": native("in the chat"),
        "output_tokens": native("in the chat"),
        "system_prompt": absent("it is made anew for each request"),
        "tool_definitions": absent("with XML tools, they are part of the system prompt"),
        "limit": absent(),
    },
    limits=(
        "A chat alone does not hold the wording of tool calls, nor what a condensation kept.",
        "Requests without text, of a chat alone, show what was typed, not what tools gave back.",
        "What a message was edited to later (a task that was resumed) stands where the history has it.",
    ),
    origin="RooCodeInc/Roo-Code 3.x: core/task, core/condense, shared/getApiMetrics; cline/cline",
)

ABOUT_SDK: Final = About(
    reads="A session's messages (`<id>.messages.json`), or what a compaction left (`<id>.compaction.json`).",
    places=("~/.cline/data/sessions/<id>/<id>.messages.json",),
    turns="A turn is a user's message that is no tool result; each assistant's message is one request.",
    claims={
        "item_ids": native("ids of messages and tool calls"),
        "sources": native("paths of files in messages"),
        "system_prompt": derived(
            "as it was when the session was stored, without the rules that are sent behind it"
        ),
        "messages": native(),
        "reasoning": native(),
        "reminders": native("files that a message carries"),
        "compaction": native("in the compaction's file: that there was one, and the tokens before it"),
        "summary": native("in the compaction's file"),
        "order": derived("the messages as stored"),
        "requests": derived("one for each answer"),
        "turns": derived(),
        "threads": native(),
        "model": native(),
        "times": native(),
        "input_tokens": native("`metrics` of the message"),
        "cached_tokens": native(),
        "output_tokens": native(),
        "tool_definitions": absent(),
        "limit": absent(),
    },
    limits=("The session's file keeps the whole history; which part a request after a compaction carried, "
            "only the compaction's file tells.",
            "Rules (`.clinerules`, `AGENTS.md`) are sent behind the system prompt and are not in the file."),
    origin="cline/cline sdk: packages/core/src/session; 3.0.65 checked against its requests",
    held_against=HeldAgainst(client="Cline", newest="3.0.65"),
)  # fmt: skip


def detect_roo(head: bytes) -> int:
    """How sure the beginning looks like one of a task's files."""
    layout = layout_of_head(head)
    if layout.has("files_in_context") or layout.has("files_in_context[].record_state"):
        return 92
    if layout.has("[].ts", "[].type") and layout.any("[].say", "[].ask"):
        kinds = layout.values.get("[].type")
        return 92 if kinds in ("say", "ask") else 0
    if not layout.has("[].role", "[].content"):
        return 0
    if b"<environment_details>" in head and layout.any("[].content[].text", "[].content"):
        return 90 if layout.has("[].ts") else 75
    return 80 if layout.has("[].ts") and layout.any("[].isSummary", "[].condenseParent") else 0


def detect_folder_roo(folder: Folder) -> int:
    """How sure a directory is a task's, or holds tasks."""
    from ctxctl.importers.roo.reader import CHAT, HISTORY, tasks

    found = tasks(folder)
    tops = tuple(f"{top}/" if top else "" for top in found)
    inside = sum(name.startswith(tops) for name in folder.files)
    # A task somewhere below says nothing of a directory that holds far more.
    if not found or 2 * inside < len(folder.files):
        return 0
    top, names = next(iter(sorted(found.items())))
    name = HISTORY if HISTORY in names else CHAT
    return detect_roo(folder.head(f"{top}/{name}" if top else name, 1 << 16))


def detect_cline(head: bytes) -> int:
    """How sure the beginning looks like a session's messages."""
    layout = layout_of_head(head)
    if layout.has("messages", "sessionId") and layout.any("agent", "system_prompt"):
        return 92
    if layout.has("messages[].metadata.kind") and layout.any(
        "messages[].metadata.tokensBefore", "messages[].metadata.summary"
    ):
        return 92
    return 0


ROO: Final = Format(
    name="roo",
    title="Roo Code / Cline task",
    detect=detect_roo,
    reader="ctxctl.importers.roo.reader:read",
    about=ABOUT,
    detect_folder=detect_folder_roo,
    folder_reader="ctxctl.importers.roo.reader:read_folder",
)

CLINE: Final = Format(
    name="cline",
    title="Cline SDK session",
    detect=detect_cline,
    reader="ctxctl.importers.roo.cline_reader:read",
    about=ABOUT_SDK,
)
