"""Anthropic's Messages API."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import Part, listed, mapping, string
from ctxctl.providers.dialects import left_out
from ctxctl.providers.dialects.base import (
    CALL,
    PARTS,
    CallTitles,
    Dialect,
    Piece,
    Unit,
    call_part,
    extra_part,
    other_fields,
    sealed_part,
    tool_part,
    unknown_part,
)
from ctxctl.providers.dialects.slots import JSON, TEXT, Slots, plain, short_parameter, structured
from ctxctl.providers.dialects.units import LeftOut

_BILLING: Final = "x-anthropic-billing-header:"
_MEDIA: Final = ("image", "document")
_ROLES: Final = ("user", "assistant", "system")


class Anthropic(Dialect):
    """Messages: `system`, `tools`, `messages` with content blocks."""

    name: ClassVar[str] = "anthropic"
    provider: ClassVar[str] = "anthropic"
    section: ClassVar[str] = "messages"

    def detect(self, body: Json) -> int:
        """How sure a request body is of this dialect."""
        messages = body.get("messages")
        if not isinstance(messages, list):
            return 0
        if "anthropic_version" in body or "input_schema" in _first(body.get("tools")):
            return 95
        if "function" in _first(body.get("tools")) or "functions" in body:
            return 0
        score = 85 if "system" in body else 0
        claude = "claude" in str(body.get("model", "")).lower()
        for message in messages[:50]:
            if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
                return 0
            if "tool_calls" in message or "function_call" in message:
                return 0
            for block in listed(message.get("content")):
                if isinstance(block, dict):
                    if block.get("type") in ("tool_use", "tool_result", "thinking") or (
                        block.get("type") == "image" and "source" in block
                    ):
                        return 95
                    if "cache_control" in block and claude:
                        score = max(score, 80)
        if claude and "max_tokens" in body:
            score = max(score, 80)
        return score

    def answers(self, response: Json) -> int:
        """How sure a response body is of this dialect."""
        if response.get("type") == "error" and isinstance(response.get("error"), dict):
            return 60
        if response.get("type") == "message" and isinstance(response.get("content"), list):
            return 95
        return 0

    def units(self, body: Json) -> list[Unit]:
        """Tools, output schema, system blocks, messages."""
        found = [Unit("tools", value, at, True) for at, value in enumerate(listed(body.get("tools")))]
        for name in ("output_format", "output_config"):
            value = body.get(name)
            if isinstance(value, dict) and ("schema" in value or isinstance(value.get("format"), dict)):
                shape = {"format": value["format"]} if "format" in value else value
                found.append(Unit(name, shape, 0, True))
        system = body.get("system")
        if isinstance(system, str):
            system = [{"type": "text", "text": system}]
        at = 0
        for value in listed(system):
            found.append(Unit("system", value, at, True))
            at += not _is_billing(value)
        found += [Unit("messages", value, at, False) for at, value in enumerate(listed(body.get("messages")))]
        return found

    def parts(self, unit: Unit, names: CallTitles, line: int = 0) -> Slots:
        """The items of one piece."""
        slots = Slots(unit.section, line)
        value = unit.value
        if unit.section == "tools":
            tool_part(slots, value, value.get("name") if isinstance(value, dict) else None)
        elif unit.section == "system":
            _system(slots, value, unit.at)
        elif unit.section == "messages":
            _message(slots, names, value)
        else:
            extra_part(slots, value, unit.section)
        return slots

    def reached(
        self, units: list[Unit], body: Json, response: Json | None, known: LeftOut
    ) -> list[Piece] | None:
        """Leave out what precedes a compaction, what was cleared, and tools before they are found."""
        return left_out.of_messages(units, body, response, known)

    def may_edit(self, body: Json) -> bool:
        """Whether it asks for edits."""
        return left_out.may_edit(body)

    def summed_up(self, response: Json, parts: list[Part]) -> int:
        """Count up to the last compaction; 0 where the answer ends with it."""
        ends = [at for at, part in enumerate(parts, 1) if part.kind == "thread_summary" and part.text]
        return ends[-1] if ends and ends[-1] < len(parts) else 0

    def settings(self, body: Json) -> Json | None:
        """Tool choice, thinking, effort and speed."""
        made: Json = {"api": self.name}
        for name in ("tool_choice", "thinking", "speed"):
            if body.get(name) is not None:
                made[name] = short_parameter(body[name])
        config = body.get("output_config")
        if isinstance(config, dict) and config.get("effort") is not None:
            made["effort"] = short_parameter(config["effort"])
        return made

    def reply(self, response: Json) -> list[Part]:
        """The answer's blocks as an assistant message."""
        content = response.get("content")
        if not isinstance(content, list) or not content:
            return []
        blocks = [_sent_back(block) for block in content]
        return self.message({"role": "assistant", "content": blocks}, 1)


def _first(tools: Any) -> Json:
    return tools[0] if isinstance(tools, list) and tools and isinstance(tools[0], dict) else {}


def _is_billing(value: Any) -> bool:
    text = value.get("text") if isinstance(value, dict) else value
    return isinstance(text, str) and text.startswith(_BILLING)


def _sent_back(block: Any) -> Any:
    """An answer's block less the fields that say nothing, which clients leave out when they send it back."""
    if not isinstance(block, dict):
        return block
    return {name: value for name, value in block.items() if value is not None}


