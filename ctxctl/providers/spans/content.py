"""What a model was given and what it said, from the attributes and events of its span.

Conventions, newest first: OpenTelemetry's message attributes, its details event, its events per message,
OpenInference's flat attributes, OpenLLMetry's, the AI SDK's, and the first drafts' single texts.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple

from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import string
from ctxctl.providers.spans import chat_values, shapes
from ctxctl.providers.spans.chat_values import NAMED, NOTHING, ChatContent
from ctxctl.providers.spans.span import Span

_ROLES: Final = ("system", "user", "assistant", "tool")
_DETAILS: Final = "gen_ai.client.inference.operation.details"
_TOP: Final = 4096
"""The largest index of a flat attribute that is read."""


class Content(NamedTuple):
    """A request and its answer; empty where the span does not hold them."""

    asked: ChatContent
    answer: list[Json]


def content(span: Span) -> Content:
    """What a span holds, by the first convention that it follows."""
    attributes = span.attributes
    for name, inner in span.events:
        if name == _DETAILS:
            attributes = {**inner, **attributes}
    tools = definitions(attributes)
    for read in (_messages, _evented, _flat, _openllmetry, _ai_sdk, _drafts):
        found = read(attributes, span)
        if found.asked or found.answer:
            return found._replace(asked=found.asked._replace(tools=tools or found.asked.tools))
    return Content(ChatContent(tools, [], []), [])


def conversation(span: Span) -> ChatContent:
    """All messages of an agent's run, as pydantic-ai and Logfire put them on its span; else nothing."""
    attributes = span.attributes
    found = chat_values.request_content(attributes.get("pydantic_ai.all_messages"))
    if not found.messages:
        told = _evented({"all_messages_events": attributes.get("all_messages_events")}, Span("", {}))
        found = found._replace(messages=told.asked.messages + told.answer)
    system = chat_values.instructions(attributes.get("gen_ai.system_instructions"))
    return found._replace(system=system + found.system, tools=definitions(attributes) or found.tools)


def definitions(attributes: Json) -> list[Json]:
    """Tool definitions; those of which only the name is recorded say so."""
    for name in ("gen_ai.tool.definitions", "ai.prompt.tools", "llm.request.functions"):
        raw = attributes.get(name)
        found = _written(raw) if isinstance(raw, str) else _named(raw)
        if found:
            return list(found)
    made: list[Json] = []
    parameters, _ = chat_values.opened_partly(attributes.get("model_request_parameters"))
    if isinstance(parameters, dict):
        # pydantic-ai's own attribute.
        for name in ("function_tools", "output_tools"):
            for tool in chat_values.definitions(parameters.get(name)):
                kept = ("name", "description", "parameters_json_schema")
                made.append({key: tool[key] for key in kept if tool.get(key) is not None})
    if made:
        return made
    inference = flat_tools(attributes)
    if inference:
        return inference
    for at in range(_TOP):
        prefix = f"llm.request.functions.{at}."
        held = {n[len(prefix) :]: v for n, v in attributes.items() if n.startswith(prefix)}
        if not held:
            break
        if "parameters" in held:
            held["parameters"] = chat_values.opened(held["parameters"])
        made.append(held)
    return made


@lru_cache(maxsize=16)
def _written(raw: str) -> list[Json]:
    """Definitions in a text, which mostly are those of the request before; not to be changed."""
    return _named(chat_values.opened_partly(raw)[0])


def _named(value: Any) -> list[Json]:
    made: list[Json] = []
    for one in chat_values.definitions(value):
        named = string(one.get("name"))
        made.append({NAMED: named} if named is not None and set(one) <= {"type", "name"} else one)
    return made


def flat_tools(attributes: Json) -> list[Json]:
    """OpenInference's tool definitions, flat or nested."""
    made: list[Json] = []
    for held in _rows(attributes, "llm.tools"):
        schema = held.get("tool.json_schema")
        if schema is None and isinstance(held.get("tool"), dict):
            schema = held["tool"].get("json_schema")
        made += chat_values.definitions(schema)
    return made


# -- conventions ------------------------------------------------------------------------------------------


def _messages(attributes: Json, _span: Span) -> Content:
    asked = chat_values.request_content(attributes.get("gen_ai.input.messages"))
    system = chat_values.instructions(attributes.get("gen_ai.system_instructions"))
    answer = chat_values.answer_messages(attributes.get("gen_ai.output.messages"))
    return Content(asked._replace(system=system + asked.system), answer)


