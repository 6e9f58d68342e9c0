"""LangChain's chat models and retrievers, with a callback handler; the wire is what the server received."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.documents import Document
from langchain_core.language_models.fake import FakeListLLM
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_openai import ChatOpenAI

import ctxctl
from ctxctl import Recorder
from ctxctl.hooks import langchain
from ctxctl.hooks.langchain import ContextHandler
from tests.frameworks import examples
from tests.frameworks.fake import Fake
from tests.frameworks.session import BILL, SECRET, Recording

ENVIRONMENTS = ("httpx2",)
KINDS = ("chat", "responses", "anthropic")


def model(kind: str, fake: Fake) -> Any:
    given: dict[str, Any] = {"api_key": SECRET, "max_retries": 0}
    if kind == "anthropic":
        return ChatAnthropic(model="claude-sonnet-4-5", base_url=fake.url, max_tokens=100, **given)
    api = kind == "responses"
    # A client of its own: the package keeps one for each address, which outlives a test's event loop.
    client = openai.DefaultAsyncHttpxClient()
    return ChatOpenAI(
        model="gpt-5",
        base_url=fake.v1,
        use_responses_api=api,
        stream_usage=True,
        http_async_client=client,
        **given,
    )


def weather(city: str) -> str:
    """Weather of a city. ünïcödé"""
    return f"sunny in {city}"


def history(answer: AIMessage) -> list[Any]:
    return [
        SystemMessage("You are brief. ünïcödé"), HumanMessage("tool weather please"), answer,
        ToolMessage("sunny", tool_call_id=answer.tool_calls[0]["id"], name="weather"),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_session_with_tools_a_stream_and_an_error(kind: str, fake: Fake, recording: Recording) -> None:
    recorder = Recorder(recording.path)
    config: Any = {"callbacks": [ContextHandler(recorder)]}
    asked = model(kind, fake).bind_tools([weather])
    messages: list[Any] = [SystemMessage("You are brief. ünïcödé"), HumanMessage("tool weather please")]
    messages = history(asked.invoke(messages, config=config))
    answer = None
    for chunk in asked.stream(messages, config=config):
        answer = chunk if answer is None else answer + chunk
    assert answer is not None
    assert "sunny" in str(answer.content)
    messages += [answer, HumanMessage("fail 500")]
    with pytest.raises(Exception, match="500"):
        asked.invoke(messages, config=config)
    recorder.close()
    check(kind, recording)
    (error,) = recording.errors()
    assert error.rpartition(".")[2] in ("OpenAIAPIError", "AnthropicAPIError")
    assert [row.turn for row in recording.rows("context.injection.applied")] == ["turn-1", "turn-1", "turn-2"]
    assert all(
        row.data["model"].startswith(("gpt-5", "claude")) for row in recording.rows("ctxctl.usage.reported")
    )


@pytest.mark.parametrize("kind", KINDS)
async def test_the_same_asynchronously(kind: str, fake: Fake, recording: Recording) -> None:
    recorder = Recorder(recording.path)
    config: Any = {"callbacks": [ContextHandler(recorder)]}
    asked = model(kind, fake).bind_tools([weather])
    messages = history(await asked.ainvoke([HumanMessage("tool weather please")], config=config))
    async for _ in asked.astream(messages, config=config):
        pass
    with pytest.raises(Exception, match="429"):
        await asked.ainvoke([HumanMessage("fail 429")], config=config)
    recorder.close()
    check(kind, recording)
    assert len(recording.errors()) == 1


def check(kind: str, recording: Recording) -> None:
    """Frames are what was sent; the package tells no input of a stream of Anthropic's (the second answer)."""
    if kind != "anthropic":
        recording.check()
        return
    bills = recording.bills()
    assert bills == [BILL, {**dict.fromkeys(BILL), "output_tokens": BILL["output_tokens"]}]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recording, "bills", lambda: [BILL] * len(bills))
        recording.check()


def test_a_stream_that_breaks_is_recorded_as_far_as_it_came(fake: Fake, recording: Recording) -> None:
    recorder = Recorder(recording.path)
    with pytest.raises(Exception):  # noqa: B017, PT011  the package's own, whatever it is
        for _ in model("chat", fake).stream(
            "cut here please", config={"callbacks": [ContextHandler(recorder)]}
        ):
            pass
    recorder.close()
    recording.check(billed=0)
    assert len(recording.errors()) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_with_the_transport_watched_nothing_is_twice(kind: str, fake: Fake, recording: Recording) -> None:
    recorder = Recorder(recording.path)
    config: Any = {"callbacks": [ContextHandler(recorder)], "metadata": {"thread_id": "talk-7"}}
    with ctxctl.capture(recorder):
        asked = model(kind, fake).bind_tools([weather])
        messages = history(asked.invoke([HumanMessage("tool weather please")], config=config))
        for _ in asked.stream(messages, config=config):
            pass
    recorder.close()
    recording.check()
    lines = recording.path.read_text(encoding="utf-8").splitlines()
    assert all('"session_id":"talk-7"' in line for line in lines)


