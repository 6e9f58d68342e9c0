"""Reads the texts of VS Code chat prompts: elements that the extension puts around a request, and trees."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

_KINDS: Final = {
    "environment_info": "runtime_state",
    "workspace_info": "runtime_state",
    "context": "runtime_state",
    "editorContext": "runtime_state",
    "repoContext": "runtime_state",
    "todoList": "runtime_state",
    "attachments": "external_resource",
    "attachment": "external_resource",
    "toolReferences": "policy_note",
    "reminderInstructions": "policy_note",
    "reminder": "policy_note",
    "instructions": "developer_instruction",
    "customInstructions": "developer_instruction",
    "conversation-summary": "thread_summary",
    "userRequest": "user_message",
    "user_query": "user_message",
}
_OPENING: Final = re.compile(
    r"^<(" + "|".join(re.escape(tag) for tag in _KINDS) + r")(?: [^<>\n]*)?>", re.MULTILINE
)
_MAX_NODES: Final = 200_000


class Piece(NamedTuple):
    """A stretch of a message; the pieces put together are the whole."""

    text: str
    kind: str
    tag: str | None


def pieces(text: str) -> list[Piece]:
    """A user message cut at the elements that the extension puts into it."""
    made: list[Piece] = []
    at = 0
    while (match := _OPENING.search(text, at)) is not None:
        tag = match.group(1)
        closing = f"</{tag}>"
        end = text.find(closing, match.end())
        if end < 0:
            break
        end += len(closing)
        while end < len(text) and text[end].isspace():
            end += 1
        start = match.start()
        if text[at:start].strip():
            made.append(Piece(text[at:start], "user_message", None))
        else:
            start = at
        made.append(Piece(text[start:end], _KINDS[tag], tag))
        at = end
    if text[at:]:
        made.append(Piece(text[at:], "user_message", None))
    return made


def rendered(value: Any) -> str:
    """The text of a prompt-tsx tree (`{"node": …}`) as VS Code stores tool results."""
    made: list[str] = []
    waiting = [value.get("node") if isinstance(value, dict) else None]
    left = _MAX_NODES
    while waiting and left:
        left -= 1
        node = waiting.pop()
        if not isinstance(node, dict):
            continue
        text = node.get("text")
        if isinstance(text, str):
            if node.get("lineBreakBefore") is True and made and not made[-1].endswith("\n"):
                made.append("\n")
            made.append(text)
        children = node.get("children")
        if isinstance(children, list):
            if node.get("lineBreakBefore") is True and made and not made[-1].endswith("\n"):
                made.append("\n")
            waiting.extend(reversed(children))
    return "".join(made)
