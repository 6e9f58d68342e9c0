"""Google's generateContent, in camelCase as it goes over the wire and in the snake_case of its SDKs."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import Part, listed, string
from ctxctl.providers.dialects.base import (
    CALL,
    JSON,
    PARTS,
    CallTitles,
    Dialect,
    Unit,
    call_part,
    other_fields,
    sealed_part,
    tool_part,
    unknown_part,
)
from ctxctl.providers.dialects.slots import TEXT, Slots, plain, structured

_SYSTEM: Final = ("systemInstruction", "system_instruction")
_DECLARED: Final = ("functionDeclarations", "function_declarations")
_CACHED: Final = ("cachedContent", "cached_content")
_CONFIG: Final = ("generationConfig", "generation_config")
_USAGE: Final = ("usageMetadata", "usage_metadata")
_SCHEMAS: Final = ("responseSchema", "response_schema", "responseJsonSchema", "response_json_schema")


class Gemini(Dialect):
    """generateContent: `tools`, `systemInstruction`, `contents` with parts."""

    name: ClassVar[str] = "gemini"
    provider: ClassVar[str] = "google"
    section: ClassVar[str] = "contents"

    def detect(self, body: Json) -> int:
        """How sure a request body is of this dialect."""
        contents = body.get("contents")
        if isinstance(contents, dict):
            contents = [contents]
        if not isinstance(contents, list) or "messages" in body:
            return 0
        if any(isinstance(content, dict) and "parts" in content for content in contents[:50]):
            return 95
        return 60 if not contents or isinstance(contents[0], str) else 0

    def answers(self, response: Json) -> int:
        """How sure a response body is of this dialect."""
        if any(name in response for name in ("candidates", "promptFeedback", "prompt_feedback")):
            return 95 if isinstance(response.get("candidates") or [], list) else 0
        return 80 if any(isinstance(response.get(name), dict) for name in _USAGE) else 0

    def units(self, body: Json) -> list[Unit]:
        """Tools, answer schema, cached content, system instruction, contents."""
        tools = body.get("tools")
        found = [
            Unit("tools", value, at, True)
            for at, value in enumerate([tools] if isinstance(tools, dict) else listed(tools))
        ]
        for name in _CONFIG:
            config = body.get(name)
            for field in _SCHEMAS:
                schema = config.get(field) if isinstance(config, dict) else None
                if isinstance(schema, dict):
                    found.append(Unit(name, {field: schema}, 0, True))
        for name in _CACHED:
            if string(body.get(name)) is not None:
                found.append(Unit(name, body[name], 0, True))
        for name in _SYSTEM:
            if body.get(name):
                found.append(Unit(name, body[name], 0, True))
        contents = body.get("contents")
        contents = [contents] if isinstance(contents, dict | str) else listed(contents)
        found += [Unit("contents", value, at, False) for at, value in enumerate(contents)]
        return found

    def parts(self, unit: Unit, names: CallTitles, line: int = 0) -> Slots:
        """The items of one piece."""
        slots = Slots(unit.section, line)
        value = unit.value
        if unit.section == "tools":
            _tools(slots, value)
        elif unit.section in _SYSTEM:
            _content(slots, names, value, "system")
        elif unit.section == "contents":
            _content(slots, names, value, None)
        elif unit.section in _CACHED:
            # Kept by the provider: system prompt, tools and contents that this body does not repeat.
            sealed_part(slots, "custom", value, "system", value, key="cached_content", title=value,
                   native={"type": "cachedContent"})  # fmt: skip
        else:
            # The shape of the answer bounds what may be written, and is no input: of requests of 2026 that
            # differ in nothing else, `promptTokenCount` is the same with a schema and without one.
            sealed_part(slots, "custom", value, "system", value, key="body:answer schema", estimate=0,
                   title="answer schema", segment="system", native=plain(value))  # fmt: skip
        return slots

    def settings(self, body: Json) -> Json | None:
        """None but the API's name: Google documents a common prefix of one model's requests."""
        return {"api": self.name}

    def reply(self, response: Json) -> list[Part]:
        """The first candidate's content."""
        candidates = response.get("candidates")
        first = candidates[0] if isinstance(candidates, list) and candidates else None
        content = first.get("content") if isinstance(first, dict) else None
        if not isinstance(content, dict) or not listed(content.get("parts")):
            return []
        return self.message({"role": "model", **content}, 1)


def _tools(slots: Slots, value: Any) -> None:
    for name in _DECLARED:
        declared = value.get(name) if isinstance(value, dict) else None
        if isinstance(declared, list) and declared:
            slots.enter({**other_fields(value, (name,)), name: PARTS})
            for definition in declared:
                tool_part(slots, definition, definition.get("name") if isinstance(definition, dict) else None)
            slots.leave()
            return
    tool_part(slots, value, ",".join(value) if isinstance(value, dict) else None)


