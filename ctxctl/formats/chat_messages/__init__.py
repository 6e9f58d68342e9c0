"""Lists of chat messages: a JSON array of `role` and `content`, as many tools dump a conversation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.formats.fidelity import About, absent, derived, native
from ctxctl.formats.kit.skim import skim
from ctxctl.formats.lines import Report
from ctxctl.trace.source import Source

_ROLES: Final = ("system", "developer", "user")
_OTHERS: Final = ("type", "uuid", "id", "timestamp", "parts", "messages", "ts", "trajectory", "info", "event")
_PERHAPS: Final = 52


class ChatMessages:
    """The importer for arrays of Chat Completions messages that nothing else is known of."""

    name: str = "chat-messages"
    title: str = "list of chat messages"
    default_policy: str = "recorded"
    about: About = About(
        reads="A JSON array of Chat Completions messages (`role`, `content`, `tool_calls`).",
        places=("dumps of a conversation's messages",),
        turns="Each answer is a step, given to the messages before it; a user's message begins a turn.",
        claims={
            "item_ids": native("of tool calls"),
            "sources": native("files that a message names"),
            "system_prompt": native("if it is in the list"),
            "tool_definitions": absent(),
            "messages": native(),
            "reasoning": native("where a message holds it"),
            "reminders": native("as marked inside messages"),
            "order": derived("as listed"),
            "requests": derived("from the answers"),
            "turns": derived("from the user's messages"),
        },
        limits=("no usage, no model, no times",),
        origin="OpenAI Chat Completions",
    )

    def detect(self, head: bytes) -> int:
        """Unsure at best: other formats that hold such lists claim them first."""
        layout = skim(head)
        if not layout.has("[].role", "[].content") or layout.any(*(f"[].{name}" for name in _OTHERS)):
            return 0
        return _PERHAPS if layout.values.get("[].role") in _ROLES else 0

    def events(self, source: Source, report: Report) -> Iterator[dict[str, Any]]:
        """The list's events."""
        from ctxctl.formats.chat_messages.reader import read

        return read(source, report)
