"""Anthropic's SDK: Messages, synchronous and not, streamed and not."""

from __future__ import annotations

from typing import Any

import anthropic
import pytest

import ctxctl
from tests.frameworks import examples
from tests.frameworks.fake import Fake
from tests.frameworks.session import SECRET, Recording

ENVIRONMENTS = ("httpx2", "httpx")
TOOL: Any = {
    "name": "weather", "description": "Of a city.", "cache_control": {"type": "ephemeral"},
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}  # fmt: skip
GIVEN: Any = {
    "model": "claude-test", "max_tokens": 1000, "system": [{"type": "text", "text": "You are brief."}],
    "tools": [TOOL],
}  # fmt: skip
PROMPT: Any = {"role": "user", "content": [{"type": "text", "text": "tool weather please"}]}


def result(said: Any) -> list[Any]:
    """The call that was said, and its result."""
    call = said.content[0]
    assert call.type == "tool_use"
    answer = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "sunny"}]}
    back = [
        block.model_dump(exclude_none=True, include={"type", "id", "name", "input"}) for block in said.content
    ]
    return [{"role": "assistant", "content": back}, {"role": "user", "content": [answer]}]


def client(fake: Fake, **options: Any) -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key=SECRET, base_url=fake.url, max_retries=1, **options)


def session(asked: anthropic.Anthropic) -> None:
    messages: list[Any] = [PROMPT]
    messages += result(asked.messages.create(messages=messages, **GIVEN))
    with asked.messages.stream(messages=messages, **GIVEN) as stream:
        text = "".join(stream.text_stream)
    assert text == "You said: sunny"
    messages += [{"role": "assistant", "content": text}, {"role": "user", "content": "fail 529"}]
    with pytest.raises(anthropic.APIStatusError):
        asked.messages.create(messages=messages, **GIVEN)
    messages[-1] = {"role": "user", "content": "fail 429 once"}
    asked.messages.create(messages=messages, **GIVEN)
    asked.messages.count_tokens(model="claude-test", messages=[{"role": "user", "content": "how many?"}])


async def session_async(asked: anthropic.AsyncAnthropic) -> None:
    messages: list[Any] = [PROMPT]
    messages += result(await asked.messages.create(messages=messages, **GIVEN))
    async with asked.messages.stream(messages=messages, **GIVEN) as stream:
        text = "".join([piece async for piece in stream.text_stream])
    assert text == "You said: sunny"
    messages += [{"role": "assistant", "content": text}, {"role": "user", "content": "fail 529"}]
    with pytest.raises(anthropic.APIStatusError):
        await asked.messages.create(messages=messages, **GIVEN)


def test_everything_is_recorded_with_one_line(fake: Fake, recording: Recording) -> None:
    with ctxctl.capture(recording.path):
        session(client(fake))
    recording.check()
    assert recording.errors() == ["HTTP 529: api_error", "HTTP 529: api_error", "HTTP 429: rate_limit_error"]
    points = [
        row.data["metadata"]["ctxctl"].get("cache_points")
        for row in recording.rows("context.assembly.created")
    ]
    assert points == [[0]] * 4


async def test_the_asynchronous_client(fake: Fake, recording: Recording) -> None:
    asked = anthropic.AsyncAnthropic(api_key=SECRET, base_url=fake.url, max_retries=0)
    with ctxctl.capture(recording.path):
        await session_async(asked)
    recording.check()
    assert recording.errors() == ["HTTP 529: api_error"]


def test_one_client(fake: Fake, recording: Recording) -> None:
    front = ctxctl.recorded(anthropic.DefaultHttpxClient(), recording.path)
    session(client(fake, http_client=front))
    recording.check()


async def test_one_asynchronous_client(fake: Fake, recording: Recording) -> None:
    front = ctxctl.recorded(anthropic.DefaultAsyncHttpxClient(), recording.path)
    await session_async(
        anthropic.AsyncAnthropic(api_key=SECRET, base_url=fake.url, max_retries=0, http_client=front)
    )
    recording.check()


def test_a_stream_that_breaks(fake: Fake, recording: Recording) -> None:
    asked = client(fake)
    given = {**GIVEN, "tools": []}
    with ctxctl.capture(recording.path):
        messages: Any = [{"role": "user", "content": "cut in the middle of this"}]
        with pytest.raises(Exception), asked.messages.stream(messages=messages, **given) as stream:  # noqa: B017, PT011
            for _ in stream.text_stream:
                pass
    recording.check(billed=0) if not recording.bills() else None
    assert recording.errors() == ["cut: upstream reset"]


def test_the_session_that_a_request_names(fake: Fake, recording: Recording) -> None:
    name = "0f3a9d1c-1111-4222-8333-444455556666"
    with ctxctl.capture(recording.path):
        client(fake).messages.create(
            messages=[PROMPT], metadata={"user_id": f"user_abc_account__session_{name}"}, **GIVEN
        )
    recording.check()
    assert f'"session_id":"{name}"' in recording.path.read_text()


def test_the_example_of_the_docs(fake: Fake, recording: Recording) -> None:
    assert "You said: " in examples.run("anthropic_sdk.py", fake, recording.path.parent)
    recording.check()
    assert {row.turn for row in recording.rows("context.injection.applied")} == {"greeting"}