def test_a_client_that_records_itself_is_not_recorded_twice(fake: Fake, recording: Recording) -> None:
    recorder = Recorder(recording.path)
    client = ctxctl.recorded(openai.DefaultHttpxClient(), recorder)
    asked = ChatOpenAI(model="gpt-5", base_url=fake.v1, api_key=SECRET, http_client=client)  # type: ignore[arg-type]
    asked.invoke("hello", config={"callbacks": [ContextHandler(recorder)]})
    asked.invoke("hello again")
    recorder.close()
    recording.check()


def test_without_the_packages_own_conversion_the_public_one_is_used(
    fake: Fake, recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(langchain, "_CONVERTERS", ())
    recorder = Recorder(recording.path)
    config: Any = {"callbacks": [ContextHandler(recorder)]}
    asked = model("chat", fake).bind_tools([weather])
    messages = history(asked.invoke([HumanMessage("tool weather please")], config=config))
    asked.invoke(messages, config=config)
    recorder.close()
    # It differs from what goes out in this alone: a tool's answer names its tool, and a call's text is empty
    # where it is none.
    for one in fake.received:
        for message in one.body["messages"]:
            if message["role"] == "tool":
                message["name"] = "weather"
            elif message["role"] == "assistant":
                message["content"] = ""
    recording.check()
    marks = [row.data["metadata"]["ctxctl"] for row in recording.rows("context.assembly.created")]
    assert {(mark["converted"], mark["derived"]) for mark in marks} == {
        ("langchain_core.messages.convert_to_openai_messages", True)
    }


class Shelf(BaseRetriever):
    """Always the same documents."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        if query == "nothing":
            raise ConnectionError
        return [
            Document("Blue light scatters.", id="sky-1", metadata={"source": "sky.md", "score": 0.9}),
            Document("Grass is green.", metadata={"source": "grass.md"}),
        ]


def test_what_a_retriever_gives_is_a_selection(fake: Fake, recording: Recording) -> None:
    recorder = Recorder(recording.path)
    config: Any = {"callbacks": [ContextHandler(recorder)]}
    prompt = ChatPromptTemplate.from_messages([("system", "Use: {notes}"), ("user", "{question}")])
    chain = {"notes": Shelf(), "question": lambda asked: asked} | prompt | model("chat", fake)
    chain.invoke("Why is the sky blue?", config=config)
    with pytest.raises(ConnectionError):
        chain.invoke("nothing", config=config)
    recorder.close()
    recording.check()
    (chosen,) = recording.rows("context.selection.completed")
    refs = [ref.partition("@")[0] for ref in chosen.data["selected_item_refs"]]
    assert refs[0] == "sky-1"
    assert refs[1].startswith("grass.md#")
    assert chosen.data["query"] == "Why is the sky blue?"
    assert [score["relevance"] for score in chosen.data["ranking_signals"].values()] == [0.9]
    assert chosen.turn == recording.rows("context.injection.applied")[0].turn == "turn-1"
    assert recording.said("retrieval_result") == ["Blue light scatters.", "Grass is green."]
    (gap,) = recording.rows("context.missing.detected")
    assert gap.data["question"] == "nothing"


def test_requests_at_the_same_time_are_told_apart(fake: Fake, recording: Recording) -> None:
    recorder = Recorder(recording.path)
    model("chat", fake).batch(["one", "two", "three"], config={"callbacks": [ContextHandler(recorder)]})
    recorder.close()
    threads = {row.thread for row in recording.rows("context.injection.applied")}
    assert threads <= {"main", "main~2", "main~3"}
    assert sorted(recording.said("user_message")) == ["one", "three", "two"]
    assert len(recording.rows("ctxctl.usage.reported")) == 3


def test_a_model_that_takes_text(recording: Recording) -> None:
    recorder = Recorder(recording.path)
    FakeListLLM(responses=["fine"]).invoke("how are you?", config={"callbacks": [ContextHandler(recorder)]})
    recorder.close()
    assert (recording.said("user_message"), recording.said()) == (["how are you?"], ["fine"])
    assert recorder.dropped == 0


def test_a_recorder_that_cannot_write_is_not_noticed(fake: Fake, recording: Recording) -> None:
    recording.path.mkdir()
    recorder = Recorder(recording.path)
    answer = model("chat", fake).invoke("hello", config={"callbacks": [ContextHandler(recorder)]})
    assert answer.content == "You said: hello"
    assert recorder.dropped > 0


def test_the_example_runs(fake: Fake, recording: Recording) -> None:
    assert "You said: " in examples.run("langchain_chain.py", fake, recording.path.parent)
    recording.check()
    assert len(recording.rows("context.selection.completed")) == 1
