"""OpenAI's Chat Completions API, and the many servers that speak it."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import orjson

from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import Part, listed, string
from ctxctl.providers.dialects.base import (
    PARTS,
    CallTitles,
    Dialect,
    Unit,
    call_part,
    extra_part,
    message_units,
    other_fields,
    sealed_part,
    tool_part,
    unknown_part,
)
from ctxctl.providers.dialects.slots import CALL, INPUT, TEXT, Slots, is_data_url, plain

_ROLES: Final = ("system", "developer", "user", "assistant", "tool", "function")
_KINDS: Final = {"system": "system_prompt", "developer": "developer_instruction", "user": "user_message"}
_REASONING: Final = ("reasoning_content", "reasoning")
_TEXTS: Final = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
_BLOBS: Final = ("image_url", "input_audio", "file", "video_url", "image", "audio")
_OPENAI: Final = ("frequency_penalty", "presence_penalty", "response_format", "max_completion_tokens",
                  "parallel_tool_calls", "stream_options", "logprobs", "reasoning_effort", "n")  # fmt: skip


class OpenAIChat(Dialect):
    """Chat Completions: `tools` (or `functions`) and `messages`."""

    name: ClassVar[str] = "openai-chat"
    provider: ClassVar[str] = "openai"
    section: ClassVar[str] = "messages"

    def detect(self, body: Json) -> int:
        """How sure a request body is of this dialect."""
        messages = body.get("messages")
        if not isinstance(messages, list) or "system" in body:
            return 0
        tools = body.get("tools")
        first = tools[0] if isinstance(tools, list) and tools else None
        if "functions" in body or (isinstance(first, dict) and "function" in first):
            return 90
        score = 70 if any(name in body for name in _OPENAI) else 0
        for message in messages[:50]:
            if not isinstance(message, dict) or message.get("role") not in _ROLES:
                return 0
            if message["role"] in ("system", "developer", "tool", "function") or "tool_calls" in message:
                score = 85
        if score == 0 and messages and "content" in messages[0]:
            score = 60 if isinstance(body.get("model"), str) else 50
        return score

    def answers(self, response: Json) -> int:
        """How sure a response body is of this dialect."""
        choices = response.get("choices")
        if isinstance(choices, list) and (
            str(response.get("object", "")).startswith("chat.completion")
            or (choices and isinstance(choices[0], dict) and "message" in choices[0])
        ):
            return 95
        return 0

    def units(self, body: Json) -> list[Unit]:
        """Tools, answer schema, messages; the system's at the beginning stand before the conversation."""
        found: list[Unit] = []
        for name in ("tools", "functions"):
            found += [Unit(name, value, at, True) for at, value in enumerate(listed(body.get(name)))]
        shape = body.get("response_format")
        # Hugging Face's servers have the schema under `value`.
        if isinstance(shape, dict) and ("json_schema" in shape or isinstance(shape.get("value"), dict)):
            found.append(Unit("response_format", shape, 0, True))
        return found + message_units(listed(body.get("messages")))

    def parts(self, unit: Unit, names: CallTitles, line: int = 0) -> Slots:
        """The items of one piece."""
        slots = Slots(unit.section, line)
        value = unit.value
        if unit.section in ("tools", "functions"):
            inner = value.get("function") if isinstance(value, dict) else None
            holder = inner if isinstance(inner, dict) else value
            if isinstance(holder, dict) and holder is value and isinstance(value.get("custom"), dict):
                holder = value["custom"]
            tool_part(slots, value, holder.get("name") if isinstance(holder, dict) else None)
        elif unit.section == "messages":
            _message(slots, names, value, f"system:{unit.at}" if unit.head else None)
        else:
            extra_part(slots, value, unit.section)
        return slots

    def settings(self, body: Json) -> Json | None:
        """None but the API's name: OpenAI documents no parameter beside model, tools, schema and messages."""
        return {"api": self.name}

    def reply(self, response: Json) -> list[Part]:
        """The first choice's message."""
        choices = response.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        message = first.get("message") if isinstance(first, dict) else None
        if not isinstance(message, dict):
            return []
        said = {name: value for name, value in message.items() if value not in (None, [], "")}
        said.setdefault("role", "assistant")
        if not set(said) - {"role"}:
            return []
        if "content" not in said and "content" in message:
            said["content"] = message["content"]
        return self.message(said, 1)


