"""Finds what looks like a fact of context assembly in a JSON value of any layout, and the key under which it
stands.

It is used where an importer found nothing of a fact, before that is called not recorded.  Keys are compared
by their words, so that `input_tokens`, `inputTokens` and `INPUT_TOKENS` are one.  What a tool was given or
gave back is no fact of the request, whatever it looks like, and is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

import orjson

MOST_NODES: Final = 50_000
"""The most values that one look visits, which takes some hundredths of a second."""
_LONGEST_NESTED: Final = 4 << 20
"""The most bytes of a string that is opened to see whether it is JSON itself."""
_EVENTS: Final = 64
"""The most events of a stream's text that are opened at its beginning, and at its end."""
_DEPTH: Final = 60
_SHOWN: Final = 160
"""The most characters of a key's path."""
_LEAST_PROMPT: Final = 40
"""Characters from which a text under a telling key is a system prompt and not a name, a mode or a hash."""
_LONGEST_NAME: Final = 120

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_BILLED: Final = frozenset({"usage", "token", "tokens"})
_NO_BILL: Final = frozenset(
    [
        "max",
        "maximum",
        "min",
        "limit",
        "limits",
        "budget",
        "window",
        "remaining",
        "left",
        "price",
        "cost",
        "rate",
        "threshold",
        "estimate",
        "estimated",
        "reserve",
        "reserved",
        "reasoning",
        "thinking",
        "thoughts",
        "capacity",
        "available",
        "percent",
        "ratio",
        "id",
        "size",
        "per",
        "audio",
        "prediction",
        "target",
        "context",
    ]
)
_CACHED: Final = frozenset({"cache", "cached"})
_WRITTEN: Final = frozenset({"write", "writes", "written", "creation", "created"})
_READ: Final = frozenset({"read", "reads"})
_INPUT: Final = frozenset({"input", "prompt", "in"})
_OUTPUT: Final = frozenset({"output", "completion", "completions", "candidates", "generated", "out"})
_NO_MODEL: Final = frozenset({"unknown", "none", "null", "default", "auto"})
_MODEL: Final = (("model",), ("model", "id"), ("model", "name"))
_SYSTEM: Final = frozenset({"prompt", "message", "instruction", "instructions", "text"})
_OTHER_SYSTEMS: Final = frozenset({"operating", "file", "build", "host"})
_ROLES: Final = frozenset({"user", "assistant", "model", "system", "developer", "tool", "human", "ai"})
_SCHEMA: Final = (
    "input_schema",
    "inputSchema",
    "parameters",
    "parametersJsonSchema",
    "parameters_json_schema",
    "schema",
    "json_schema",
)
_OF_TOOLS: Final = frozenset(
    [
        "arguments",
        "args",
        "rawArguments",
        "tool_input",
        "toolInput",
        "tool_output",
        "toolOutput",
        "toolUseResult",
        "tool_response",
        "toolResponse",
        "structuredContent",
        "structured_content",
        "properties",
        "functionResponse",
        "tool_calls",
        "toolArguments",
        "toolArgs",
        "rawInput",
        "rawOutput",
        "raw_input",
        "raw_output",
    ]
) | frozenset(_SCHEMA)
"""Keys of what a tool was given or gave back, and of schemas."""
_BODY: Final = (
    "content",
    "input",
    "output",
    "result",
    "results",
    "text",
    "data",
    "state",
    "response",
    "message",
)
_TOOL_TYPE: Final = re.compile(r"tool|function|exec|command|shell", re.IGNORECASE)
_SPOKEN: Final = ("content", "text", "parts", "thinking", "reasoning", "summary")
"""Keys under which a message keeps what was said: text there is never opened as JSON."""


class FoundFact(NamedTuple):
    """Something that looks like a fact."""

    fact: str
    keys: tuple[str, ...]
    """The keys from the outermost to the telling one; places in lists are left out."""
    member: tuple[dict[str, Any], str] | None = None
    """The object that holds the telling key, and the key; of what stands in a string, those of the string."""

    @property
    def path(self) -> str:
        """The keys with dots between them."""
        text = ".".join(self.keys)
        return text if len(text) <= _SHOWN else f"…{text[-_SHOWN:]}"


