"""What a request to OpenAI costs beside the texts in it.

A request of the Chat Completions API is written out for the model as messages with roles, and its tools in
another form than the JSON that was sent.  What is known of that:

- Messages, their roles and names: OpenAI Cookbook, "How to count tokens with tiktoken" (MIT).  Exact on every
  capture of docs/calibration.md that has texts only.
- Functions of GPT-4o and later: the constants of the same guide, within a few tokens of the bills.
- Functions of GPT-4 and GPT-3.5: written as TypeScript declarations, as models were made to repeat it (first
  put down by hmarr/openai-chat-tokens); that is nearer to the bills than the guide's constants for these.
- Tool calls: nobody says; `CALL` is the median of what the captures were billed.

Anthropic and Google publish no such rules.  There what an item costs is fitted with the rest, in
`tokens.calibrate`, and so is what a runtime adds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, Protocol

from ctxctl.tokens.ranks import RANKS_OF

Count = Callable[[str], int]
"""Tokens of a text in the model's own encoding."""

MESSAGE: Final = 3
"""Around every message, its role apart."""
ROLE: Final = 1
NAME: Final = 1
"""More for a message with the name of who speaks, beside the name itself."""
ANSWER: Final = 3
"""The answer is begun for the model."""
CALL: Final = 7
"""For a tool call and the message of its result, beside their texts and one message's cost; measured."""
TOOLS: Final = 12
"""Once around all definitions of functions."""
TOOLS_OLDER: Final = 16
"""The same for GPT-4 and GPT-3.5: the seven tokens of an empty namespace in cl100k_base and nine more,
measured; for each function there is one less than its text has."""
_SCHEMAS: Final = ("parameters", "input_schema", "inputSchema")
"""As OpenAI, Anthropic and MCP call the schema of a function's arguments: runtimes send any of them on."""
_FUNCTION: Final = 7
_PROPERTIES: Final = 3
_PROPERTY: Final = 3
_ENUM: Final = -3
_ENUM_ITEM: Final = 3
_DEPTH: Final = 8


class Item(NamedTuple):
    """One item of a request, as a trace has it."""

    kind: str
    text: str
    tokens: int
    """Of the text."""


def chat_size(items: Iterable[Item], count: Count, *, older: bool = False) -> int:
    """Tokens of a request to OpenAI's Chat Completions API.

    Args:
        items: In the order of the request.  An answer and the tool calls behind it are one message.
        older: GPT-4 and GPT-3.5, whose functions begin with more.
    """
    total = ANSWER
    tools: list[str] = []
    answering = False
    for item in items:
        if item.kind == "tool_definition":
            tools.append(item.text)
            continue
        calls = item.kind == "tool_call"
        if not (calls and answering):
            total += MESSAGE + ROLE
        total += item.tokens + (CALL if calls else 0)
        answering = calls or item.kind in ("assistant_message", "reasoning")
    return total + tools_size(tools, count, older=older)


def tools_size(tools: Iterable[str], count: Count, *, older: bool = False) -> int:
    """Tokens that function definitions cost, each given as JSON in OpenAI's form.

    What is no such JSON costs what its text does.
    """
    total, written = 0, False
    for text in tools:
        size = tool_size(text, count, older=older)
        written = written or size is not None
        total += count(text) if size is None else size
    if not written:
        return total
    return total + (TOOLS_OLDER if older else TOOLS)


def tool_size(text: str, count: Count, *, older: bool = False) -> int | None:
    """Tokens that one function definition costs, given as JSON, as it is written out for the model.

    What stands once around all of them is not in it.  None for what is no definition of a function: nobody
    knows how that is written out.
    """
    function = _function(text)
    if function is None:
        return None
    if older:
        return count(_declared(function)) - 1
    description = _text(function.get("description")).rstrip(".")
    size = _FUNCTION + count(f"{_text(function.get('name'))}:{description}")
    parameters = _parameters(function)
    return size if parameters is None else size + _properties(parameters, count, _DEPTH)


class Counts(Protocol):
    """What counts a text."""

    def count(self, text: str) -> tuple[int, bool]:
        """Tokens, and whether they are exact for the encoding."""


def written_size(text: str, counter: Counts, encoding: str) -> int | None:
    """As `tool_size`, with the tokens of a counter for an encoding."""
    older = RANKS_OF[encoding] == "cl100k_base"
    return tool_size(text, lambda part: counter.count(part)[0], older=older)


def _declared(function: dict[str, Any]) -> str:
    """A function as a TypeScript declaration."""
    parameters = _parameters(function)
    fields = _fields(parameters, _DEPTH) if parameters is not None else []
    name = _text(function.get("name"))
    description = _text(function.get("description"))
    lines = [f"// {description}"] if description else []
    lines += [f"type {name} = (_: {{", *fields, "}) => any;"] if fields else [f"type {name} = () => any;"]
    return "\n".join([*lines, "", ""])


def _parameters(function: dict[str, Any]) -> dict[str, Any] | None:
    """The schema of a function's arguments, under the name that its API gives it."""
    found = (function.get(name) for name in _SCHEMAS)
    return next((schema for schema in found if isinstance(schema, dict)), None)


def _fields(schema: dict[str, Any], depth: int) -> list[str]:
    properties, required = schema.get("properties"), schema.get("required")
    lines: list[str] = []
    for name, property_ in properties.items() if isinstance(properties, dict) else ():
        if isinstance(property_, dict):
            lines += (
                [f"// {property_['description']}"] if isinstance(property_.get("description"), str) else []
            )
            mark = "" if isinstance(required, list) and name in required else "?"
            lines.append(f"{name}{mark}: {_type(property_, depth)},")
    return lines


def _type(schema: dict[str, Any], depth: int) -> str:
    choices, kind = schema.get("enum"), schema.get("type")
    if isinstance(choices, list) and choices:
        return " | ".join(json.dumps(choice, default=str) for choice in choices)
    if depth and kind == "array" and isinstance(schema.get("items"), dict):
        return f"{_type(schema['items'], depth - 1)}[]"
    if depth and kind == "object" and isinstance(schema.get("properties"), dict):
        return "\n".join(["{", *_fields(schema, depth - 1), "}"])
    names = {"integer": "number", "array": "any[]"}
    return names.get(kind, kind) if isinstance(kind, str) else "any"


def _function(text: str) -> dict[str, Any] | None:
    try:
        tool = json.loads(text)
    except (ValueError, RecursionError):
        return None
    inner = tool.get("function", tool) if isinstance(tool, dict) else None
    if not isinstance(inner, dict) or "tools" in inner:  # a namespace is no function
        return None
    return inner if isinstance(inner.get("name"), str) else None


def _properties(schema: dict[str, Any], count: Count, depth: int) -> int:
    """The guide has properties of one level; those within are taken alike."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties or depth == 0:
        return 0
    total = _PROPERTIES
    for name, property_ in properties.items():
        if not isinstance(property_, dict):
            continue
        total += _PROPERTY
        choices = property_.get("enum")
        if isinstance(choices, list) and choices:
            total += _ENUM + sum(_ENUM_ITEM + count(_text(choice)) for choice in choices)
        total += count(
            f"{name}:{_text(property_.get('type'))}:{_text(property_.get('description')).rstrip('.')}"
        )
        inner = property_.get("items") if property_.get("type") == "array" else property_
        total += _properties(inner, count, depth - 1) if isinstance(inner, dict) else 0
    return total


def _text(value: object) -> str:
    """A field as text; a missing one is empty."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