def _evented(attributes: Json, span: Span) -> Content:
    """Events per message, on the span or in an attribute of Logfire's."""
    events = [(name, inner) for name, inner in span.events]
    for name in ("events", "all_messages_events"):
        value, _ = chat_values.opened_partly(attributes.get(name))
        for one in value if isinstance(value, list) else []:
            if isinstance(one, dict):
                events.append((string(one.get("event.name")) or "", one))
    asked: list[Any] = []
    answer: list[Json] = []
    for name, inner in events:
        if name in ("gen_ai.choice", "gen_ai.content.completion"):
            answer += chat_values.answer_messages(_choice(inner))
        elif name == "gen_ai.content.prompt":
            found = chat_values.request_content(inner.get("gen_ai.prompt"))
            asked += found.messages
        elif name.startswith("gen_ai.") and name.endswith(".message"):
            asked.append(_event_message(name.split(".")[1], inner))
    return Content(ChatContent([], [], shapes.messages(asked)), answer)


def _event_message(role: str, inner: Json) -> Any:
    held = inner.get("gen_ai.event.content", inner.get("_body"))
    if held is not None:
        body = chat_values.opened(held)
        if isinstance(body, str):
            return {"role": role, "content": body}
        inner = body if isinstance(body, dict) else {"content": body}
    known = {n: chat_values.opened(v) if n == "tool_calls" else v for n, v in inner.items() if "." not in n}
    return {"role": role if role in _ROLES else "user", **{n: v for n, v in known.items() if v is not None}}


def _choice(inner: Json) -> Any:
    for name in ("gen_ai.event.content", "gen_ai.completion", "_body"):
        if inner.get(name) is not None:
            return inner[name]
    value = chat_values.opened(inner.get("message"))
    if isinstance(value, dict):
        return {"role": "assistant", **value}
    known = {n: chat_values.opened(v) if n == "tool_calls" else v for n, v in inner.items() if "." not in n}
    if isinstance(value, str):
        known["content"] = value
    return {"role": "assistant", **{n: v for n, v in known.items() if n != "message"}}


def _flat(attributes: Json, _span: Span) -> Content:
    """OpenInference: flat attributes, or the request's JSON as it was."""
    raw = chat_values.opened_partly(attributes.get("input.value"))[0]
    rows = [_message(held) for held in _rows(attributes, "llm.input_messages")]
    said = [_message(held) for held in _rows(attributes, "llm.output_messages")]
    asked = ChatContent([], [], shapes.messages(rows))
    if isinstance(raw, dict) and any(isinstance(raw.get(n), list) for n in ("messages", "contents", "input")):
        # The body itself: with its order, its cache markers and what the flat form leaves out.
        whole = chat_values.request_content(attributes["input.value"])
        if len(whole.messages) + len(whole.system) >= len(rows):
            asked = whole
    is_llm = attributes.get("openinference.span.kind") == "LLM"
    if not asked and is_llm:
        asked = chat_values.request_content(attributes.get("input.value"))
        prompts = [held.get("prompt.text") for held in _rows(attributes, "llm.prompts")]
        if not asked and prompts:
            asked = chat_values.request_content([text for text in prompts if isinstance(text, str)])
    answer = [
        {**one, "role": "assistant"} if one.get("role") == "user" else one for one in shapes.messages(said)
    ]
    if not answer and is_llm:
        answer = chat_values.answer_messages(attributes.get("output.value"))
    if not asked.system:
        echo = chat_values.echoed_request(attributes.get("output.value")) if is_llm else NOTHING
        if not any(one.get("role") in ("system", "developer") for one in asked.messages):
            asked = asked._replace(system=echo.system, tools=asked.tools or echo.tools)
    return Content(asked, answer)


def _message(held: Json) -> Json:
    """An OpenInference message in the shape of Chat Completions."""
    if isinstance(held.get("message"), dict):
        held = {f"message.{name}": value for name, value in held["message"].items()}
    made: Json = {"role": held.get("message.role") or "user"}
    blocks: list[Any] = []
    for one in _rows(held, "message.contents"):
        if isinstance(one.get("message_content"), dict):
            one = {f"message_content.{name}": value for name, value in one["message_content"].items()}
        image = one.get("message_content.image.image.url") or _url(one.get("message_content.image"))
        if one.get("message_content.type") == "image" or image is not None:
            blocks.append({"type": "image_url", "image_url": {"url": image or ""}})
        elif isinstance(one.get("message_content.text"), str):
            kind = "reasoning" if one.get("message_content.type") == "reasoning" else "text"
            blocks.append({"type": kind, "text": one["message_content.text"]})
        else:
            blocks.append({"type": "custom", **{n.rpartition(".")[2]: v for n, v in one.items()}})
    made["content"] = blocks or held.get("message.content")
    calls = []
    for one in _rows(held, "message.tool_calls"):
        if isinstance(one.get("tool_call"), dict):
            calls.append(one["tool_call"])
        else:
            function = {
                "name": one.get("tool_call.function.name"),
                "arguments": one.get("tool_call.function.arguments"),
            }
            calls.append({"id": one.get("tool_call.id"), "function": function})
    if calls:
        made["tool_calls"] = calls
    elif held.get("message.function_call_name"):
        made["function_call"] = {
            "name": held["message.function_call_name"],
            "arguments": held.get("message.function_call_arguments_json"),
        }
    for name in ("tool_call_id", "name"):
        if held.get(f"message.{name}") is not None:
            made[name] = held[f"message.{name}"]
    return made


