"""LlamaIndex: records the requests to models and what retrievers give, anywhere in the program.

record(Recorder("run.jsonl"))
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.instrumentation.events.llm import (
    LLMChatEndEvent,
    LLMChatStartEvent,
    LLMCompletionEndEvent,
    LLMCompletionStartEvent,
)
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent
from llama_index.core.instrumentation.span import BaseSpan
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
from llama_index.core.llms import ChatMessage
from pydantic import PrivateAttr

from ctxctl.hooks.running import AgentRun, ConvertedBody, Document, ModelCall, record_retrieval
from ctxctl.record.calls import guarded

if TYPE_CHECKING:
    import inspect

    from llama_index.core.schema import NodeWithScore

    from ctxctl.record.recorder import Recorder


Json = dict[str, Any]
_SENT: Final = (
    "tools", "tool_choice", "parallel_tool_calls", "response_format", "temperature", "max_tokens",
    "reasoning", "thinking", "previous_response_id",
)  # fmt: skip
"""Arguments of the call that are kept beside the messages."""


def body_of(
    messages: Sequence[ChatMessage], given: Mapping[str, Any], model: Mapping[str, Any]
) -> ConvertedBody:
    """Return the request that a model makes of messages.

    Args:
        messages: The messages.
        given: The call's further arguments.
        model: The model's description of itself.
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
    except Exception:  # the provider's package is missing, or of an unknown version
        made = [_message(one) for one in messages]
        return ConvertedBody({"messages": made, **fields}, "openai-chat", "ctxctl")


def model_name(model: Mapping[str, Any]) -> str | None:
    """Return the model's name from its description."""
    return next((model[n] for n in ("model_name", "model") if isinstance(model.get(n), str)), None)


def _openai(messages: Sequence[ChatMessage], fields: Json, *, responses: bool) -> ConvertedBody:
    from llama_index.llms.openai.utils import to_openai_message_dicts

    by = "llama_index.llms.openai.utils.to_openai_message_dicts"
    if responses:
        made = to_openai_message_dicts(messages, model=fields.get("model"), is_responses_api=True)
        return ConvertedBody({"input": made, **fields}, "openai-responses", by)
    made = to_openai_message_dicts(messages, model=fields.get("model"))
    return ConvertedBody({"messages": made, **fields}, "openai-chat", by)


def _anthropic(messages: Sequence[ChatMessage], fields: Json) -> ConvertedBody:
    from llama_index.llms.anthropic.utils import messages_to_anthropic_messages

    made, system = messages_to_anthropic_messages(messages)
    head = {"system": system} if system else {}
    by = "llama_index.llms.anthropic.utils.messages_to_anthropic_messages"
    return ConvertedBody({**head, "messages": made, **fields}, "anthropic", by)


def _message(message: ChatMessage) -> Json:
    """Convert a message by its own fields: the texts of its blocks, and its calls."""
    made: Json = {"role": message.role.value, "content": message.content}
    calls = message.additional_kwargs.get("tool_calls")
    if isinstance(calls, list) and calls:
        made["tool_calls"] = calls
    answers = message.additional_kwargs.get("tool_call_id")
    if isinstance(answers, str):
        made["tool_call_id"] = answers
    return made


def answer_of(message: ChatMessage) -> Json:
    """Return a message of the model as an answer of OpenAI's chat interface, without its bill."""
    made = body_of([message], {}, {}).body["messages"][0]
    return {"object": "chat.completion", "choices": [{"index": 0, "message": made}]}


_KEPT: Final = 10_000
"""Spans and calls that are remembered at most."""


class _Span:
    """An open span: its outermost span and its agent."""

    __slots__ = ("agent", "root")

    def __init__(self, root: str, agent: str | None) -> None:
        self.root = root
        self.agent = agent
        """The workflow's agent that it belongs to."""


