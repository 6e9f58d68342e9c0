"""Moves usage, system prompts and tool definitions of a capture to places that no importer knows.

The places are told by the spelling that captures use, without the code that is held to it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

Move = Callable[[str, Any], tuple[str, Any]]
"""From a key and its value to others."""

USAGE = re.compile(r"usage|tokens?(?=$|_|[A-Z])|token_?count", re.IGNORECASE)
SYSTEM = re.compile(
    r"(system|developer|base)?_?(prompt|instructions?|message)|system|systemInstruction|systemPrompt",
    re.IGNORECASE,
)
TOOLS = re.compile(
    r"tools|functions|tool_?definitions|toolDefinitions|functionDeclarations|available_?tools", re.I
)
LONG = 40
ENVELOPE = "acmeEnvelope"


def _is_usage(key: str, value: Any) -> bool:
    if not USAGE.search(key) or "max" in key.lower():
        return False
    return (isinstance(value, int) and not isinstance(value, bool)) or (
        isinstance(value, dict) and bool(value)
    )


def _is_system(key: str, value: Any) -> bool:
    if not SYSTEM.fullmatch(key):
        return False
    return (isinstance(value, str) and len(value) >= LONG and " " in value) or (
        key.lower().startswith("system")
        and isinstance(value, list | dict)
        and len(json.dumps(value)) > LONG + 20
    )


def _is_tools(key: str, value: Any) -> bool:
    return bool(TOOLS.fullmatch(key) and isinstance(value, list | dict) and value)


IS = {"usage": _is_usage, "system": _is_system, "tools": _is_tools}
FACTS = {
    "usage": ("input_tokens", "cached_tokens", "output_tokens"),
    "system": ("system_prompt",),
    "tools": ("tool_definitions",),
}


def _renamed(key: str, value: Any) -> tuple[str, Any]:
    return f"acme_{key}", value


def _nested(key: str, value: Any) -> tuple[str, Any]:
    return ENVELOPE, {"version": 3, key: value}


def _cased(key: str, value: Any) -> tuple[str, Any]:
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", key)
    return "_".join(words).upper(), value


MOVES: dict[str, Move] = {"renamed": _renamed, "nested": _nested, "in capitals": _cased}


class Mover:
    """Moves one kind of fact in values; counts how many places it met."""

    def __init__(self, what: str, how: str) -> None:
        self.moved = 0
        self._is, self._move, self._what = IS[what], MOVES[how], what

    def value(self, value: Any) -> Any:
        """The value with everything of that kind moved, also within strings that are JSON."""
        if isinstance(value, list):
            return [self._message(one) for one in value]
        if isinstance(value, dict):
            made: dict[str, Any] = {}
            for key, inner in value.items():
                key, inner = self._member(key, inner)
                made[key] = {**made[key], **inner} if key in made and key == ENVELOPE else inner
            return made
        if isinstance(value, str) and value[:1] in ("{", "["):
            try:
                inner = json.loads(value)
            except ValueError:
                return value
            before = self.moved
            changed = self.value(inner)
            return json.dumps(changed) if self.moved > before else value
        return value

    def _member(self, key: str, inner: Any) -> tuple[str, Any]:
        if self._is(key, inner):
            self.moved += 1
            return self._move(key, inner)
        return key, self.value(inner)

    def _message(self, value: Any) -> Any:
        """A system message in a list of messages: moved as a whole."""
        if (
            self._what == "system"
            and isinstance(value, dict)
            and value.get("role") in ("system", "developer")
        ):
            self.moved += 1
            return {ENVELOPE: value}
        return self.value(value)


def moved(data: bytes, what: str, how: str) -> bytes | None:
    """A capture in JSON with all of a kind moved; None where it is not JSON, or nothing is to be moved."""
    mover = Mover(what, how)
    try:
        whole = json.loads(data)
    except ValueError:
        made = b"\n".join(_lines(data, mover))
    else:
        indent = 2 if data.count(b"\n") > 2 else None
        made = json.dumps(mover.value(whole), indent=indent).encode()
    return made if mover.moved else None


def _lines(data: bytes, mover: Mover) -> Iterator[bytes]:
    for line in data.split(b"\n"):
        try:
            value = json.loads(line)
        except ValueError:
            yield line
            continue
        yield json.dumps(mover.value(value)).encode() if isinstance(value, dict) else line
