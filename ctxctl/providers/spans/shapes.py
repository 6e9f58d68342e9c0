"""Messages as frameworks write them down, brought into the shapes that the providers' dialects read.

A message comes out as it is where a dialect knows its shape (Chat Completions, Responses items, Anthropic
blocks, Gemini contents), else as one of Chat Completions; what is not understood as `{"_json": value}`.
`_derived` and `_cut` mark messages that were taken out of prose, or whose text was cut off.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any, Final

from ctxctl.ingest.build import Json, canonical
from ctxctl.ingest.parts import string

JSON: Final = "_json"
DERIVED: Final = "_derived"
CUT: Final = "_cut"
ROLES: Final = {
    "system": "system", "developer": "developer", "user": "user", "human": "user", "assistant": "assistant",
    "ai": "assistant", "model": "assistant", "tool": "tool", "function": "tool", "chatbot": "assistant",
}  # fmt: skip
_PLAIN: Final = frozenset(ROLES)
_LANGCHAIN: Final = {
    "human": "user", "humanmessage": "user", "ai": "assistant", "aimessage": "assistant", "system": "system",
    "systemmessage": "system", "tool": "tool", "toolmessage": "tool", "function": "tool", "chat": "user",
    "functionmessage": "tool", "chatmessage": "user", "developer": "developer",
}  # fmt: skip
_CALLS: Final = ("tool_call", "tool-call", "tool_use", "function_call", "toolCall")
_RESULTS: Final = (
    "tool_call_response", "tool-result", "tool_call_result", "tool_response", "tool_return", "toolResult",
)  # fmt: skip
_THOUGHTS: Final = ("reasoning", "thinking")
_VERCEL: Final = ("tool-call", "tool-result", "reasoning", "image", "file")
_REPR: Final = re.compile(
    r"role='(\w+)' content=('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|None)(?= )", re.DOTALL
)
_REPR_ID: Final = re.compile(r" tool_call_id='([^']*)'")
_REPR_CALLS: Final = " tool_calls="
_REPR_CALLS_END: Final = re.compile(r"(?<=\}\]) (?=[a-z_]+=)")
_MAX_REPR: Final = 1 << 20
_PROSE: Final = re.compile(r"^(system|developer|user|human|assistant|ai|tool): ?", re.MULTILINE)


def messages(values: Iterable[Any]) -> list[Json]:
    """Messages of any shape as dialects read them; one whose role is a called tool's name is its result."""
    made: list[Json] = []
    called: set[str] = set()
    for value in values:
        if _is_plain(value):
            # Brought into shape when it is cut: most of a request's messages were in the one before.
            made.append(value)
            continue
        found = message(value, called)
        for one in found:
            calls = one.get("tool_calls")
            for call in calls if isinstance(calls, list) else ():
                function = call.get("function") if isinstance(call, dict) else None
                name = function.get("name") if isinstance(function, dict) else None
                if isinstance(name, str):
                    called.add(name)
        made += found
    return made


def _is_plain(value: Any) -> bool:
    """Whether a value is a message of a known role that calls nothing."""
    if not isinstance(value, dict):
        return False
    role = value.get("role")
    return (
        isinstance(role, str)
        and role in _PLAIN
        and not (value.get("tool_calls") or value.get("additional_kwargs") or "message" in value)
    )


def message(value: Any, called: Iterable[str] = ()) -> list[Json]:
    """One message, or the few that it is made of."""
    if isinstance(value, str):
        return messages_from_text(value) or ([{"role": "user", "content": value}] if value else [])
    if isinstance(value, list):
        return messages(value)
    if not isinstance(value, dict):
        return [] if value is None else [{JSON: value}]
    if value.get("lc") is not None and isinstance(value.get("kwargs"), dict):
        return _langchain(value["kwargs"], _class_of(value))
    inner = value.get("message")
    if isinstance(inner, dict) and "content" not in value:
        # `gen_ai.choice`, a choice of a completion, OpenInference's nesting.
        return message(inner, called)
    role = string(value.get("role"))
    kind = string(value.get("type"))
    if role is None:
        return _without_role(value, kind)
    if "parts" in value and isinstance(value["parts"], list):
        return _parts(value, role)
    known = ROLES.get(role.lower())
    if known is None:
        if role in called:
            return [{"role": "tool", "name": role, "content": value.get("content")}]
        known = role
    return _chat({**value, "role": known})


def _without_role(value: Json, kind: str | None) -> list[Json]:
    if kind is not None and kind.lower().removesuffix("chunk") in _LANGCHAIN:
        inner = value.get("data")
        if isinstance(inner, dict) and "content" in inner:
            return _langchain(inner, kind)
        if "content" in value:
            return _langchain(value, kind)
    if "toolName" in value and "toolCallId" in value:
        return [{"role": "assistant", "tool_calls": [_call(value)]}]
    if kind is not None and (
        kind.endswith(("_call", "_call_output", "_output"))
        or kind in ("reasoning", "message", "item_reference", "compaction")
    ):
        return [value]
    if "parts" in value and isinstance(value["parts"], list):
        return _parts(value, "user")
    return [{JSON: value}]


