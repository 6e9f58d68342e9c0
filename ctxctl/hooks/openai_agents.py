"""OpenAI's Agents SDK: run hooks that record the requests of agents to their models.

await Runner.run(agent, "…", hooks=ContextHooks(Recorder("run.jsonl")))
"""

from __future__ import annotations

import re
import threading
import weakref
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agents import FunctionTool, Handoff, ItemHelpers, RunHooks, add_trace_processor, handoff
from agents.mcp import MCPUtil
from agents.models.chatcmpl_converter import Converter as ChatConverter
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from agents.models.openai_responses import Converter
from agents.tracing import TracingProcessor, get_current_span, get_current_trace
from agents.tracing.span_data import AgentSpanData, GenerationSpanData, ResponseSpanData, TaskSpanData

from ctxctl.hooks.running import AgentRun, ConvertedBody, ModelCall
from ctxctl.record.calls import guarded

if TYPE_CHECKING:
    from agents import Agent, ModelResponse, RunContextWrapper
    from agents.tracing import Span, Trace
    from agents.usage import Usage

    from ctxctl.record.recorder import Recorder


Json = dict[str, Any]


def body_of(
    agent: Agent[Any],
    prompt: str | None,
    items: list[Any],
    model: str | None,
    tools: list[str] | None,
    handoffs: list[str] | None,
) -> ConvertedBody:
    """Return the request of an agent.

    Args:
        agent: The agent that asks.
        prompt: Its instructions, as they are sent.
        items: The conversation, as it is sent.
        model: The model's name, if it is known.
        tools: Names of the enabled tools; None: unknown, so all are taken.
        handoffs: Names of the agents that may be handed to; None: unknown, so all are taken.
    """
    named = {"model": model} if model is not None else {}
    chosen = [one for one in _tools(agent) if tools is None or _is_named(one, tools)]
    given = [one if isinstance(one, Handoff) else handoff(one) for one in agent.handoffs]
    given = [one for one in given if handoffs is None or one.agent_name in handoffs]
    if isinstance(agent.model, OpenAIChatCompletionsModel):
        messages = ChatConverter.items_to_messages(items, model=agent.model.model)
        if prompt:
            messages.insert(0, {"role": "system", "content": prompt})
        made = [ChatConverter.tool_to_openai(one) for one in chosen]
        made += [ChatConverter.convert_handoff_tool(one) for one in given]
        body = {**named, "messages": messages, **({"tools": made} if made else {})}
        return ConvertedBody(body, "openai-chat", "agents.models.chatcmpl_converter.Converter")
    body = {**named, "input": ItemHelpers.input_to_new_input_list(items)}
    if prompt is not None:
        body["instructions"] = prompt
    body["tools"] = list(Converter.convert_tools(chosen, given, allow_opaque_tool_search_surface=True).tools)
    return ConvertedBody(body, "openai-responses", "agents.models.openai_responses.Converter")


def _tools(agent: Agent[Any]) -> list[Any]:
    """Return the agent's tools; those of MCP servers as they were listed last, without asking a server."""
    found: list[Any] = list(agent.tools)
    found = [one for one in found if not (isinstance(one, FunctionTool) and one.is_enabled is False)]
    strict = bool(agent.mcp_config.get("convert_schemas_to_strict", False))
    listed: list[Any] = []
    for server in agent.mcp_servers:
        listed += [MCPUtil.to_function_tool(one, server, strict) for one in server.cached_tools or ()]
    return listed + found


def _is_named(tool: Any, names: list[str]) -> bool:
    """Whether a tool is among these names; hosted tools always are, as traces name them otherwise."""
    return not isinstance(tool, FunctionTool) or any(
        n == tool.name or n.endswith(f".{tool.name}") for n in names
    )


def answer_of(response: ModelResponse) -> Json:
    """Return an answer in the Responses API's shape, without its bill."""
    return {
        "object": "response",
        "output": [one if isinstance(one, dict) else _dumped(one) for one in response.output],
    }


def _dumped(item: Any) -> Any:
    return item.model_dump(mode="json", exclude_unset=True)


