"""The content of goose's own messages as parts."""

from __future__ import annotations

from typing import Any, Final

from ctxctl.formats.build import Json, canonical, digest_of
from ctxctl.formats.calls.bodies import unbase64
from ctxctl.formats.kit.parts import Part, call_title, string

_KINDS: Final = {"user": "user_message", "assistant": "assistant_message", "system": "developer_instruction"}
_FOR_PEOPLE: Final = frozenset(
    {"toolConfirmationRequest", "frontendToolRequest", "conversationCompacted", "systemNotification"}
)


def tool_parts(tools: Any) -> list[Part]:
    """The tools of a call, as goose gave them to its provider."""
    made: list[Part] = []
    for tool in tools if isinstance(tools, list) else []:
        if isinstance(tool, dict):
            name = string(tool.get("name"))
            key = f"tool/{name}" if name is not None else None
            made.append(Part("tool_definition", canonical(tool), "system", key=key, title=name))
    return made


def parts_of(message: Json, position: int) -> list[Part]:
    """The parts of one message, in order; ids are those of its tool calls, else of the message."""
    role = "assistant" if message.get("role") == "assistant" else "user"
    content = message.get("content")
    native = string(message.get("id"))
    made: list[Part] = []
    for at, block in enumerate(content if isinstance(content, list) else []):
        if isinstance(block, dict) and str(block.get("type")) not in _FOR_PEOPLE:
            key = f"{native}/{at}" if native is not None else None
            made += _block(block, role, key)
    return made


def _block(block: Json, role: str, key: str | None) -> list[Part]:
    kind = block.get("type")
    if kind == "text":
        text = block.get("text")
        return [Part(_KINDS[role], text, role, key=key)] if isinstance(text, str) else []
    if kind == "toolRequest":
        return [_call(block)]
    if kind == "toolResponse":
        return _result(block)
    if kind == "image":
        return [_image(block, role, key)]
    if kind == "thinking":
        text = block.get("thinking")
        return [Part("reasoning", text if isinstance(text, str) else None, role, key=key)]
    if kind == "reasoning":
        text = block.get("text")
        return [Part("reasoning", text if isinstance(text, str) else None, role, key=key)]
    if kind == "redactedThinking":
        sealed = string(block.get("data")) or ""
        version = digest_of(sealed)[:16]
        return [Part("reasoning", None, role, key=key, title="sealed reasoning", version=version)]
    return [Part("custom", canonical(block), role, key=key, title=string(kind))]


def _call(block: Json) -> Part:
    identity = string(block.get("id"))
    call = block.get("toolCall")
    value = call.get("value") if isinstance(call, dict) else None
    if not isinstance(value, dict):
        failed = "a call that failed to parse"
        return Part("tool_call", canonical(call), "assistant", key=identity, title=failed)
    name = string(value.get("name")) or "?"
    arguments = value.get("arguments")
    title = call_title(name, arguments)
    return Part("tool_call", f"{name} {canonical(arguments)}", "assistant", key=identity, title=title)


def _result(block: Json) -> list[Part]:
    """A tool's answer; goose leaves out what is meant for people only."""
    identity = string(block.get("id"))
    result = block.get("toolResult")
    value = result.get("value") if isinstance(result, dict) else None
    if isinstance(value, dict):
        value = value.get("content")
    key = f"{identity}/result" if identity is not None else None
    if not isinstance(value, list):
        error = result.get("error") if isinstance(result, dict) else result
        text = error if isinstance(error, str) else canonical(error)
        return [Part("tool_result", text, "tool", key=key, native={"is_error": True})]
    texts: list[str] = []
    made: list[Part] = []
    for piece in value:
        if not isinstance(piece, dict) or not _for_model(piece):
            continue
        if isinstance(piece.get("text"), str):
            texts.append(piece["text"])
        elif piece.get("type") == "image":
            made.append(_image(piece, "tool", f"{key}/image-{len(made) + 1}" if key else None))
        else:
            texts.append(canonical(piece))
    return [Part("tool_result", "\n".join(texts), "tool", key=key), *made]


def _for_model(piece: Json) -> bool:
    marks = piece.get("annotations")
    audience = marks.get("audience") if isinstance(marks, dict) else None
    return not isinstance(audience, list) or "assistant" in audience


def _image(block: Json, role: str, key: str | None) -> Part:
    data = string(block.get("data")) or ""
    size = len(unbase64(data) or b"")
    kind = string(block.get("mimeType")) or "image"
    version = digest_of(data)[:16]
    return Part("image", None, role, key=key, version=version, title=kind, mime_type=kind, byte_size=size)
