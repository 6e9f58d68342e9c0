"""Any step can be reached, in any order, and is the one that a replay from the start gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.engine.replay import cursor
from ctxctl.model.results import Step, Turn
from tests.unit.engine.making import add, assembly, event, inject, inspect, remove


@st.composite
def traces(draw: st.DrawFn) -> list[dict]:
    events: list[dict] = []
    append = draw(st.booleans())
    point = "user_message_appendix" if append else "message_history"
    for turn in range(draw(st.integers(1, 30))):
        for step in range(draw(st.integers(1, 3))):
            ids = {
                "turn": f"t{turn}",
                "step": f"s{turn}.{step}",
                "thread": draw(st.sampled_from(["main", "sub"])),
            }
            for _ in range(draw(st.integers(0, 3))):
                name = f"i{draw(st.integers(0, 5))}"
                if draw(st.integers(0, 4)) == 0:
                    events.append(remove(name, **ids))
                else:
                    events.append(add(name, f"text {draw(st.integers(0, 3))}", **ids))
            if draw(st.integers(0, 9)) == 0:
                data = {"source_item_refs": ["i0", "i1"], "summary_ref": f"sum{turn}"}
                events.append(event("compaction.completed", data, **ids))
            if draw(st.integers(0, 3)) == 0:
                events.append(assembly(f"a{turn}.{step}", "i0", "i2", "i4", **ids))
            events.append(inject(f"a{turn}.{step}", point, **ids))
    return events


@settings(max_examples=60, deadline=None)
@given(traces(), st.randoms(use_true_random=False))
def test_random_access_equals_replay(events: list[dict], random) -> None:
    inspector = inspect(events)
    results = list(inspector.replay())
    expected = [r for r in results if isinstance(r, Step)]
    turns = {(r.thread, r.turn): r for r in results if isinstance(r, Turn)}
    assert len(inspector.outline().rows) == len(expected)
    order = list(range(len(expected)))
    random.shuffle(order)
    for ordinal in order:
        assert inspector.step(ordinal) == expected[ordinal]
        assert sum(p.tokens for p in inspector.frame(ordinal).placements) == expected[ordinal].window.recorded
    for ordinal in order[:5]:
        row = inspector.outline().rows[ordinal]
        assert inspector.turn(ordinal) == turns[row.thread, row.turn]


def test_a_step_that_is_spliced_from_one_before_a_snapshot_is_reached_too() -> None:
    """More steps than are kept whole, so that the first ones come from snapshots."""
    events = [add("i0", "text 0", turn="t0"), assembly("a0", "i0", turn="t0"), inject("a0", turn="t0")]
    for n in range(1, 100):
        ids: dict[str, Any] = {"turn": f"t{n}"}
        spliced = assembly(f"a{n}", f"i{n}", ours={"base": f"a{n - 1}", "splices": [[0, 0, 1]]}, **ids)
        events += [add(f"i{n}", f"text {n}", **ids), spliced, inject(f"a{n}", **ids)]
    inspector = inspect(events)
    expected = [r for r in inspector.replay() if isinstance(r, Step)]
    assert len(inspector.outline().rows) == 100
    for ordinal in (40, 20, 99, 60, 0, 30):
        assert inspector.step(ordinal) == expected[ordinal]
        frame = [p.item for p in inspector.frame(ordinal).placements]
        assert frame == [f"i{n}" for n in range(ordinal, -1, -1)]


@settings(max_examples=30, deadline=None)
@given(traces())
def test_ledgers_chain_and_turns_sum_up(events: list[dict]) -> None:
    last: dict[str, int] = {}
    sums: dict[str, tuple[int, int]] = {}
    for result in inspect(events).replay():
        ledger = result.ledger
        assert ledger.window_after == ledger.window_before + ledger.reweighed + ledger.new - ledger.freed
        if isinstance(result, Turn):
            assert (ledger.new, ledger.freed) == sums.pop(result.thread)
            assert ledger.window_after == last[result.thread]
        else:
            assert ledger.window_before == last.get(result.thread, 0)
            assert result.window.recorded == ledger.window_after
            assert sum(result.window.by_method.values()) == result.window.recorded
            assert sum(result.segments.values()) == result.window.used
            new, freed = sums.get(result.thread, (0, 0))
            sums[result.thread] = new + ledger.new, freed + ledger.freed
            last[result.thread] = ledger.window_after


class Weighed:
    """As much of an engine as its snapshots look at."""

    def copy(self, _report: object) -> Weighed:
        return self

    def park(self) -> None:
        pass

    def weight(self) -> int:
        return 10


def test_snapshots_that_hold_too_much_are_thinned_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursor, "_MAX_SNAPSHOT_CELLS", 45)
    engine: Any = Weighed()
    snapshots = cursor.Snapshots(engine)

    def kept() -> list[int]:
        return sorted({snapshots.before(done).done for done in range(2_000)})

    for done in (100, 110, 200, 300, 400):
        snapshots.offer(engine, done, done, done)
    assert kept() == [0, 100, 200, 300, 400], "110 is too near"
    # All are far apart, so every second one goes.
    snapshots.offer(engine, 500, 500, 500)
    assert kept() == [0, 100, 300, 500]
    for done in (520, 540):
        assert not snapshots.due(done) or done >= 532
        snapshots.offer(engine, done, done, done)
    assert kept() == [0, 100, 300, 500, 540]
    # Twice as far apart: 540 goes, and there is room again.
    snapshots.offer(engine, 600, 600, 600)
    assert kept() == [0, 100, 300, 500, 600]
    assert snapshots.back(499).done == 300
    assert kept() == [0, 100, 300]