class _Node(NamedTuple):
    value: Any
    keys: tuple[str, ...]
    billed: bool
    """Whether a key above speaks of usage."""
    spoken: bool
    """Whether it is part of what a message says."""
    member: tuple[dict[str, Any], str] | None = None
    """The object that holds it, and under which key; of what stands in a string, those of the string."""
    nested: bool = False
    """Whether it stands in a string."""

    def found(self, fact: str, fields: dict[str, Any], key: str) -> FoundFact:
        """A member of this object that looks like a fact."""
        return FoundFact(fact, (*self.keys, key), self.member if self.nested else (fields, key))


class FactFinder:
    """Looks for facts in one value after the other, and stops after `MOST_NODES`."""

    def __init__(self, facts: tuple[str, ...]) -> None:
        self.left = MOST_NODES
        self._facts = frozenset(facts)

    def find(self, value: Any) -> Iterator[FoundFact]:
        """What looks like one of the facts, in the order of the value."""
        waiting = [_Node(value, (), False, False)]
        while waiting and self.left > 0:
            node = waiting.pop()
            self.left -= 1
            if isinstance(node.value, dict):
                yield from self._of_object(node.value, node)
                if len(node.keys) < _DEPTH:
                    waiting += reversed([*_members(node.value, node)])
            elif isinstance(node.value, list):
                yield from self._of_list(node.value, node)
                inner = (node._replace(value=one) for one in node.value if isinstance(one, dict | list | str))
                if len(node.keys) < _DEPTH:
                    waiting += reversed([*inner])
            elif isinstance(node.value, str) and not node.spoken:
                waiting += reversed([node._replace(value=one, nested=True) for one in _nested(node.value)])

    def _of_object(self, fields: dict[str, Any], node: _Node) -> Iterator[FoundFact]:
        facts = self._facts
        if "system_prompt" in facts and _has_system_role(fields):
            yield node.found("system_prompt", fields, "role")
        is_billed: bool | None = None
        for key, value in fields.items():
            if isinstance(value, int):
                fact = _billed(key, node.billed) if value >= 0 and not isinstance(value, bool) else None
                if fact == "cached_tokens" and not value and is_billed is None:
                    is_billed = _is_bill(fields)
                if not value and not (fact == "cached_tokens" and is_billed):
                    fact = None
            elif isinstance(value, str):
                fact = _named(key, value)
            elif isinstance(value, list | dict):
                fact = "system_prompt" if value and _is_system(words_of_key(key)) and _says(value) else None
                if fact is None and "tool_definitions" in facts and isinstance(value, dict):
                    fact = "tool_definitions" if _is_tool_table(value) else None
            else:
                continue
            if fact in facts:
                assert fact is not None
                yield node.found(fact, fields, key)

    def _of_list(self, values: list[Any], node: _Node) -> Iterator[FoundFact]:
        if "tool_definitions" in self._facts and any(map(_is_tool, values[:3])):
            yield FoundFact("tool_definitions", node.keys, node.member)
        if "messages" in self._facts and any(map(_is_message, values[:3])):
            yield FoundFact("messages", node.keys, node.member)


def occurrence(value: Any, member: tuple[dict[str, Any], str]) -> int:
    """How many objects before a member's have a key of that name, in the order of the text."""
    holder, key = member
    before = 0
    waiting: list[tuple[Any, str | None, Any]] = [(None, None, value)]
    while waiting:
        within, name, one = waiting.pop()
        if name == key:
            if within is holder:
                return before
            before += 1
        if isinstance(one, list):
            waiting += reversed([(None, None, inner) for inner in one if isinstance(inner, dict | list)])
        elif isinstance(one, dict):
            waiting += reversed([(one, name, inner) for name, inner in one.items()])
    return before


@lru_cache(maxsize=8192)
def words_of_key(key: str) -> tuple[str, ...]:
    """The words of a key, in small letters."""
    return tuple(word.lower() for word in _WORD.findall(key[:_LONGEST_NAME]))


def _members(fields: dict[str, Any], node: _Node) -> Iterator[_Node]:
    kind = fields.get("type")
    role = fields.get("role")
    of_tool = (isinstance(kind, str) and _TOOL_TYPE.search(kind)) or role in (
        "tool",
        "toolResult",
        "function",
    )
    says = isinstance(role, str) or (isinstance(kind, str) and "text" in kind)
    for key, value in fields.items():
        if not isinstance(value, dict | list | str) or key in _OF_TOOLS or (of_tool and key in _BODY):
            continue
        spoken = node.spoken or (says and key in _SPOKEN)
        member = node.member if node.nested else (fields, key)
        if isinstance(value, str):
            # Most strings are short, and a telling one was seen with its key.
            if len(value) > 20 and not spoken:
                yield _Node(value, (*node.keys, key), node.billed, False, member, node.nested)
            continue
        billed = node.billed or not _BILLED.isdisjoint(words_of_key(key))
        yield _Node(value, (*node.keys, key), billed, spoken, member, node.nested)


