"""Qwen Code's recorded chats."""

from __future__ import annotations

from typing import Final

from ctxctl.ingest.about import About, HeldAgainst, absent, derived, native
from ctxctl.ingest.build import Json
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import objects_of_head

ABOUT: Final = About(
    reads="Recorded chats, JSON lines.",
    places=("~/.qwen/projects/<project>/chats/<session>.jsonl",),
    turns="A turn is a `user` record without a subtype; each `assistant` record is one request.",
    claims={
        "item_ids": native("uuid of the record, id of the tool call"),
        "messages": native(),
        "reminders": native("in messages, between tags"),
        "compaction": native(),
        "summary": native("where the compressed history is stored"),
        "order": derived("the records up to the last parent"),
        "requests": derived("one for each answer"),
        "turns": native(),
        "threads": native(),
        "model": native(),
        "times": native(),
        "limit": native("`contextWindowSize`, in later versions"),
        "input_tokens": native(),
        "cached_tokens": native(),
        "output_tokens": native(),
        "reasoning": absent("thoughts are stored, and not sent back"),
        "system_prompt": absent(),
        "tool_definitions": absent(),
    },
    held_against=HeldAgainst(
        "Qwen Code", "0.18.2", "0.18.2", frozenset({"user", "assistant", "tool_result", "system"})
    ),
    origin="QwenLM/qwen-code: chatRecordingService.ts",
)


def detect(head: bytes) -> int:
    """How sure the first lines look like a chat of Qwen Code's."""
    return max(map(_score, objects_of_head(head)), default=0)


def _score(value: Json) -> int:
    if "uuid" not in value or "sessionId" not in value:
        return 0
    message = value.get("message")
    if isinstance(message, dict) and isinstance(message.get("parts"), list):
        return 98
    if value.get("type") == "system" and "systemPayload" in value:
        return 96
    return 90 if value.get("type") == "tool_result" and "toolCallResult" in value else 0


FORMAT: Final = Format(
    name="qwen-code",
    title="Qwen Code chat",
    detect=detect,
    reader="ctxctl.importers.qwen_code.reader:Qwen",
    about=ABOUT,
)
