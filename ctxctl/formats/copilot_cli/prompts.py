"""What was sent for a prompt: what the person typed, and what Copilot put around it."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_TAGGED: Final = re.compile(r"\s*<([A-Za-z][A-Za-z0-9_-]*)(?: [^<>]*)?>.*?</\1>\s*", re.DOTALL)
_HARNESS: Final = (
    "current_datetime", "system_reminder", "system-reminder", "system_notification", "reminder",
    "reminderInstructions", "session_context", "todo_status",
)  # fmt: skip
_STATE: Final = frozenset({"current_datetime", "session_context", "todo_status"})


class Piece(NamedTuple):
    """A stretch of what was sent; the pieces put together are the whole."""

    text: str
    kind: str
    tag: str | None
    """Name of the element that wraps it; None for what the person typed."""


def pieces(sent: str, typed: str | None) -> list[Piece]:
    """The pieces of a prompt as it was sent.

    Where the typed text stands in it once, all around it is the harness'; otherwise only elements that
    Copilot is known to put before and after a prompt are.
    """
    if typed is not None and typed.strip() and sent != typed:
        at = sent.find(typed)
        if at >= 0 and sent.find(typed, at + 1) < 0:
            before, after = sent[:at], sent[at + len(typed) :]
            return [*_around(before), Piece(typed, "user_message", None), *_around(after)]
    return _by_tags(sent)


def _around(text: str) -> list[Piece]:
    """Text that the harness wrote, element by element."""
    made: list[Piece] = []
    at = 0
    while at < len(text):
        match = _TAGGED.match(text, at)
        if match is None:
            break
        made.append(_piece(match.group(0), match.group(1)))
        at = match.end()
    rest = text[at:]
    if rest.strip():
        made.append(Piece(rest, "policy_note", None))
    return made


def _by_tags(text: str) -> list[Piece]:
    made: list[Piece] = []
    at = 0
    while (match := _TAGGED.match(text, at)) is not None and match.group(1) in _HARNESS:
        made.append(_piece(match.group(0), match.group(1)))
        at = match.end()
    rest = text[at:]
    tail: list[Piece] = []
    while (found := _last(rest)) is not None:
        tail.insert(0, _piece(rest[found[0] :], found[1]))
        rest = rest[: found[0]]
    if rest.strip():
        made.append(Piece(rest, "user_message", None))
    return made + tail


def _last(text: str) -> tuple[int, str] | None:
    """Where the harness' element begins that a text ends with, and its name."""
    body = text.rstrip()
    for tag in _HARNESS:
        if body.endswith(f"</{tag}>"):
            at = body.rfind(f"<{tag}>")
            if at > 0:
                return at, tag
    return None


def _piece(text: str, tag: str) -> Piece:
    return Piece(text, "runtime_state" if tag in _STATE else "policy_note", tag)
