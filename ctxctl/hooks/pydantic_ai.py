"""Pydantic AI: a capability that records what an agent asks its models.

Agent("openai:gpt-5", capabilities=[RecordContext(Recorder("run.jsonl"))])
"""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models.wrapper import WrapperModel

from ctxctl.hooks.pydantic_ai_bodies import answer_of, body_of, counts_of
from ctxctl.hooks.running import Call, Run
from ctxctl.record.calls import guarded

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import RunContext

    from ctxctl.record.recorder import Recorder


class _Running(NamedTuple):
    """An agent's run that is under way here."""

    run: Run
    thread: str | None
    agent: str | None


_running: ContextVar[_Running | None] = ContextVar("ctxctl_pydantic_ai", default=None)


class RecordContext(AbstractCapability[Any]):
    """Records each request of an agent's to a model, its answer and bill.

    A turn is one run of the outermost agent, a session its conversation; an agent that another one's tool
    runs is a thread of its own, if it has the capability too.  Each attempt of a fallback capability counts;
    a `FallbackModel` is recorded as one model.

    Where the HTTP transport is watched for the same recorder, that records the requests, and this names the
    threads and turns that they are in.

    Args:
        recorder: Where to.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._core = recorder._core
        self._recorder = recorder

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """None: a recorder cannot be written into an agent's specification."""
        return None

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> AgentRunResult[Any]:
        """A turn, or a thread of the run that this one is part of."""
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
        """The model again, recording what it is asked: what any other capability changed is in that."""
        return _Recorded(model, self._recorder)

    @guarded
    def _opened(self, ctx: RunContext[Any]) -> _Running | None:
        outer = _running.get()
        name = ctx.agent.name if ctx.agent is not None else None
        if outer is not None and outer.run.recorder is self._recorder:
            return _Running(outer.run, "/".join(filter(None, (outer.thread, name or "agent"))), name)
        session = ctx.conversation_id if self._recorder._given is None else None
        return _Running(Run(self._recorder, session, root=self._recorder._thread), None, name)


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
    ) -> Call | _NoCall:
        call = self._call()
        if not isinstance(call, Call) or call.names_only:
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
    def _call(self) -> Call:
        here = _running.get()
        run = here.run if here is not None else Run(self._recorder, loose=True)
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
        call: Call | _NoCall,
        answer: ModelResponse | StreamedResponse | None,
        wrong: BaseException | None = None,
    ) -> None:
        if not isinstance(call, Call):
            return
        try:
            if answer is not None and not call.names_only:
                _answered(call, answer if hasattr(answer, "parts") else answer.get())
            if wrong is not None:
                call.failed(wrong)
        finally:
            call.done()


class _NoCall:
    """Stands for a call that could not be begun."""

    def failed(self, error: BaseException) -> None:
        """Nothing is recorded."""

    def done(self) -> None:
        """Nothing is recorded."""


def _answered(call: Call, response: ModelResponse) -> None:
    if (made := answer_of(response)) is not None:
        call.response(made, "openai-chat")
    if counts := counts_of(response.usage):
        call.usage(**counts, model=response.model_name)
