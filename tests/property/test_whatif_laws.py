"""What-ifs over random traces: nothing supposed changes nothing, a larger window never holds less."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.analysis.whatif import Comparison, WhatIfs, whatif_side
from ctxctl.model.results import Step
from ctxctl.model.whatif import Limits, Pair, Supposition
from ctxctl.session import Inspector
from tests.oracle import real
from tests.oracle.build import Event
from tests.oracle.random_traces import traces

EXAMPLES = settings.default.max_examples if settings.default else 100
FEWER = settings(max_examples=max(EXAMPLES // 2, 1))

SIZES = st.none() | st.integers(0, 60)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("whatif") / "trace.jsonl"


def pairs_of(inspector: Inspector, **given_: Any) -> tuple[list[Pair], Comparison]:
    whatifs = WhatIfs(inspector)
    comparison = whatifs.compare(whatifs.resolve(Supposition(**given_)))
    found = list(comparison.pairs())
    whatifs.close()
    return found, comparison


def two_engines(inspector: Inspector, **given_: Any) -> list[Pair]:
    """The plain definition: a replay of its own under the supposed limits."""
    whatifs = WhatIfs(inspector)
    supposed = whatifs.resolve(Supposition(**given_))
    return list(whatifs.compare(supposed._replace(only_limits=False)).pairs())


@FEWER
@given(events=traces())
def test_nothing_supposed_is_what_was_recorded(trace: Path, events: list[Event]) -> None:
    with real.opened(trace, events) as inspector:
        found, comparison = pairs_of(inspector)
        steps = [result for result in inspector.replay() if isinstance(result, Step)]
        again = two_engines(inspector)
    assert [pair.recorded for pair in found] == [pair.simulated for pair in found]
    assert [pair.recorded for pair in found] == [whatif_side(step) for step in steps]
    assert again == found
    assert comparison.recorded == comparison.simulated


@FEWER
@given(events=traces(), window=SIZES, reserve=SIZES, more=st.integers(0, 40), max_input=SIZES)
def test_a_larger_window_never_has_more_over(
    trace: Path,
    events: list[Event],
    window: int | None,
    reserve: int | None,
    more: int,
    max_input: int | None,
) -> None:
    with real.opened(trace, events) as inspector:
        limits = {"reserve": reserve, "max_input": max_input}
        small, first = pairs_of(inspector, window=window or 1, **limits)
        large, second = pairs_of(inspector, window=(window or 1) + more, **limits)
        plain = two_engines(inspector, window=window or 1, **limits)
    assert plain == small, "the shortcut is the plain definition"
    for a, b in zip(small, large, strict=True):
        assert a.simulated.over is not None
        assert b.simulated.over is not None
        assert b.simulated.over <= a.simulated.over
        assert a.simulated.used == a.recorded.used
        cap, used = a.simulated.cap, a.simulated.used
        assert cap is not None
        assert (a.simulated.free, a.simulated.over) == (max(0, cap - used), max(0, used - cap))
    assert second.simulated.over <= first.simulated.over


@FEWER
@given(events=traces(), window=st.integers(1, 60))
def test_limits_leave_every_frame_alone(trace: Path, events: list[Event], window: int) -> None:
    with real.opened(trace, events) as inspector:
        plain = [result for result in inspector.replay() if isinstance(result, Step)]
    with real.opened(trace, events, limits=Limits(window=window)) as inspector:
        supposed = [result for result in inspector.replay() if isinstance(result, Step)]
    for a, b in zip(plain, supposed, strict=True):
        assert (a.ledger, a.changes, a.counts, a.cache, a.usage) == (
            b.ledger,
            b.changes,
            b.counts,
            b.cache,
            b.usage,
        )
        assert b.window.limit == window


@FEWER
@given(events=traces())
def test_the_ledger_balances_in_a_simulated_replay(trace: Path, events: list[Event]) -> None:
    last: dict[tuple[str | None, str], int] = {}
    with real.opened(trace, events, policy="sanqian", encoding="cl100k_base") as inspector:
        alone = [result for result in inspector.replay() if isinstance(result, Step)]
    with real.opened(trace, events) as inspector:
        found, _ = pairs_of(inspector, policy="sanqian", encoding="cl100k_base")
    for step, pair in zip(alone, found, strict=True):
        ledger, key = step.ledger, (step.session, step.thread)
        assert ledger.window_before == last.get(key, 0)
        assert ledger.window_after == ledger.window_before + ledger.reweighed + ledger.new - ledger.freed
        last[key] = ledger.window_after
        assert pair.simulated == whatif_side(step), "beside the other replay it is what it is alone"
