"""LangGraph: graphs, agents and agents within them, with LangChain's callback handler."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Send

import ctxctl
from ctxctl import Recorder
from ctxctl.hooks.langchain import ContextHandler
from tests.frameworks import examples
from tests.frameworks.fake import Fake
from tests.frameworks.session import SECRET, Recording

ENVIRONMENTS = ("httpx2",)


def model(fake: Fake) -> ChatOpenAI:
    return ChatOpenAI(
        model="gpt-5", base_url=fake.v1, api_key=SECRET, max_retries=0, stream_usage=True,  # type: ignore[arg-type]
        http_async_client=openai.DefaultAsyncHttpxClient(),
    )  # fmt: skip


def weather(city: str) -> str:
    """Weather of a city."""
    return f"sunny in {city}"


def sent(recording: Recording) -> list[tuple[str | None, str | None]]:
    return [(row.thread, row.turn) for row in recording.rows("context.injection.applied")]


async def test_an_agent_over_two_turns_and_an_error(fake: Fake, recording: Recording) -> None:
    recorder = Recorder(recording.path)
    agent = create_agent(
        model(fake), [weather], system_prompt="Be brief.", checkpointer=InMemorySaver(), name="boss"
    )
    config: Any = {"callbacks": [ContextHandler(recorder)], "configurable": {"thread_id": "talk-1"}}
    agent.invoke({"messages": [("user", "tool weather please")]}, config=config)
    async for _ in agent.astream(
        {"messages": [("user", "tool weather again")]}, config=config, stream_mode="messages"
    ):
        pass
    with pytest.raises(openai.InternalServerError):
        await agent.ainvoke({"messages": [("user", "fail 500")]}, config=config)
    recorder.close()
    recording.check()
    assert sent(recording) == [
        ("main", "turn-1"), ("main", "turn-1"), ("main", "turn-2"), ("main", "turn-2"), ("main", "turn-3"),
    ]  # fmt: skip
    assert len(recording.errors()) == 1
    marks = [row.data["metadata"]["ctxctl"] for row in recording.rows("context.assembly.created")]
    assert {(mark["agent"], mark["node"]) for mark in marks} == {("boss", "model")}
    assert '"session_id":"talk-1"' in recording.path.read_text(encoding="utf-8")


def test_an_agent_that_is_a_tool_is_a_thread(fake: Fake, recording: Recording) -> None:
    recorder = Recorder(recording.path)
    helper = create_agent(model(fake), [], system_prompt="Research.", name="researcher")

    @tool
    def research(city: str) -> str:
        """Research a city."""
        return str(helper.invoke({"messages": [("user", f"what of {city}")]})["messages"][-1].content)

    boss = create_agent(model(fake), [research], system_prompt="Lead.")
    config: Any = {"callbacks": [ContextHandler(recorder)]}
    boss.invoke({"messages": [("user", "tool research please")]}, config=config)
    recorder.close()
    assert sent(recording) == [("main", "turn-1"), ("researcher", "turn-1"), ("main", "turn-1")]


def graph(fake: Fake) -> Any:
    def ask(state: MessagesState) -> Any:
        return {"messages": [model(fake).invoke(state["messages"])]}

    inner = StateGraph(MessagesState)
    inner.add_node("think", ask)
    inner.add_edge(START, "think")
    outer = StateGraph(MessagesState)
    outer.add_node("plan", ask)
    outer.add_node("research", inner.compile())
    outer.add_node("write", ask)
    outer.add_edge(START, "plan")
    outer.add_edge("plan", "research")
    outer.add_conditional_edges(
        "research", lambda state: [Send("write", state), Send("write", state)], ["write"]
    )
    return outer.compile()


@pytest.mark.parametrize("watched", [False, True])
async def test_nodes_and_graphs_within_are_threads(fake: Fake, recording: Recording, watched: bool) -> None:
    recorder = Recorder(recording.path)
    config: Any = {"callbacks": [ContextHandler(recorder)]}
    capture = ctxctl.capture(recorder) if watched else None
    await graph(fake).ainvoke({"messages": [("user", "hello")]}, config=config)
    if capture is not None:
        capture.close()
    recorder.close()
    threads = [thread for thread, _ in sent(recording)]
    assert threads[:2] == ["main", "research"]
    assert set(threads[2:]) <= {"write", "write~2"}
    assert len(threads) == len(fake.received) == 4
    assert {turn for _, turn in sent(recording)} == {"turn-1"}


def test_a_session_of_the_programs_own_keeps_its_name(fake: Fake, recording: Recording) -> None:
    recorder = Recorder(recording.path, session="mine")
    agent = create_agent(model(fake), [], checkpointer=InMemorySaver())
    for name in ("one", "two"):
        config: Any = {"callbacks": [ContextHandler(recorder)], "configurable": {"thread_id": name}}
        agent.invoke({"messages": [("user", "hello")]}, config=config)
    recorder.close()
    assert [thread for thread, _ in sent(recording)] == ["one", "two"]
    assert all(
        '"session_id":"mine"' in line for line in recording.path.read_text(encoding="utf-8").splitlines()
    )


def test_a_turn_of_the_programs_own_is_the_graphs(fake: Fake, recording: Recording) -> None:
    recorder = Recorder(recording.path)
    agent = create_agent(model(fake), [weather])
    with recorder.turn("mine"):
        agent.invoke(
            {"messages": [("user", "tool weather please")]}, config={"callbacks": [ContextHandler(recorder)]}
        )
    recorder.close()
    recording.check()
    assert sent(recording) == [("main", "mine"), ("main", "mine")]


def test_the_example_runs(fake: Fake, recording: Recording) -> None:
    assert "You said: " in examples.run("langgraph_agent.py", fake, recording.path.parent)
    recording.check()
