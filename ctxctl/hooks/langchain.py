"""LangChain and LangGraph: a callback handler that records the requests to chat models.

graph.invoke(state, config={"callbacks": [ContextHandler(Recorder("run.jsonl"))]})

A callback gets messages before they are converted to the JSON that goes to the provider.  They are converted
here by the function of the provider's own package; it is not public, so where it is missing, LangChain's
public conversion is used.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages

from ctxctl.hooks.running import AgentRun, ConvertedBody, Document, ModelCall, record_retrieval
from ctxctl.model.billed import fields_of
from ctxctl.record.calls import guarded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from langchain_core.documents import Document as Retrieved
    from langchain_core.messages import BaseMessage
    from langchain_core.outputs import LLMResult

    from ctxctl.record.recorder import Recorder


Json = dict[str, Any]
_PUBLIC: Final = "langchain_core.messages.convert_to_openai_messages"
_SENT: Final = (
    "model", "tools", "tool_choice", "response_format", "parallel_tool_calls", "thinking", "reasoning",
    "text", "previous_response_id", "max_tokens", "temperature", "top_p", "output_config", "betas",
    "context_management",
)  # fmt: skip
"""Parameters that are kept beside the messages."""
_RESPONSES: Final = ("reasoning", "include", "truncation", "context_management", "use_previous_response_id")
"""Arguments of `ChatOpenAI` that make it use the Responses API."""


def body_of(
    messages: list[BaseMessage], params: Mapping[str, Any], given: Mapping[str, Any]
) -> ConvertedBody:
    """Return the request that a model makes of messages.

    Args:
        messages: The callback's messages.
        params: The call's `invocation_params`.
        given: The arguments that the model was made with (`serialized["kwargs"]`), as far as known.
    """
    fields = {name: params[name] for name in _SENT if params.get(name) is not None}
    kind = str(params.get("_type") or "")
    for of, convert in _CONVERTERS:
        if kind.startswith(of):
            try:
                return convert(messages, fields, params, given)
            except Exception:  # internals of the package, which may differ in another version
                break
    return _chat(messages, fields)


def _chat(messages: list[BaseMessage], fields: Json) -> ConvertedBody:
    from langchain_core.utils.function_calling import convert_to_openai_tool

    tools = fields.get("tools")
    if isinstance(tools, list):
        fields = {**fields, "tools": [_tool(convert_to_openai_tool, one) for one in tools]}
    return ConvertedBody({"messages": convert_to_openai_messages(messages), **fields}, "openai-chat", _PUBLIC)


def _tool(convert: Any, definition: Any) -> Any:
    try:
        return convert(definition)
    except Exception:  # a tool of the provider's own
        return definition


def _openai(
    messages: list[BaseMessage], fields: Json, params: Mapping[str, Any], given: Mapping[str, Any]
) -> ConvertedBody:
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
        return ConvertedBody(sent, "openai-responses", "langchain_openai")
    older = [
        base._convert_from_v1_to_chat_completions(one) if isinstance(one, AIMessage) else one
        for one in messages
    ]
    made = [base._convert_message_to_dict(one) for one in older]
    if model[:1] == "o" and model[1:2].isdigit():
        made = [{**one, "role": "developer"} if one["role"] == "system" else one for one in made]
    return ConvertedBody({"messages": made, **fields}, "openai-chat", "langchain_openai")


def _anthropic(
    messages: list[BaseMessage], fields: Json, params: Mapping[str, Any], given: Mapping[str, Any]
) -> ConvertedBody:
    from langchain_anthropic.chat_models import _format_messages

    system, made = _format_messages(messages, model=fields.get("model"))
    head = {"system": system} if system else {}
    return ConvertedBody({**head, "messages": made, **fields}, "anthropic", "langchain_anthropic")


_CONVERTERS: Final = (("openai", _openai), ("azure-openai", _openai), ("anthropic-chat", _anthropic))


def answer_of(message: BaseMessage, dialect: str) -> Json:
    """Return a message of the model as the provider's answer, without its bill."""
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
    """Return content as Anthropic's blocks; calls that it lacks come from `tool_calls`."""
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
    """Return the counts that `usage_metadata` gives; `input_tokens` is the whole context.

    An input of 0 means that it is unknown: langchain-anthropic gives 0 for streams whose last event does not
    hold the whole bill.
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


_SESSIONS: Final = ("thread_id", "session_id", "conversation_id")
"""Fields of metadata that name a conversation, by custom."""
_UNNAMED: Final = (None, "", "LangGraph")
_STEP: Final = "graph:step:"
_KEPT: Final = 10_000
"""Runs and graphs that are remembered at most, as a program may never end a run."""


class _Node:
    """One run in LangChain's sense: of a graph, a node, a tool or a model."""

    __slots__ = ("call", "dialect", "is_step", "is_tool", "name", "parent", "query", "run")

    def __init__(self, parent: UUID | None, name: str | None, is_step: bool, is_tool: bool) -> None:
        self.parent = parent
        self.name = name
        self.is_step = is_step
        """Whether it is a node of a graph."""
        self.is_tool = is_tool
        self.run: AgentRun | None = None
        """The agent run, on the outermost node."""
        self.call: ModelCall | None = None
        self.dialect: str | None = None
        self.query = ""