# -- chat -------------------------------------------------------------------------------------------------


def _chat(value: Json) -> list[Json]:
    """A message with role and content."""
    role = value["role"]
    content = value.get("content")
    extra = value.get("additional_kwargs")
    if isinstance(extra, dict):
        for name in ("tool_calls", "function_call"):
            if not value.get(name) and extra.get(name):
                value = {**value, name: extra[name]}
    made: Json = {"role": role}
    for name in ("name", "tool_call_id", "reasoning_content", "reasoning", "refusal"):
        if isinstance(value.get(name), str) and value[name]:
            made[name] = value[name]
    if role == "tool" and "tool_call_id" not in made and string(value.get("id")) is not None:
        made["tool_call_id"] = value["id"]
    calls = value.get("tool_calls")
    if isinstance(calls, list) and calls:
        made["tool_calls"] = [_call(call) if isinstance(call, dict) else _odd(call) for call in calls]
    if isinstance(value.get("function_call"), dict):
        made["function_call"] = value["function_call"]
    if isinstance(content, list) and any(_is_vercel(block) for block in content):
        return _blocks(content, made)
    if role == "tool" and isinstance(content, list) and not all(_is_block(block) for block in content):
        content = canonical(content)
    if isinstance(content, dict):
        content = [content] if isinstance(content.get("type"), str) else canonical(content)
    elif content is not None and not isinstance(content, str | list):
        content = canonical(content)
    if content not in (None, "", []) or role == "tool":
        made["content"] = content if content is not None else ""
    if set(made) == {"role"} and content is None:
        return [] if set(value) <= {"role", "content", "id"} else [{JSON: value}]
    return [made]


def _is_block(block: Any) -> bool:
    return isinstance(block, str) or (isinstance(block, dict) and isinstance(block.get("type"), str))


def _is_vercel(block: Any) -> bool:
    if not isinstance(block, dict):
        return False
    kind = block.get("type")
    if kind in ("image", "file"):
        return kind in block and not isinstance(block.get(kind), dict)
    if kind == "reasoning":
        return "text" in block
    return kind in ("tool-call", "tool-result")


def _call(call: Json) -> Json:
    """A tool call in the shape of Chat Completions."""
    if isinstance(call.get("custom"), dict):
        return call
    inner = call.get("tool_call")
    if isinstance(inner, dict):
        call = inner
    function = call.get("function")
    if isinstance(function, dict):
        made = {"name": string(function.get("name")) or "tool"}
        arguments = function.get("arguments")
    else:
        made = {"name": string(call.get("name")) or string(call.get("toolName")) or "tool"}
        arguments = next(
            (
                call[name]
                for name in ("arguments", "args", "input", "toolInput")
                if call.get(name) is not None
            ),
            None,
        )
    if arguments is not None:
        made["arguments"] = arguments
    native = _id(call.get("id")) or _id(call.get("toolCallId")) or _id(call.get("call_id"))
    found: Json = {"type": "function", "function": made}
    return {"id": native, **found} if native is not None else found


def _odd(call: Any) -> Json:
    return {"custom": {"name": "tool", "input": canonical(call)}}


def _id(value: Any) -> str | None:
    """An id; of a list of them (of the run, and of the call in it) the last one."""
    if isinstance(value, list) and value:
        value = value[-1]
    return string(value)


# -- messages made of parts -------------------------------------------------------------------------------


def _parts(value: Json, role: str) -> list[Json]:
    """A message of OpenTelemetry's shape; Gemini's parts have no type."""
    parts = value["parts"]
    if not any(isinstance(part, dict) and isinstance(part.get("type"), str) for part in parts):
        return [value]
    return _blocks(parts, {"role": ROLES.get(role.lower(), role)})


def _blocks(blocks: list[Any], head: Json) -> list[Json]:
    """Messages of Chat Completions from typed blocks; each result of a tool becomes one of its own."""
    made: list[Json] = []
    open_: Json = dict(head)
    role = head["role"]

    def close() -> None:
        nonlocal open_
        if set(open_) - {"role", "name", "tool_call_id"}:
            made.append(open_)
        open_ = {"role": role}

    for block in blocks:
        if not isinstance(block, dict):
            open_.setdefault("content", []).append({"type": "text", "text": _text(block)})
            continue
        kind = string(block.get("type")) or ""
        if kind in _RESULTS:
            close()
            made.append(_result(block))
        elif kind in _CALLS:
            open_.setdefault("tool_calls", []).append(_call(block))
        elif kind in _THOUGHTS:
            if "content" in open_ or "tool_calls" in open_ or "reasoning_content" in open_:
                close()
            open_["reasoning_content"] = _text(_held(block, "content", "text", "thinking", "reasoning"))
        else:
            open_.setdefault("content", []).append(_block(block, kind))
    close()
    return made


