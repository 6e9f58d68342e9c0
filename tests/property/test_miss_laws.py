"""Laws of cache misses: bounded by both bills, told alike wherever a replay is entered."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from ctxctl.analysis.costs import Costs, step_costs
from ctxctl.engine.sizes.cache_misses import FLOOR, BilledRequest, CacheMemory, cache_miss, memory_after
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.tokens.catalogue.rates import RateBook
from tests.oracle.build import Event, assembly, at, event, inject, item, lines

COUNT = st.integers(0, 200_000)


@st.composite
def requests(draw: st.DrawFn) -> BilledRequest:
    read, written, plain = draw(COUNT), draw(st.none() | COUNT), draw(COUNT)
    whole = read + (written or 0) + plain
    model = draw(st.sampled_from(["claude-opus-4-5", "gpt-5", "gemini-2.5-pro", None]))
    told = draw(st.sampled_from([whole, draw(COUNT)]))
    hour = draw(st.none() | st.integers(0, written or 0))
    return BilledRequest(
        told, draw(st.sampled_from([read, None])), written, hour, 5, draw(COUNT), None, model
    )


@given(st.none() | requests(), requests(), COUNT | st.none(), st.floats(0, 2))
def test_a_miss_is_within_both_bills(
    first: BilledRequest | None, now: BilledRequest, prefix: int | None, error: float
) -> None:
    before: CacheMemory | None = None if first is None else memory_after(None, first)
    miss = cache_miss(before, now, prefix, error)
    if miss is None:
        return
    assert first is not None
    assert FLOOR <= miss.tokens <= miss.expected - miss.read
    assert miss.expected <= min(first.input, now.input)
    assert miss.read == now.read
    assert miss.tokens <= now.input - miss.read


@given(requests(), requests(), COUNT)
def test_more_kept_is_no_smaller_miss(first: BilledRequest, now: BilledRequest, prefix: int) -> None:
    before = memory_after(None, first)
    found = [cache_miss(before, now, kept, 0.15) for kept in (min(prefix, first.recorded), first.recorded)]
    some, most = (miss.tokens if miss is not None else 0 for miss in found)
    # Near the end the bills size a change, further in front the record does: both are held to be too small.
    assert most >= some


def long_trace(path: Path, seed: int) -> None:
    random, events, held = Random(seed), list[Event](), 20_000
    for n in range(1, 80):
        held += random.randrange(500)
        read = random.choice((held - 600, held - 600, 0, 5_000))
        told = {"model": "claude-opus-4-5", "provider": "anthropic", "input_tokens": held, "output_tokens": 9}
        told |= {"cached_tokens": max(0, read), "cache_write_tokens": held - max(0, read)}
        shown = [f"i{k}" for k in range(n)]
        events += at(
            str(n), "1", item(f"i{n - 1}", f"word {n}"), assembly(f"w{n}", shown), inject(f"w{n}"),
            event("ctxctl.usage.reported", told),
        )  # fmt: skip
    path.write_bytes(lines(events))


def test_a_step_reached_by_a_jump_has_the_miss_that_a_replay_finds(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    long_trace(path, 7)
    with Inspector.open(path) as inspector:
        whole = [step.cache.miss for step in inspector.replay() if isinstance(step, Step)]
    assert 10 < sum(miss is not None for miss in whole) < 70
    with Inspector.open(path) as inspector:
        for ordinal in (78, 3, 41, 40, 77, 0):
            assert inspector.step(ordinal).cache.miss == whole[ordinal]


def test_sums_are_those_of_the_steps(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    long_trace(path, 8)
    with Inspector.open(path) as inspector:
        costs = Costs(RateBook())
        rows = list(step_costs(inspector, costs))
    found = [row for row in rows if row.step.cache.miss is not None]
    assert costs.misses.whole.number == len(found) > 10
    assert costs.misses.whole.money == sum(row.missed for row in found if row.missed is not None)
    assert costs.misses.whole.tokens == sum(r.step.cache.miss.tokens for r in found if r.step.cache.miss)
    assert all(row.missed is not None and row.billed is not None for row in found)
    assert all(0 < row.missed < row.billed.total for row in found if row.missed and row.billed)
    assert json.dumps(sorted(costs.misses.by_cause))
