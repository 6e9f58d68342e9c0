"""Rows of turns: they add up to the replay, over real traces and random ones."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings

from ctxctl.analysis.request_cost import cost_of
from ctxctl.analysis.turn_sums import TurnSums
from ctxctl.model.results import Step, Turn
from ctxctl.session import Inspector
from ctxctl.tokens.catalogue.rates import RateBook
from tests.oracle.build import Event, assembly, at, compact, event, inject, item, lines, summary
from tests.oracle.random_traces import traces

TRACES = sorted(Path("traces").glob("*.jsonl"))


def summed(path: Path) -> tuple[TurnSums, list[Step], list[Turn]]:
    sums = TurnSums(RateBook())
    steps, turns = list[Step](), list[Turn]()
    with Inspector.open(path) as inspector:
        for result in inspector.replay():
            if isinstance(result, Step):
                steps.append(result)
                sums.step(result)
            else:
                turns.append(result)
                sums.turn(result)
    return sums, steps, turns


def adds_up(path: Path) -> None:
    sums, steps, turns = summed(path)
    rows = sums.turns
    assert [(row.session, row.thread, row.turn, row.steps) for row in rows] == [
        (turn.session, turn.thread, turn.turn, turn.steps) for turn in turns
    ]
    for row, turn in zip(rows, turns, strict=True):
        ledger = turn.ledger
        assert (row.new, row.freed, row.reweighed) == (ledger.new, ledger.freed, ledger.reweighed)
        last = [s for s in steps if (s.session, s.thread, s.turn) == (row.session, row.thread, row.turn)][-1]
        assert row.window == last.window
        assert row.over == sum(
            bool(s.window.over)
            for s in steps
            if (s.session, s.thread, s.turn) == (row.session, row.thread, row.turn)
        )
    assert sum(row.cost for row in rows) == sums.costs.sent.total
    costs = [cost_of(step, RateBook()) for step in steps]
    assert sum(row.unpriced for row in rows) == sum(not c.is_sized or c.sent is None for c in costs)
    assert sum(sums.costs.unpriced.values()) == sum(c.sent is None for c in costs)
    assert sums.costs.unsized == sum(not c.is_sized for c in costs)
    assert sum(row.misses for row in rows) == sums.costs.misses.whole.number
    for row in rows:
        for one in row.compactions:
            assert one.tokens == sum(tokens for _, _, tokens in one.kinds)
            assert one.items == sum(items for _, items, _ in one.kinds)
            assert sum(taken.tokens for taken in one.largest) <= one.tokens
            (step,) = (
                s
                for s in steps
                if (s.session, s.thread, s.turn, s.step) == (row.session, row.thread, one.turn, one.step)
            )
            assert one.tokens <= step.ledger.freed


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_rows_add_up_to_the_replay(path: Path) -> None:
    adds_up(path)


@settings(max_examples=30)
@given(traces())
def test_rows_of_random_traces_add_up(events: list[Event]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "t.jsonl"
        path.write_bytes(lines(events))
        adds_up(path)


def test_what_a_compaction_took(tmp_path: Path) -> None:
    """Two items go into a summary and one stays: the row says which, and by what they were taken."""
    path = tmp_path / "t.jsonl"
    texts = {"a": "one two three four five six", "b": "red green blue", "c": "left standing"}
    first = [item(name, text) for name, text in texts.items()]
    bill = event("ctxctl.usage.reported", {"model": "nobody-knows", "input_tokens": 30})
    second = [
        compact(["a", "b"], "sum"),
        summary("sum", "colours"),
        assembly("w2", ["sum", "c"]),
        inject("w2"),
    ]
    path.write_bytes(
        lines([*at("1", "1", *first, assembly("w1", [*texts]), inject("w1"), bill), *at("2", "1", *second)])
    )
    sums, steps, _ = summed(path)
    ((row, one),) = sums.compactions
    assert (row.turn, one.turn, one.step, one.items, one.triggers) == (2, 2, 1, 2, ("token_pressure",))
    assert [taken.item for taken in one.largest] == ["a", "b"]
    assert one.tokens == steps[1].ledger.freed > 0
    assert [(row.unpriced, row.cost) for row in sums.turns] == [(1, 0), (1, 0)]
