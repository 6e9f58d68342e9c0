"""Items of the protocol: tool definitions, instructions, calls, results, resources and prompts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ctxctl.ingest import build
from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import Part, call_title, string

_DEPTH = 4
_BESIDE = ("annotations", "outputSchema", "title", "_meta", "icons", "execution")


def scoped_id(server: str | None, name: str) -> str:
    """An id that two servers' tools of one name do not share."""
    return f"mcp:{server}:{name}" if server else f"mcp:{name}"


def tool(definition: Json, server: str | None) -> Part:
    """A tool's definition; its text is what clients put before a model: name, description, input schema."""
    name = string(definition.get("name")) or "tool"
    told: Json = {"name": name}
    if isinstance(definition.get("description"), str):
        told["description"] = definition["description"]
    schema = next((definition[k] for k in ("inputSchema", "input_schema") if k in definition), None)
    if schema is not None:
        told["input_schema"] = schema
    elif "arguments" in definition:
        told["arguments"] = definition["arguments"]
    beside = {key: definition[key] for key in _BESIDE if key in definition}
    return Part(
        "tool_definition",
        build.canonical(told),
        "system",
        key=scoped_id(server, name),
        source=server,
        title=name,
        native=beside or None,
        derived=True,
    )


def instructions(server: str | None, text: str | None) -> Part:
    """What a server tells clients to put into the system prompt."""
    key = scoped_id(server, "instructions")
    native: Json = {"type": "instructions"}
    return Part("policy_note", text, "system", key=key, source=server, title="instructions", native=native)


def call(key: str, name: str, arguments: Any, server: str | None) -> Part:
    """A call of a tool."""
    text = f"{name} {build.canonical(arguments if arguments is not None else {})}"
    title = call_title(name, arguments)
    return Part("tool_call", text, "assistant", key=key, source=server, title=title)


def contents(blocks: Any, key: str, kind: str, role: str, **fields: Any) -> list[Part]:
    """The content blocks of a result, a prompt or a message: one item for each."""
    made: list[Part] = []
    for index, block in enumerate(blocks if isinstance(blocks, list) else [blocks]):
        item = key if index == 0 else f"{key}/{index}"
        if isinstance(block, str):
            block = {"type": "text", "text": block}
        if isinstance(block, dict):
            made.append(_content(block, item, kind, role, fields))
    return made


def _content(block: Json, item: str, kind: str, role: str, fields: Json) -> Part:
    inner = block.get("resource") if block.get("type") == "resource" else block
    if not isinstance(inner, dict):
        inner = block
    text = inner.get("text")
    if isinstance(text, str):
        return Part(kind, text, role, key=item, **fields)
    data = next((inner[k] for k in ("data", "blob") if isinstance(inner.get(k), str)), None)
    if data is None:
        return Part(kind, build.canonical(block), role, key=item, **fields)
    mime = string(inner.get("mimeType"))
    is_image = block.get("type") == "image" or (mime or "").startswith("image/")
    version = build.digest_of(data)[: build.VERSION_DIGITS]
    opaque = "image" if is_image else kind
    size = len(data) * 3 // 4
    return Part(opaque, None, role, key=item, version=version, mime_type=mime, byte_size=size, **fields)


def is_tool(value: Any) -> bool:
    """Whether a value is one tool's definition."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return False
    if isinstance(value.get("inputSchema") or value.get("input_schema"), dict):
        return True
    known = {"name", "description", "arguments", "title", "annotations", "inputSchema", "outputSchema"}
    return isinstance(value.get("description"), str) and set(value) <= known


class Server(NamedTuple):
    """What one server offers."""

    name: str | None
    tools: list[Json]
    instructions: str | None = None


def servers(value: Any, name: str | None, depth: int = 0) -> Iterator[Server]:
    """The servers in a document: tools in an array, one tool, a result of `tools/list`, or several."""
    if isinstance(value, list):
        tools = [one for one in value if is_tool(one)]
        if tools:
            yield Server(name, tools)
        elif depth < _DEPTH:
            for one in value:
                yield from servers(one, name, depth + 1)
        return
    if not isinstance(value, dict) or depth > _DEPTH:
        return
    if is_tool(value):
        yield Server(name, [value])
        return
    name = _name(value) or name
    told = string(value.get("instructions"))
    for key in ("initialize_result", "initializeResult", "initialize"):
        inner = value.get(key)
        if isinstance(inner, dict):
            name, told = _name(inner) or name, told or string(inner.get("instructions"))
    found = value.get("tools")
    if isinstance(found, list):
        yield Server(name, [one for one in found if is_tool(one)], told)
    elif isinstance(found, dict):
        for key, inner in found.items():
            yield from servers(inner, key, depth + 1)
    else:
        for key, inner in value.items():
            if isinstance(inner, dict | list):
                yield from servers(inner, name if key in ("result", "data") else key, depth + 1)


def _name(value: Json) -> str | None:
    for key in ("server_info", "serverInfo", "server"):
        info = value.get(key)
        if isinstance(info, dict) and (found := string(info.get("name"))):
            return found
        if isinstance(info, str) and info:
            return info
    return string(value.get("name")) or string(value.get("server_name"))
