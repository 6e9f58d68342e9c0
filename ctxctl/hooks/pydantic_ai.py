"""Pydantic AI: a capability that records the requests of an agent to its models.

Agent("openai:gpt-5", capabilities=[RecordContext(Recorder("run.jsonl"))])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson
from pydantic_ai import messages as parts
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models.wrapper import WrapperModel

from ctxctl.hooks.running import AgentRun, ConvertedBody, ModelCall
from ctxctl.record.calls import guarded

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import RunContext

    from ctxctl.record.recorder import Recorder


Json = dict[str, Any]
_NOT_IN_BATCHES: Final = ("timeout", "max_retries", "extra_headers", "openai_background")
"""Settings that are no part of a body, and that a batch cannot hold."""


async def body_of(
    model: Model[Any],
    messages: list[parts.ModelMessage],
    settings: ModelSettings | None,
    params: ModelRequestParameters,
) -> ConvertedBody:
    """Return the request that a model makes of messages that are prepared for it.

    Models with a batch interface give the body itself.  For others it is put together here, as for OpenAI's
    chat interface.
    """
    # Not with addresses of files: a model may fetch those to put them into the body.
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
            return ConvertedBody(orjson.loads(made.body), None, "pydantic_ai.models.Model.batch_encode")
        except Exception:  # it has no batch interface, or none for such a request
            pass
    return ConvertedBody(_chat(model, messages, settings, params), "openai-chat", "ctxctl")


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
    """Return a response as an answer of OpenAI's chat interface, without its bill; None for an empty one."""
    message = _answer(response)
    return {"object": "chat.completion", "choices": [{"index": 0, "message": message}]} if message else None


def counts_of(usage: Any) -> Json:
    """Return the counts of a `RequestUsage`; empty where it has none."""
    if not usage.has_values():
        return {}
    return {
        "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cache_read_tokens, "cache_write_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.details.get("reasoning_tokens"),
    }  # fmt: skip


class _Running(NamedTuple):
    """A run of an agent that is under way in this context."""

    run: AgentRun
    thread: str | None
    agent: str | None


_running: ContextVar[_Running | None] = ContextVar("ctxctl_pydantic_ai", default=None)


class RecordContext(AbstractCapability[Any]):
    """Records each request of an agent to a model, its answer and bill.

    A turn is one run of the outermost agent, a session its conversation; an agent that another one's tool
    runs is a thread of its own, if it has the capability too.  Each attempt of a fallback capability counts;
    a `FallbackModel` is recorded as one model.

    Where the HTTP transport is watched for the same recorder, that records the requests, and this names the
    threads and turns that they are in.

    Args:
        recorder: Where to record.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._core = recorder._core
        self._recorder = recorder

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """Return None: a recorder cannot be written into an agent's specification."""
        return None

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> AgentRunResult[Any]:
        """Record a run as a turn, or as a thread of the run around it."""
        outer, here = _running.get(), self._opened(ctx)
        if here is None:
            return await handler()
        token = _running.set(here)
        try:
            return await handler()
        finally:
            with suppress(ValueError):  # ended in another task than it began in
                _running.reset(token)
            if outer is None or outer.run is not here.run:
                here.run.close()

    def get_wrapper_model(self, model: Model[Any]) -> Model[Any] | None:
        """Wrap the model to record its requests, after all that other capabilities have changed."""
        return _Recorded(model, self._recorder)

    @guarded
    def _opened(self, ctx: RunContext[Any]) -> _Running | None:
        outer = _running.get()
        name = ctx.agent.name if ctx.agent is not None else None
        if outer is not None and outer.run.recorder is self._recorder:
            return _Running(outer.run, "/".join(filter(None, (outer.thread, name or "agent"))), name)
        session = ctx.conversation_id if self._recorder._given_session is None else None
        return _Running(AgentRun(self._recorder, session, root=self._recorder._thread), None, name)


class _Recorded(WrapperModel):
    def __init__(self, wrapped: Model[Any], recorder: Recorder) -> None:
        super().__init__(wrapped)
        self._core = recorder._core
        self._recorder = recorder

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        call = await self._begin(messages, model_settings, model_request_parameters)
        try:
            response = await super().request(messages, model_settings, model_request_parameters)
        except BaseException as error:
            call.failed(error)
            call.done()
            raise
        self._end(call, response)
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        call = await self._begin(messages, model_settings, model_request_parameters)
        stream: StreamedResponse | None = None
        wrong: BaseException | None = None
        try:
            async with super().request_stream(
                messages, model_settings, model_request_parameters, run_context
            ) as stream:
                yield stream
        except BaseException as error:
            wrong = error
            raise
        finally:
            self._end(call, stream, wrong)

    async def _begin(
        self, messages: list[ModelMessage], settings: ModelSettings | None, params: ModelRequestParameters
    ) -> ModelCall | _NoCall:
        call = self._call()
        if not isinstance(call, ModelCall) or call.names_only:
            return call or _NoCall()
        try:
            made = await body_of(self.wrapped, messages, settings, params)
        except Exception as error:  # never into the program
            self._lost(error)
        else:
            here = _running.get()
            call.request(
                made.body, made.dialect, via="pydantic-ai", converted=made.by, derived=True,
                agent=here.agent if here is not None else None,
            )  # fmt: skip
            call.enter()
        return call

    @guarded
    def _call(self) -> ModelCall:
        here = _running.get()
        run = here.run if here is not None else AgentRun(self._recorder, loose=True)
        call = run.call(here.thread if here is not None else None, self.wrapped.model_name)
        if call.names_only:
            call.enter()
        return call

    @guarded
    def _lost(self, error: BaseException) -> None:
        raise error

    @guarded
    def _end(
        self,
        call: ModelCall | _NoCall,
        answer: ModelResponse | StreamedResponse | None,
        wrong: BaseException | None = None,
    ) -> None:
        if not isinstance(call, ModelCall):
            return
        try:
            if answer is not None and not call.names_only:
                _answered(call, answer if hasattr(answer, "parts") else answer.get())
            if wrong is not None:
                call.failed(wrong)
        finally:
            call.done()


class _NoCall:
    """Stands for a call that could not be begun; it records nothing."""

    def failed(self, error: BaseException) -> None:
        """Record nothing."""

    def done(self) -> None:
        """Record nothing."""


def _answered(call: ModelCall, response: ModelResponse) -> None:
    if (made := answer_of(response)) is not None:
        call.response(made, "openai-chat")
    if counts := counts_of(response.usage):
        call.usage(**counts, model=response.model_name)
