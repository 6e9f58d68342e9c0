"""OpenAI's Responses API."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import Part, listed, string
from ctxctl.providers.dialects import left_out
from ctxctl.providers.dialects.base import (
    PARTS,
    CallTitles,
    Dialect,
    Piece,
    Unit,
    call_part,
    extra_part,
    in_place,
    other_fields,
    sealed_part,
    tool_part,
    unknown_part,
)
from ctxctl.providers.dialects.openai_chat import data_url_facts, parsed
from ctxctl.providers.dialects.slots import INPUT, JSON, TEXT, Slots, compact_json, plain, structured
from ctxctl.providers.dialects.units import COMPACTIONS, LeftOut

_KINDS: Final = {
    "system": "system_prompt",
    "developer": "developer_instruction",
    "assistant": "assistant_message",
    "user": "user_message",
}
_TEXTS: Final = {"input_text": "text", "output_text": "text", "text": "text", "summary_text": "text",
                 "reasoning_text": "text", "refusal": "refusal"}  # fmt: skip
_ITEMS: Final = ("function_call", "function_call_output", "reasoning", "item_reference", "custom_tool_call",
                 "local_shell_call", "compaction", "web_search_call", "mcp_call")  # fmt: skip
_HELD: Final = ("previous_response_id", "conversation")
"""Fields that name a history which the provider holds and the body does not repeat."""
_PICTURE: Final = ("image_generation_call",)


class OpenAIResponses(Dialect):
    """Responses: `tools`, `instructions`, and `input`, a string or items."""

    name: ClassVar[str] = "openai-responses"
    provider: ClassVar[str] = "openai"
    section: ClassVar[str] = "input"

    def detect(self, body: Json) -> int:
        """How sure a request body is of this dialect."""
        given = body.get("input")
        if "messages" in body or "contents" in body or not isinstance(given, str | list):
            # A stored prompt, or a conversation that the provider holds.
            held = "previous_response_id" in body or isinstance(body.get("prompt"), dict)
            return 60 if held and "messages" not in body and "model" in body else 0
        if "encoding_format" in body or "voice" in body:
            return 0
        if any(
            name in body for name in ("instructions", "previous_response_id", "max_output_tokens", "store")
        ):
            return 90
        for item in listed(given)[:50]:
            if not isinstance(item, dict):
                return 0
            if item.get("type") in _ITEMS or item.get("role") in tuple(_KINDS):
                return 85
        return 55 if isinstance(given, str) and ("tools" in body or "reasoning" in body) else 0

    def answers(self, response: Json) -> int:
        """How sure a response body is of this dialect."""
        if isinstance(response.get("output"), list):
            return 95 if response.get("object") in ("response", "response.compaction") else 60
        return 0

    def units(self, body: Json) -> list[Unit]:
        """Tools, answer schema, instructions, input; what the provider holds comes first in the input."""
        found = [Unit("tools", value, at, True) for at, value in enumerate(listed(body.get("tools")))]
        text = body.get("text")
        shape = text.get("format") if isinstance(text, dict) else None
        if isinstance(shape, dict) and "schema" in shape:
            found.append(Unit("text", {"format": shape}, 0, True))
        prompt = body.get("prompt")
        if isinstance(prompt, dict):
            found.append(Unit("prompt", prompt, 0, True))
        instructions = body.get("instructions")
        if isinstance(instructions, str):
            found.append(Unit("instructions", instructions, 0, True))
        else:
            found += [Unit("instructions", value, at, True) for at, value in enumerate(listed(instructions))]
        for name in _HELD:
            value = body.get(name)
            if string(value) is not None or isinstance(value, dict):
                found.append(Unit(name, value, 0, True))
        given = body.get("input")
        if isinstance(given, str):
            given = [{"role": "user", "content": given}]
        front = True
        for at, value in enumerate(listed(given)):
            front = front and isinstance(value, dict) and value.get("role") in ("system", "developer")
            found.append(Unit("input", value, at, front))
        return found

    def parts(self, unit: Unit, names: CallTitles, line: int = 0) -> Slots:
        """The items of one piece."""
        slots = Slots(unit.section, line)
        value = unit.value
        if unit.section == "tools":
            _tool(slots, value)
        elif unit.section == "instructions" and isinstance(value, str):
            slots.text("system_prompt", value, "system", TEXT, key="instructions")
        elif unit.section == "prompt":
            sealed_part(
                slots, "system_prompt", value, "system", plain(value), key="prompt",
                title=string(value.get("id")), native={"type": "stored_prompt"},
            )  # fmt: skip
        elif unit.section in _HELD:
            title = string(value) or (string(value.get("id")) if isinstance(value, dict) else None)
            sealed_part(
                slots, "custom", value, "user", plain(value), key=f"{unit.section}:{title}", title=title,
                native={"type": unit.section},
            )  # fmt: skip
        elif unit.section in ("input", "instructions"):
            prefix = f"system:{unit.section}" if unit.section == "instructions" else "system"
            _item(slots, names, value, f"{prefix}:{unit.at}" if unit.head else None)
        else:
            extra_part(slots, value, "answer schema")
        return slots

    def reached(
        self, units: list[Unit], body: Json, response: Json | None, known: LeftOut
    ) -> list[Piece] | None:
        """Leave out what precedes a compaction that the provider made, and parameters of deferred tools."""
        return left_out.of_input(units, known)

    def settings(self, body: Json) -> Json | None:
        """None but the API's name: OpenAI documents no parameter beside model, tools, schema and messages."""
        return {"api": self.name}

    def reply(self, response: Json) -> list[Part]:
        """The output items."""
        made: list[Part] = []
        names = CallTitles()
        for item in listed(response.get("output")):
            if isinstance(item, dict):
                item = {name: value for name, value in item.items() if value is not None}
            made += self.message(item, 1, names=names)
        return made

    def handed(self, response: Json, parts: list[Part]) -> frozenset[str]:
        """All that `/responses/compact` gives out is the next request's input, not what the model said."""
        if response.get("object") != "response.compaction":
            return frozenset()
        return frozenset(part.item for part in parts if part.kind != "thread_summary")