def _block(block: Json, kind: str) -> Json:
    if kind in ("text", "input_text", "output_text", "refusal"):
        return {"type": "text", "text": _text(_held(block, "content", "text"))}
    if kind in ("blob", "uri", "file", "image", "image_url", "media", "binary", "video", "audio"):
        mime = (
            string(block.get("mime_type")) or string(block.get("mediaType")) or string(block.get("mimeType"))
        )
        modality = string(block.get("modality")) or ("image" if kind.startswith("image") else "")
        image = modality == "image" or (mime or "").startswith("image/")
        place = _held(block, "uri", "url", "file_id", "content", "data", "image", "image_url", "file", "blob")
        if isinstance(place, dict):
            place = _held(place, "url", "uri", "data", "file_id")
        text = place if isinstance(place, str) else canonical(place)
        if kind in ("blob", "binary") or ("://" not in text[:12] and not text.startswith("data:") and mime):
            text = f"data:{mime or 'application/octet-stream'};base64,{text}"
        if image:
            return {"type": "image_url", "image_url": {"url": text}}
        return {"type": "file", "file": {"file_data": text, "filename": block.get("filename")}}
    return block


def _result(block: Json) -> Json:
    value = _held(block, "response", "result", "output", "content")
    if isinstance(value, dict) and value.get("type") in ("text", "json", "error-text", "error-json"):
        # The AI SDK's typed results.
        value = value.get("value", value)
    made: Json = {"role": "tool", "content": _text(value)}
    native = _id(block.get("id")) or _id(block.get("toolCallId")) or _id(block.get("call_id"))
    name = string(block.get("name")) or string(block.get("toolName"))
    if native is not None:
        made["tool_call_id"] = native
    if name is not None:
        made["name"] = name
    return made


def _held(block: Json, *names: str) -> Any:
    return next((block[name] for name in names if block.get(name) is not None), None)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else canonical(value)


# -- LangChain --------------------------------------------------------------------------------------------


def _class_of(value: Json) -> str:
    """The class of an object that LangChain serialised by its constructor."""
    path = value.get("id")
    return str(path[-1]) if isinstance(path, list) and path else ""


def _langchain(fields: Json, kind: str) -> list[Json]:
    """A message of LangChain's."""
    found = string(fields.get("type")) or kind
    role = _LANGCHAIN.get(found.lower().removesuffix("chunk")) or _LANGCHAIN.get(
        kind.lower().removesuffix("chunk")
    )
    if found.lower().startswith("chat"):
        role = ROLES.get(str(fields.get("role")).lower(), role)
    if role is None:
        return [{JSON: fields}]
    made: Json = {"role": role, "content": fields.get("content")}
    for name in ("additional_kwargs", "tool_call_id", "name"):
        if fields.get(name) is not None:
            made[name] = fields[name]
    calls = fields.get("tool_calls")
    if isinstance(calls, list) and calls:
        made["tool_calls"] = calls
    content = made["content"]
    if isinstance(content, list) and role == "assistant" and "tool_calls" in made:
        # Anthropic's blocks repeat the calls.
        made["content"] = [b for b in content if not (isinstance(b, dict) and b.get("type") == "tool_use")]
    return _chat(made)


# -- prose ------------------------------------------------------------------------------------------------


def messages_from_text(text: str) -> list[Json]:
    """Messages that were written down as text: a Python object's repr, or `role: text` in turn."""
    found = _REPR.match(text) if text.startswith("role='") and len(text) <= _MAX_REPR else None
    if found is not None:
        return _from_repr(text, found)
    starts = list(_PROSE.finditer(text))
    if not starts or starts[0].start() or starts[0].group(1) in ("tool", "assistant", "ai"):
        return []
    made: list[Json] = []
    for at, start in enumerate(starts):
        end = starts[at + 1].start() - 1 if at + 1 < len(starts) else len(text)
        content = text[start.end() : max(end, start.end())]
        made.append({"role": ROLES[start.group(1)], "content": content, DERIVED: True})
    return made


def _from_repr(text: str, found: re.Match[str]) -> list[Json]:
    role = ROLES.get(found.group(1), found.group(1))
    content = _literal(found.group(2))
    made: Json = {"role": role, "content": content if isinstance(content, str) else ""}
    rest = text[found.end() :]
    call_id = _REPR_ID.match(rest[rest.find(" tool_call_id=") :]) if " tool_call_id='" in rest else None
    if call_id is not None:
        made["tool_call_id"] = call_id.group(1)
    calls = _repr_calls(rest)
    listed = _literal(calls) if calls is not None else None
    if isinstance(listed, list):
        made["tool_calls"] = listed
    return [{**one, DERIVED: True} for one in _chat(made)]


def _repr_calls(rest: str) -> str | None:
    """The list of tool calls in a repr; where the first one that begins does not end, none does."""
    start = rest.find(_REPR_CALLS + "[{")
    if start < 0:
        return None
    start += len(_REPR_CALLS)
    end = _REPR_CALLS_END.search(rest, start + len("[{}]"))
    return rest[start : end.start()] if end is not None else None


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None
