"""Messages of the chat shape (`role`, `content`, `tool_calls`), as agents store them in trajectories."""

from __future__ import annotations

from typing import Any, Final

import orjson

from ctxctl.ingest import build
from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import Part, call_title, string

_KINDS: Final = {
    "system": ("system_prompt", "system"),
    "developer": ("developer_instruction", "system"),
    "user": ("user_message", "user"),
    "assistant": ("assistant_message", "assistant"),
    "tool": ("tool_result", "tool"),
    "function": ("tool_result", "tool"),
}
_REASONING: Final = ("reasoning_content", "reasoning")
_BLOBS: Final = ("image", "image_url", "input_image", "audio", "input_audio", "video", "file", "document")


class Chat:
    """Cuts the messages of one conversation into parts; tool calls share keys and titles with their results.

    A call id that comes again (agents that number calls anew) is told apart: `call_1`, `call_1~2`.
    """

    def __init__(self) -> None:
        self._calls: dict[str, tuple[str, str | None]] = {}
        """By id, the key and the title of the last call."""
        self._taken: dict[str, int] = {}

    def cut(self, message: Json, *, kind: str | None = None, **options: Any) -> list[Part]:
        """The parts of a message in the order in which the model reads them.

        Args:
            message: A chat message; what is not understood is kept as its JSON.
            kind: Context kind of its text where the role does not say it (an observation sent as a user's).
            options: For each part: `derived`, `line`, `native` …
        """
        role = string(message.get("role")) or "user"
        known, speaker = _KINDS.get(role, ("custom", role))
        parts: list[Part] = []
        if speaker == "tool":
            return self._result(message, options)
        if speaker == "assistant":
            parts += thoughts(message, options)
        parts += texts(message.get("content"), kind or known, speaker, **options)
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            parts += [self.call(call, **options) for call in calls if isinstance(call, dict)]
        elif isinstance(message.get("function_call"), dict):
            parts.append(self.call({"function": message["function_call"]}, **options))
        return parts

    def call(self, call: Json, **options: Any) -> Part:
        """The part of a tool call: `{id, function: {name, arguments}}`, or flat with `name` and
        `arguments`."""
        function = call.get("function")
        function = function if isinstance(function, dict) else call
        name = string(function.get("name")) or string(call.get("function")) or "tool"
        arguments = _parsed(function.get("arguments", call.get("arguments")))
        title = call_title(name, arguments)
        native = string(call.get("id"))
        key = self._unique(native) if native is not None else None
        if native is not None and key is not None:
            self._calls[native] = key, title
        text = f"{name} {build.canonical(arguments if arguments is not None else {})}"
        return Part("tool_call", text, "assistant", key=key, title=title, **options)

    def result(self, call_id: str | None, content: Any, *, role: str = "tool", **options: Any) -> list[Part]:
        """The part that a tool gave back for a call."""
        key = title = None
        if call_id is not None:
            known, title = self._calls.get(call_id, (call_id, None))
            key = self._unique(f"{known}/result")
        options.setdefault("title", title)
        found = texts(content, "tool_result", role, **options)
        if not found:
            found = [Part("tool_result", "", role, **options)]
        for index, part in enumerate(found):
            if key is not None:
                part.item = key if index == 0 else f"{key}/{index}"
        return found

    def item(self, item: Json, **options: Any) -> list[Part]:
        """The parts of an item of the Responses API: a message, a function call, reasoning."""
        kind = item.get("type")
        if kind == "function_call":
            return [self.call({**item, "id": item.get("call_id") or item.get("id")}, **options)]
        if kind == "function_call_output":
            return self.result(string(item.get("call_id")), item.get("output"), **options)
        if kind == "reasoning":
            found = texts(item.get("content") or item.get("summary"), "reasoning", "assistant", **options)
            return found or [_thought({"data": item.get("encrypted_content") or item.get("id")}, options)]
        if kind == "message" or "role" in item:
            return self.cut(item, **options)
        return [Part("custom", build.canonical(item), "assistant", **options)]

    def _result(self, message: Json, options: Json) -> list[Part]:
        native = string(message.get("tool_call_id")) or string(message.get("id"))
        if "title" not in options and native not in self._calls and string(message.get("name")):
            options = {**options, "title": message["name"]}
        return self.result(native, message.get("content"), **options)

    def _unique(self, name: str) -> str:
        again = self._taken[name] = self._taken.get(name, 0) + 1
        return name if again == 1 else self._unique(f"{name}~{again}")