def _nested(text: str) -> Iterator[Any]:
    """The JSON values in a string: one, or those of the events of a stream."""
    start = text[:64].lstrip()
    if start[:1] in ("{", "["):
        value = _loaded(text)
        if isinstance(value, dict | list):
            yield value
    elif start.startswith(("data:", "event:")):
        events = [line[5:] for line in text.splitlines() if line.startswith("data:")]
        for event in events if len(events) <= 2 * _EVENTS else events[:_EVENTS] + events[-_EVENTS:]:
            value = _loaded(event)
            if isinstance(value, dict | list):
                yield value


def _loaded(text: str) -> Any:
    if len(text) > _LONGEST_NESTED:
        return None
    try:
        return orjson.loads(text)
    except ValueError:
        return None


@lru_cache(maxsize=8192)
def _billed(key: str, within: bool) -> str | None:
    """Which count of a bill a key names."""
    said = set(words_of_key(key))
    read_back = bool(said & _CACHED and said & _READ)
    if not (within or read_back or said & _BILLED) or said & (_NO_BILL | _WRITTEN):
        return None
    if said & _CACHED or said <= _READ:
        return "cached_tokens"
    if said & _INPUT:
        return "input_tokens"
    return "output_tokens" if said & _OUTPUT else None


def _is_bill(fields: dict[str, Any]) -> bool:
    """Whether a zero beside these is a count: nothing read from a cache is one, but not where nothing was
    billed."""
    beside = [
        value for key, value in fields.items() if _billed(key, True) in ("input_tokens", "output_tokens")
    ]
    return not beside or any(isinstance(value, int) and value > 0 for value in beside)


def _named(key: str, text: str) -> str | None:
    said = words_of_key(key)
    if said in _MODEL:
        # `<synthetic>` and the like stand where no model was asked.
        named = 0 < len(text) <= _LONGEST_NAME and " " not in text and text[0] != "<"
        return "model" if named and text.lower() not in _NO_MODEL else None
    if len(text) >= _LEAST_PROMPT and " " in text and _is_system(said):
        return "system_prompt"
    return None


@lru_cache(maxsize=8192)
def _is_system(said: tuple[str, ...]) -> bool:
    """Whether a key's words say that a system prompt stands there."""
    if said in (("instructions",), ("base", "instructions")) or said[-1:] == ("system",):
        return said[0] not in _OTHER_SYSTEMS
    return bool(said) and ("system" in said or "developer" in said) and said[-1] in _SYSTEM


def _says(value: Any) -> bool:
    """Whether a list of blocks, or an object, holds a text."""
    blocks = value if isinstance(value, list) else [value]
    for block in blocks[:4]:
        if isinstance(block, str) and len(block) >= _LEAST_PROMPT:
            return True
        if isinstance(block, dict):
            text = block.get("text") or block.get("content") or block.get("parts")
            if (isinstance(text, str) and len(text) >= _LEAST_PROMPT) or (
                isinstance(text, list) and text is not value and _says(text)
            ):
                return True
    return False


def _has_system_role(fields: dict[str, Any]) -> bool:
    role = fields.get("role")
    return isinstance(role, str) and role.lower() in ("system", "developer") and bool(fields.get("content"))


def _is_tool(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    inner = value.get("function")
    fields = inner if isinstance(inner, dict) else value
    return isinstance(fields.get("name"), str) and any(isinstance(fields.get(key), dict) for key in _SCHEMA)


def _is_tool_table(value: dict[str, Any]) -> bool:
    """Whether an object is a table of tools by name: each member is a description with a schema."""
    members = [*value.values()][:3]
    return bool(members) and all(
        isinstance(one, dict)
        and isinstance(one.get("description"), str)
        and any(isinstance(one.get(key), dict) for key in _SCHEMA)
        for one in members
    )


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    role = value.get("role")
    return (
        isinstance(role, str)
        and role.lower() in _ROLES
        and any(value.get(key) for key in ("content", "parts"))
    )
