"""Pydantic AI's agents with a capability that records."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anthropic
import openai
import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, ImageUrl
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

import ctxctl
from ctxctl import Recorder
from ctxctl.hooks.pydantic_ai import RecordContext
from tests.frameworks import examples
from tests.frameworks.fake import Fake
from tests.frameworks.session import SECRET, Recording

ENVIRONMENTS = ("httpx2",)
KINDS = ("chat", "responses", "anthropic")


def model(kind: str, fake: Fake) -> Any:
    if kind == "anthropic":
        own = anthropic.AsyncAnthropic(base_url=fake.url, api_key=SECRET, max_retries=0)
        return AnthropicModel("claude-sonnet-4-5", provider=AnthropicProvider(anthropic_client=own))
    provider = OpenAIProvider(
        openai_client=openai.AsyncOpenAI(base_url=fake.v1, api_key=SECRET, max_retries=0)
    )
    return (
        OpenAIChatModel("gpt-5", provider=provider)
        if kind == "chat"
        else OpenAIResponsesModel("gpt-5", provider=provider)
    )


def weather(city: str, days: list[int]) -> str:
    """Weather of a city. ünïcödé"""
    return f"sunny in {city}"


def agent(asked: Any, recorder: Recorder, **options: Any) -> Agent[Any, Any]:
    given: dict[str, Any] = {
        "name": "boss",
        "instructions": "Be brief.",
        "system_prompt": "You know.",
        **options,
    }
    return Agent(asked, tools=[weather], capabilities=[RecordContext(recorder)], **given)


async def session(boss: Agent[Any, Any]) -> None:
    """Tools, a stream, and an error."""
    first = await boss.run("tool weather please")
    async with boss.run_stream("tool weather again", message_history=first.all_messages()) as stream:
        texts = [text async for text in stream.stream_text()]
    assert "sunny" in texts[-1]
    with pytest.raises(Exception, match="500"):
        await boss.run("fail 500", message_history=stream.all_messages())


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_session_with_tools_a_stream_and_an_error(
    kind: str, watched: bool, fake: Fake, recording: Recording
) -> None:
    recorder = Recorder(recording.path)
    capture = ctxctl.capture(recorder) if watched else None
    await session(agent(model(kind, fake), recorder))
    if capture is not None:
        capture.close()
    recorder.close()
    recording.check()
    assert [row.turn for row in recording.rows("context.injection.applied")] == [
        "turn-1", "turn-1", "turn-2", "turn-2", "turn-3",
    ]  # fmt: skip
    (error,) = recording.errors()
    assert error == ("HTTP 500: api_error" if watched else "pydantic_ai.exceptions.ModelServerError")
    if not watched:
        marks = [row.data["metadata"]["ctxctl"] for row in recording.rows("context.assembly.created")]
        by = "ctxctl" if kind == "chat" else "pydantic_ai.models.Model.batch_encode"
        assert {(mark["converted"], mark["agent"]) for mark in marks} == {(by, "boss")}


class City(BaseModel):
    """What is asked for."""

    city: str


@pytest.mark.parametrize("kind", KINDS)
async def test_an_output_type_is_a_tool_like_any_other(kind: str, fake: Fake, recording: Recording) -> None:
    recorder = Recorder(recording.path)
    found = await agent(model(kind, fake), recorder, output_type=City).run("tool final_result please")
    assert found.output.city
    recorder.close()
    recording.check()


@pytest.mark.parametrize("kind", KINDS)
async def test_images_and_settings(kind: str, fake: Fake, recording: Recording) -> None:
    recorder = Recorder(recording.path)
    boss = agent(model(kind, fake), recorder, model_settings={"temperature": 0.5, "timeout": 30})
    await boss.run(["look at this", BinaryContent(b"\x89PNG", media_type="image/png")])
    await boss.run(["look there", ImageUrl("https://example.org/a.png")])
    recorder.close()
    items = [row.data["context_kind"] for row in recording.rows("context.item.added")]
    assert items.count("image") == 2
    if kind == "chat":
        recording.check()


class Shortens(AbstractCapability[Any]):
    """Leaves the history out of what is sent."""

    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        request_context.messages = request_context.messages[-1:]
        return request_context


async def test_what_other_capabilities_change_is_what_is_recorded(fake: Fake, recording: Recording) -> None:
    recorder = Recorder(recording.path)
    boss: Agent[Any, Any] = Agent(
        model("chat", fake), instructions="Be brief.", capabilities=[RecordContext(recorder), Shortens()]
    )
    first = await boss.run("one")
    await boss.run("two", message_history=first.all_messages())
    recorder.close()
    recording.check()
    assert [len(one.body["messages"]) for one in fake.received] == [2, 2]


async def test_an_agent_that_is_a_tool_is_a_thread(fake: Fake, recording: Recording) -> None:
    recorder = Recorder(recording.path)
    helper: Agent[Any, Any] = Agent(
        model("chat", fake), name="helper", capabilities=[RecordContext(recorder)]
    )
    boss = agent(model("chat", fake), recorder)

    @boss.tool_plain
    async def research(city: str, days: list[int]) -> str:
        """Research a city."""
        return str((await helper.run(f"what of {city}")).output)

    await boss.run("tool research please", conversation_id="talk-9")
    recorder.close()
    sent = [(row.thread, row.turn) for row in recording.rows("context.injection.applied")]
    assert sent == [("main", "turn-1"), ("helper", "turn-1"), ("main", "turn-1")]
    assert all(
        '"session_id":"talk-9"' in line for line in recording.path.read_text(encoding="utf-8").splitlines()
    )


async def test_a_stream_that_breaks_or_is_left(fake: Fake, recording: Recording) -> None:
    recorder = Recorder(recording.path)
    boss = agent(model("chat", fake), recorder)

    async def read() -> None:
        async with boss.run_stream("cut here in the middle please") as stream:
            async for _ in stream.stream_text():
                pass

    with pytest.raises(Exception, match="onnection"):
        await read()
    async with boss.run_stream("hello"):
        pass
    recorder.close()
    assert len(recording.errors()) >= 1
    assert len(recording.rows("context.injection.applied")) == 2


async def test_models_that_send_nothing(recording: Recording) -> None:
    recorder = Recorder(recording.path)
    await agent(TestModel(), recorder).run("hello")

    async def words(messages: Any, info: Any) -> AsyncIterator[str]:
        yield "one "
        yield "two"

    async with agent(FunctionModel(stream_function=words), recorder).run_stream("hello") as stream:
        assert await stream.get_output() == "one two"
    recorder.close()
    assert "one two" in recording.said()
    assert recorder.dropped == 0


async def test_a_recorder_that_cannot_write_is_not_noticed(fake: Fake, recording: Recording) -> None:
    recording.path.mkdir()
    recorder = Recorder(recording.path)
    await session(agent(model("responses", fake), recorder))
    assert recorder.dropped > 0


def test_the_example_runs(fake: Fake, recording: Recording) -> None:
    assert "You said: " in examples.run("pydantic_ai_agent.py", fake, recording.path.parent)
    recording.check()