def _message(slots: Slots, names: CallTitles, message: Any, key: str | None) -> None:
    if not isinstance(message, dict):
        unknown_part(slots, message, "user")
        return
    role = string(message.get("role")) or "user"
    if role in ("tool", "function"):
        _result(slots, names, message, role)
        return
    holes = _holes(message)
    if not holes:
        kind = "assistant_message" if role == "assistant" else _KINDS.get(role, "user_message")
        slots.put(Part(kind, "", role, key=key, line=slots.line), plain(message))
        return
    slots.enter({**other_fields(message, holes), **holes})
    for name in _REASONING:
        if name in holes:
            text = message[name]
            slots.put(Part("reasoning", text, role, line=slots.line), TEXT, name)
    if "content" in holes:
        _content(slots, message["content"], role, key)
    if "refusal" in holes:
        slots.text(
            "assistant_message", message["refusal"], role, TEXT, to="refusal", native={"type": "refusal"}
        )
    for value in listed(message.get("tool_calls")) if "tool_calls" in holes else []:
        _call(slots, names, value, "calls")
    if "function_call" in holes:
        _function(slots, names, None, message["function_call"], holes["function_call"]["$1"])
    slots.mark(message)
    slots.leave()


def _holes(message: Json) -> Json:
    """The fields of a message whose content become items of their own, each with its hole."""
    holes: Json = {}
    for name in _REASONING:
        if string(message.get(name)) is not None:
            holes[name] = {"$1": name}
    content = message.get("content")
    if isinstance(content, str) or (isinstance(content, list) and content):
        holes["content"] = PARTS
    if string(message.get("refusal")) is not None:
        holes["refusal"] = {"$1": "refusal"}
    if listed(message.get("tool_calls")):
        holes["tool_calls"] = {"$": "calls"}
    if isinstance(message.get("function_call"), dict):
        holes["function_call"] = {"$1": "function_call"}
    return holes


def _content(slots: Slots, content: Any, role: str, key: str | None) -> None:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    kind = "assistant_message" if role == "assistant" else _KINDS.get(role, "user_message")
    for index, block in enumerate(blocks):
        name = key if key is None or index == 0 else f"{key}/{index}"
        block_kind(slots, block, kind, role, key=name)
        slots.mark(block)


def block_kind(slots: Slots, block: Any, kind: str, role: str, **fields: Any) -> None:
    """Place a content block as an item of that kind, unless the block says that it is something else."""
    if isinstance(block, str):
        slots.text(kind, block, role, TEXT, **fields)
        return
    hole = _TEXTS.get(str(block.get("type", "text"))) if isinstance(block, dict) else None
    text = block.get(hole) if hole is not None else None
    if isinstance(text, str) and hole is not None:
        slots.text(kind, text, role, {**other_fields(block, (hole,)), hole: TEXT}, **fields)
    elif (
        isinstance(block, dict) and block.get("type") == "thinking" and isinstance(block.get("thinking"), str)
    ):
        leaf = {**other_fields(block, ("thinking",)), "thinking": TEXT}
        slots.put(Part("reasoning", block["thinking"], role, line=slots.line, **fields), leaf)
    elif isinstance(block, dict) and block.get("type") in _BLOBS:
        _blob(slots, block, role, fields.get("key"))
    else:
        unknown_part(slots, block, role, fields.get("key"))


