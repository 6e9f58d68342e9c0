"""Bills that cannot be true: what is doubted and what is not, and how it is shown and priced."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from ctxctl.analysis.costs import Costs, step_costs
from ctxctl.cli.main import run
from ctxctl.engine.sizes.bill_doubts import (
    Answer,
    BillBefore,
    Billed,
    believed_output,
    doubts,
    input_is_sound,
)
from ctxctl.ingest.build import Json, Maker
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.parts import Part
from ctxctl.model.cost_sums import PartSum
from ctxctl.model.results import Doubt, Step, UsageView
from ctxctl.session import Inspector
from ctxctl.tokens.catalogue.rates import RateBook

EACH = Path("fixtures/doubts/each-kind.jsonl")


def why(
    bill: Billed, counted: int | None = None, answer: Answer | None = None, before: BillBefore | None = None
) -> list[tuple[str, str]]:
    return [(doubt.part, doubt.why) for doubt in doubts(bill, counted, answer, before)]


@pytest.mark.parametrize(
    ("reported", "answer", "expected"),
    [
        (0, Answer(1), "zero"),
        (0, Answer(0, 50), None),  # reasoning alone: what is billed of it is not recorded
        (5, Answer(1987), "below_content"),
        (49, Answer(100), "below_content"),
        (50, Answer(100), None),
        (3, Answer(7), None),  # a share of a handful of tokens says nothing
        (2, Answer(7), "below_content"),
        (60, Answer(70, 900), None),  # summed-up reasoning counts for nothing
        (9000, Answer(10), None),  # hidden reasoning
        (5, None, None),
    ],
)
def test_an_output_is_held_against_what_is_said(
    reported: int, answer: Answer | None, expected: str | None
) -> None:
    found = why(Billed(1000, output=reported), 900, answer)
    assert found == ([] if expected is None else [("output", expected)])


@pytest.mark.parametrize(
    ("reported", "counted", "expected"),
    [
        (0, 5, "zero"),
        (0, 0, None),
        (399, 1000, "below_content"),
        (400, 1000, None),
        (2, 6, None),
        (40_000, 117, None),
        (10, None, None),
    ],
)
def test_an_input_is_held_against_what_is_recorded(
    reported: int, counted: int | None, expected: str | None
) -> None:
    assert why(Billed(reported), counted) == ([] if expected is None else [("input", expected)])


def test_the_same_bill_again_is_doubted_where_the_window_changed_by_much() -> None:
    bill, before = Billed(5000, 4000, 900, 70), BillBefore(Billed(5000, 4000, 900, 71), 3000)
    assert why(bill, 3099, Answer(60), before) == []
    assert why(bill, 3100, Answer(60), before) == [("input", "repeated")]
    assert why(bill, 2900, Answer(60), before) == [("input", "repeated")]
    assert why(bill, None, Answer(60), before) == []
    whole = BillBefore(bill, 3000)
    assert why(bill, 3100, Answer(60), whole) == [("input", "repeated"), ("output", "repeated")]


def test_an_input_is_sound_unless_it_is_less_than_recorded_or_certainly_of_another_request() -> None:
    zero, again = Doubt("input", "zero", 0, 9), Doubt("input", "repeated", 9, 9)
    output, whole = Doubt("output", "below_content", 1, 9), Doubt("output", "repeated", 9, 9)
    assert input_is_sound(())
    assert input_is_sound((output,))
    assert input_is_sound((again,))
    assert not input_is_sound((zero,))
    assert not input_is_sound((again, whole))


def test_an_output_that_cannot_be_true_is_taken_as_counted() -> None:
    usage = UsageView(100, None, 3, 90, -10, counted_output=40)
    assert believed_output(usage) == 3
    doubted = UsageView(
        100, None, 3, 90, -10, counted_output=40, doubts=(Doubt("output", "below_content", 3, 40),)
    )
    assert believed_output(doubted) == 40
    assert believed_output(None) is None


def test_each_kind_in_a_trace() -> None:
    with Inspector.open(EACH) as inspector:
        steps = [found for found in inspector.replay() if isinstance(found, Step)]
        assert inspector.problems == []
    told = [[(d.part, d.why) for d in s.usage.doubts] for s in steps if s.usage is not None]
    assert told == [
        [],
        [("output", "below_content")],
        [("input", "zero"), ("output", "zero")],
        [("input", "below_content")],
        [],
        [("input", "repeated")],
        [("input", "repeated"), ("output", "repeated")],
        [],
    ]
    counted = [s.usage.counted_output for s in steps if s.usage is not None]
    assert counted[0] == 7
    assert counted[-1] is None, "no answer is recorded: nothing is known, not nothing said"


def test_what_is_doubted_is_priced_as_counted_and_told() -> None:
    own = {"claude-sonnet-4-5": {"window": 9, "input_price": 1, "output_price": 10, "cache_read_price": 0.1}}
    with Inspector.open(EACH) as inspector:
        costs = Costs(RateBook(own))
        found = list(step_costs(inspector, costs))
    assert found[1].billed_tokens is not None
    assert found[1].billed_tokens.output == 2
    assert found[1].believed_tokens == found[1].billed_tokens._replace(output=168)
    assert found[1].counted_tokens.output == 168
    assert found[3].believed_tokens is not None
    assert found[3].believed_tokens.input == found[3].step.window.used == 360
    assert found[4].believed == found[4].billed
    assert found[5].believed == found[5].billed, "an input that alone is the same again stays as billed"
    sums = costs.doubted
    assert sums.requests == 4
    assert sums.repeated == 1
    assert sums.parts["output"] == PartSum(3, 8, 344)
    assert sums.parts["input"] == PartSum(3, 1903, 1463)
    assert sums.money.output - costs.billed.output == Decimal(10) * (344 - 8) / 1_000_000


def test_cost_says_what_cannot_be_true(capsys: pytest.CaptureFixture[str]) -> None:
    plain = ["--calibration", "none"]
    assert run(["cost", str(EACH), "--steps", *plain]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "output of 3 requests cannot be true: 8 reported, 344 counted; priced as counted" in out
    assert "≈168 ≈$0.0030" in out
    assert run(["cost", str(EACH), "--json", *plain]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    steps = [line for line in told if line["type"] == "step_cost"]
    assert "doubts" not in steps[0]
    assert steps[1]["priced_as_counted"] == ["output"]
    assert steps[1]["doubts"][0]["why"] == "below_content"
    assert steps[5]["priced_as_counted"] == []
    sums = next(line for line in told if line["type"] == "cost")
    assert sums["doubted"]["parts"]["output"] == {"requests": 3, "reported": 8, "counted": 344}
    assert Decimal(sums["doubted"]["believed"]["total"]) > Decimal(sums["billed"]["total"])


def test_find_and_replay_tell_of_doubts(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["find", str(EACH), "doubt", "--count"]) == 0
    assert capsys.readouterr().out.startswith("5")
    assert run(["find", str(EACH), "answered>100", "--count"]) == 0
    assert capsys.readouterr().out.startswith("2"), "an answer is as long as it is counted"
    assert run(["show", f"{EACH}@1.2"]) == 0
    assert "output of 2 cannot be true" in " ".join(capsys.readouterr().out.split())


def test_a_conversation_tells_an_answer_behind_its_bill_and_without_a_step() -> None:
    out: list[Json] = []
    talk = Conversation(Maker("test", "t"), out, session="s")
    talk.append(Part("user_message", "hello", "user", key="u"))
    talk.request("one")
    talk.append(Part("assistant_message", "hi", "assistant", key="a"))
    talk.append(Part("tool_result", "ran", "tool", key="r"), Part("tool_call", "late", "assistant", key="c"))
    talk.usage({"input_tokens": 9})
    talk.request("two")
    told = [(e["event_type"].rpartition(".")[2], e["data"].get("item_id"), e.get("step_id")) for e in out]
    assert told == [
        ("added", "u", "one"),
        ("created", None, "one"),
        ("applied", None, "one"),
        ("reported", None, "one"),
        ("added", "a", None),
        ("added", "r", "two"),
        ("added", "c", "two"),
        ("created", None, "two"),
        ("applied", None, "two"),
    ]
