"""Whatever is billed: doubts make no sum negative, and every sum is that of its steps."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.analysis.costs import Costs, step_costs
from ctxctl.engine.sizes.bill_doubts import Answer, BillBefore, Billed, doubts, input_is_sound
from ctxctl.session import Inspector
from ctxctl.session.believed_bill import replaced_parts
from ctxctl.tokens.catalogue.rates import RateBook
from tests.oracle.build import Event, assembly, at, event, inject, item, lines

OWN = {"mine": {"window": 9, "input_price": 3, "output_price": 15, "cache_read_price": 0.3}}
WORDS = "boat pier crane tide rope wharf "
counts = st.one_of(st.none(), st.integers(0, 12), st.integers(0, 5000))
bills = st.tuples(counts, counts, counts)
answers = st.one_of(st.none(), st.integers(0, 200))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("doubts") / "trace.jsonl"


def trace(requests: list[tuple[tuple[int | None, int | None, int | None], int, int | None]]) -> bytes:
    made: list[Event] = []
    window: list[str] = []
    for n, ((told, cached, output), said, answer) in enumerate(requests, 1):
        window.append(f"u{n}")
        fields = {"input_tokens": told, "cached_tokens": cached, "output_tokens": output}
        bill = {"model": "mine", **{k: v for k, v in fields.items() if v is not None}}
        made += at(
            "1", str(n), item(f"u{n}", WORDS * said, kind="user_message"), assembly(f"w{n}", list(window)),
            inject(f"w{n}"), event("ctxctl.usage.reported", bill),
        )  # fmt: skip
        if answer is not None:
            window.append(f"a{n}")
            made.append(item(f"a{n}", WORDS * answer, kind="assistant_message"))
    return lines(made)


@given(st.lists(st.tuples(bills, st.integers(0, 60), answers), min_size=1, max_size=6))
def test_sums_are_those_of_the_steps_and_never_negative(
    path: Path, requests: list[tuple[tuple[int | None, int | None, int | None], int, int | None]]
) -> None:
    path.write_bytes(trace(requests))
    with Inspector.open(path) as inspector:
        costs = Costs(RateBook(OWN))
        steps = list(step_costs(inspector, costs))
    sums = costs.doubted
    money = Decimal(0)
    replaced = 0
    for cost in steps:
        assert (cost.believed is None) == (cost.billed is None)
        if cost.believed is None or cost.believed_tokens is None:
            continue
        assert min(cost.believed) >= 0
        assert min(cost.believed_tokens) >= 0
        money += cost.believed.total
        parts = replaced_parts(cost.step.usage)
        replaced += bool(parts)
        if not parts:
            assert cost.believed == cost.billed
        if cost.step.usage is not None:
            assert "input" not in parts or not input_is_sound(cost.step.usage.doubts)
    assert sums.money.total == money
    assert sums.requests == replaced
    assert len(steps) == len(requests)
    for name in ("cached", "written", "input", "output"):
        believed = [getattr(c.believed_tokens, name) for c in steps if c.believed_tokens is not None]
        assert getattr(sums.tokens, name) == sum(believed)
    for told in sums.parts.values():
        assert 0 < told.requests <= sums.requests


@given(bills, st.integers(0, 5000), st.tuples(st.integers(0, 5000), st.integers(0, 5000)), bills)
def test_a_part_is_doubted_once_and_with_its_own_figures(
    bill: tuple[int | None, int | None, int | None], counted: int, said: tuple[int, int],
    before: tuple[int | None, int | None, int | None],
) -> None:  # fmt: skip
    now = Billed(bill[0], bill[1], None, bill[2])
    last = BillBefore(Billed(before[0], before[1], None, before[2]), counted // 2)
    found = doubts(now, counted, Answer(*said), last)
    assert len({doubt.part for doubt in found}) == len(found)
    for doubt in found:
        assert doubt.reported == (now.input if doubt.part == "input" else now.output)
        assert doubt.counted == (counted if doubt.part == "input" else sum(said))
    if now.output is not None and now.output >= said[0] and now.input is not None and now.input > counted:
        assert all(doubt.why == "repeated" for doubt in found)
