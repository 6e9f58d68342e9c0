"""Events of the V1 SDK: `kind` says which; a response's actions share `llm_response_id`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctxctl.formats.build import Json
from ctxctl.formats.kit.chat import texts, thoughts, tools
from ctxctl.formats.kit.parts import Part, string

if TYPE_CHECKING:
    from ctxctl.formats.openhands.stream import Stream


def read(stream: Stream, event: Json) -> None:
    """Take an event into account; kinds that the model is not told of do nothing."""
    kind = event.get("kind")
    ident = string(event.get("id")) or f"x{stream.run.make.count}"
    if kind == "SystemPromptEvent":
        _system(stream, event, ident)
    elif kind == "MessageEvent":
        _message(stream, event, ident)
    elif kind == "ActionEvent":
        _action(stream, event, ident)
    elif kind in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation"):
        _result(stream, event, ident)
    elif kind in ("Condensation", "CondensationEvent"):
        named = event.get("forgotten_event_ids")
        forgotten = {one for one in named if isinstance(one, str)} if isinstance(named, list) else set()
        stream.condense(forgotten, string(event.get("summary")), event.get("summary_offset"), ident)


def state_of(event: Json) -> Any:
    """What an event tells of the conversation's state, which holds usage by response; None if nothing."""
    if event.get("kind") != "ConversationStateUpdateEvent":
        return None
    key, value = event.get("key"), event.get("value")
    if key == "stats":
        return {"stats": value}
    return value if key == "full_state" else None


def _system(stream: Stream, event: Json, ident: str) -> None:
    prompt = event.get("system_prompt")
    parts = tools(event.get("tools"))
    parts += texts([prompt] if isinstance(prompt, dict) else prompt, "system_prompt", "system")
    more = event.get("dynamic_context")
    parts += texts([more] if isinstance(more, dict) else more, "system_prompt", "system")
    stream.add(ident, parts)


def _message(stream: Stream, event: Json, ident: str) -> None:
    message = event.get("llm_message")
    message = message if isinstance(message, dict) else {}
    parts = stream.chat.cut(_plain(message))
    if event.get("source") == "agent" or message.get("role") == "assistant":
        stream.answer(ident, parts, response=string(event.get("llm_response_id")))
        return
    parts += texts(event.get("extended_content"), "external_resource", "user", title="extended content")
    if event.get("source") == "user":
        stream.prompt(ident, parts)
    else:
        stream.add(ident, parts)


def _action(stream: Stream, event: Json, ident: str) -> None:
    call = event.get("tool_call")
    call = call if isinstance(call, dict) else {}
    flat = {"id": event.get("tool_call_id"), "name": event.get("tool_name"), "arguments": event.get("action")}
    function = call.get("function")
    if isinstance(function, dict):
        flat |= {"name": function.get("name"), "arguments": function.get("arguments")}
    elif "arguments" in call:
        flat |= {"name": call.get("name") or flat["name"], "arguments": call["arguments"]}
    parts = [
        *thoughts(event),
        *_sealed(event),
        *texts(event.get("thought"), "assistant_message", "assistant"),
    ]
    made = stream.chat.call(flat)
    if not stream.answer(ident, [*parts, made], response=string(event.get("llm_response_id"))):
        stream.add(ident, [made])


def _sealed(event: Json) -> list[Part]:
    item = event.get("responses_reasoning_item")
    if not isinstance(item, dict) or event.get("reasoning_content") or event.get("thinking_blocks"):
        return []
    block = {"type": "reasoning", "data": item.get("encrypted_content") or item.get("id")}
    return texts(item.get("content") or item.get("summary") or [block], "reasoning", "assistant")


def _result(stream: Stream, event: Json, ident: str) -> None:
    inner = event.get("observation")
    content: Any = event.get("error")
    refused = string(event.get("rejection_reason"))
    if isinstance(inner, dict):
        content, refused = inner.get("content", inner.get("output", inner)), None
    elif refused is not None:
        content = f"Action rejected: {refused}"
    call = string(event.get("tool_call_id"))
    stream.add(ident, stream.chat.result(call, content, derived=refused is not None))


def _plain(message: Json) -> Json:
    """A message whose calls are flat (`{id, name, arguments}`) is read as well as the wire's shape."""
    return {name: value for name, value in message.items() if value is not None}
