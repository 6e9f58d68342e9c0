"""OpenAI's SDK: Chat Completions and Responses, synchronous and not, streamed and not."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import openai
import pytest

import ctxctl
from ctxctl import Recorder
from tests.frameworks import examples
from tests.frameworks.fake import Fake
from tests.frameworks.session import SECRET, Recording

ENVIRONMENTS = ("httpx2", "httpx")
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "weather", "description": "Of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}  # fmt: skip
FLAT: Any = {"type": "function", "strict": False, **TOOL["function"]}
SYSTEM: Any = {"role": "system", "content": "You are brief. ünïcödé"}


def client(fake: Fake, **options: Any) -> openai.OpenAI:
    return openai.OpenAI(api_key=SECRET, base_url=fake.v1, max_retries=1, **options)


def chat(asked: openai.OpenAI) -> None:
    """A session with a tool, a stream and an error."""
    messages: list[Any] = [SYSTEM, {"role": "user", "content": "tool weather please"}]
    first = asked.chat.completions.create(model="gpt-5", messages=messages, tools=[TOOL])
    said = first.choices[0].message
    assert said.tool_calls
    messages += [
        said.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": said.tool_calls[0].id, "content": "sunny"},
    ]
    stream = asked.chat.completions.create(
        model="gpt-5", messages=messages, tools=[TOOL], stream=True, stream_options={"include_usage": True}
    )
    text = "".join(c.choices[0].delta.content or "" for c in stream if c.choices)
    assert text == "You said: sunny"
    messages += [{"role": "assistant", "content": text}, {"role": "user", "content": "fail 500"}]
    with pytest.raises(openai.InternalServerError):
        asked.chat.completions.create(model="gpt-5", messages=messages, tools=[TOOL])
    messages[-1] = {"role": "user", "content": "fail 429 once"}
    last = asked.chat.completions.create(model="gpt-5", messages=messages, tools=[TOOL])
    assert last.choices[0].message.content == "You said: fail 429 once"


async def chat_async(asked: openai.AsyncOpenAI) -> None:
    messages: list[Any] = [SYSTEM, {"role": "user", "content": "tool weather please"}]
    first = await asked.chat.completions.create(model="gpt-5", messages=messages, tools=[TOOL])
    said = first.choices[0].message
    assert said.tool_calls
    messages += [
        said.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": said.tool_calls[0].id, "content": "sunny"},
    ]
    stream = await asked.chat.completions.create(
        model="gpt-5", messages=messages, tools=[TOOL], stream=True, stream_options={"include_usage": True}
    )
    text = "".join([c.choices[0].delta.content or "" async for c in stream if c.choices])
    assert text == "You said: sunny"
    messages += [{"role": "assistant", "content": text}, {"role": "user", "content": "fail 500"}]
    with pytest.raises(openai.InternalServerError):
        await asked.chat.completions.create(model="gpt-5", messages=messages, tools=[TOOL])


def test_everything_is_recorded_with_one_line(fake: Fake, recording: Recording) -> None:
    early = client(fake)
    with ctxctl.capture(recording.path):
        chat(early)
    recording.check()
    assert [(row.thread, row.turn) for row in recording.rows("context.injection.applied")] == [
        ("main", "turn-1"), ("main", "turn-1"), ("main", "turn-2"), ("main", "turn-3"),
    ]  # fmt: skip
    assert recording.errors() == ["HTTP 500: api_error", "HTTP 500: api_error", "HTTP 429: rate_limit_error"]
    before = recording.path.read_bytes()
    early.chat.completions.create(model="gpt-5", messages=[SYSTEM])
    assert recording.path.read_bytes() == before


async def test_the_asynchronous_client(fake: Fake, recording: Recording) -> None:
    asked = openai.AsyncOpenAI(api_key=SECRET, base_url=fake.v1, max_retries=0)
    with ctxctl.capture(recording.path):
        await chat_async(asked)
    recording.check()
    assert recording.errors() == ["HTTP 500: api_error"]


def test_one_client_and_no_other(fake: Fake, recording: Recording) -> None:
    recorder = Recorder(recording.path)
    chat(client(fake, http_client=ctxctl.recorded(openai.DefaultHttpxClient(), recorder)))
    received = list(fake.received)
    client(fake).chat.completions.create(model="gpt-5", messages=[SYSTEM])
    recorder.close()
    fake.received[:] = received
    recording.check()


async def test_one_asynchronous_client(fake: Fake, recording: Recording) -> None:
    front = ctxctl.recorded(openai.DefaultAsyncHttpxClient(), recording.path)
    await chat_async(openai.AsyncOpenAI(api_key=SECRET, base_url=fake.v1, max_retries=0, http_client=front))
    recording.check()


def test_a_client_that_is_recorded_is_not_recorded_twice(fake: Fake, recording: Recording) -> None:
    recorder = Recorder(recording.path)
    asked = client(fake, http_client=ctxctl.recorded(openai.DefaultHttpxClient(), recorder))
    with ctxctl.capture(recorder):
        chat(asked)
    recorder.close()
    recording.check()


def test_responses(fake: Fake, recording: Recording) -> None:
    asked = client(fake)
    with ctxctl.capture(recording.path):
        history: list[Any] = [{"role": "user", "content": "tool weather please"}]
        given: Any = {"model": "gpt-5", "instructions": "Be brief.", "tools": [FLAT], "store": False}
        first = asked.responses.create(input=history, **given)
        call = first.output[0]
        assert call.type == "function_call"
        history += [
            call.model_dump(exclude_none=True),
            {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"},
        ]
        with asked.responses.stream(input=history, **given) as stream:
            text = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
        assert text == "You said: sunny"
        history += [{"role": "assistant", "content": text}, {"role": "user", "content": "fail 401"}]
        with pytest.raises(openai.AuthenticationError):
            asked.responses.create(input=history, **given)
    recording.check()
    assert recording.errors() == ["HTTP 401: authentication_error"]


def test_a_history_that_the_provider_holds(fake: Fake, recording: Recording) -> None:
    asked = client(fake)
    with ctxctl.capture(recording.path):
        first = asked.responses.create(model="gpt-5", input="one")
        asked.responses.create(model="gpt-5", input="two", previous_response_id=first.id)
    recording.check()
    windows = [row.data for row in recording.rows("context.assembly.created")]
    assert [len(one["ordered_blocks"]) for one in windows] == [1, 2]
    assert windows[1]["metadata"]["ctxctl"]["splices"] == [[1, 0, 2]]


def test_a_stream_that_breaks(fake: Fake, recording: Recording) -> None:
    asked = client(fake)
    with ctxctl.capture(recording.path):
        messages: Any = [SYSTEM, {"role": "user", "content": "cut here, in the middle of the answer"}]
        with pytest.raises(Exception) as caught:  # noqa: PT011  before 3.0 the transport's own
            for _ in asked.chat.completions.create(model="gpt-5", messages=messages, stream=True):
                pass
    assert type(caught.value).__name__ in ("APIConnectionError", "RemoteProtocolError")
    recording.check(billed=0)
    assert recording.errors() == ["cut: upstream reset"]
    (text,) = recording.said()
    assert text
    assert "You said: cut here, in the middle".startswith(text)


def test_a_stream_that_nobody_reads_to_its_end(fake: Fake, recording: Recording) -> None:
    asked = client(fake)
    with ctxctl.capture(recording.path):
        messages: Any = [SYSTEM, {"role": "user", "content": "hello"}]
        stream = asked.chat.completions.create(model="gpt-5", messages=messages, stream=True)
        next(iter(stream))
        stream.close()
        stream.close()
    recording.check(billed=0)
    assert recording.errors() == ["cut: client gone"]


async def test_a_task_that_is_cancelled(fake: Fake, recording: Recording) -> None:
    asked = openai.AsyncOpenAI(api_key=SECRET, base_url=fake.v1, max_retries=0)
    with ctxctl.capture(recording.path):
        messages: Any = [SYSTEM, {"role": "user", "content": "hello"}]
        begun = asyncio.Event()

        async def read() -> None:
            stream = await asked.chat.completions.create(model="gpt-5", messages=messages, stream=True)
            async for _ in stream:
                begun.set()
                await asyncio.sleep(60)

        task = asyncio.create_task(read())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    recording.check(billed=0)
    # The SDK closes the stream when it is collected, which may be later.
    assert recording.errors() in (["cut: client gone"], ["cut: the recording ended"])


def test_conversations_in_threads_stay_apart(fake: Fake, recording: Recording) -> None:
    asked = client(fake)

    def talk(name: str) -> None:
        messages: list[Any] = [SYSTEM, {"role": "user", "content": f"I am {name}"}]
        for number in range(4):
            made = asked.chat.completions.create(model="gpt-5", messages=messages)
            messages.append({"role": "assistant", "content": made.choices[0].message.content})
            messages.append({"role": "user", "content": f"{name} says {number}"})

    with ctxctl.capture(recording.path):
        all_of = [threading.Thread(target=talk, args=(name,)) for name in ("Ann", "Bob", "Cem")]
        for thread in all_of:
            thread.start()
        for thread in all_of:
            thread.join()
    received = {body_key(one.body): one for one in fake.received}
    windows = recording.rows("context.injection.applied")
    assert len(windows) == len(received) == 12
    said = [row for row in recording.rows("context.item.added") if row.data["context_kind"] == "user_message"]
    for name in ("Ann", "Bob", "Cem"):
        assert len({row.thread for row in said if name in row.data["content"]}) == 1
    assert len({row.thread for row in windows}) == 3


def body_key(body: Any) -> str:
    return str(body["messages"])


def test_what_is_imported_later_is_recorded_too(fake: Fake, recording: Recording) -> None:
    import subprocess
    import sys

    code = """
import sys, ctxctl
with ctxctl.capture(sys.argv[1]):
    assert not {"httpx", "httpx2", "openai"} & set(sys.modules)
    import openai
    made = openai.OpenAI(api_key=sys.argv[3], base_url=sys.argv[2], max_retries=0)
    made.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "hello"}])
for name in ("httpx", "httpx2"):
    if name in sys.modules:
        module = sys.modules[name]
        assert module.__spec__.loader is module.__loader__
        assert "ctxctl" not in type(module.__loader__).__module__
        assert not getattr(module.Client._transport_for_url, "_ctxctl", False)
"""
    arguments = [str(recording.path), fake.v1, SECRET]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    recording.check()


def test_the_example_of_the_docs(fake: Fake, recording: Recording) -> None:
    assert "You said: " in examples.run("openai_sdk.py", fake, recording.path.parent)
    recording.check()