class Recording:
    """Records the library's calls until `stop`; `record` makes it.

    A turn is all that one outermost call of the library sets off (a query, a workflow's run).  Of a
    workflow's agents, the one that asks a model first has the main thread, each other one its own.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._core = recorder._core
        self._recorder = recorder
        self._lock = threading.Lock()
        self._spans: OrderedDict[str, _Span] = OrderedDict()
        self._runs: OrderedDict[str, AgentRun] = OrderedDict()
        self._calls: OrderedDict[str, ModelCall] = OrderedDict()
        self._ranked: OrderedDict[str, ReRankStartEvent] = OrderedDict()
        self._first: dict[str, str] = {}
        self._loose = AgentRun(recorder, root=recorder._thread, loose=True)
        self._handlers = (_Events(), _Tree())
        for handler in self._handlers:
            handler._to = self
        dispatcher = get_dispatcher()
        dispatcher.add_event_handler(self._handlers[0])
        dispatcher.add_span_handler(self._handlers[1])

    def stop(self) -> None:
        """Stop recording."""
        dispatcher = get_dispatcher()
        dispatcher.event_handlers = [one for one in dispatcher.event_handlers if one is not self._handlers[0]]
        dispatcher.span_handlers = [one for one in dispatcher.span_handlers if one is not self._handlers[1]]

    # -- spans ----------------------------------------------------------------------------------------------

    @guarded
    def began(self, span: str, parent: str | None, bound: inspect.BoundArguments) -> None:
        """Note that a call of the library begins."""
        with self._lock:
            above = self._spans.get(parent) if parent is not None else None
            agent = above.agent if above is not None else None
            for value in bound.arguments.values():
                name = getattr(value, "current_agent_name", None)
                if isinstance(name, str) and name:
                    agent = name
            self._keep(self._spans, span, _Span(above.root if above is not None else span, agent))

    @guarded
    def ended(self, span: str, error: BaseException | None = None) -> None:
        """Note that a call of the library is over."""
        with self._lock:
            self._spans.pop(span, None)
            self._ranked.pop(span, None)
            run = self._runs.pop(span, None)
        if error is not None:
            self._failed(span, error)
        if run is not None:
            run.close()

    # -- events ---------------------------------------------------------------------------------------------

    @guarded
    def handle(self, event: Any) -> None:
        """Record an event of the library."""
        span = event.span_id or ""
        if isinstance(event, LLMChatStartEvent):
            self._asked(span, list(event.messages), event.additional_kwargs, event.model_dict)
        elif isinstance(event, LLMCompletionStartEvent):
            self._asked(span, [ChatMessage(event.prompt)], event.additional_kwargs, event.model_dict)
        elif isinstance(event, LLMChatEndEvent):
            response = event.response
            self._answered(span, response and response.message, response)
        elif isinstance(event, LLMCompletionEndEvent):
            self._answered(span, ChatMessage(event.response.text, role="assistant"), event.response)
        elif isinstance(event, ExceptionEvent):
            self._failed(span, event.exception)
        elif isinstance(event, RetrievalEndEvent):
            record_retrieval(
                self._place(span), _query(event.str_or_query_bundle), map(_document, event.nodes)
            )
        elif isinstance(event, ReRankStartEvent):
            with self._lock:
                self._keep(self._ranked, span, event)
        elif isinstance(event, ReRankEndEvent):
            asked = self._ranked.get(span)
            if asked is not None:
                before = [_document(one) for one in asked.nodes]
                record_retrieval(self._place(span), _query(asked.query), map(_document, event.nodes),
                          name=asked.model_name, candidates=before)  # fmt: skip

    def _asked(
        self, span: str, messages: list[ChatMessage], given: dict[str, Any], model: dict[str, Any]
    ) -> None:
        known = self._spans.get(span)
        run, thread = self._run(span, is_model=True)
        call = run.call(thread, model_name(model))
        with self._lock:
            self._keep(self._calls, span, call)
        if call.names_only:
            call.enter()
            return
        made = body_of(messages, given, model)
        agent = known.agent if known is not None else None
        call.request(made.body, made.dialect, via="llama-index", converted=made.by, derived=True, agent=agent)
        call.enter()

    def _answered(self, span: str, message: ChatMessage | None, response: Any) -> None:
        with self._lock:
            call = self._calls.pop(span, None)
        if call is None:
            return
        try:
            if message is not None and not call.names_only:
                call.response(answer_of(message), "openai-chat")
                call.usage(response=_bill(response))
        finally:
            call.done()

    def _failed(self, span: str, error: BaseException) -> None:
        with self._lock:
            call = self._calls.pop(span, None)
        if call is not None:
            call.failed(error)
            call.done()

    def _place(self, span: str) -> Any:
        return self._run(span)[0].place()

    def _run(self, span: str, *, is_model: bool = False) -> tuple[AgentRun, str | None]:
        with self._lock:
            known = self._spans.get(span)
            if known is None or (is_model and known.root == span):
                return self._loose, None  # it is in no other call
            run = self._runs.get(known.root)
            if run is None:
                run = AgentRun(self._recorder, root=self._recorder._thread)
                self._keep(self._runs, known.root, run)
                self._first.pop(known.root, None)
            if known.agent is None:
                return run, None
            if len(self._first) > _KEPT:
                self._first.clear()
            return run, None if self._first.setdefault(
                known.root, known.agent
            ) == known.agent else known.agent

    @staticmethod
    def _keep(where: OrderedDict[str, Any], key: str, value: Any) -> None:
        where[key] = value
        if len(where) > _KEPT:
            where.popitem(last=False)


def record(recorder: Recorder) -> Recording:
    """Record each request of the library to a model, and what its retrievers give, from now on.

    Where the HTTP transport is watched for the same recorder, that records the requests, and this names the
    threads and turns that they are in.
    """
    return Recording(recorder)


class _Events(BaseEventHandler):
    _to: Recording = PrivateAttr()

    def handle(self, event: Any, **kwargs: Any) -> Any:
        self._to.handle(event)


class _Tree(BaseSpanHandler[BaseSpan]):
    _to: Recording = PrivateAttr()

    def new_span(self, id_: str, bound_args: inspect.BoundArguments, instance: Any | None = None,
                 parent_span_id: str | None = None, tags: dict[str, Any] | None = None,
                 **kwargs: Any) -> BaseSpan | None:  # fmt: skip
        self._to.began(id_, parent_span_id, bound_args)
        return None

    def prepare_to_exit_span(self, id_: str, bound_args: inspect.BoundArguments, instance: Any | None = None,
                             result: Any | None = None, **kwargs: Any) -> BaseSpan | None:  # fmt: skip
        self._to.ended(id_)
        return None

    def prepare_to_drop_span(self, id_: str, bound_args: inspect.BoundArguments, instance: Any | None = None,
                             err: BaseException | None = None, **kwargs: Any) -> BaseSpan | None:  # fmt: skip
        self._to.ended(id_, err or RuntimeError())
        return None


def _bill(response: Any) -> Any:
    """Return what holds the bill: the provider's answer; of a stream, its last event or the answer in it."""
    raw = response.raw
    if raw is None:
        return response.additional_kwargs
    inner = raw.get("response") if isinstance(raw, dict) else getattr(raw, "response", None)
    return raw if inner is None else inner


def _query(given: Any) -> str:
    return given if isinstance(given, str) else str(getattr(given, "query_str", ""))


def _document(given: NodeWithScore) -> Document:
    node = given.node
    meta = dict(node.metadata or {})
    source = next(
        (meta[n] for n in ("file_path", "source", "url", "file_name") if isinstance(meta.get(n), str)), None
    )
    return Document(node.get_content(), node.node_id, source, given.score, meta or None)