def _content(slots: Slots, names: CallTitles, content: Any, fixed: str | None) -> None:
    if isinstance(content, str):
        content = {"parts": [{"text": content}]}
    if not isinstance(content, dict):
        unknown_part(slots, content, fixed or "user")
        return
    wire_role = string(content.get("role"))
    role = fixed or {"model": "assistant", "function": "tool"}.get(wire_role or "user", wire_role or "user")
    parts = content.get("parts")
    if isinstance(parts, dict | str):
        parts = [parts]
    if not isinstance(parts, list) or not parts:
        slots.put(Part(_kind(role), "", role, line=slots.line), plain(content))
        return
    slots.enter({**other_fields(content, ("parts",)), "parts": PARTS})
    for index, part in enumerate(parts):
        key = f"system:{index}" if role == "system" else None
        _part(slots, names, {"text": part} if isinstance(part, str) else part, role, key)
    slots.leave()


def _kind(role: str) -> str:
    return {"assistant": "assistant_message", "system": "system_prompt"}.get(role, "user_message")


def _field(part: Json, camel: str, snake: str) -> tuple[str, Json | None]:
    for name in (camel, snake):
        if isinstance(part.get(name), dict):
            return name, part[name]
    return camel, None


def _part(slots: Slots, names: CallTitles, part: Any, role: str, key: str | None) -> None:
    if not isinstance(part, dict):
        unknown_part(slots, part, role, key)
        return
    text = part.get("text")
    if isinstance(text, str):
        leaf = {**other_fields(part, ("text",)), "text": TEXT}
        signed = part.get("thoughtSignature") or part.get("thought_signature")
        if part.get("thought") is True:
            slots.put(Part("reasoning", text, role, line=slots.line), leaf)
        elif not text and signed:
            sealed_part(slots, "reasoning", signed, role, plain(part), native={"type": "sealed"})
        else:
            slots.text(_kind(role), text, role, leaf, key=key)
        return
    name, inner = _field(part, "functionCall", "function_call")
    if inner is not None:
        _call(slots, names, part, name, inner)
        return
    name, inner = _field(part, "functionResponse", "function_response")
    if inner is not None:
        _response(slots, names, part, name, inner)
        return
    for camel, snake in (("inlineData", "inline_data"), ("fileData", "file_data")):
        name, inner = _field(part, camel, snake)
        if inner is not None:
            _media(slots, part, inner, role, key)
            return
    unknown_part(slots, part, role, key)


def _call(slots: Slots, names: CallTitles, part: Json, field: str, inner: Json) -> None:
    arguments = inner.get("args")
    leaf = other_fields(inner, ("args",))
    if "args" in inner:
        leaf["args"] = CALL if arguments is not None else None
    call_part(
        slots, names, string(inner.get("id")), string(inner.get("name")) or "tool",
        arguments if arguments is not None else {}, {**other_fields(part, (field,)), field: leaf},
    )  # fmt: skip


def _response(slots: Slots, names: CallTitles, part: Json, field: str, inner: Json) -> None:
    call_id, name = string(inner.get("id")), string(inner.get("name"))
    response = inner.get("response")
    leaf = other_fields(inner, ("response", "parts"))
    if "response" in inner:
        leaf["response"] = JSON if response is not None else None
    title = names.result(call_id, name)
    key = f"{call_id}/result" if call_id is not None else None
    if response is None:
        made = Part("tool_result", "", "tool", key=key, title=title, line=slots.line)
    else:
        made = structured("tool_result", plain(response), "tool", key=key, title=title, line=slots.line)
    media = listed(inner.get("parts"))
    if not media:
        if "parts" in inner:
            leaf["parts"] = inner["parts"]
        slots.put(made, {**other_fields(part, (field,)), field: leaf})
        return
    slots.enter(
        {**other_fields(part, (field,)), field: {**leaf, "response": {"$1": "response"}, "parts": PARTS}}
    )
    slots.put(made, JSON if response is not None else None, "response")
    for index, piece in enumerate(media, 1):
        _part(slots, names, piece, "tool", f"{key}/{index}" if key is not None else None)
    slots.leave()


def _media(slots: Slots, part: Json, inner: Json, role: str, key: str | None) -> None:
    mime = string(inner.get("mimeType")) or string(inner.get("mime_type"))
    data = inner.get("data")
    place = inner.get("fileUri") or inner.get("file_uri")
    size = len(data) * 3 // 4 if isinstance(data, str) else None
    image = mime is not None and mime.startswith("image/")
    sealed_part(
        slots, "image" if image else "external_resource", data or place or inner, role, plain(part), key=key,
        mime_type=mime, byte_size=size, title=string(place),
        native={"type": "inlineData" if data else "fileData"},
    )  # fmt: skip
