"""Sizes as plans write them."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.budget.distribution import amount_bound, distribution, measured_spread, quantile, token_size


def test_a_number_is_always_itself() -> None:
    assert [distribution(7).at(share) for share in (0, 0.5, 1)] == [7, 7, 7]
    assert distribution("4k").at(0.3) == 4000
    assert distribution(7).fixed


def test_a_range_is_even() -> None:
    found = distribution({"from": 100, "to": 200})
    assert [found.at(share) for share in (0, 0.25, 0.5, 1)] == [100, 125, 150, 200]
    assert found.mean == 150


def test_percentiles_are_joined_by_straight_lines() -> None:
    found = distribution({"p50": 100, "p95": 1000, "max": 1500})
    assert [found.at(share) for share in (0, 0.25, 0.5, 0.95, 1)] == [0, 50, 100, 1000, 1500]
    assert found.at(0.725) == 550  # half way from p50 to p95
    assert found.mean == pytest.approx(0.5 * 50 + 0.45 * 550 + 0.05 * 1250)


def test_what_no_percentile_reaches_is_the_highest_that_is_given() -> None:
    assert distribution({"p50": 10, "p95": 20}).at(1) == 20


@pytest.mark.parametrize(
    "value",
    [
        -1, True, 1.5, "", "12%", "many", [], {}, {"from": 2, "to": 1}, {"from": 1}, {"p50": 1, "p00": 2},
        {"p0": 1}, {"p100": 5}, {"p50": 9, "p95": 3}, {"min": 1, "max": 2}, {"p50": -1}, {"p50": "x"}, 10**13,
        {"p50": float("nan")},
    ],
)  # fmt: skip
def test_what_is_no_size_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="must"):
        distribution(value)


@pytest.mark.parametrize("value", ["-1%", "101%", "x%", "%", "nan%", -1, 1.5, None])
def test_what_is_no_bound_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="must"):
        amount_bound(value)


def test_bounds_are_tokens_or_a_share() -> None:
    assert amount_bound("5%").of(1000) == 50
    assert amount_bound("12.5 %").of(1001) == 125
    assert amount_bound("4k").of(10) == 4000
    assert token_size("1.5m") == 1_500_000


def test_nearest_rank() -> None:
    assert [quantile(range(1, 101), share) for share in (0.5, 0.95, 0.99)] == [50, 95, 99]
    assert quantile([3, 1, 2], 0.5) == 2
    assert quantile([9], 0.99) == 9


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=60))
def test_what_is_measured_reads_back_within_what_was_seen(values: list[int]) -> None:
    found = distribution(measured_spread(values))
    assert (found.at(0), found.at(1)) == (min(values), max(values))
    middle = sorted(values)
    low, high = middle[(len(values) - 1) // 2], middle[len(values) // 2]
    assert low <= found.at(0.5) <= high + 1
    chance = Random(1)
    assert all(min(values) <= found.draw(chance) <= max(values) for _ in range(20))


@given(
    st.lists(st.integers(0, 1000), min_size=3, max_size=3), st.lists(st.floats(0, 1), min_size=2, max_size=2)
)
def test_more_of_all_is_never_less(values: list[int], shares: list[float]) -> None:
    low, middle, high = sorted(values)
    found = distribution({"p50": low, "p95": middle, "p99": high})
    one, other = sorted(shares)
    assert found.at(one) <= found.at(other)
