"""LangChain's messages as the JSON that goes to the provider.

A callback is given messages before they are converted.  The provider's own package converts them; it names
no public function for it, so where the one that is known is not there, LangChain's public conversion is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages

from ctxctl.model.billed import fields_of

Json = dict[str, Any]
_PUBLIC: Final = "langchain_core.messages.convert_to_openai_messages"
_SENT: Final = (
    "model", "tools", "tool_choice", "response_format", "parallel_tool_calls", "thinking", "reasoning",
    "text", "previous_response_id", "max_tokens", "temperature", "top_p", "output_config", "betas",
    "context_management",
)  # fmt: skip
"""What of the parameters is kept beside the messages."""
_RESPONSES: Final = ("reasoning", "include", "truncation", "context_management", "use_previous_response_id")
"""Arguments of `ChatOpenAI` that make it use the Responses API."""


class Body(NamedTuple):
    """A request as it would go out."""

    body: Json
    dialect: str
    by: str
    """What converted it."""


def body_of(messages: list[BaseMessage], params: Mapping[str, Any], given: Mapping[str, Any]) -> Body:
    """The request that a model makes of messages.

    Args:
        messages: What the callback was given.
        params: The call's `invocation_params`.
        given: What the model was made with (`serialized["kwargs"]`), as far as it is known.
    """
    fields = {name: params[name] for name in _SENT if params.get(name) is not None}
    kind = str(params.get("_type") or "")
    for of, convert in _CONVERTERS:
        if kind.startswith(of):
            try:
                return convert(messages, fields, params, given)
            except Exception:  # their internals: anything may be otherwise in another version
                break
    return _chat(messages, fields)


def _chat(messages: list[BaseMessage], fields: Json) -> Body:
    from langchain_core.utils.function_calling import convert_to_openai_tool

    tools = fields.get("tools")
    if isinstance(tools, list):
        fields = {**fields, "tools": [_tool(convert_to_openai_tool, one) for one in tools]}
    return Body({"messages": convert_to_openai_messages(messages), **fields}, "openai-chat", _PUBLIC)


def _tool(convert: Any, definition: Any) -> Any:
    try:
        return convert(definition)
    except Exception:  # a tool of the provider's own
        return definition


def _openai(
    messages: list[BaseMessage], fields: Json, params: Mapping[str, Any], given: Mapping[str, Any]
) -> Body:
    from langchain_openai.chat_models import base

    asked = given.get("use_responses_api")
    model = str(params.get("model") or "")
    if not isinstance(asked, bool):
        asked = (
            any(given.get(name) for name in _RESPONSES)
            or given.get("output_version") == "responses/v1"
            or base._model_prefers_responses_api(model)
            or (model.lower().startswith("gpt-6") and bool(params.get("tools")))
            or base._use_responses_api(dict(params))
        )
    if asked:
        sent = base._construct_responses_api_payload(messages, dict(fields))
        return Body(sent, "openai-responses", "langchain_openai")
    older = [
        base._convert_from_v1_to_chat_completions(one) if isinstance(one, AIMessage) else one
        for one in messages
    ]
    made = [base._convert_message_to_dict(one) for one in older]
    if model[:1] == "o" and model[1:2].isdigit():
        made = [{**one, "role": "developer"} if one["role"] == "system" else one for one in made]
    return Body({"messages": made, **fields}, "openai-chat", "langchain_openai")


def _anthropic(
    messages: list[BaseMessage], fields: Json, params: Mapping[str, Any], given: Mapping[str, Any]
) -> Body:
    from langchain_anthropic.chat_models import _format_messages

    system, made = _format_messages(messages, model=fields.get("model"))
    head = {"system": system} if system else {}
    return Body({**head, "messages": made, **fields}, "anthropic", "langchain_anthropic")


_CONVERTERS: Final = (("openai", _openai), ("azure-openai", _openai), ("anthropic-chat", _anthropic))


def answer_of(message: BaseMessage, dialect: str) -> Json:
    """A message of the model's as the provider's answer, without its bill."""
    if dialect == "anthropic":
        return {"type": "message", "role": "assistant", "content": _blocks(message)}
    made = convert_to_openai_messages([message])[0]
    content = made.get("content")
    if isinstance(content, list):
        thought = [
            one for one in content if isinstance(one, dict) and one.get("type") in ("thinking", "reasoning")
        ]
        texts = [one for one in content if one not in thought]
        made["content"] = texts
        if said := "".join(str(one.get("thinking") or one.get("reasoning") or "") for one in thought):
            made["reasoning_content"] = said
    if made.get("tool_calls") and not made.get("content"):
        made["content"] = None
    if isinstance(said := message.additional_kwargs.get("reasoning_content"), str):
        made["reasoning_content"] = said
    return {"object": "chat.completion", "choices": [{"index": 0, "message": made}]}


def _blocks(message: BaseMessage) -> list[Any]:
    """Content as Anthropic's blocks; the calls that it lacks come from `tool_calls`."""
    content = message.content
    blocks: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) and content else []
    if isinstance(content, list):
        blocks = [{"type": "text", "text": one} if isinstance(one, str) else _whole(one) for one in content]
    calls: Iterable[Any] = getattr(message, "tool_calls", ())
    by_id = {call["id"]: call for call in calls}
    for block in blocks:
        if isinstance(block, dict) and block.get("type") == "tool_use":
            call = by_id.pop(block.get("id"), None)
            if call is not None:
                block["input"] = call["args"]  # a streamed one has its pieces in `partial_json`
                block.pop("partial_json", None)
    made = [
        {"type": "tool_use", "id": one["id"], "name": one["name"], "input": one["args"]}
        for one in by_id.values()
    ]
    return blocks + made


def _whole(block: Any) -> Any:
    return (
        {name: value for name, value in block.items() if name != "index"}
        if isinstance(block, dict)
        else block
    )


def counts_of(usage: Mapping[str, Any]) -> Json:
    """What `usage_metadata` says was billed; `input_tokens` is the whole context.

    No input at all means that nobody said: so langchain-anthropic has it of streams, unless their last event
    tells the whole bill.
    """
    inputs, outputs = usage.get("input_token_details") or {}, usage.get("output_token_details") or {}
    written = inputs.get("cache_creation")
    if not written:
        parts = [value for name, value in inputs.items() if name.startswith("ephemeral_") and value]
        written = sum(parts) if parts else written
    return {
        "input_tokens": usage.get("input_tokens") or None, "output_tokens": usage.get("output_tokens"),
        "cached_tokens": inputs.get("cache_read"), "cache_write_tokens": written,
        "cache_write_1h_tokens": inputs.get("ephemeral_1h_input_tokens"),
        "reasoning_tokens": outputs.get("reasoning"), **fields_of(usage),
    }  # fmt: skip
