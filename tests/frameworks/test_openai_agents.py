"""OpenAI's Agents SDK with run hooks that record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    function_tool,
    set_trace_processors,
    trace,
)

import ctxctl
from ctxctl import Recorder
from ctxctl.hooks import openai_agents
from ctxctl.hooks.openai_agents import ContextHooks
from tests.frameworks import examples
from tests.frameworks.fake import Fake
from tests.frameworks.session import SECRET, Recording

ENVIRONMENTS = ("httpx2",)
KINDS = ("chat", "responses")


@pytest.fixture(autouse=True)
def _no_export() -> Iterator[None]:
    """The SDK sends its traces to its maker, unless told otherwise."""
    set_trace_processors([openai_agents._spans])
    openai_agents._spans._attending = True
    yield
    assert openai_agents._spans._open == {}
    assert openai_agents._spans.parts == {}
    assert openai_agents._spans._expected == {}


def model(kind: str, fake: Fake) -> Any:
    client = openai.AsyncOpenAI(base_url=fake.v1, api_key=SECRET, max_retries=0)
    return (
        OpenAIChatCompletionsModel("gpt-5", client)
        if kind == "chat"
        else OpenAIResponsesModel("gpt-5", client)
    )


@function_tool
def weather(city: str, days: list[int]) -> str:
    """Weather of a city. ünïcödé"""
    return f"sunny in {city}"


@function_tool(is_enabled=lambda context, agent: False)
def hidden(city: str) -> str:
    """Never offered."""
    return ""


def sent(recording: Recording) -> list[tuple[str | None, str | None]]:
    return [(row.thread, row.turn) for row in recording.rows("context.injection.applied")]


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_session_with_tools_a_stream_and_an_error(
    kind: str, watched: bool, fake: Fake, recording: Recording
) -> None:
    recorder = Recorder(recording.path)
    capture = ctxctl.capture(recorder) if watched else None
    hooks = ContextHooks(recorder)
    boss = Agent(name="boss", instructions="Be brief.", model=model(kind, fake), tools=[weather, hidden])
    first = await Runner.run(boss, "tool weather please", hooks=hooks)
    assert "sunny" in first.final_output
    asked = [*first.to_input_list(), {"role": "user", "content": "tool weather again"}]
    streamed = Runner.run_streamed(boss, asked, hooks=hooks)
    async for _ in streamed.stream_events():
        pass
    with pytest.raises(openai.InternalServerError):
        await Runner.run(boss, "fail 500", hooks=hooks)
    with pytest.raises(Exception):  # noqa: B017, PT011  whatever the SDK makes of it
        async for _ in Runner.run_streamed(boss, "cut here please", hooks=hooks).stream_events():
            pass
    if capture is not None:
        capture.close()
    recorder.close()
    # A stream of the chat interface tells no bill unless it is asked to.
    recording.check(billed=2 if kind == "chat" else 4)
    assert [turn for _, turn in sent(recording)] == [
        "turn-1",
        "turn-1",
        "turn-2",
        "turn-2",
        "turn-3",
        "turn-4",
    ]
    assert recording.errors() == (
        ["HTTP 500: api_error", "cut: upstream reset"] if watched else ["HTTP 500", "failed"]
    )


@pytest.mark.parametrize("watched", [False, True])
async def test_hand_offs_and_agents_that_are_tools_are_threads(
    fake: Fake, recording: Recording, watched: bool
) -> None:
    recorder = Recorder(recording.path)
    capture = ctxctl.capture(recorder) if watched else None
    hooks: Any = ContextHooks(recorder)
    poet: Any = Agent(name="poet", instructions="Rhyme.", model=model("responses", fake), tools=[weather])
    boss = Agent(name="boss", model=model("responses", fake), handoffs=[poet])

    @function_tool
    async def ask(city: str, days: list[int]) -> str:
        """Ask the poet."""
        return str((await Runner.run(poet, f"what of {city}", hooks=hooks)).final_output)

    with trace("both", group_id="talk-3"):
        await Runner.run(boss, "tool transfer_to_poet please", hooks=hooks)
        head = Agent(name="head", model=model("responses", fake), tools=[ask])
        await Runner.run(head, "tool ask please", hooks=hooks)
    if capture is not None:
        capture.close()
    recorder.close()
    threads = [thread for thread, _ in sent(recording)]
    assert len(threads) == len(fake.received)
    assert threads[:2] == ["main", "poet"]
    assert '"session_id":"talk-3"' in recording.path.read_text(encoding="utf-8").splitlines()[0]
    if not watched:
        assert threads[2:] == ["main", "poet", "main"]
        tools = [
            row
            for row in recording.rows("context.item.added")
            if row.data["context_kind"] == "tool_definition"
        ]
        assert [row.data["title"] for row in tools][:2] == ["transfer_to_poet", "weather"]


async def test_without_tracing(fake: Fake, recording: Recording) -> None:
    recorder = Recorder(recording.path)
    quiet = RunConfig(tracing_disabled=True)
    boss = Agent(name="boss", instructions="Be brief.", model=model("responses", fake), tools=[weather])
    await Runner.run(boss, "tool weather please", hooks=ContextHooks(recorder), run_config=quiet)
    with pytest.raises(openai.InternalServerError):
        await Runner.run(boss, "fail 500", hooks=ContextHooks(recorder), run_config=quiet)
    recorder.close()
    recording.check()
    assert recording.errors() == []
    assert [turn for _, turn in sent(recording)][:2] == ["turn-1", "turn-1"]


async def test_the_sdks_own_model_is_not_known_before_its_answer(fake: Fake, recording: Recording) -> None:
    recorder = Recorder(recording.path)
    config = RunConfig(model=model("responses", fake))
    await Runner.run(Agent(name="boss"), "hello", hooks=ContextHooks(recorder), run_config=config)
    recorder.close()
    recording.check()
    (bill,) = recording.rows("ctxctl.usage.reported")
    assert bill.data["model"] == "gpt-5"


async def test_a_recorder_that_cannot_write_is_not_noticed(fake: Fake, recording: Recording) -> None:
    recording.path.mkdir()
    recorder = Recorder(recording.path)
    boss = Agent(name="boss", model=model("responses", fake), tools=[weather])
    answer = await Runner.run(boss, "tool weather please", hooks=ContextHooks(recorder))
    assert "sunny" in answer.final_output
    assert recorder.dropped > 0


def test_the_example_runs(fake: Fake, recording: Recording) -> None:
    assert "You said: " in examples.run("openai_agents_run.py", fake, recording.path.parent)
    recording.check()
