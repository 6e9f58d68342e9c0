"""LlamaIndex's messages as the JSON that goes to the provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from llama_index.core.llms import ChatMessage

Json = dict[str, Any]
_SENT: Final = (
    "tools", "tool_choice", "parallel_tool_calls", "response_format", "temperature", "max_tokens",
    "reasoning", "thinking", "previous_response_id",
)  # fmt: skip
"""What of the call's arguments is kept beside the messages."""


class Body(NamedTuple):
    """A request as it would go out."""

    body: Json
    dialect: str
    by: str
    """What converted it."""


def body_of(messages: Sequence[ChatMessage], given: Mapping[str, Any], model: Mapping[str, Any]) -> Body:
    """The request that a model makes of messages.

    Args:
        messages: What it was given.
        given: The call's further arguments.
        model: What the model says of itself.
    """
    fields = {name: given[name] for name in _SENT if given.get(name) is not None}
    name = model_name(model)
    if name is not None:
        fields["model"] = name
    kind = str(model.get("class_name") or "").lower()
    try:
        if "anthropic" in kind:
            return _anthropic(messages, fields)
        return _openai(messages, fields, responses="openai_responses" in kind)
    except Exception:  # the provider's package is not there, or another than is known
        made = [_message(one) for one in messages]
        return Body({"messages": made, **fields}, "openai-chat", "ctxctl")


def model_name(model: Mapping[str, Any]) -> str | None:
    """The model's name, as it says it."""
    return next((model[n] for n in ("model_name", "model") if isinstance(model.get(n), str)), None)


def _openai(messages: Sequence[ChatMessage], fields: Json, *, responses: bool) -> Body:
    from llama_index.llms.openai.utils import to_openai_message_dicts

    by = "llama_index.llms.openai.utils.to_openai_message_dicts"
    if responses:
        made = to_openai_message_dicts(messages, model=fields.get("model"), is_responses_api=True)
        return Body({"input": made, **fields}, "openai-responses", by)
    made = to_openai_message_dicts(messages, model=fields.get("model"))
    return Body({"messages": made, **fields}, "openai-chat", by)


def _anthropic(messages: Sequence[ChatMessage], fields: Json) -> Body:
    from llama_index.llms.anthropic.utils import messages_to_anthropic_messages

    made, system = messages_to_anthropic_messages(messages)
    head = {"system": system} if system else {}
    by = "llama_index.llms.anthropic.utils.messages_to_anthropic_messages"
    return Body({**head, "messages": made, **fields}, "anthropic", by)


def _message(message: ChatMessage) -> Json:
    """A message by its own fields: the texts of its blocks, and what it says of calls."""
    made: Json = {"role": message.role.value, "content": message.content}
    calls = message.additional_kwargs.get("tool_calls")
    if isinstance(calls, list) and calls:
        made["tool_calls"] = calls
    answers = message.additional_kwargs.get("tool_call_id")
    if isinstance(answers, str):
        made["tool_call_id"] = answers
    return made


def answer_of(message: ChatMessage) -> Json:
    """A message of the model's as OpenAI's chat interface gives it, without its bill."""
    made = body_of([message], {}, {}).body["messages"][0]
    return {"object": "chat.completion", "choices": [{"index": 0, "message": made}]}
