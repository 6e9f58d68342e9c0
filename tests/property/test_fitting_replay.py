"""Replays under fitting policies over random traces: ledgers add up, and what is over says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.model.results import Step
from ctxctl.model.whatif import Limits
from tests.oracle import real
from tests.oracle.build import Event
from tests.oracle.random_traces import traces

EXAMPLES = settings.default.max_examples if settings.default else 100
FEWER = settings(max_examples=max(EXAMPLES // 2, 1))
POLICIES = st.sampled_from(
    [
        "fifo", "fifo:target=0.5", "priority", "truncate_tail", "truncate_middle:protect_head=false",
        "summarize_oldest:summary_tokens=5", "summarize_low_priority:summary_tokens=5,protect_recent=0",
        "defer_to_retrieval", "reject", "ask_for_choice", "policy_block",
    ]
)  # fmt: skip


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fitting") / "trace.jsonl"


def steps_under(trace: Path, events: list[Event], policy: str, limits: Limits) -> list[Step]:
    with real.opened(trace, events, policy=policy, limits=limits) as inspector:
        return [result for result in inspector.replay() if isinstance(result, Step)]


@FEWER
@given(events=traces(), policy=POLICIES, window=st.integers(1, 80))
def test_the_ledger_adds_up_and_the_cap_holds(
    trace: Path, events: list[Event], policy: str, window: int
) -> None:
    steps = steps_under(trace, events, policy, Limits(window=window))
    last: dict[object, int] = {}
    for step in steps:
        ledger, key = step.ledger, (step.session, step.thread)
        assert ledger.window_before == last.get(key, 0)
        assert ledger.window_after == ledger.window_before + ledger.reweighed + ledger.new - ledger.freed
        assert ledger.window_after == step.window.recorded >= 0
        last[key] = ledger.window_after
        told = step.stages["budget"].facts["simulated"]
        if told["verdict"] in ("fits", "fitted"):
            # What is sent beside the content is known from the last bill; this one's may be larger.
            assert step.window.over == 0 or "over_budget" in step.flags
        else:
            assert {"still_over_budget", "rejected", "asks", "blocked"} & set(step.flags)
        assert "simulated" in step.flags
    assert steps == steps_under(trace, events, policy, Limits(window=window))


@FEWER
@given(events=traces(), policy=POLICIES, ordinal=st.integers(0, 20))
def test_a_frame_from_a_snapshot_is_the_frame(
    trace: Path, events: list[Event], policy: str, ordinal: int
) -> None:
    """Jumping to a step gives what walking there does."""
    limits = Limits(window=30)
    steps = steps_under(trace, events, policy, limits)
    if not steps:
        return
    with real.opened(trace, events, policy=policy, limits=limits) as inspector:
        for at in (ordinal % len(steps), len(steps) - 1, 0):
            found = inspector.at(at)
            assert found.step == steps[at]
            assert sum(p.tokens for p in found.placements) == steps[at].window.recorded


@FEWER
@given(events=traces(), policy=POLICIES)
def test_with_room_for_everything_nothing_is_left_out(trace: Path, events: list[Event], policy: str) -> None:
    for step in steps_under(trace, events, policy, Limits(window=10**9)):
        told = step.stages["budget"].facts["simulated"]
        assert (told["verdict"], told["dropped"], told["cut"]) == ("fits", 0, 0)
        assert told["wanted"] >= step.window.recorded
        if step.window.used_method == "recorded" and step.usage is None:
            assert step.window.used == step.window.recorded
