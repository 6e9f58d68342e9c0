"""Sibyl's own code on random packs, and what ctxctl makes of the same calls: they agree byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxctl.model.results import Step
from ctxctl.plugins.sibyl.policy import packs
from ctxctl.session import Inspector
from tests.frameworks.sibyl_packs import VERSION, called, lines

ENVIRONMENTS = ("sibyl", "sibyl-1.2")
PACKS = 1000
AT_ONCE = 50
HELD = ("selection", "budget", "assembly")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """By which budget and which version the policy worked out each markdown."""
    seen: list[Any] = []
    real = packs._told

    def spied(recorded: Any) -> Any:
        seen.append(real(recorded))
        return seen[-1]

    monkeypatch.setattr(packs, "_told", spied)
    return seen


@pytest.mark.parametrize("first", range(0, PACKS, AT_ONCE))
def test_packs_of_its_own_code(first: int, tmp_path: Path, told: list[Any]) -> None:
    calls = {number: called(number) for number in range(first, first + AT_ONCE)}
    path = tmp_path / "calls.jsonl"
    path.write_text(
        "".join(line for n, (given, payload, _) in calls.items() for line in lines(n, given, payload))
    )
    with Inspector.open(str(path), policy="sibyl") as inspector:
        steps = [step for step in inspector.replay() if isinstance(step, Step)]
        held = list(told)
        assert not inspector.problems
        by_call = {int(step.step_id or -1): (at, step) for at, step in enumerate(steps)}
        assert sorted(by_call) == sorted(calls)
        for number, (given, payload, pack) in calls.items():
            at, step = by_call[number]
            verdicts = {name: step.stages[name].verdict for name in HELD}
            assert verdicts == dict.fromkeys(HELD, "matches"), (number, step.stages)
            assert inspector.assembled(at) == payload["markdown"], number
            limits(step, given, pack)
            left_out(step, payload)
    assert len(held) == AT_ONCE
    assert None not in held
    named = {one.version.name for one in held}
    assert named <= ({"1.2"} if VERSION.startswith("1.2") else {"1.4.2"})
    wanted = [given.get("markdown_token_budget", 4000) for given, _, _ in calls.values()]
    assert sorted(map(str, (one.tokens for one in held))) == sorted(map(str, wanted))


def limits(step: Step, given: dict[str, Any], pack: Any) -> None:
    """The tool's limits, and its defaults where the call named none."""
    facts = step.stages["budget"].facts
    most = {"wake": 8, "recall": 24, "deep_search": 50}[given.get("layer", "recall")]
    assert facts["max_items"] == max(1, min(given.get("limit", 24), most))
    assert facts["actual_items"] == pack.total_items <= facts["max_items"]
    tokens = given.get("markdown_token_budget", 4000)
    assert facts.get("max_chars") == (None if tokens is None else max(400, tokens * 4))
    assert "max_tokens" not in facts
    assert step.window.limit is None, "a markdown's characters are no window"


def left_out(step: Step, payload: dict[str, Any]) -> None:
    """What did not make it into the markdown, and what was cut, as the receipt says where there is one."""
    omitted = {change.item for change in step.changes if change.status == "omitted"}
    cut = {change.item for change in step.changes if "truncated" in change.flags}
    rows = [item for section in payload["sections"] for item in section["items"]]
    receipt = payload.get("render_receipt")
    if receipt is None:
        assert omitted == {row["id"] for row in rows if f"`{row['id']}`" not in payload["markdown"]}
        return
    states = {row["record_id"]: row["state"] for row in receipt["dispositions"]}
    assert len(states) == len(rows)
    assert omitted == {name for name, state in states.items() if state == "omitted"}
    assert cut == {name for name, state in states.items() if state == "trimmed"}


def test_a_byte_that_is_not_its_own_code_s_differs(tmp_path: Path) -> None:
    given, payload, _ = called(7)
    payload["markdown"] = payload["markdown"].replace("Layer: ", "Layer:  ", 1)
    path = tmp_path / "calls.jsonl"
    path.write_text("".join(lines(7, given, payload)))
    with Inspector.open(str(path), policy="sibyl") as inspector:
        (step,) = [step for step in inspector.replay() if isinstance(step, Step)]
        assert step.stages["assembly"].verdict == "differs"


def test_the_packs_are_of_all_kinds() -> None:
    made = [called(number) for number in range(200)]
    texts = [payload["markdown"] for _, payload, _ in made]
    assert sum("_Trimmed to ~" in text for text in texts) > 20
    assert sum("_Hint: " in text for text in texts) > 50
    assert sum("...\n" in text for text in texts) > 50
    assert sum(pack.total_items == 0 for _, _, pack in made) > 5
    assert sum("markdown_token_budget" not in given for given, _, _ in made) > 50
    assert sum("limit" not in given for given, _, _ in made) > 50
    assert sum(pack.total_items > 20 for _, _, pack in made) > 5
    later = (
        sum("````markdown\n" in text for text in texts),
        sum("trajectory outcome" in text for text in texts),
    )
    assert all(count > 5 for count in later) or VERSION.startswith("1.2")
