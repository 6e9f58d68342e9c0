"""Stages held against what rules say that they ought to be."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ctxctl.engine.simulate.recompute import LISTED, recomputed_stages
from ctxctl.model.recompute import Recomputed
from ctxctl.model.results import StageView


def held(expected: Any, recorded: Any, verdict: str = "recorded") -> StageView:
    facts = SimpleNamespace(selection=None, budget=None, assembly=None, budgets=[], entered={})
    sealed: Any = SimpleNamespace(facts=facts, reading=SimpleNamespace(assembled=[]))
    thread: Any = SimpleNamespace(placer=None, book=None)
    rules: Any = SimpleNamespace(recompute=lambda _: {"budget": Recomputed(expected, recorded, {"n": 1})})
    views = {"budget": StageView(verdict, {"was": "there"})}  # type: ignore[arg-type]
    return recomputed_stages(views, thread, sealed, rules)["budget"]


def test_the_same_matches_and_a_stage_that_was_not_recorded_stays_so() -> None:
    assert held([1], [1]) == StageView("matches", {"was": "there"})
    assert held([1], [2], "not_recorded") == StageView("not_recorded", {"was": "there"})


@pytest.mark.parametrize(
    ("expected", "recorded", "shown"),
    [
        (
            {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 5, "d": 4},
            ({"b": 2, "c": 3, "d": None}, {"b": 5, "c": None, "d": 4}),
        ),
        (["x", "y", "z"], ["x", "n"], (["y", "z"], ["n", None])),
        ([], ["n"], ([None], ["n"])),
        ({"a": 1}, ["a"], ({"a": 1}, ["a"])),
        (["a"], {"a": 1}, (["a"], {"a": 1})),
        (["a"], "a", (["a"], "a")),
        ("ab", ["a"], ("ab", ["a"])),
        ({"a": 1}, None, ({"a": 1}, None)),
        (3, 4, (3, 4)),
    ],
)  # fmt: skip
def test_only_what_is_not_the_same_is_shown(expected: Any, recorded: Any, shown: tuple[Any, Any]) -> None:
    view = held(expected, recorded)
    assert view.verdict == "differs"
    assert view.facts == {"was": "there", "expected": shown[0], "recorded": shown[1], "inputs": {"n": 1}}


def test_of_long_lists_the_first_differences_are_shown() -> None:
    view = held(list(range(99)), [])
    assert view.facts["expected"] == list(range(LISTED))
    assert view.facts["recorded"] == [None] * LISTED
