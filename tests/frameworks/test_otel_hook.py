"""The completion hook of OpenTelemetry's GenAI instrumentations, told by the one of OpenAI's SDK."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.util.genai.completion_hook import load_completion_hook

from ctxctl.hooks.otel import CompletionHook
from ctxctl.providers.dialects import by_name
from ctxctl.session import Inspector
from tests.frameworks import examples
from tests.frameworks.fake import Fake
from tests.frameworks.session import BILL, SECRET, Recording
from tests.frameworks.test_openai import chat, chat_async

ENVIRONMENTS = ("httpx2",)


@pytest.fixture
def hook(recording: Recording) -> Iterator[CompletionHook]:
    made = CompletionHook(recording.path)
    instrumentor = OpenAIInstrumentor()
    instrumentor.instrument(completion_hook=made, tracer_provider=TracerProvider())
    yield made
    instrumentor.uninstrument()
    made.recorder.close()


def valued(kind: str, text: str | None) -> tuple[object, ...]:
    """A call by the value of its arguments: the convention parses the string that was sent."""
    if kind != "tool_call" or text is None:
        return kind, text
    name, _, arguments = text.partition(" ")
    return kind, name, json.loads(arguments)


def said(recording: Recording, *, last: int) -> None:
    """Every frame must have the items of the body: kinds, texts and order; usage must match.

    The convention's parts are no JSON of a provider, so there is none to compare.
    """
    bodies = [(one.dialect, one.body) for one in recording.fake.received]
    bodies = [pair for at, pair in enumerate(bodies) if pair not in bodies[:at]]
    assert len(bodies) == last
    with Inspector.open(str(recording.path)) as inspector:
        list(inspector.replay())
        assert [problem.message for problem in inspector.problems] == []
        assert inspector.summary is not None
        assert inspector.summary.steps == len(bodies)
        for at, (dialect, body) in enumerate(bodies):
            wanted = [(part.kind, part.text) for part in by_name(dialect).cut(body)]
            placed = inspector.frame(at).placements
            made = [(one.kind, inspector.text(one.content) if one.content else None) for one in placed]
            assert [valued(*one) for one in made if one[0] != "tool_definition"] == [
                valued(*one) for one in wanted if one[0] != "tool_definition"
            ]
            assert len(made) == len(wanted)
    assert SECRET not in recording.path.read_text()


def test_a_session(fake: Fake, recording: Recording, hook: CompletionHook) -> None:
    chat(openai.OpenAI(api_key=SECRET, base_url=fake.v1, max_retries=1))
    said(recording, last=4)
    assert recording.bills() == [BILL] * 3
    assert recording.errors() == ["openai.InternalServerError"]


async def test_an_asynchronous_session(fake: Fake, recording: Recording, hook: CompletionHook) -> None:
    await chat_async(openai.AsyncOpenAI(api_key=SECRET, base_url=fake.v1, max_retries=0))
    said(recording, last=3)
    assert recording.bills() == [BILL] * 2


def test_many_at_once(fake: Fake, recording: Recording, hook: CompletionHook) -> None:
    async def all_of() -> None:
        asked = openai.AsyncOpenAI(api_key=SECRET, base_url=fake.v1, max_retries=0)
        given: list[Any] = [[{"role": "user", "content": f"number {n}"}] for n in range(8)]
        await asyncio.gather(*(asked.chat.completions.create(model="gpt-5", messages=one) for one in given))

    asyncio.run(all_of())
    hook.recorder.close()
    assert recording.bills() == [BILL] * 8
    assert len({row.thread for row in recording.rows("context.injection.applied")}) == 8


def test_it_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK", "ctxctl")
    monkeypatch.setenv("CTXCTL_TRACE", str(tmp_path / "otel.jsonl"))
    found: Any = load_completion_hook()
    assert isinstance(getattr(found, "_wrapped", found), CompletionHook)


@pytest.mark.parametrize("sdk", ["sdk", "none"])
def test_a_program_that_knows_nothing_of_it(fake: Fake, recording: Recording, sdk: str) -> None:
    code = """
import sys
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
OpenAIInstrumentor().instrument(tracer_provider=TracerProvider() if sys.argv[3] == "sdk" else None)
import openai
made = openai.OpenAI(api_key=sys.argv[2], base_url=sys.argv[1])
made.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "hello"}])
"""
    env = {
        **os.environ,
        "OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK": "ctxctl",
        "CTXCTL_TRACE": str(recording.path),
    }
    done = subprocess.run(
        [sys.executable, "-c", code, fake.v1, SECRET, sdk],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    said(recording, last=1)
    # Without OpenTelemetry's SDK a span holds nothing: what was billed is not known then.
    assert recording.bills() == ([BILL] if sdk == "sdk" else [])


def test_the_example_of_the_docs(fake: Fake, recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK", "ctxctl")
    monkeypatch.setenv("CTXCTL_TRACE", "run.jsonl")
    assert "You said: " in examples.run("otel_hook.py", fake, recording.path.parent)
    said(recording, last=1)
