"""Lists of chat messages: an array, JSON lines, or a dataset of conversations; as many tools dump them."""

from __future__ import annotations

from typing import Final

from ctxctl.ingest.about import About, absent, derived, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import Layout, layout_of_head

_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_FIRST: Final = frozenset({"system", "developer", "user"})
_SPEAKERS: Final = frozenset(
    {"human", "gpt", "user", "assistant", "system", "chatgpt", "bing", "bard", "tool"}
)
_MESSAGE: Final = frozenset(
    {
        "role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "reasoning",
        "reasoning_content", "reasoning_details", "audio", "annotations", "timestamp", "ts", "time",
        "created_at", "createdAt", "id", "model", "weight", "metadata", "usage", "index", "turn",
        "session_id", "conversation_id",
    }
)  # fmt: skip
"""Fields of a message by itself; what has others is a program's own record."""
_OTHERS: Final = ("type", "uuid", "parts", "messages", "trajectory", "info", "event")
_PERHAPS: Final = 52
_ONLY: Final = 51


ABOUT: Final = About(
    reads=(
        "Chat messages (`role`, `content`, `tool_calls`; blocks as Chat Completions or Anthropic have "
        "them) as a JSON array, one a JSON line, or in conversations: `messages` a line or entry, as "
        "fine-tuning takes them, or `conversations` of `from` and `value` (ShareGPT)."
    ),
    places=("dumps of a conversation's messages", "datasets for training and evaluation"),
    turns=(
        "Each answer is a step, given to the messages before it; a user's message begins a turn.  In a "
        "dataset each conversation is a session."
    ),
    claims={
        "item_ids": native("of tool calls"),
        "sources": native("files that a message names"),
        "system_prompt": native("in the list, or as `system` or `system_prompt` beside it"),
        "tool_definitions": native("where a conversation has `tools` beside its messages"),
        "messages": native(),
        "reasoning": native("where a message holds it"),
        "reminders": native("as marked inside messages"),
        "order": derived("as listed"),
        "requests": derived("from the answers"),
        "turns": derived("from the user's messages"),
        "times": native("where messages have a `timestamp`, or the conversation says when it began"),
        "model": native("where a message or its conversation names it"),
        "input_tokens": absent("a list of messages has no bill"),
    },
    limits=("what a conversation has beside messages, tools and system prompt is counted and not read",),
    origin="OpenAI Chat Completions and fine-tuning, Anthropic Messages, ShareGPT as FastChat has it",
)


def detect(head: bytes) -> int:
    """Unsure at best: other formats that hold such lists claim them first."""
    layout = layout_of_head(head)
    if layout.has("[].role", "[].content") and not layout.any(*(f"[].{name}" for name in _OTHERS)):
        return _PERHAPS if layout.values.get("[].role") in _FIRST else 0
    if _is_line(layout):
        return _PERHAPS
    return _ONLY if any(_is_conversation(layout, prefix) for prefix in ("", "[].")) else 0


def _is_line(layout: Layout) -> bool:
    """Whether the first records are messages."""
    if not layout.has("role", "content") or layout.values.get("role") not in _ROLES:
        return False
    outer = {path for path in layout.paths if "." not in path and "[" not in path}
    return outer <= _MESSAGE


def _is_conversation(layout: Layout, prefix: str) -> bool:
    """Whether the objects at a prefix hold messages of one conversation each."""
    for name in ("messages", "conversations", "conversation"):
        at = f"{prefix}{name}[]."
        if layout.has(f"{at}role", f"{at}content") and not layout.any(f"{at}parts", f"{at}type"):
            return layout.values.get(f"{at}role") in _ROLES
        if layout.has(f"{at}from", f"{at}value"):
            return layout.values.get(f"{at}from") in _SPEAKERS
    return False


FORMAT: Final = Format(
    name="chat-messages",
    title="list of chat messages",
    detect=detect,
    reader="ctxctl.importers.chat_messages.reader:read",
    about=ABOUT,
)
