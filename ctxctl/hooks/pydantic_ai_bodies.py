"""Pydantic AI's messages as the JSON that goes to the provider."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson
from pydantic_ai import messages as parts

if TYPE_CHECKING:
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings

Json = dict[str, Any]
_NOT_IN_BATCHES: Final = ("timeout", "max_retries", "extra_headers", "openai_background")
"""Settings that are not in a body and that a batch has no place for."""


class Body(NamedTuple):
    """A request as it would go out."""

    body: Json
    dialect: str | None
    by: str
    """What converted it."""


async def body_of(
    model: Model[Any],
    messages: list[parts.ModelMessage],
    settings: ModelSettings | None,
    params: ModelRequestParameters,
) -> Body:
    """The request that a model makes of messages that are prepared for it.

    Models with a batch interface give the very body.  For others it is put together here, as OpenAI's chat
    interface has it.
    """
    # Files that a model only has the address of it may fetch to put them into the body.
    if not any(isinstance(one, parts.FileUrl) for one in _contents(messages)):
        from pydantic_ai.models.batch import BatchRequest

        bare = {name: value for name, value in (settings or {}).items() if name not in _NOT_IN_BATCHES}
        try:
            made = await model.batch_encode(
                BatchRequest(
                    custom_id="ctxctl", messages=messages, model_settings=bare or None,  # type: ignore[arg-type]
                    model_request_parameters=params,
                )
            )  # fmt: skip
            return Body(orjson.loads(made.body), None, "pydantic_ai.models.Model.batch_encode")
        except Exception:  # it has none, or none for such a request
            pass
    return Body(_chat(model, messages, settings, params), "openai-chat", "ctxctl")


def _contents(messages: Iterable[parts.ModelMessage]) -> Iterator[Any]:
    for message in messages:
        for part in message.parts:
            content = getattr(part, "content", None)
            if isinstance(content, list | tuple):
                yield from content
            else:
                yield content


def _chat(
    model: Model[Any],
    messages: list[parts.ModelMessage],
    settings: ModelSettings | None,
    params: ModelRequestParameters,
) -> Json:
    _settings, ready = model.prepare_request(settings, params)
    tools = [_tool(one) for one in (*ready.function_tools, *ready.output_tools)]
    role = (model.profile or {}).get("openai_system_prompt_role") or "system"
    made: list[Json] = []
    for message in messages:
        if isinstance(message, parts.ModelResponse):
            if (answer := _answer(message)) is not None:
                made.append(answer)
        else:
            made.extend(_asked(message, role))
    front = 0
    while front < len(made) and made[front]["role"] == role != "user":
        front += 1
    made[front:front] = [{"role": role, "content": text} for text in _instructions(messages, ready)]
    body: Json = {"model": model.model_name, "messages": made}
    if tools:
        body["tools"] = tools
    if ready.output_mode == "native" and ready.output_object is not None:
        schema = {
            "name": ready.output_object.name or "final_result",
            "schema": ready.output_object.json_schema,
        }
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body


def _instructions(messages: list[parts.ModelMessage], params: ModelRequestParameters) -> list[str]:
    if params.instruction_parts:
        return [part.content for part in params.instruction_parts]
    for message in reversed(messages):
        if isinstance(message, parts.ModelRequest) and message.instructions:
            return [message.instructions]
    return []


def _tool(tool: Any) -> Json:
    function = {
        "name": tool.name, "description": tool.description or "", "parameters": tool.parameters_json_schema,
    }  # fmt: skip
    if tool.strict:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _asked(message: parts.ModelRequest, role: str) -> Iterator[Json]:
    files: list[Any] = []
    for part in message.parts:
        if isinstance(part, parts.SystemPromptPart):
            yield {"role": role, "content": part.content}
        elif isinstance(part, parts.UserPromptPart):
            yield {"role": "user", "content": _content(part.content)}
        elif isinstance(part, parts.ToolReturnPart):
            text, more = part.model_response_str_and_user_content()
            files.extend(more)
            yield {"role": "tool", "tool_call_id": part.tool_call_id, "content": text}
        elif isinstance(part, parts.RetryPromptPart):
            if part.tool_name is None:
                yield {"role": "user", "content": part.model_response()}
            else:
                yield {"role": "tool", "tool_call_id": part.tool_call_id, "content": part.model_response()}
        elif isinstance(text := getattr(part, "content", None), str):
            yield {"role": "user", "content": text}
    if files:
        yield {"role": "user", "content": _content(files)}


def _content(content: Any) -> Any:
    if isinstance(content, str):
        return content
    return [made for one in content if (made := _piece(one)) is not None]


def _piece(one: Any) -> Json | None:
    if isinstance(one, str):
        return {"type": "text", "text": one}
    if isinstance(one, parts.ImageUrl):
        return {"type": "image_url", "image_url": {"url": one.url}}
    if isinstance(one, parts.FileUrl):
        return {"type": "file", "file": {"url": one.url}}
    if isinstance(one, parts.BinaryContent):
        if one.is_image:
            return {"type": "image_url", "image_url": {"url": one.data_uri}}
        return {"type": "file", "file": {"file_data": one.data_uri, "filename": one.identifier}}
    if isinstance(text := getattr(one, "content", None), str):
        return {"type": "text", "text": text}
    return None


def _answer(message: parts.ModelResponse) -> Json | None:
    texts = [part.content for part in message.parts if isinstance(part, parts.TextPart)]
    calls = [part for part in message.parts if isinstance(part, parts.ToolCallPart)]
    thoughts = [part.content for part in message.parts if isinstance(part, parts.ThinkingPart)]
    made: Json = {"role": "assistant", "content": "\n\n".join(texts) if texts else None}
    if said := "\n\n".join(filter(None, thoughts)):
        made["reasoning_content"] = said
    if calls:
        made["tool_calls"] = [
            {
                "id": call.tool_call_id, "type": "function",
                "function": {"name": call.tool_name, "arguments": call.args_as_json_str()},
            }
            for call in calls
        ]  # fmt: skip
    return made if texts or calls or said else None


def answer_of(response: parts.ModelResponse) -> Json | None:
    """A response as OpenAI's chat interface gives it, without its bill; None for an empty one."""
    message = _answer(response)
    return {"object": "chat.completion", "choices": [{"index": 0, "message": message}]} if message else None


def counts_of(usage: Any) -> Json:
    """What a `RequestUsage` says was billed, where it says anything."""
    if not usage.has_values():
        return {}
    return {
        "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cache_read_tokens, "cache_write_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.details.get("reasoning_tokens"),
    }  # fmt: skip