def _system(slots: Slots, value: Any, index: int) -> None:
    key = "system:billing" if _is_billing(value) else f"system:{index}"
    text = value.get("text") if isinstance(value, dict) else value
    if isinstance(text, str):
        leaf = _leaf(value, "text") if isinstance(value, dict) else TEXT
        slots.text("system_prompt", text, "system", leaf, key=key)
    else:
        unknown_part(slots, value, "system", key)
    slots.mark(value)


def _leaf(block: Json, hole: str) -> Json:
    return {**other_fields(block, (hole,)), hole: TEXT}


def _message(slots: Slots, names: CallTitles, message: Any) -> None:
    if not isinstance(message, dict):
        unknown_part(slots, message, "user")
        return
    role = string(message.get("role")) or "user"
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list) or not content:
        kind = "assistant_message" if role == "assistant" else "user_message"
        slots.put(Part(kind, "", role, line=slots.line), plain(message))
        return
    slots.enter({**other_fields(message, ("content",)), "content": PARTS})
    for block in content:
        _block(slots, names, block, role)
        slots.mark(block)
    slots.leave()


def _block(slots: Slots, names: CallTitles, block: Any, role: str) -> None:
    if not isinstance(block, dict):
        if isinstance(block, str):
            slots.text(_kind(role), block, role, TEXT)
        else:
            unknown_part(slots, block, role)
        return
    kind = block.get("type")
    text = block.get("text")
    if kind == "text" and isinstance(text, str):
        slots.text(_kind(role), text, role, _leaf(block, "text"))
    elif kind in ("thinking", "redacted_thinking"):
        _reasoning(slots, block, role)
    elif isinstance(kind, str) and kind.endswith("tool_use"):
        name = string(block.get("name")) or "tool"
        arguments = block.get("input")
        leaf = {
            **other_fields(block, ("input",)),
            "input": CALL if not isinstance(arguments, str) else arguments,
        }
        if "input" not in block:
            leaf.pop("input")
        made = call_part(
            slots, names, string(block.get("id")), name, arguments if arguments is not None else {}, leaf
        )
        made.native = {"type": kind} if kind != "tool_use" else None
    elif isinstance(kind, str) and kind.endswith("tool_result"):
        _result(slots, names, block, role)
    elif kind in _MEDIA:
        media_part(slots, block, role)
    elif kind == "compaction" and isinstance(block.get("content"), str):
        slots.text("thread_summary", block["content"], role, _leaf(block, "content"))
    else:
        unknown_part(slots, block, role, string(block.get("id")))


def _kind(role: str) -> str:
    if role == "assistant":
        return "assistant_message"
    return "system_prompt" if role == "system" else "user_message"


def _reasoning(slots: Slots, block: Json, role: str) -> None:
    text = block.get("thinking")
    if isinstance(text, str) and text:
        slots.put(Part("reasoning", text, role, line=slots.line), _leaf(block, "thinking"))
        return
    data = block.get("signature") or block.get("data") or ""
    sealed_part(slots, "reasoning", data, role, plain(block), native={"type": "sealed"})


def media_part(slots: Slots, block: Json, role: str, key: str | None = None) -> None:
    """Place an image or a document; a document in plain text has its text."""
    source = mapping(block.get("source"))
    kind = "image" if block.get("type") == "image" else "external_resource"
    inner = source.get("data")
    title = string(block.get("title"))
    if source.get("type") == "text" and isinstance(inner, str):
        leaf = {
            **other_fields(block, ("source",)),
            "source": {**other_fields(source, ("data",)), "data": TEXT},
        }
        slots.put(Part(kind, inner, role, key=key, title=title, line=slots.line), leaf)
        return
    data = inner or source.get("url") or source.get("file_id") or source
    size = len(inner) * 3 // 4 if source.get("type") == "base64" and isinstance(inner, str) else None
    sealed_part(
        slots, kind, data, role, plain(block), key=key, title=title, byte_size=size,
        mime_type=string(source.get("media_type")), native={"type": block.get("type")},
    )  # fmt: skip


def _result(slots: Slots, names: CallTitles, block: Json, role: str) -> None:
    tool_id = string(block.get("tool_use_id"))
    key = f"{tool_id}/result" if tool_id is not None else None
    title = names.result(tool_id)
    native: Json | None = {"type": block.get("type")} if block.get("type") != "tool_result" else None
    if block.get("is_error") is True:
        native = {**(native or {}), "is_error": True}
    content = block.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list) or not content:
        if content is None or content == []:
            made = Part("tool_result", "", role, key=key, title=title, native=native, line=slots.line)
            slots.put(made, plain(block))
            return
        made = structured(
            "tool_result", plain(content), role, key=key, title=title, native=native, line=slots.line
        )
        slots.put(made, {**other_fields(block, ("content",)), "content": JSON})
        return
    slots.enter({**other_fields(block, ("content",)), "content": PARTS})
    for index, inner in enumerate(content):
        name = key if key is None or index == 0 else f"{key}/{index}"
        said: Any = inner.get("text") if isinstance(inner, dict) else inner
        if isinstance(inner, dict) and inner.get("type") in _MEDIA:
            media_part(slots, inner, role, name)
        elif isinstance(said, str) and (not isinstance(inner, dict) or inner.get("type") == "text"):
            leaf = _leaf(inner, "text") if isinstance(inner, dict) else TEXT
            slots.text("tool_result", said, role, leaf, key=name, title=title, native=native)
        else:
            made = structured(
                "tool_result", plain(inner), role, key=name, title=title, native=native, line=slots.line
            )
            slots.put(made, JSON)
        slots.mark(inner)
    slots.leave()
