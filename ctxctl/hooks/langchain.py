"""LangChain and LangGraph: a callback handler that records what chat models are asked.

graph.invoke(state, config={"callbacks": [ContextHandler(Recorder("run.jsonl"))]})
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from langchain_core.callbacks import BaseCallbackHandler

from ctxctl.hooks.langchain_bodies import answer_of, body_of, counts_of
from ctxctl.hooks.running import Call, Document, Run, retrieved
from ctxctl.record.calls import guarded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from langchain_core.documents import Document as Retrieved
    from langchain_core.messages import BaseMessage
    from langchain_core.outputs import LLMResult

    from ctxctl.record.recorder import Recorder

_SESSIONS: Final = ("thread_id", "session_id", "conversation_id")
"""Metadata that names a conversation, by custom."""
_UNNAMED: Final = (None, "", "LangGraph")
_STEP: Final = "graph:step:"
_KEPT: Final = 10_000
"""Runs and graphs that are remembered; those of a program that never ends a run are not kept for ever."""


class _Node:
    """One run of LangChain's: of a graph, a node of it, a tool, a model."""

    __slots__ = ("call", "dialect", "is_step", "is_tool", "name", "parent", "query", "run")

    def __init__(self, parent: UUID | None, name: str | None, is_step: bool, is_tool: bool) -> None:
        self.parent = parent
        self.name = name
        self.is_step = is_step
        """A node of a graph."""
        self.is_tool = is_tool
        self.run: Run | None = None
        """Of the outermost one."""
        self.call: Call | None = None
        self.dialect = ""
        self.query = ""


