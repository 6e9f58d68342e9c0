"""ctxdiff's blocks as items: texts as they are, everything else from the JSON that ctxdiff made of it."""

from __future__ import annotations

from typing import Any, Final

import orjson

from ctxctl.formats.build import VERSION_DIGITS, Json
from ctxctl.formats.kit.parts import Part, count, string
from ctxctl.formats.wire import by_name
from ctxctl.formats.wire.dialect import Names
from ctxctl.formats.wire.slots import structured

_KINDS: Final = {
    "system": "system_prompt",
    "developer": "developer_instruction",
    "user": "user_message",
    "assistant": "assistant_message",
    "model": "assistant_message",
    "tool": "tool_result",
    "function": "tool_result",
}
_ANTHROPIC: Final = (
    "tool_use",
    "tool_result",
    "thinking",
    "redacted_thinking",
    "document",
    "server_tool_use",
)
_ITEMS: Final = (
    "function_call",
    "function_call_output",
    "reasoning",
    "custom_tool_call",
    "custom_tool_call_output",
)
_RESULTS: Final = frozenset({"functionResponse", "function_response", "toolResult"})
_GEMINI: Final = ("functionCall", "function_call", "functionResponse", "function_response", "executableCode")


def part(block: Json, names: Names) -> Part:
    """A block as an item; `names`: of the thread's tool calls so far."""
    role, text = string(block.get("role")) or "user", block.get("text")
    text = text if isinstance(text, str) else ""
    kind = block.get("kind")
    digest = string(block.get("content_hash"))
    if kind == "image":
        return Part(
            "image", None, _role(role), title=text, version=(digest or "")[:VERSION_DIGITS] or None,
            estimate=count(block.get("token_count")) or None, native={"type": "image"},
        )  # fmt: skip
    value = _loaded(text) if kind in ("tool_schema", "content_part") else None
    if kind == "tool_schema":
        return _tool(text, value)
    found = _piece(role, value, names) if isinstance(value, dict) else None
    return found if found is not None else Part(_KINDS.get(role, "user_message"), text, _role(role))


def is_prompt(block: Json) -> bool:
    """Whether a block at the end of a request is the user's own."""
    if block.get("role") != "user":
        return False
    value = _loaded(block.get("text")) if block.get("kind") == "content_part" else None
    if not isinstance(value, dict):
        return True
    return value.get("type") != "tool_result" and _RESULTS.isdisjoint(value)


def _tool(text: str, value: Any) -> Part:
    holder = value if isinstance(value, dict) else {}
    inner = holder.get("function")
    name = string((inner if isinstance(inner, dict) else holder).get("name"))
    key = f"tool:{name}" if name is not None else None
    return Part("tool_definition", text, "system", key=key, title=name)


def _piece(role: str, value: Json, names: Names) -> Part | None:
    """One part of a message, as the dialect that has such parts reads it; None for what is in none."""
    kind = value.get("type")
    made: list[Part] = []
    if kind in _ANTHROPIC:
        made = by_name("anthropic").message({"role": role, "content": [value]}, 1, names=names)
    elif kind in _ITEMS:
        made = by_name("openai-responses").message(value, 1, names=names)
    elif isinstance(value.get("function"), dict):
        made = by_name("openai-chat").message({"role": "assistant", "tool_calls": [value]}, 1, names=names)
    elif set(value) == {"name", "arguments"}:
        made = by_name("openai-chat").message({"role": "assistant", "function_call": value}, 1, names=names)
    elif any(isinstance(value.get(name), dict) for name in _GEMINI):
        made = by_name("gemini").message({"role": role, "parts": [value]}, 1, names=names)
    elif "toolUse" in value or "toolResult" in value:
        return _converse(value, names)
    elif isinstance(value.get("text"), str):
        return Part(_KINDS.get(role, "user_message"), value["text"], _role(role))
    if len(made) != 1:
        return structured("custom", value, _role(role), title=string(kind))
    made[0].wire = ""
    return made[0]


def _converse(value: Json, names: Names) -> Part | None:
    """A call or a result of Bedrock's Converse."""
    use, result = value.get("toolUse"), value.get("toolResult")
    if isinstance(use, dict):
        key, name = string(use.get("toolUseId")), string(use.get("name")) or "tool"
        title = names.call(key, name, use.get("input"))
        return structured("tool_call", use.get("input") or {}, "assistant", name=name, key=key, title=title)
    if isinstance(result, dict):
        key = string(result.get("toolUseId"))
        own = f"{key}/result" if key is not None else None
        return structured("tool_result", result.get("content"), "tool", key=own, title=names.result(key))
    return None


def _role(role: str) -> str:
    return {"model": "assistant", "developer": "system", "function": "tool"}.get(role, role)


def _loaded(text: Any) -> Any:
    if not isinstance(text, str) or text[:1] not in ("{", "["):
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
