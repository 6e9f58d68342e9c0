"""Two groups of sessions: values by hand, intervals that hold what they promise, and too few told as that."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import pytest

from ctxctl.cli.dataset.sides import period_of, side_of
from ctxctl.dataset import comparing
from ctxctl.dataset.rules import Ask, decided, read_rules
from ctxctl.errors import UsageError
from ctxctl.report.fleet_diff import is_worse, verdict

EMPTY: dict[str, Any] = {
    "requests": 1, "turns": 1, "sent": None, "sized": 0, "first": None, "largest": None, "read": None, "read_of": None,
    "cached": 0, "breaks": 0, "misses": 0, "compactions": 0, "limited": 0, "over": 0, "sub_requests": 0, "usd": None,
    "priced": 0, "carried": None, "old": None, "definitions": None, "outputs": 0, "again": 0,
}  # fmt: skip
RATE, COST, BREAKS = (comparing.measure(name) for name in ("cache-rate", "cost", "breaks"))


def session(**more: Any) -> dict[str, Any]:
    return {**EMPTY, **more}


def test_a_measure_is_a_ratio_of_sums_over_those_that_can_say() -> None:
    rows = [session(read=80, read_of=100), session(read=0, read_of=300), session()]
    assert comparing.side(RATE, rows) == comparing.Side(0.2, 2, 1)
    assert comparing.side(COST, [session(usd=2.0, priced=1), session(usd=9.0, priced=1, requests=2)]) == (
        2.0,
        1,
        1,
    )
    assert comparing.side(BREAKS, [session(cached=50, breaks=1), session(cached=150, breaks=1)]).value == 1.0
    assert comparing.side(RATE, [session()]) == comparing.Side(None, 0, 1)


def rates(chance: random.Random, mean: float, count: int) -> list[dict[str, Any]]:
    return [
        session(read=round(1000 * min(1, max(0, chance.gauss(mean, 0.1)))), read_of=1000)
        for _ in range(count)
    ]


@pytest.mark.parametrize("count", [60, 900])
def test_a_difference_is_found_and_the_same_again(count: int) -> None:
    chance = random.Random(1)
    a, b = rates(chance, 0.9, count), rates(chance, 0.7, count)
    (found,) = comparing.compared(a, b, [RATE])
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.difference < found.high < 0  # type: ignore[operator]
    assert found.effect is not None
    assert found.effect < -0.7
    assert is_worse(found)
    assert verdict(found) == "worse"
    assert comparing.compared(a, b, [RATE]) == [found]


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    chance = random.Random(2)
    inside = 0
    for _ in range(60):
        (found,) = comparing.compared(rates(chance, 0.6, 40), rates(chance, 0.6, 40), [RATE])
        inside += not found.is_certain
    assert 51 <= inside < 60


def test_too_few_sessions_have_no_interval() -> None:
    chance = random.Random(3)
    (found,) = comparing.compared(rates(chance, 0.9, 19), rates(chance, 0.1, 100), [RATE])
    assert found.is_too_small
    assert (found.low, verdict(found), is_worse(found)) == (None, "too few sessions", False)
    (silent,) = comparing.compared([session()], rates(chance, 0.1, 100), [RATE])
    assert (silent.difference, silent.effect, verdict(silent)) == (None, None, "not known")


def test_cliffs_delta_by_hand() -> None:
    a = [session(read=n, read_of=10) for n in (1, 2, 3)]
    b = [session(read=n, read_of=10) for n in (2, 4)]
    (found,) = comparing.compared(a, b, [RATE])  # pairs of B above A: 1 + 3, below: 1, of 6
    assert found.effect == pytest.approx((4 - 1) / 6)


def test_groups_as_they_are_typed() -> None:
    assert side_of("client_version=2.1.3, project=a b") == {"client_version": "2.1.3", "project": "a b"}
    assert side_of("2026-12") == {
        "since": datetime(2026, 12, 1, tzinfo=UTC),
        "until": datetime(2027, 1, 1, tzinfo=UTC),
    }
    assert period_of("2026-W01") == (datetime(2025, 12, 29, tzinfo=UTC), datetime(2026, 1, 5, tzinfo=UTC))
    assert side_of("label=prompt=v2") == {"label": "prompt=v2"}
    for text in (
        "",
        "2026-13",
        "nope=1",
        "project",
        "project=",
        "limit=3",
        "2026-01,2026-02",
        "project=a,project=b",
    ):
        with pytest.raises(UsageError):
            side_of(text)


def rules(text: str) -> Any:
    return read_rules(text.encode(), "rules.toml")


def asking(past: list[dict[str, Any]], now: list[dict[str, Any]]) -> Ask:
    def ask(name: str, given: Any) -> list[dict[str, Any]]:
        assert name == "measures"
        return now if given.get("until") in (None, NOW) else past

    return ask


NOW = datetime(2026, 3, 1, tzinfo=UTC)


def test_a_rule_of_a_measure() -> None:
    rows = [session(read=80, read_of=100), session()]
    (rule,) = rules('[[rule]]\nname = "r"\nmeasure = "cache-rate"\nat-least = 0.8\ndays = 0')
    assert decided(rule, asking([], rows), NOW).outcome == "holds"
    assert "1 do not say" in decided(rule, asking([], rows), NOW).message
    assert decided(rule, asking([], [session(read=79, read_of=100)]), NOW).outcome == "fails"
    assert decided(rule, asking([], [session()]), NOW).outcome == "unknown"


def test_worse_than_before_is_held_to_what_can_be_told() -> None:
    chance = random.Random(4)
    (rule,) = rules('[[rule]]\nname = "r"\nmeasure = "cache-rate"\nworse_by_at_most = "10%"')
    before, lower = rates(chance, 0.9, 50), rates(chance, 0.6, 50)
    assert decided(rule, asking(before, lower), NOW).outcome == "fails"
    assert decided(rule, asking(lower, before), NOW).outcome == "holds"
    assert decided(rule, asking(before, rates(chance, 0.88, 50)), NOW).outcome == "holds"
    few = decided(rule, asking(before, lower[:5]), NOW)
    assert (few.outcome, "too few" in few.message) == ("unknown", True)
    assert decided(rule, asking([], lower), NOW).outcome == "unknown"


def test_a_rule_of_a_question_holds_every_row() -> None:
    (rule,) = rules('[[rule]]\nname = "r"\nquestion = "p95-window"\ncolumn = "p95"\nat_most = 100')
    rows = [{"project": "a", "p95": 90, "sessions": 1}, {"project": "b", "p95": 110, "sessions": 2}]

    found = decided(rule, lambda name, given: rows, NOW)
    assert (found.outcome, found.value, found.sessions) == ("fails", 110, 3)
    assert "b: 110" in found.message
    assert decided(rule, lambda name, given: rows[:1], NOW).outcome == "holds"
    assert decided(rule, lambda name, given: [], NOW).outcome == "holds"
    assert decided(rule, lambda name, given: [{"project": "a", "p95": None}], NOW).outcome == "unknown"


@pytest.mark.parametrize(
    "text",
    [
        "", "x = 1", "[[rule]]\nname = 'r'", "[[rule]]\nname = 'r'\nmeasure = 'cost'", "[[rule]\n", "rule = 3",
        "[[rule]]\nname = 'r'\nmeasure = 'nope'\nat-most = 1", "[[rule]]\nname = 'r'\nmeasure = 'cost'\nat-most = 'x'",
        "[[rule]]\nname = 'r'\nquestion = 'cost'\ncolumn = 'project'\nat-most = 1",
        "[[rule]]\nname = 'r'\nquestion = 'nope'\ncolumn = 'usd'\nat-most = 1",
        "[[rule]]\nname = 'r'\nmeasure = 'cost'\nat-most = 1\nwhere = {nope = '1'}",
        "[[rule]]\nname = 'r'\nmeasure = 'cost'\nworse-by-at-most = '10'",
        "[[rule]]\nname = 'r'\nmeasure = 'sub-agents'\nworse-by-at-most = '10%'",
        "[[rule]]\nname = 'r'\nquestion = 'sentence'\ncolumn = 'tokens'\nat-most = 1",
    ],
)  # fmt: skip
def test_a_rule_that_cannot_be_decided_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        rules(text)
    assert raised.value.slug == "bad-rules"