class ContextHandler(BaseCallbackHandler):
    """Records each request to a chat model, its answer and bill, and what retrievers gave.

    For `callbacks=[…]`, with `invoke`, `ainvoke`, `stream`, `astream` and the rest alike.  A session is what
    `thread_id` names, a turn what one call of the outermost chain or graph sets off.  Nested graphs, agents
    that are tools, and nodes beside the one that asks a model first are threads of their own.

    Where the HTTP transport is watched for the same recorder, that records the requests, and this names the
    threads and turns that they are in.

    Args:
        recorder: Where to.
    """

    run_inline = True
    """In the caller's own context and order, also where it is asynchronous."""

    def __init__(self, recorder: Recorder) -> None:
        self._core = recorder._core
        self._recorder = recorder
        self._lock = threading.Lock()
        self._nodes: OrderedDict[UUID, _Node] = OrderedDict()
        self._loose: OrderedDict[str, Run] = OrderedDict()
        self._first: OrderedDict[tuple[str, ...], str] = OrderedDict()
        """The node that asks models first, by session and graph."""

    # -- chains, graphs, tools ------------------------------------------------------------------------------

    @guarded
    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None,
                       tags: list[str] | None = None, metadata: dict[str, Any] | None = None,
                       **kwargs: Any) -> None:  # fmt: skip
        """A chain, a graph or a node of one begins."""
        step = any(tag.startswith(_STEP) for tag in tags or ())
        self._begin(run_id, _Node(parent_run_id, kwargs.get("name"), step, False), metadata)

    @guarded
    def on_chain_end(self, outputs: Any, *, run_id: UUID, **_: Any) -> None:
        """It is over."""
        self._end(run_id)

    @guarded
    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """It failed."""
        self._end(run_id)

    @guarded
    def on_tool_start(self, serialized: dict[str, Any] | None, input_str: str, *, run_id: UUID,
                      parent_run_id: UUID | None = None, metadata: dict[str, Any] | None = None,
                      **kwargs: Any) -> None:  # fmt: skip
        """A tool begins, which may be an agent."""
        name = kwargs.get("name") or (serialized or {}).get("name")
        self._begin(run_id, _Node(parent_run_id, name, False, True), metadata)

    @guarded
    def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
        """It is over."""
        self._end(run_id)

    @guarded
    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """It failed."""
        self._end(run_id)

    # -- models ---------------------------------------------------------------------------------------------

    @guarded
    def on_chat_model_start(self, serialized: dict[str, Any] | None, messages: list[list[BaseMessage]], *,
                            run_id: UUID, parent_run_id: UUID | None = None,
                            metadata: dict[str, Any] | None = None, **kwargs: Any) -> None:  # fmt: skip
        """A request goes to a chat model."""
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
        """A prompt goes to a model that takes text."""
        from langchain_core.messages import HumanMessage

        # Not as the package for chat models would convert it: it is no such request.
        given = kwargs.get("invocation_params") or {}
        kwargs["invocation_params"] = {name: value for name, value in given.items() if name != "_type"}
        self.on_chat_model_start(
            serialized, [[HumanMessage(prompt) for prompt in prompts[:1]]], run_id=run_id,
            parent_run_id=parent_run_id, metadata=metadata, **kwargs,
        )  # fmt: skip

    @guarded
    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:
        """The model has answered; a stream is over."""
        node = self._taken(run_id)
        if node is not None and node.call is not None:
            try:
                self._answered(node, node.call, response)
            finally:
                node.call.done()

    @guarded
    def on_llm_error(self, error: BaseException, *, run_id: UUID, response: LLMResult | None = None,
                     **_: Any) -> None:  # fmt: skip
        """There was no answer, or a stream broke off."""
        node = self._taken(run_id)
        if node is not None and node.call is not None:
            try:
                if response is not None:
                    self._answered(node, node.call, response)
                node.call.failed(error)
            finally:
                node.call.done()

    def _answered(self, node: _Node, call: Call, response: LLMResult) -> None:
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
        """A retriever is asked."""
        node = _Node(parent_run_id, kwargs.get("name"), False, False)
        node.query = query
        self._begin(run_id, node, metadata)

    @guarded
    def on_retriever_end(self, documents: Sequence[Retrieved], *, run_id: UUID, **_: Any) -> None:
        """It has answered: its documents are candidates for what comes next."""
        node = self._nodes.get(run_id)
        if node is None:
            return
        thread, _graph_node = self._thread(node, "")
        found = [_document(one) for one in documents]
        retrieved(self._run(node, {}).place(thread), node.query, found, name=node.name)
        self._end(run_id)

    @guarded
    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """It failed."""
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
            node.run = Run(self._recorder, session, root=root)

    def _end(self, run_id: UUID) -> None:
        node = self._taken(run_id)
        if node is not None and node.run is not None:
            node.run.close()

    def _taken(self, run_id: UUID) -> _Node | None:
        with self._lock:
            return self._nodes.pop(run_id, None)

    def _ancestors(self, node: _Node) -> list[_Node]:
        """From the innermost on."""
        found: list[_Node] = []
        above = node.parent
        while above is not None and (one := self._nodes.get(above)) is not None and len(found) < _KEPT:
            found.append(one)
            above = one.parent
        return found

    def _run(self, node: _Node, metadata: Mapping[str, Any]) -> Run:
        for one in self._ancestors(node):
            if one.run is not None:
                return one.run
        session, root = self._names(metadata)
        where = self._recorder._where()
        if where.turn is not None:
            return Run(self._recorder, session, root=root)
        key = f"{session}\x00{root}"
        with self._lock:
            found = self._loose.get(key)
            if found is None:
                found = self._loose[key] = Run(self._recorder, session, root=root, loose=True)
                if len(self._loose) > _KEPT:
                    self._loose.popitem(last=False)
            return found

    def _session(self, metadata: Mapping[str, Any]) -> str | None:
        for name in _SESSIONS:
            if (told := self._core.name(metadata.get(name))) is not None:
                return told
        return None

    def _names(self, metadata: Mapping[str, Any]) -> tuple[str | None, str]:
        """The session, and the outermost graph's thread: in a session of the user's own, the conversation."""
        told = self._session(metadata)
        if self._recorder._given is not None:
            return None, told or self._recorder._thread
        return told, self._recorder._thread

    def _thread(self, node: _Node, session: str | None) -> tuple[str | None, str | None]:
        """The thread that a run belongs to (None: the root's), and the node of the graph that it is in."""
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
        prefix = [root] if root is not None and self._recorder._given is not None else []
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
