"""The facts of a step, gathered stretch by stretch."""

from __future__ import annotations

from typing import Any

from ctxctl.engine.replay.step_facts import StepFacts
from ctxctl.model.records import Assembly, Budget, Compaction, Injection, Missing, Selection, Surface


def full() -> StepFacts:
    """Facts of which none is as at the beginning."""
    facts = StepFacts()
    values: dict[str, Any] = {
        "surfaces": [Surface("s")], "selection": Selection("sel"), "chosen": [None], "budgets": [Budget("b")],
        "assembly": Assembly("a"), "injections": [Injection("a")], "compactions": [Compaction("c")],
        "missing": [Missing("m")], "redacted": {"r"}, "removed": {"x": "expired"}, "entered": {"y": None},
        "rerooted": True, "cuts": [Compaction("c")], "faults": {"splices"}, "causes": "cleared",
        "model": "m", "elsewhere": {"tool": None},
    }  # fmt: skip
    assert set(values) == set(StepFacts.__slots__)
    for name, value in values.items():
        setattr(facts, name, value)
    return facts


def told(facts: StepFacts) -> dict[str, Any]:
    return {name: getattr(facts, name) for name in StepFacts.__slots__}


def test_a_copy_has_every_fact_and_is_independent() -> None:
    facts = full()
    twin = facts.copy()
    assert told(twin) == told(facts)
    twin.take(full())
    twin.redacted.add("more")
    assert len(twin.injections) == 2
    assert len(facts.injections) == 1
    assert facts.redacted == {"r"}


def test_a_later_stretch_that_says_nothing_takes_nothing_back() -> None:
    facts = full()
    facts.take(StepFacts())
    assert told(facts) == told(full()) | {
        name: getattr(facts, name)
        for name in (
            "surfaces",
            "selection",
            "budgets",
            "assembly",
            "injections",
            "compactions",
            "missing",
            "cuts",
        )
    }
    assert [len(facts.surfaces), len(facts.budgets), len(facts.injections), len(facts.cuts)] == [1, 1, 1, 1]
    assert facts.assembly is not None
    assert facts.selection is not None


def test_what_comes_last_decides_what_is_in_and_what_is_out() -> None:
    facts, later = full(), StepFacts()
    later.removed, later.entered, later.selection = {"y": "detached"}, {"x": None}, Selection("later")
    facts.take(later)
    assert facts.removed == {"y": "detached"}
    assert facts.entered == {"x": None}
    assert (facts.selection, facts.chosen, facts.cuts) == (later.selection, [], [])