def _tool(slots: Slots, value: Any) -> None:
    name = None
    if isinstance(value, dict):
        name = string(value.get("name"))
        label = string(value.get("server_label"))
        if name is None and label is not None:
            name = f"mcp:{label}"
    tool_part(slots, value, name)


def _item(slots: Slots, names: CallTitles, item: Any, key: str | None) -> None:
    if not isinstance(item, dict):
        unknown_part(slots, item, "user")
        return
    kind = item.get("type")
    if kind in (None, "message") and "role" in item:
        _message(slots, item, key)
    elif kind == "reasoning":
        _reasoning(slots, item)
    elif kind == "function_call" or (
        isinstance(kind, str) and kind.endswith("tool_call") and "input" in item
    ):
        _call(slots, names, item, "arguments" if kind == "function_call" else "input")
    elif kind in ("additional_tools", "tool_search_output"):
        _more_tools(slots, item)
    elif isinstance(kind, str) and kind.endswith("_output") and "call_id" in item:
        _result(slots, names, item)
    elif kind == "mcp_call":
        _mcp(slots, names, item)
    elif kind == "mcp_list_tools":
        _tool_list(slots, item)
    elif kind == "item_reference":
        sealed_part(slots, "custom", str(item.get("id")), "user", plain(item), key=string(item.get("id")),
               native={"type": kind})  # fmt: skip
    elif kind in COMPACTIONS:
        sealed_part(slots, "thread_summary", item.get("encrypted_content") or "", "user", plain(item),
               key=string(item.get("id")), native={"type": "sealed"})  # fmt: skip
    elif kind in _PICTURE and isinstance(item.get("result"), str):
        data = item["result"]
        sealed_part(slots, "image", data, "assistant", plain({**item, "result": f"data:;base64,{data}"}),
               key=string(item.get("id")), byte_size=len(data) * 3 // 4, native={"type": kind})  # fmt: skip
    elif isinstance(kind, str) and kind.endswith("_call"):
        _server_call(slots, names, item, kind)
    else:
        unknown_part(slots, item, "assistant" if kind != "message" else "user", string(item.get("id")))
    slots.mark(item)


def _message(slots: Slots, item: Json, key: str | None) -> None:
    role = string(item.get("role")) or "user"
    kind = _KINDS.get(role, "user_message")
    key = key or string(item.get("id"))
    content = item.get("content")
    if isinstance(content, str):
        content = [{"type": "output_text" if role == "assistant" else "input_text", "text": content}]
    if not isinstance(content, list) or not content:
        slots.put(Part(kind, "", role, key=key, line=slots.line), plain(item))
        return
    slots.enter({**other_fields(item, ("content",)), "content": PARTS})
    for index, block in enumerate(content):
        _content(slots, block, kind, role, key if key is None or index == 0 else f"{key}/{index}")
        slots.mark(block)
    slots.leave()


def _content(
    slots: Slots, block: Any, kind: str, role: str, key: str | None, title: str | None = None
) -> None:
    hole = _TEXTS.get(str(block.get("type", "input_text"))) if isinstance(block, dict) else None
    text = block.get(hole) if hole is not None else None
    if isinstance(text, str) and hole is not None:
        leaf = {**other_fields(block, (hole, "logprobs")), hole: TEXT}
        if block.get("logprobs"):
            leaf["logprobs"] = compact_json(block["logprobs"])
        elif "logprobs" in block:
            leaf["logprobs"] = block["logprobs"]
        slots.text(kind, text, role, leaf, key=key, title=title)
    elif isinstance(block, dict) and block.get("type") in ("input_image", "input_file", "computer_screenshot",
                                                            "input_audio"):  # fmt: skip
        image = block["type"] in ("input_image", "computer_screenshot")
        data = (
            block.get("image_url") or block.get("file_data") or block.get("file_id") or block.get("file_url")
        )
        mime, size = data_url_facts(data)
        sealed_part(
            slots, "image" if image else "external_resource", data or block, role, plain(block), key=key,
            mime_type=mime, byte_size=size, title=string(block.get("filename")) or title,
            native={"type": block["type"]},
        )  # fmt: skip
    else:
        unknown_part(slots, block, role, key)


def _reasoning(slots: Slots, item: Json) -> None:
    key = string(item.get("id"))
    secret = item.get("encrypted_content")
    shown = [(name, block) for name in ("summary", "content") for block in listed(item.get(name))]
    if not shown:
        # Only the provider has the text; an id alone names what it keeps.
        sealed_part(slots, "reasoning", secret or key or "", "assistant", plain(item), key=key,
               native={"type": "sealed"})  # fmt: skip
        return
    template = other_fields(item, ("summary", "content", "encrypted_content"))
    for name in ("summary", "content"):
        if listed(item.get(name)):
            template[name] = {"$": name}
        elif name in item:
            template[name] = item[name]
    if "encrypted_content" in item:
        template["encrypted_content"] = {"$1": "sealed"} if secret else secret
    slots.enter(template)
    for index, (name, block) in enumerate(shown):
        text = block.get("text") if isinstance(block, dict) else None
        each = key if key is None or index == 0 else f"{key}/{index}"
        if isinstance(text, str):
            made = Part("reasoning", text, "assistant", key=each, line=slots.line, native={"type": name})
            slots.put(made, {**other_fields(block, ("text",)), "text": TEXT}, name)
        else:
            unknown_part(slots, block, "assistant", each, to=name)
    if secret:
        from ctxctl.providers.dialects.slots import blob

        sealed_part(slots, "reasoning", secret, "assistant", blob(str(secret)), to="sealed",
               key=f"{key}/sealed" if key is not None else None, native={"type": "sealed"})  # fmt: skip
    slots.leave()


def _call(slots: Slots, names: CallTitles, item: Json, field: str) -> None:
    name = string(item.get("name")) or "tool"
    if field == "arguments" or not isinstance(item.get(field), str):
        arguments, hole, sent = parsed(item.get(field))
    else:
        arguments, hole, sent = item[field], INPUT, None
    leaf = other_fields(item, (field,))
    if field in item:
        leaf[field] = hole
    key = string(item.get("call_id")) or string(item.get("id"))
    call_part(slots, names, key, name, arguments, leaf, sent=sent)


def _result(slots: Slots, names: CallTitles, item: Json) -> None:
    call_id = string(item.get("call_id"))
    key = f"{call_id}/result" if call_id is not None else None
    title = names.result(call_id)
    output = item.get("output")
    if isinstance(output, str):
        wire = {**other_fields(item, ("output",)), "output": TEXT}
        slots.text("tool_result", output, "tool", wire, key=key, title=title)
    elif isinstance(output, list) and output:
        slots.enter({**other_fields(item, ("output",)), "output": PARTS})
        for index, block in enumerate(output):
            each = key if key is None or index == 0 else f"{key}/{index}"
            _content(slots, block, "tool_result", "tool", each, title)
        slots.leave()
    elif isinstance(output, dict) and output.get("type") == "computer_screenshot":
        slots.enter({**other_fields(item, ("output",)), "output": {"$1": "parts"}})
        _content(slots, output, "tool_result", "tool", key, title)
        slots.leave()
    else:
        if output is None:
            slots.put(Part("tool_result", "", "tool", key=key, title=title, line=slots.line), plain(item))
            return
        leaf = {**other_fields(item, ("output",)), "output": JSON}
        made = structured("tool_result", plain(output), "tool", key=key, title=title, line=slots.line)
        slots.put(made, leaf)


def _mcp(slots: Slots, names: CallTitles, item: Json) -> None:
    """A call that the provider made itself, with its result in the same item."""
    key = string(item.get("id"))
    name = string(item.get("name")) or "tool"
    arguments, hole, sent = parsed(item.get("arguments"))
    output = item.get("output")
    template = {**other_fields(item, ("arguments", "output", "name")), "$": "merge"}
    if not isinstance(output, str):
        leaf = other_fields(item, ("arguments",))
        leaf = {**leaf, "arguments": hole} if "arguments" in item else leaf
        call_part(slots, names, key, name, arguments, leaf, sent=sent)
        return
    slots.enter(template)
    leaf = {"name": item.get("name")}
    leaf = {**leaf, "arguments": hole} if "arguments" in item else leaf
    call_part(slots, names, key, name, arguments, leaf, sent=sent)
    slots.text("tool_result", output, "tool", {"output": TEXT}, title=names.result(key),
               key=f"{key}/result" if key is not None else None)  # fmt: skip
    slots.leave()


def _tool_list(slots: Slots, item: Json) -> None:
    """The tools of a server that the provider asked: definitions in the middle of the conversation."""
    label = string(item.get("server_label")) or "mcp"
    tools = listed(item.get("tools"))
    if not tools:
        sealed_part(
            slots, "custom", compact_json(plain(item)), "assistant", plain(item), key=string(item.get("id"))
        )
        return
    slots.enter({**other_fields(item, ("tools",)), "tools": PARTS})
    for definition in tools:
        name = definition.get("name") if isinstance(definition, dict) else None
        tool_part(slots, definition, f"mcp__{label}__{name}" if isinstance(name, str) else None, "assistant")
    slots.leave()


def _more_tools(slots: Slots, item: Json) -> None:
    """Tools that are defined in the middle of the input: those that a search found, and what Codex gives to
    GPT-5.6 and newer models."""
    tools = listed(item.get("tools"))
    if not tools:
        unknown_part(slots, item, "system", string(item.get("id")))
        return
    slots.enter({**other_fields(item, ("tools",)), "tools": PARTS})
    for definition in tools:
        _tool(slots, definition)
    if item.get("type") == "tool_search_output":
        for part in in_place(slots.parts):
            part.item = f"{item.get('id')}/{part.item}"  # beside what is shown of it in front
    slots.leave()


def _server_call(slots: Slots, names: CallTitles, item: Json, kind: str) -> None:
    """A call of a tool that the provider or the client runs, with what it was asked."""
    bare = plain(item)
    key = string(item.get("call_id")) or string(item.get("id"))
    action = item.get("action")
    title = names.call(key, kind.removesuffix("_call"), action)
    slots.put(
        Part("tool_call", compact_json(bare), "assistant", key=key, title=title, line=slots.line,
             native={"type": kind}),
        {"$": "json"},
    )  # fmt: skip
