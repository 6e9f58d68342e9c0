"""A thread that goes on with a model of another encoding: what is counted anew, and what is not."""

from __future__ import annotations

from ctxctl.model.results import Step, Turn
from tests.unit.engine.making import Json, add, assembly, inject, inspect

FOREIGN = " Straßenbahnhaltestelle, привет, 日本語のテキスト"
"""21 tokens with `one` or `two` in cl100k_base, 16 in o200k_base."""


def asked(turn: str, model: str, *items: str) -> list[Json]:
    name = f"a{turn}"
    return [assembly(name, *items, ours={"model": model}, turn=turn), inject(name, turn=turn)]


SWITCHED = [
    add("m1", "one" + FOREIGN, kind="user_message", turn="1"),
    *asked("1", "gpt-4", "m1"),
    add("m2", "two" + FOREIGN, kind="user_message", turn="2"),
    *asked("2", "gpt-4o", "m1", "m2"),
    add("m3", "one more" + FOREIGN, kind="user_message", turn="3"),
    *asked("3", "gpt-4", "m1", "m2", "m3"),
]


def reweighed(policy: str | None) -> tuple[list[int], list[int], int]:
    """Of each step, of each turn, and of all."""
    inspector = inspect(SWITCHED, policy=policy)
    results = list(inspector.replay())
    steps = [one.ledger.reweighed for one in results if isinstance(one, Step)]
    turns = [one.ledger.reweighed for one in results if isinstance(one, Turn)]
    assert inspector.summary is not None
    return steps, turns, inspector.summary.reweighed


def test_what_stands_is_counted_anew_and_the_sums_say_by_how_much() -> None:
    # 21 become 16, then 32 become 42.
    assert reweighed(None) == ([0, -5, 10], [0, -5, 10], 5)


def test_frames_that_a_policy_makes_are_counted_in_one_encoding() -> None:
    for policy in ("fifo", "sanqian"):
        assert reweighed(policy) == ([0, 0, 0], [0, 0, 0], 0)