def _blob(slots: Slots, block: Json, role: str, key: str | None) -> None:
    kind = str(block["type"])
    inner = block.get(kind)
    inner = inner if isinstance(inner, dict) else {"url": inner}
    data = inner.get("url") or inner.get("data") or inner.get("file_data") or inner.get("file_id") or inner
    mime, size = data_url_facts(data)
    if kind in ("input_audio", "audio") and isinstance(data, str):
        mime, size = f"audio/{inner.get('format') or 'wav'}", len(data) * 3 // 4
    image = kind in ("image_url", "image")
    sealed_part(
        slots, "image" if image else "external_resource", data, role, _bare(block, kind), key=key,
        mime_type=mime, byte_size=size, title=string(inner.get("filename")), native={"type": kind},
    )  # fmt: skip


def _bare(block: Json, kind: str) -> Any:
    inner = block.get(kind)
    if kind in ("input_audio", "audio") and isinstance(inner, dict):
        # Its data does not say that it is base64; the field it stands in does.
        return plain({**block, kind: {**inner, "format": inner.get("format")}})
    return plain(block)


def data_url_facts(data: Any) -> tuple[str | None, int | None]:
    """Media type and size in bytes of a data URL; of anything else neither is known."""
    if not is_data_url(data):
        return None, None
    header, comma, body = data.partition(",")
    mime = header[5:].split(";")[0] or None
    return mime, (len(body) * 3 // 4 if header.endswith(";base64") else len(body)) if comma else None


def _call(slots: Slots, names: CallTitles, value: Any, to: str) -> None:
    inner = value.get("function") if isinstance(value, dict) else None
    if isinstance(inner, dict):
        _function(slots, names, value, inner, to)
        return
    custom = value.get("custom") if isinstance(value, dict) else None
    if isinstance(custom, dict) and isinstance(custom.get("input"), str):
        name = string(custom.get("name")) or "tool"
        leaf = {
            **other_fields(value, ("custom",)),
            "custom": {**other_fields(custom, ("input",)), "input": INPUT},
        }
        call_part(slots, names, string(value.get("id")), name, custom["input"], leaf, to=to)
        return
    unknown_part(
        slots, value, "assistant", string(value.get("id")) if isinstance(value, dict) else None, to=to
    )


def _function(slots: Slots, names: CallTitles, outer: Json | None, inner: Json, to: str) -> None:
    name = string(inner.get("name")) or "tool"
    arguments, hole, sent = parsed(inner.get("arguments"))
    leaf: Json = {**other_fields(inner, ("arguments",))}
    if "arguments" in inner:
        leaf["arguments"] = hole
    if outer is not None:
        leaf = {**other_fields(outer, ("function",)), "function": leaf}
    key = string(outer.get("id")) if outer is not None else None
    call_part(slots, names, key, name, arguments, leaf, to=to, sent=sent)


def parsed(arguments: Any) -> tuple[Any, Any, str | None]:
    """The arguments of a call, the hole that gives them back, and the string that they were sent as."""
    if not isinstance(arguments, str):
        return (arguments if arguments is not None else {}), (CALL if arguments is not None else None), None
    try:
        value = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return arguments, INPUT, None
    return (value, INPUT, arguments) if isinstance(value, dict | list) else (arguments, INPUT, None)


def _result(slots: Slots, names: CallTitles, message: Json, role: str) -> None:
    call_id, name = string(message.get("tool_call_id")), string(message.get("name"))
    key = f"{call_id}/result" if call_id is not None else None
    title = names.result(call_id, name)
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list) or not content:
        slots.put(Part("tool_result", "", "tool", key=key, title=title, line=slots.line), plain(message))
        return
    slots.enter({**other_fields(message, ("content",)), "content": PARTS})
    for index, block in enumerate(content):
        each = key if key is None or index == 0 else f"{key}/{index}"
        block_kind(slots, block, "tool_result", "tool", key=each, title=title)
        slots.mark(block)
    slots.mark(message)
    slots.leave()
