"""Which limit and which compaction line a step is held against, and who says so."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from ctxctl.engine.replay.rules import CataloguedModel
from ctxctl.engine.sizes.limits import InForce, limits_in_force, source_of
from ctxctl.model.records import Budget
from ctxctl.model.results import Step, Window
from ctxctl.model.whatif import Limits
from ctxctl.session import Inspector
from ctxctl.session.params import LimitFinder
from tests.unit.engine.making import Json, add, assembly, event, inject, inspect, usage

MODEL = "claude-opus-4-6"


def windows(inspector: Inspector, runtime: str | None, own: dict[str, Any] | None = None) -> list[Window]:
    limiter = LimitFinder(runtime, own)
    rules = replace(
        inspector.rules(),
        catalogue=limiter.catalogue,
        compacts_at=limiter.compacts_at,
        imported=runtime is not None,
    )
    inspector.rules = lambda *, skipped=False: rules  # type: ignore[method-assign]
    return [found.window for found in inspector.replay() if isinstance(found, Step)]


def session(
    *versions: str | None, bills: tuple[int, ...] = (), budget: Json | None = None, model: str = MODEL
) -> Inspector:
    """One step for each version of the client, or None where its assembly names none."""
    made = [add("a", "What is it?")]
    for number, version in enumerate(versions, 1):
        ids = {"turn": "t1", "step": f"s{number}"}
        if budget is not None:
            made.append(event("budget.applied", {"budget_id": "b", "target": "model", **budget}, **ids))
        ours = {"model": model} | ({"client_version": version} if version is not None else {})
        made.append(assembly(f"asm{number}", "a", ours=ours, **ids))
        made.append(inject(f"asm{number}", **ids))
        if number <= len(bills):
            bill = usage(bills[number - 1], **ids)
            bill["data"]["model"] = model
            made.append(bill)
    return inspect(made)


def test_the_client_s_version_stays_until_another_is_told() -> None:
    found = windows(session("2.1.20", None, "2.1.37"), "claude-code")
    assert [w.limit for w in found] == [200_000] * 3
    assert [w.threshold for w in found] == [155_000, 155_000, 167_000]
    assert {w.limit_source for w in found} == {"client"}
    assert found[1].limit_note is not None
    assert found[1].limit_note.startswith("200,000 by Claude Code 2.1.20")
    assert found[2].threshold_source is not None
    assert found[2].threshold_source.startswith(
        "Claude Code 2.1.37: window - min(max output, 20,000) - 13,000"
    )


def test_a_recorded_trace_has_the_provider_s_window_and_no_client_s_line() -> None:
    (window,) = windows(session("2.1.37"), None)
    assert (window.limit, window.threshold) == (1_000_000, None)


def test_a_larger_bill_makes_the_window_unknown_from_there_on() -> None:
    found = windows(session("2.1.37", None, None, bills=(150_000, 210_000, 190_000)), "claude-code")
    assert [w.limit for w in found] == [200_000, None, None]
    assert [w.over for w in found] == [0, None, None]
    assert [w.threshold for w in found] == [167_000, None, None]


def test_what_is_recorded_goes_before_the_table() -> None:
    (window,) = windows(session("2.1.37", budget={"max_tokens": 50_000}), "claude-code")
    assert (window.limit, window.limit_source, window.threshold) == (50_000, "runtime", 17_000)
    (window,) = windows(session("2.1.37", budget={"max_tokens": 50_000}), None)
    assert (window.limit, window.limit_source) == (50_000, "recorded")


def test_a_recorded_line_goes_before_the_rule() -> None:
    told = {"ctxctl": {"compacts_at": 41_000, "compacts_by": "auto_compact_limit"}}
    (window,) = windows(session("2.1.37", budget={"max_tokens": 50_000, "metadata": told}), "claude-code")
    assert (window.threshold, window.threshold_source) == (41_000, "auto_compact_limit")
    told["ctxctl"].pop("compacts_by")
    (window,) = windows(session("2.1.37", budget={"metadata": told}), "claude-code")
    assert (window.threshold, window.limit) == (41_000, 200_000)


def test_an_unknown_model_has_a_note_that_says_why() -> None:
    (window,) = windows(session(None, model="nobody-s-model"), "codex")
    assert (window.limit, window.limit_source, window.threshold) == (None, None, None)
    assert window.limit_note == "Unknown: no provider lists it."


def test_the_settings_say_what_the_table_does_not() -> None:
    own = {"nobody-s-model": {"window": 64_000}}
    (window,) = windows(session(None, model="nobody-s-model"), "goose", own)
    assert (window.limit, window.threshold) == (64_000, 51_200)


@pytest.mark.parametrize(
    ("budget", "imported", "source"),
    [
        (Budget(max_tokens=5), True, "runtime"),
        (Budget(max_input=5), False, "recorded"),
        (Budget(reserved_tokens=5, max_items=3), True, None),
    ],
)
def test_who_says_a_budget(budget: Budget, imported: bool, source: str | None) -> None:
    assert source_of(budget, imported=imported) == source


def test_a_supposed_window_has_no_note_of_the_table_and_a_supposed_reserve_leaves_it() -> None:
    table = CataloguedModel(Limits(200, None, None), "of a table")

    def held(**supposed: int) -> InForce:
        rules: Any = SimpleNamespace(
            limits=Limits(**supposed), catalogue=lambda *_: table, imported=False, compacts_at=None
        )
        return limits_in_force(None, "m", None, rules)

    assert (held().limits, held().source, held().note) == (Limits(200), "catalogue", "of a table")
    for supposed in ({"window": 90}, {"max_input": 90}):
        found = held(**supposed)
        assert (found.limits.cap, found.source, found.note) == (90, "supposed", None)
    found = held(reserve=50)
    assert (found.limits.cap, found.source, found.note) == (150, "catalogue", "of a table")
