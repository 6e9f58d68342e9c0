"""LiteLLM: its callbacks, and the transports under it, for two providers."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
import litellm
import pytest

import ctxctl
from ctxctl.hooks.litellm import ContextLogger
from tests.frameworks import examples
from tests.frameworks.fake import Fake
from tests.frameworks.session import SECRET, Recording

ENVIRONMENTS = ("httpx",)
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "weather", "description": "Of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}  # fmt: skip
MODELS = ("openai/gpt-4o", "anthropic/claude-test")


def options(fake: Fake, model: str) -> dict[str, Any]:
    base = fake.v1 if model.startswith("openai") else fake.url
    return {
        "model": model,
        "api_key": SECRET,
        "api_base": base,
        "max_retries": 0,
        "num_retries": 0,
        "tools": [TOOL],
    }


def start() -> list[Any]:
    return [
        {"role": "system", "content": "You are brief."},
        {"role": "user", "content": "tool weather please"},
    ]


def result(said: Any) -> list[Any]:
    call = said.tool_calls[0]
    return [
        said.model_dump(exclude_none=True, include={"role", "content", "tool_calls"}),
        {"role": "tool", "tool_call_id": call.id, "content": "sunny"},
    ]


def talk(fake: Fake, model: str, told: Callable[[int], None]) -> None:
    given, messages = options(fake, model), start()
    first = litellm.completion(messages=messages, **given)
    messages += result(first.choices[0].message)
    stream = litellm.completion(
        messages=messages, stream=True, stream_options={"include_usage": True}, **given
    )
    text = "".join(c.choices[0].delta.content or "" for c in stream)
    assert text == "You said: sunny"
    told(2)
    messages += [{"role": "assistant", "content": text}, {"role": "user", "content": "fail 401"}]
    with pytest.raises(litellm.AuthenticationError):
        litellm.completion(messages=messages, **given)


async def talk_async(fake: Fake, model: str, told: Callable[[int], None]) -> None:
    given, messages = options(fake, model), start()
    first = await litellm.acompletion(messages=messages, **given)
    messages += result(first.choices[0].message)
    stream = await litellm.acompletion(
        messages=messages, stream=True, stream_options={"include_usage": True}, **given
    )
    text = "".join([c.choices[0].delta.content or "" async for c in stream])
    assert text == "You said: sunny"
    messages += [{"role": "assistant", "content": text}, {"role": "user", "content": "fail 401"}]
    with pytest.raises(litellm.AuthenticationError):
        await litellm.acompletion(messages=messages, **given)


@pytest.fixture
def logger(recording: Recording) -> Iterator[ContextLogger]:
    made = ContextLogger(recording.path)
    litellm.callbacks = [made]
    yield made
    litellm.logging_callback_manager._reset_all_callbacks()


def waiting(recording: Recording, errors: int = 0) -> Callable[[int], None]:
    """LiteLLM tells of answers from a thread of its own, when it comes to it."""

    def until(bills: int) -> None:
        for _ in range(1000):
            if len(recording.bills()) >= bills and len(recording.errors()) >= errors:
                return
            time.sleep(0.01)
        raise AssertionError((recording.bills(), recording.errors()))

    return until


@pytest.mark.parametrize("model", MODELS)
def test_completions(fake: Fake, recording: Recording, logger: ContextLogger, model: str) -> None:
    talk(fake, model, waiting(recording))
    waiting(recording, 1)(2)
    logger.recorder.close()
    recording.check()
    assert recording.errors() == ["HTTP 401: AuthenticationError"]
    assert "You said: sunny" in recording.said()
    assert {row.thread for row in recording.rows("context.injection.applied")} == {"main"}


@pytest.mark.parametrize("model", MODELS)
async def test_asynchronous_completions(
    fake: Fake, recording: Recording, logger: ContextLogger, model: str
) -> None:
    await talk_async(fake, model, waiting(recording))
    for _ in range(500):
        if len(recording.bills()) == 2 and recording.errors():
            break
        await asyncio.sleep(0.01)
    logger.recorder.close()
    recording.check()
    assert recording.errors() == ["HTTP 401: AuthenticationError"]
    assert {row.thread for row in recording.rows("context.injection.applied")} == {"main"}


@pytest.mark.parametrize("model", MODELS)
def test_the_session_that_a_caller_names(
    fake: Fake, recording: Recording, logger: ContextLogger, model: str
) -> None:
    litellm.completion(messages=start(), metadata={"session_id": "chat-7"}, **options(fake, model))
    waiting(recording)(1)
    logger.recorder.close()
    recording.check()
    assert '"session_id":"chat-7"' in recording.path.read_text()


@pytest.mark.parametrize("model", MODELS)
def test_the_transports_under_it(fake: Fake, recording: Recording, model: str) -> None:
    litellm.in_memory_llm_clients_cache.flush_cache()
    with ctxctl.capture(recording.path):
        talk(fake, model, lambda _: None)
    recording.check()
    assert recording.errors() == ["HTTP 401: authentication_error"]


@pytest.mark.parametrize("model", MODELS)
async def test_the_asynchronous_transports_under_it(fake: Fake, recording: Recording, model: str) -> None:
    litellm.in_memory_llm_clients_cache.flush_cache()
    with ctxctl.capture(recording.path):
        await talk_async(fake, model, lambda _: None)
    recording.check()
    assert recording.errors() == ["HTTP 401: authentication_error"]


def test_the_example_of_the_docs(fake: Fake, recording: Recording) -> None:
    assert "You said: " in examples.run("litellm_callback.py", fake, recording.path.parent)
    recording.check()
