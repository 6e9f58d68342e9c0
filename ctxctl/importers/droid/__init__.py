"""Sessions of Factory's Droid."""

from __future__ import annotations

from typing import Final

from ctxctl.ingest.about import About, HeldAgainst, absent, derived, native
from ctxctl.ingest.build import Json
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import objects_of_head

ABOUT: Final = About(
    reads="Sessions, JSON lines, with the settings (`<session>.settings.json`) beside them.",
    places=("~/.factory/sessions/<project>/<session>.jsonl",),
    turns="A turn is a user's message with words of its own; each assistant's message is one request.",
    claims={
        "item_ids": native("ids of messages and tool calls"),
        "sources": native("where a reminder names one"),
        "messages": native(),
        "reasoning": native("sealed where the provider seals it"),
        "reminders": native("system reminders, and messages for the model only"),
        "compaction": native(),
        "summary": native(),
        "order": derived("the messages as stored"),
        "requests": derived("one for each answer"),
        "turns": derived(),
        "threads": native(),
        "model": native("where a message or the settings beside the session name it"),
        "times": native(),
        "system_prompt": absent(),
        "tool_definitions": absent(),
        "limit": absent(),
        "input_tokens": native("where a message has its bill, or the session's sum is that of one request"),
        "cached_tokens": native("likewise"),
        "output_tokens": native("likewise"),
    },
    held_against=HeldAgainst(
        "session version", "2", "2", frozenset({"session_start", "message", "todo_state", "compaction_state"})
    ),
    origin="sessions of Factory's droid CLI, version 2",
)


def detect(head: bytes) -> int:
    """How sure the first lines look like a session of droid's."""
    return max(map(_score, objects_of_head(head)), default=0)


def _score(value: Json) -> int:
    kind = value.get("type")
    if kind == "session_start":
        named = isinstance(value.get("id"), str) and any(n in value for n in ("cwd", "title", "sessionTitle"))
        return 95 if named and "session_id" not in value and "model" not in value else 0
    if kind == "compaction_state" and "summaryText" in value:
        return 90
    message = value.get("message")
    return 60 if kind == "message" and isinstance(message, dict) and "visibility" in value else 0


FORMAT: Final = Format(
    name="droid",
    title="Factory Droid session",
    detect=detect,
    reader="ctxctl.importers.droid.reader:Droid",
    about=ABOUT,
)