def _url(value: Any) -> Any:
    inner = value.get("image") if isinstance(value, dict) else None
    return inner.get("url") if isinstance(inner, dict) else None


def _rows(attributes: Json, prefix: str) -> list[Json]:
    """The rows of a flattened list (`prefix.0.name`), or of the list itself."""
    held = attributes.get(prefix)
    if held is None and "." in prefix and not prefix.startswith("message"):
        outer, _, inner = prefix.partition(".")
        nested = attributes.get(outer)
        held = nested.get(inner) if isinstance(nested, dict) else None
    if isinstance(held, str):
        held = chat_values.opened(held)
    if isinstance(held, list):
        return [one for one in held if isinstance(one, dict)]
    return _indexed(attributes, prefix)


def _indexed(attributes: Json, prefix: str) -> list[Json]:
    """The rows of a flattened list, by their index."""
    rows: dict[int, Json] = {}
    start = f"{prefix}."
    for name, value in attributes.items():
        if name.startswith(start):
            at, _, rest = name[len(start) :].partition(".")
            if at.isdigit() and len(at) < 6 and rest and int(at) < _TOP:
                rows.setdefault(int(at), {})[rest] = value
    return [rows[at] for at in sorted(rows)]


def _openllmetry(attributes: Json, _span: Span) -> Content:
    asked = [
        _openllm(held)
        for held in _indexed(attributes, "gen_ai.prompt") or _indexed(attributes, "llm.prompts")
    ]
    said = _indexed(attributes, "gen_ai.completion") or _indexed(attributes, "llm.completions")
    answer = [{"role": "assistant", **_openllm(held)} for held in said[:1]]
    return Content(ChatContent([], [], shapes.messages(asked)), shapes.messages(answer))


def _openllm(held: Json) -> Json:
    made: Json = {
        name: held[name] for name in ("role", "tool_call_id", "name", "reasoning") if held.get(name)
    }
    body = held.get("content")
    value = chat_values.opened(body)
    # Blocks come as JSON; a text that happens to be JSON is a text.
    blocks = isinstance(value, list) and all(isinstance(one, dict) and "type" in one for one in value)
    made["content"] = value if blocks and value else body
    calls = [
        {"id": one.get("id"), "name": one.get("name"), "arguments": one.get("arguments")}
        for one in _rows(held, "tool_calls")
    ]
    if calls:
        made["tool_calls"] = calls
    made.setdefault("role", "user")
    return made


def _ai_sdk(attributes: Json, _span: Span) -> Content:
    asked = chat_values.request_content(attributes.get("ai.prompt.messages"))
    if not asked:
        asked = chat_values.request_content(attributes.get("ai.prompt"))
    text = attributes.get("ai.response.text") or attributes.get("ai.result.text")
    said: Json = {
        "role": "assistant",
        "content": text or attributes.get("ai.response.object") or attributes.get("ai.result.object"),
        "reasoning": attributes.get("ai.response.reasoning"),
        "tool_calls": chat_values.opened(
            attributes.get("ai.response.toolCalls") or attributes.get("ai.result.toolCalls")
        ),
    }
    held = any(said[name] for name in ("content", "reasoning", "tool_calls"))
    return Content(asked, shapes.message(said) if held else [])


def _drafts(attributes: Json, _span: Span) -> Content:
    """Whole prompts in one attribute: OpenTelemetry's early drafts, ADK's request bodies, bodies of a log."""
    for asked, said in (
        ("gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response"),
        ("gen_ai.prompt", "gen_ai.completion"),
        ("request_data", "response_data"),
        ("llm.prompt", "llm.completion"),
    ):
        if attributes.get(asked) or attributes.get(said):
            return Content(
                chat_values.request_content(attributes.get(asked)),
                chat_values.answer_messages(attributes.get(said)),
            )
    return Content(NOTHING, [])