def counts_of(usage: Usage) -> Json:
    """Return the billed counts; empty where the provider gave none."""
    if not usage.total_tokens and not usage.input_tokens:
        return {}
    inputs, outputs = usage.input_tokens_details, usage.output_tokens_details
    return {
        "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens,
        "cached_tokens": getattr(inputs, "cached_tokens", None),
        "cache_write_tokens": getattr(inputs, "cache_write_tokens", None),
        "reasoning_tokens": getattr(outputs, "reasoning_tokens", None),
    }  # fmt: skip


_KEPT: Final = 10_000
_STATUS: Final = re.compile(r"Error code: ([0-9]{3})\b")
"""The beginning of the message of OpenAI's package for a refused request."""


class _Part(NamedTuple):
    """One call of the runner: by the user, or for an agent that is another agent's tool."""

    run: AgentRun
    first: str
    """The name of the agent that it began with."""
    prefix: str | None
    """The thread of the first agent; None: the root's."""

    def thread(self, agent: str) -> str | None:
        """Return an agent's thread: a hand-off goes to another thread."""
        return self.prefix if agent == self.first else "/".join(filter(None, (self.prefix, agent)))


class ContextHooks(RunHooks[Any]):
    """Records each request of agents to a model, its answer and bill.

    For `Runner.run(…, hooks=…)` and its kin.  A turn is one call of the runner, a session what a trace's
    `group_id` names; agents that are handed to, and agents that are tools, are threads of their own.

    Which tools are enabled, failures, and the end of a run that failed come from the SDK's tracing.  Where
    that is switched off, all tools of the agent are recorded, and a failed request has no answer.

    Where the HTTP transport is watched for the same recorder, that records the requests, and this names the
    threads and turns that they are in (with tracing only).

    Args:
        recorder: Where to record.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._core = recorder._core
        self._recorder = recorder
        self._calls: weakref.WeakValueDictionary[int, ModelCall] = weakref.WeakValueDictionary()
        _spans.attend()

    async def on_llm_start(self, context: RunContextWrapper[Any], agent: Agent[Any],
                           system_prompt: str | None, input_items: list[Any]) -> None:  # fmt: skip
        """Record a request to a model."""
        self._asked(context, agent, system_prompt, input_items)

    async def on_llm_end(
        self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse
    ) -> None:
        """Record the answer, of a stream when it is over."""
        self._answered(context, response)

    async def on_agent_end(self, context: RunContextWrapper[Any], agent: Agent[Any], output: Any) -> None:
        """End the run, which has its result."""
        self._finished(context)

    @guarded
    def _asked(self, context: Any, agent: Agent[Any], prompt: str | None, items: list[Any]) -> None:
        part = self._part(context, agent)
        model = _model(agent)
        call = part.run.call(part.thread(agent.name), model)
        span = get_current_span()
        known = _spans.agent_of(span)
        context.__dict__["_ctxctl_call"] = call
        if span is not None:
            _spans.expect(span.span_id, call)
        if call.names_only:
            return
        made = body_of(agent, prompt, items, model, known.tools if known is not None else None,
                       known.handoffs if known is not None else None)  # fmt: skip
        call.request(
            made.body, made.dialect, via="openai-agents", converted=made.by, derived=True, agent=agent.name
        )

    @guarded
    def _answered(self, context: Any, response: ModelResponse) -> None:
        call = context.__dict__.pop("_ctxctl_call", None)
        if not isinstance(call, ModelCall):
            return
        try:
            if not call.names_only:
                call.response(answer_of(response), "openai-responses")
                if counts := counts_of(response.usage):
                    call.usage(**counts, model=call.answering_model)
        finally:
            call.done()

    @guarded
    def _finished(self, context: Any) -> None:
        part = context.__dict__.pop("_ctxctl_part", None)
        if isinstance(part, _Part) and part.prefix is None:
            part.run.close()

    def _part(self, context: Any, agent: Agent[Any]) -> _Part:
        """Return the call of the runner that is under way here."""
        known = context.__dict__.get("_ctxctl_part")
        if isinstance(known, _Part) and known.run.recorder is self._recorder:
            return known
        task = _spans.task_of(get_current_span())
        above = _spans.part_above(task, self._recorder)
        if above is not None:
            prefix = "/".join(filter(None, (above.thread(above.first), agent.name)))
            part = _Part(above.run, agent.name, prefix)
        else:
            part = _Part(self._new(), agent.name, None)
            # Without tracing, a run that fails ends when its context is dropped.
            weakref.finalize(context, part.run.close)
        context.__dict__["_ctxctl_part"] = part
        if task is not None:
            _spans.parts[task] = part
        return part

    def _new(self) -> AgentRun:
        trace = get_current_trace()
        group = getattr(trace, "group_id", None)
        session = group if isinstance(group, str) and self._recorder._given_session is None else None
        return AgentRun(self._recorder, session, root=self._recorder._thread)


class _Spans(TracingProcessor):
    """The open spans of the process, and the calls of the runner that they belong to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, Span[Any]] = {}
        self._expected: dict[str, ModelCall] = {}
        self._attending = False
        self.parts: dict[str, _Part] = {}
        """Calls of the runner, by the id of their task's span."""

    def attend(self) -> None:
        """Take part in tracing; only the first call has an effect."""
        with self._lock:
            if not self._attending:
                self._attending = True
                add_trace_processor(self)

    def expect(self, parent: str, call: ModelCall) -> None:
        """Note that the next request below a span is this call."""
        with self._lock:
            if parent in self._open:
                self._expected[parent] = call

    def agent_of(self, span: Span[Any] | None) -> AgentSpanData | None:
        """Return the agent that a span belongs to."""
        for one in self._up(span):
            if isinstance(one.span_data, AgentSpanData):
                return one.span_data
        return None

    def task_of(self, span: Span[Any] | None) -> str | None:
        """Return the id of the call of the runner that a span belongs to."""
        return next((one.span_id for one in self._up(span) if isinstance(one.span_data, TaskSpanData)), None)

    def part_above(self, task: str | None, recorder: Recorder) -> _Part | None:
        """Return the call of the runner around another one."""
        if task is None:
            return None
        for one in self._up(self._open.get(task)):
            part = self.parts.get(one.span_id)
            if part is not None and one.span_id != task and part.run.recorder is recorder:
                return part
        return None

    def _up(self, span: Span[Any] | None) -> list[Span[Any]]:
        found: list[Span[Any]] = []
        here = self._open.get(span.span_id) if span is not None else None
        while here is not None and len(found) < _KEPT:
            found.append(here)
            here = self._open.get(here.parent_id) if here.parent_id is not None else None
        return found

    def on_trace_start(self, trace: Trace) -> None:
        """Do nothing."""

    def on_trace_end(self, trace: Trace) -> None:
        """Do nothing."""

    def on_span_start(self, span: Span[Any]) -> None:
        """Note a span; a request's span begins in the context in which the request is made."""
        self._open[span.span_id] = span
        if isinstance(span.span_data, ResponseSpanData | GenerationSpanData):
            call = self._expected.get(span.parent_id or "")
            if call is not None:
                call.enter()

    def on_span_end(self, span: Span[Any]) -> None:
        """Record a request that failed, and end a call of the runner that is over."""
        self._open.pop(span.span_id, None)
        kind = span.span_data
        if isinstance(kind, ResponseSpanData | GenerationSpanData):
            call = self._expected.get(span.parent_id or "")
            if call is not None:
                call.answering_model = _answering_model(kind)
                if span.error is not None:
                    call.failed(_error(span.error))
        else:
            call = self._expected.pop(span.span_id, None)
            if call is not None:
                call.done()
        if isinstance(kind, TaskSpanData):
            part = self.parts.pop(span.span_id, None)
            if part is not None and part.prefix is None:
                part.run.close()

    def shutdown(self) -> None:
        """Do nothing."""

    def force_flush(self) -> None:
        """Do nothing: what is recorded is written already."""


_spans: Final = _Spans()


def _error(error: Any) -> str:
    """Return the status of a failed request, without its text, which may hold secrets."""
    data = error.get("data") if isinstance(error, dict) else None
    text = data.get("error") if isinstance(data, dict) else None
    found = _STATUS.match(text) if isinstance(text, str) else None
    return f"HTTP {found.group(1)}" if found is not None else "failed"


def _answering_model(kind: ResponseSpanData | GenerationSpanData) -> str | None:
    """Return the model that answered."""
    name = kind.model if isinstance(kind, GenerationSpanData) else getattr(kind.response, "model", None)
    return name if isinstance(name, str) else None


def _model(agent: Agent[Any]) -> str | None:
    """Return the model of an agent; None: the SDK's default, or what the run sets."""
    model = agent.model
    if isinstance(model, str):
        return model
    name = getattr(model, "model", None)
    return name if isinstance(name, str) else None