def thoughts(message: Json, options: Json | None = None) -> list[Part]:
    """The reasoning that an assistant's message carries beside its content."""
    blocks = message.get("thinking_blocks")
    found = texts(blocks, "reasoning", "assistant", **(options or {})) if isinstance(blocks, list) else []
    for name in () if found else _REASONING:
        text = string(message.get(name))
        if text is not None:
            return [Part("reasoning", text, "assistant", **(options or {}))]
    return found


def texts(content: Any, kind: str, role: str, **options: Any) -> list[Part]:
    """The parts of a message's content: text, or a list of blocks; an empty text is no part."""
    if isinstance(content, str):
        return [Part(kind, content, role, **options)] if content else []
    if isinstance(content, list):
        return [part for block in content if (part := _block(block, kind, role, options)) is not None]
    if content is None:
        return []
    return [Part(kind, build.canonical(content), role, **options)]


def _block(block: Any, kind: str, role: str, options: Json) -> Part | None:
    if isinstance(block, str):
        return Part(kind, block, role, **options) if block else None
    if not isinstance(block, dict):
        return None
    native = string(block.get("type")) or ""
    if native in ("thinking", "redacted_thinking", "reasoning"):
        return _thought(block, options)
    if native in _BLOBS:
        return blob(block, native, role, options)
    text = block.get("text")
    if isinstance(text, str):
        return Part(kind, text, role, **options) if text else None
    return Part(
        "custom", build.canonical(block), role, native={"type": native}, **_without(options, "native")
    )


def _thought(block: Json, options: Json) -> Part:
    for name in ("thinking", "reasoning", "text"):
        text = string(block.get(name))
        if text is not None and not block.get("redacted"):
            return Part("reasoning", text, "assistant", **options)
    sealed = block.get("signature") or block.get("data") or block.get("reasoning") or ""
    version = build.digest_of(str(sealed))[: build.VERSION_DIGITS]
    return Part("reasoning", None, "assistant", version=version, **options)


def blob(block: Json, native: str, role: str, options: Json) -> Part:
    """The part of an image, a sound or a file, whose data are never text."""
    inner = block.get(native)
    for name in ("image_url", "image", "source", "audio", "input_audio", "file", "document", "video"):
        inner = inner if inner is not None else block.get(name)
    mime = block.get("media_type") or block.get("mime_type")
    if isinstance(inner, dict):
        mime = mime or inner.get("media_type") or inner.get("mime_type")
        inner = next((inner[n] for n in ("url", "data", "file_data", "path", "file_id") if n in inner), inner)
    data = inner if isinstance(inner, str) else build.canonical(inner if inner is not None else block)
    fields: Json = {}
    if data.startswith("data:"):
        mime = mime or data[5:].partition(";")[0].partition(",")[0]
        fields["byte_size"] = len(data.partition(",")[2]) * 3 // 4
    if isinstance(mime, str):
        fields["mime_type"] = mime
    kind = "image" if "image" in native else "external_resource"
    version = build.digest_of(data)[: build.VERSION_DIGITS]
    return Part(kind, None, role, version=version, **fields, **options)


def tools(definitions: Any, **options: Any) -> list[Part]:
    """The parts of tool definitions in the order in which they were sent; their key is the tool's name."""
    found = definitions if isinstance(definitions, list) else []
    return [tool(definition, **options) for definition in found if isinstance(definition, dict)]


def tool(definition: Json, **options: Any) -> Part:
    """The part of one tool definition, as its JSON."""
    function = definition.get("function")
    name = string(function.get("name")) if isinstance(function, dict) else None
    name = name or string(definition.get("name"))
    key = f"tool:{name}" if name is not None else None
    return Part("tool_definition", build.canonical(definition), "system", key=key, title=name, **options)


def _parsed(arguments: Any) -> Any:
    """Arguments as a value: providers send them as JSON text."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return arguments


def _without(options: Json, name: str) -> Json:
    return {key: value for key, value in options.items() if key != name}
