"""A client's own log held against the bodies that it sent: what each frame adds to them, and what it lacks.

The bodies are read by `tools.independent.wire`, which shares no line with ctxctl.  Texts are compared less
their white space: logs keep the parts of a message that the client joins, and the joints are its wrapper.
Calls, results and definitions are compared by what they hold, not by their spelling in one provider's
interface.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from tools.independent.wire import Block

Json = Any
PARTS = {
    "tool_definition": "tools", "system_prompt": "system", "developer_instruction": "system",
    "assistant_message": "assistant", "reasoning": "reasoning", "tool_call": "call",
    "tool_result": "result",
}  # fmt: skip
"""The part of a request that a kind of item belongs to; every other kind belongs to its role's."""
FACTS = {
    "tools": "tool_definitions", "system": "system_prompt", "assistant": "messages", "reasoning": "reasoning",
    "call": "messages", "result": "messages", "user": "reminders", "schema": "tool_definitions",
}  # fmt: skip
"""The fact of context assembly that a part which a log lacks belongs to (`ctxctl formats NAME`)."""


class Piece(NamedTuple):
    """What the provider got, or a log says that it did."""

    part: str
    text: str
    """Of a call, a result or a definition: what it holds, as canonical JSON."""
    name: str
    """For people."""


def part_of(kind: str, role: str | None) -> str:
    """The part of a request that an item is looked for in."""
    return PARTS.get(kind) or ("assistant" if role == "assistant" else "user")


class Match(NamedTuple):
    """One request: the log's frame held against the body."""

    strange: list[Piece]
    """Pieces of the frame that the body does not hold, or holds only before what stands ahead of them."""
    lacking: list[Piece]
    """What the body holds and the frame does not, in the order of the body."""


def canonical(value: Json) -> str:
    """Equal text for equal JSON."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def loaded(text: str) -> Json:
    """JSON out of a text; the text where it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def plain(value: Json) -> str:
    """The text of a message's content, whatever it is wrapped in."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, map(plain, value)))
    if isinstance(value, dict):
        for key in ("text", "content", "output", "thinking", "summary"):
            if key in value:
                return plain(value[key])
        return canonical(value)
    return "" if value is None else canonical(value)


def call(value: Json) -> str:
    """A call by its name and arguments; logs are shown as the name, then the arguments."""
    if not isinstance(value, dict):
        name, _, rest = str(value).partition(" ")
        return canonical([name, loaded(rest)])
    held = value["function"] if isinstance(value.get("function"), dict) else value
    arguments = next((held[key] for key in ("input", "arguments", "args") if key in held), None)
    while isinstance(arguments, str) and loaded(arguments) != arguments:
        arguments = loaded(arguments)
    return canonical([held.get("name"), arguments])


def definition(value: Json) -> str:
    """A tool by its name, description and schema."""
    held = value["function"] if isinstance(value, dict) and isinstance(value.get("function"), dict) else value
    if not isinstance(held, dict):
        return str(value)
    schema = next(
        (held[key] for key in ("input_schema", "parameters", "inputSchema", "schema") if key in held), None
    )
    return canonical([held.get("name") or held.get("type"), held.get("description"), schema])


def piece(part: str, text: str, name: str) -> Piece:
    """A piece out of its text, or of its JSON."""
    value = loaded(text)
    if part == "tools":
        return Piece(part, definition(value), name)
    if part == "call":
        return Piece(part, call(value), name)
    if part == "result":
        return Piece(part, result(text), name)
    return Piece(part, text, name)


def result(text: str) -> str:
    """The text of a result, which may be JSON itself."""
    value = loaded(text)
    return plain(value) if isinstance(value, dict | list) else text


def of_block(block: Block) -> Piece:
    """A piece of a body."""
    name = block.ident or f"{block.part} {block.kind}"
    if block.part in {"tools", "schema"}:
        return piece(block.part, block.content, name)
    if block.kind in {"tool_use", "tool_call", "function_call", "custom_tool_call"}:
        return piece("call", block.content, name)
    if "result" in block.kind or block.kind.endswith("_output") or block.part == "tool":
        return Piece("result", result(plain(loaded(block.content))), name)
    if block.kind in {"reasoning", "thinking", "redacted_thinking"}:
        return Piece("reasoning", plain(loaded(block.content)) if block.text is None else block.text, name)
    part = {"developer": "system", "system": "system", "assistant": "assistant", "model": "assistant"}
    return Piece(
        part.get(block.part, "user"), plain(loaded(block.content)) if block.text is None else block.text, name
    )


def squeezed(text: str) -> str:
    """A text without its white space: what joins its parts is the client's."""
    return "".join(text.split())


def match(frame: list[Piece], body: list[Piece]) -> Match:
    """Find the pieces of a frame in a body, in order; a piece of the body may hold several of the frame.

    A part that the log says stood in the system prompt may be the user's on the wire and the other way round:
    texts are looked for in both.  Empty pieces are nothing.
    """
    whole = [squeezed(one.text) for one in body]
    free = [[(0, len(text))] for text in whole]
    strange = []
    reached = (0, 0)
    for one in frame:
        wanted = squeezed(one.text)
        if not wanted:
            continue
        found = _find(one.part, wanted, body, whole, reached)
        if found is None:
            strange.append(one)
            continue
        place, start = found
        reached = (place, start + len(wanted))
        free[place] = _without(free[place], start, start + len(wanted))
    lacking = [
        Piece(one.part, text[start:end], one.name)
        for one, text, spans in zip(body, whole, free, strict=True)
        for start, end in spans
        if end > start
    ]
    return Match(strange, lacking)


_WORDS = {"user", "system"}


def _find(
    part: str, wanted: str, body: list[Piece], whole: list[str], reached: tuple[int, int]
) -> tuple[int, int] | None:
    for place in range(reached[0], len(body)):
        other = body[place].part
        if other != part and not {other, part} <= _WORDS:
            continue
        if part in {"tools", "call"}:
            if whole[place] == wanted and (place, 0) >= reached:
                return place, 0
            continue
        start = whole[place].find(wanted, reached[1] if place == reached[0] else 0)
        if start >= 0:
            return place, start
    return None


def _without(spans: list[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    kept = []
    for first, last in spans:
        kept += [(first, min(last, start)), (max(first, end), last)]
    return [(first, last) for first, last in kept if first < last]
