"""Each step is counted by its own model's encoding, whatever the steps before it were counted with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.engine.replay.cursor import StepAt
from ctxctl.tokens import ranks
from tests.oracle import real
from tests.oracle.build import Event
from tests.oracle.random_traces import traces

ENCODINGS = {"gpt-4": "cl100k_base", "gpt-4o": "o200k_base", "claude-sonnet-4-5": "o200k_base"}
BY_MODEL = {**ENCODINGS, "claude-a": "o200k_base", "claude-b": "o200k_base"}
"""With the models that random traces name by themselves."""
FOREIGN = " Straßenbahnhaltestelle, привет, 日本語のテキスト"
"""The encodings make different numbers of tokens of it."""
EXAMPLES = settings.default.max_examples if settings.default else 100
FEWER = settings(max_examples=max(EXAMPLES // 3, 1))


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reweighed") / "trace.jsonl"


@st.composite
def switching(draw: Any) -> list[Event]:
    """A random trace whose requests go to several models.

    Without redactions: a text that was taken away since keeps the size that it was counted at.
    """
    return [_asked(e, draw) for e in draw(traces()) if e["event_type"] != "context.redaction.applied"]


def _asked(event: Event, draw: Any) -> Event:
    data = dict(event["data"])
    if isinstance(data.get("content"), str):
        data["content"] += FOREIGN
    if event["event_type"] == "context.assembly.created":
        model = draw(st.sampled_from((*ENCODINGS, None)))
        ours = {**data.get("metadata", {}).get("ctxctl", {}), **({"model": model} if model else {})}
        data["metadata"] = {**data.get("metadata", {}), "ctxctl": ours}
    return {**event, "data": data}


def walked(trace: Path, events: list[Event], **how: Any) -> list[StepAt]:
    with real.opened(trace, events, **how) as inspector:
        return [at for at, _ in inspector.walk()]


def frame(at: StepAt) -> list[tuple[Any, ...]]:
    return [(p.item, p.version, p.digest, p.stale, p.tokens) for p in at.placements]


def threads(ats: list[StepAt]) -> Iterator[list[int]]:
    found: dict[tuple[str | None, str], list[int]] = {}
    for number, at in enumerate(ats):
        found.setdefault((at.step.session, at.step.thread), []).append(number)
    yield from found.values()


@FEWER
@given(switching())
def test_a_step_is_that_of_a_replay_in_its_models_encoding(trace: Path, events: list[Event]) -> None:
    ats = walked(trace, events)
    whole = {name: walked(trace, events, encoding=name) for name in ("cl100k_base", "o200k_base")}
    with real.opened(trace, events) as inspector:
        first = inspector.params.encoding
    for numbers in threads(ats):
        last = 0
        for number in numbers:
            at = ats[number]
            step = at.step
            encoding = BY_MODEL.get(step.model or "", first)
            plain = whole[encoding][number]
            assert frame(at) == frame(plain)
            ledger, same = step.ledger, plain.step.ledger
            assert (ledger.new, ledger.freed, ledger.window_after) == (
                same.new,
                same.freed,
                same.window_after,
            )
            assert ledger.window_before == last
            assert ledger.window_before + ledger.reweighed == same.window_before
            assert (step.counts, step.cache.possible_prefix) == (
                plain.step.counts,
                plain.step.cache.possible_prefix,
            )
            assert [(c.item, c.status, c.new, c.freed, c.tokens) for c in step.changes] == [
                (c.item, c.status, c.new, c.freed, c.tokens) for c in plain.step.changes
            ]
            assert all(encoding in name for name in step.window.by_method if ":" in name)
            last = ledger.window_after


@FEWER
@given(switching())
def test_the_size_of_a_text_is_that_of_its_encoding(trace: Path, events: list[Event]) -> None:
    with real.opened(trace, events) as inspector:
        first = inspector.params.encoding
        for at, _ in inspector.walk():
            made = ranks.get_encoding(BY_MODEL.get(at.step.model or "", first))
            for placement in at.placements:
                if placement.content is not None and placement.redaction is None:
                    text = inspector.text(placement.content)
                    assert placement.tokens == len(made.encode_ordinary(text))


@FEWER
@given(switching())
def test_a_step_opened_by_itself_is_the_same(trace: Path, events: list[Event]) -> None:
    assert real.seek(trace, events) == real.replay(trace, events, skipped=False).steps


@FEWER
@given(switching())
def test_a_turns_ledger_is_its_steps(trace: Path, events: list[Event]) -> None:
    said = real.replay(trace, events)
    for turn in said.turns:
        own = [
            step["ledger"]
            for step in said.steps
            if all(step[name] == turn[name] for name in ("session", "thread", "turn"))
        ]
        ledger = turn["ledger"]
        for name in ("new", "freed", "reweighed"):
            assert ledger.get(name, 0) == sum(step.get(name, 0) for step in own)
        flow = ledger.get("reweighed", 0) + ledger["new"] - ledger["freed"]
        assert ledger["window_before"] + flow == ledger["window_after"]