class ContextHandler(BaseCallbackHandler):
    """Records each request to a chat model, its answer and bill, and what retrievers gave.

    For `callbacks=[…]`, with `invoke`, `ainvoke`, `stream`, `astream` and the rest alike.  A session is what
    `thread_id` names, a turn what one call of the outermost chain or graph sets off.  Nested graphs, agents
    that are tools, and nodes beside the one that asks a model first are threads of their own.

    Where the HTTP transport is watched for the same recorder, that records the requests, and this names the
    threads and turns that they are in.

    Args:
        recorder: Where to record.
    """

    run_inline = True
    """Makes LangChain call the handler in the caller's own context and order, also if asynchronous."""

    def __init__(self, recorder: Recorder) -> None:
        self._core = recorder._core
        self._recorder = recorder
        self._lock = threading.Lock()
        self._nodes: OrderedDict[UUID, _Node] = OrderedDict()
        self._loose: OrderedDict[str, AgentRun] = OrderedDict()
        self._first: OrderedDict[tuple[str, ...], str] = OrderedDict()
        """By session and graph, the node that asked a model first."""

    # -- chains, graphs, tools ------------------------------------------------------------------------------

    @guarded
    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None,
                       tags: list[str] | None = None, metadata: dict[str, Any] | None = None,
                       **kwargs: Any) -> None:  # fmt: skip
        """Note that a chain, a graph or a node begins."""
        step = any(tag.startswith(_STEP) for tag in tags or ())
        self._begin(run_id, _Node(parent_run_id, kwargs.get("name"), step, False), metadata)

    @guarded
    def on_chain_end(self, outputs: Any, *, run_id: UUID, **_: Any) -> None:
        """Note that it is over."""
        self._end(run_id)

    @guarded
    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Note that it failed."""
        self._end(run_id)

    @guarded
    def on_tool_start(self, serialized: dict[str, Any] | None, input_str: str, *, run_id: UUID,
                      parent_run_id: UUID | None = None, metadata: dict[str, Any] | None = None,
                      **kwargs: Any) -> None:  # fmt: skip
        """Note that a tool begins, which may be an agent."""
        name = kwargs.get("name") or (serialized or {}).get("name")
        self._begin(run_id, _Node(parent_run_id, name, False, True), metadata)

    @guarded
    def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
        """Note that the tool is over."""
        self._end(run_id)

    @guarded
    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Note that the tool failed."""
        self._end(run_id)

    # -- models ---------------------------------------------------------------------------------------------

    @guarded
    def on_chat_model_start(self, serialized: dict[str, Any] | None, messages: list[list[BaseMessage]], *,
                            run_id: UUID, parent_run_id: UUID | None = None,
                            metadata: dict[str, Any] | None = None, **kwargs: Any) -> None:  # fmt: skip
        """Record a request to a chat model."""
        meta = metadata or {}
        node = _Node(parent_run_id, None, False, False)
        self._begin(run_id, node, None)
        params = kwargs.get("invocation_params") or {}
        thread, graph_node = self._thread(node, self._session(meta))
        model = params.get("model") or meta.get("ls_model_name")
        call = node.call = self._run(node, meta).call(thread, model if isinstance(model, str) else None)
        if call.names_only:
            call.enter()
            return
        given = (serialized or {}).get("kwargs")
        made = body_of(messages[0], params, given if isinstance(given, dict) else {})
        node.dialect = made.dialect
        call.request(
            made.body, made.dialect, via="langchain", converted=made.by, derived=True,
            node=graph_node or meta.get("langgraph_node"), agent=meta.get("lc_agent_name"),
        )  # fmt: skip
        call.enter()

    @guarded
    def on_llm_start(self, serialized: dict[str, Any] | None, prompts: list[str], *, run_id: UUID,
                     parent_run_id: UUID | None = None, metadata: dict[str, Any] | None = None,
                     **kwargs: Any) -> None:  # fmt: skip
        """Record a request to a model that takes text."""
        from langchain_core.messages import HumanMessage

        # Without the type: it is no request that the package for chat models converts.
        given = kwargs.get("invocation_params") or {}
        kwargs["invocation_params"] = {name: value for name, value in given.items() if name != "_type"}
        self.on_chat_model_start(
            serialized, [[HumanMessage(prompt) for prompt in prompts[:1]]], run_id=run_id,
            parent_run_id=parent_run_id, metadata=metadata, **kwargs,
        )  # fmt: skip

    @guarded
    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:
        """Record the answer, of a stream when it is over."""
        node = self._taken(run_id)
        if node is not None and node.call is not None:
            try:
                self._answered(node, node.call, response)
            finally:
                node.call.done()

    @guarded
    def on_llm_error(self, error: BaseException, *, run_id: UUID, response: LLMResult | None = None,
                     **_: Any) -> None:  # fmt: skip
        """Record that there was no answer, or that a stream broke off."""
        node = self._taken(run_id)
        if node is not None and node.call is not None:
            try:
                if response is not None:
                    self._answered(node, node.call, response)
                node.call.failed(error)
            finally:
                node.call.done()

    def _answered(self, node: _Node, call: ModelCall, response: LLMResult) -> None:
        given = [one for batch in response.generations[:1] for one in batch]
        if not given or call.names_only:
            return
        message = getattr(given[0], "message", None)
        if message is None:
            from langchain_core.messages import AIMessage

            message = AIMessage(given[0].text)
        if message.content or getattr(message, "tool_calls", None):
            dialect = "anthropic" if node.dialect == "anthropic" else "openai-chat"
            call.response(answer_of(message, dialect), dialect)
        if usage := getattr(message, "usage_metadata", None):
            model = message.response_metadata.get("model_name")
            call.usage(**counts_of(usage), model=model if isinstance(model, str) else None)

    # -- retrievers -----------------------------------------------------------------------------------------

    @guarded
    def on_retriever_start(self, serialized: dict[str, Any] | None, query: str, *, run_id: UUID,
                           parent_run_id: UUID | None = None, metadata: dict[str, Any] | None = None,
                           **kwargs: Any) -> None:  # fmt: skip
        """Note that a retriever is asked."""
        node = _Node(parent_run_id, kwargs.get("name"), False, False)
        node.query = query
        self._begin(run_id, node, metadata)

    @guarded
    def on_retriever_end(self, documents: Sequence[Retrieved], *, run_id: UUID, **_: Any) -> None:
        """Record a retriever's documents, candidates for what comes next."""
        node = self._nodes.get(run_id)
        if node is None:
            return
        thread, _graph_node = self._thread(node, "")
        found = [_document(one) for one in documents]
        record_retrieval(self._run(node, {}).place(thread), node.query, found, name=node.name)
        self._end(run_id)

    @guarded
    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Record that a retriever failed."""
        node = self._nodes.get(run_id)
        if node is None:
            return
        scope = self._run(node, {}).place(self._thread(node, "")[0])
        scope.missing(node.query, severity="medium", metadata={"error": type(error).__qualname__})
        self._end(run_id)

    # -- inside ---------------------------------------------------------------------------------------------

    def _begin(self, run_id: UUID, node: _Node, metadata: Mapping[str, Any] | None) -> None:
        with self._lock:
            self._nodes[run_id] = node
            if len(self._nodes) > _KEPT:
                self._nodes.popitem(last=False)
        if (
            metadata is not None
            and (node.parent is None or node.parent not in self._nodes)
            and not node.query
        ):
            session, root = self._names(metadata)
            node.run = AgentRun(self._recorder, session, root=root)

    def _end(self, run_id: UUID) -> None:
        node = self._taken(run_id)
        if node is not None and node.run is not None:
            node.run.close()

    def _taken(self, run_id: UUID) -> _Node | None:
        with self._lock:
            return self._nodes.pop(run_id, None)

    def _ancestors(self, node: _Node) -> list[_Node]:
        """Return the nodes around a node, from the innermost on."""
        found: list[_Node] = []
        above = node.parent
        while above is not None and (one := self._nodes.get(above)) is not None and len(found) < _KEPT:
            found.append(one)
            above = one.parent
        return found

    def _run(self, node: _Node, metadata: Mapping[str, Any]) -> AgentRun:
        for one in self._ancestors(node):
            if one.run is not None:
                return one.run
        session, root = self._names(metadata)
        where = self._recorder._current_place()
        if where.turn is not None:
            return AgentRun(self._recorder, session, root=root)
        key = f"{session}\x00{root}"
        with self._lock:
            found = self._loose.get(key)
            if found is None:
                found = self._loose[key] = AgentRun(self._recorder, session, root=root, loose=True)
                if len(self._loose) > _KEPT:
                    self._loose.popitem(last=False)
            return found

    def _session(self, metadata: Mapping[str, Any]) -> str | None:
        for name in _SESSIONS:
            if (session := self._core.clean_id(metadata.get(name))) is not None:
                return session
        return None

    def _names(self, metadata: Mapping[str, Any]) -> tuple[str | None, str]:
        """Return the session and the outermost graph's thread, in a given session the conversation."""
        session = self._session(metadata)
        if self._recorder._given_session is not None:
            return None, session or self._recorder._thread
        return session, self._recorder._thread

    def _thread(self, node: _Node, session: str | None) -> tuple[str | None, str | None]:
        """Return the thread that a run belongs to (None: the root's), and the graph's node that it is in."""
        above = self._ancestors(node)
        names: list[str] = []
        inner: str | None = None
        claimed = False
        for at, one in enumerate(above):
            if one.is_step:
                if inner is None and not names:
                    inner = one.name
                rest = above[at + 2 :]
                holder = next((up for up in rest if up.is_step or up.is_tool), None)
                claimed = holder is not None
                if holder is not None:
                    graph = above[at + 1].name
                    names.append((holder.name if graph in _UNNAMED else graph) or "graph")
            elif one.is_tool and not claimed:
                names.append(one.name or "tool")
            elif one.is_tool:
                claimed = False
        names.reverse()
        if inner is not None and session != "":
            owner = self._owner((session or "", *names), inner)
            if owner != inner:
                names.append(inner)
        root = next((one.run._root for one in reversed(above) if one.run is not None), None)
        if not names:
            return None, inner
        prefix = [root] if root is not None and self._recorder._given_session is not None else []
        return "/".join([*prefix, *names]), inner

    def _owner(self, graph: tuple[str, ...], node: str) -> str:
        with self._lock:
            if len(self._first) > _KEPT:
                self._first.popitem(last=False)
            return self._first.setdefault(graph, node)


def _document(given: Retrieved) -> Document:
    meta = given.metadata or {}
    source = next(
        (meta[name] for name in ("source", "url", "file_path") if isinstance(meta.get(name), str)), None
    )
    score = next(
        (meta[n] for n in ("score", "relevance_score", "_score") if isinstance(meta.get(n), float)), None
    )
    return Document(given.page_content, given.id, source, score, dict(meta) or None)
