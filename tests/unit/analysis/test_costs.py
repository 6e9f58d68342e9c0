"""What a session cost: worked by hand, and laws over a real trace."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from ctxctl.analysis.costs import Costs, step_costs
from ctxctl.cli.main import run
from ctxctl.model.money import Money, Rates, Tokens, priced
from ctxctl.session import Inspector
from ctxctl.tokens.catalogue.rates import RateBook
from tests.oracle.build import Event, assembly, at, event, inject, item, lines, update

DEMO = Path("traces/coding-agent.jsonl")
OWN = {
    "mine": {
        "window": 1000,
        "input_price": 10,
        "output_price": 50,
        "cache_read_price": 1,
        "cache_write_price": 12.5,
    }
}


def usage(tokens: int, model: str = "mine", cached: int = 0, written: int = 0, output: int = 0) -> Event:
    told = {"cached_tokens": cached, "cache_write_tokens": written, "output_tokens": output}
    return event("ctxctl.usage.reported", {"model": model, "input_tokens": tokens, **told})


def spend(path: Path, by: str = "item", calibration: str = "none") -> tuple[Costs, list]:  # type: ignore[type-arg]
    with Inspector.open(path, calibration=calibration) as inspector:
        costs = Costs(RateBook(OWN), lambda p: getattr(p, by))
        return costs, list(step_costs(inspector, costs))


def test_a_request_is_priced_by_how_its_tokens_are_billed() -> None:
    rates = Rates(Decimal(10), Decimal(50), Decimal(1), Decimal("12.5"))
    money = priced(Tokens(100, 2000, 40, 10), rates)
    assert money == Money(Decimal("0.001"), Decimal("0.002"), Decimal("0.0005"), Decimal("0.0005"))
    assert money.total == Decimal("0.004")


def test_a_rate_that_is_needed_and_not_known_leaves_no_guess() -> None:
    assert priced(Tokens(cached=1), Rates(input=Decimal(1))) is None
    assert priced(Tokens(input=1), Rates(input=Decimal(1))) == Money(input=Decimal("0.000001"))


def test_by_hand(tmp_path: Path) -> None:
    """Two requests: 8 + 4 tokens counted; the second reads the first's from the cache."""
    path = tmp_path / "t.jsonl"
    first = [item("a", "one two three four five six seven eight"), assembly("w1", ["a"]), inject("w1")]
    second = [item("b", "red green blue black"), assembly("w2", ["a", "b"]), inject("w2")]
    bills = [
        usage(100, cached=0, written=100, output=10),
        usage(150, cached=100, written=0, output=0),
    ]
    path.write_bytes(lines(at("1", "1", *first, bills[0]) + at("1", "2", *second, bills[1])))
    costs, steps = spend(path)
    assert [s.billed_tokens for s in steps] == [Tokens(0, 0, 100, 10), Tokens(50, 100, 0, 0)]
    assert steps[0].billed == Money(written=Decimal("0.00125"), output=Decimal("0.0005"))
    assert steps[1].billed == Money(input=Decimal("0.0005"), cached=Decimal("0.0001"))
    # Our 12 tokens with the bill's share: 8 cached, 4 not.
    assert steps[1].counted_tokens == Tokens(4, 8, 0, 0)
    spent = {s.name: s.money for s in costs.spent()}
    # What is not recorded comes first: 92 written; then 100 of its 138 read, the rest plain as all else.
    hidden = Decimal("12.5") * 92 + 100 + Decimal(10) * 38
    assert spent["(not recorded)"] == hidden / 1_000_000
    assert spent["a"] == (Decimal("12.5") * 8 + Decimal(10) * 8) / 1_000_000
    assert spent["b"] == Decimal(40) / 1_000_000
    assert sum(spent.values()) == costs.billed.context
    assert costs.breaks == 0


def test_where_more_is_counted_than_billed_each_item_gets_its_share(tmp_path: Path) -> None:
    """12 + 4 + 4 tokens are counted and 10 billed, 6 of them read: half a token each, the last ones too."""
    path = tmp_path / "t.jsonl"
    texts = {
        "a": "one two three four five six seven eight nine ten eleven twelve",
        "b": "red green blue black",
    }
    held = [*(item(name, text) for name, text in texts.items()), item("c", "up down left right")]
    path.write_bytes(
        lines(at("1", "1", *held, assembly("w1", ["a", "b", "c"]), inject("w1"), usage(10, cached=6)))
    )
    costs, _ = spend(path)
    spent = {s.name: (s.tokens, s.money) for s in costs.spent()}
    millionth = Decimal(1) / 1_000_000
    assert spent == {"a": (12, 6 * millionth), "b": (4, 20 * millionth), "c": (4, 20 * millionth)}
    assert sum(money for _, money in spent.values()) == costs.billed.context


def test_what_nobody_billed_and_nothing_tells_the_size_of_is_not_priced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A request before the first bill of its thread may hold anything; one after it has an expected size."""
    path = tmp_path / "t.jsonl"
    unbilled = event("ctxctl.usage.reported", {"model": "gpt-5"})
    steps = [
        [item("a", "one two three four"), assembly("w1", ["a"]), inject("w1"), unbilled],
        [assembly("w2", ["a"]), inject("w2"), usage(1000, model="gpt-5")],
        [assembly("w3", ["a"]), inject("w3"), unbilled],
    ]
    path.write_bytes(lines([e for n, events in enumerate(steps, 1) for e in at("1", str(n), *events)]))
    costs, (first, billed, last) = spend(path, calibration="shipped")
    assert (first.is_sized, billed.is_sized, last.is_sized) == (False, True, True)
    assert (costs.steps, costs.unreported, costs.unsized, costs.unsized_tokens) == (3, 2, 1, 4)
    assert costs.at_least
    assert costs.sent_tokens.context == 2000
    assert costs.sent == billed.sent.plus(last.sent)
    run(["cost", "--json", str(path)])
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    each = [line["sent"] is None for line in told if line["type"] == "step_cost"]
    assert each == [True, False, False]
    assert told[-1]["unsized_steps"] == 1
    assert told[-1]["lower_bound"] is True
    run(["cost", str(path)])
    said = " ".join(capsys.readouterr().out.split())
    assert "1 request without a bill at the expected size" in said
    assert "not known what 1 request cost: no bill tells how much was sent besides the 4 tokens" in said
    run(["replay", "--plain", str(path)])
    assert "of unknown size" in capsys.readouterr().out


def test_a_session_without_bills_has_no_cost_in_lists(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.jsonl"
    unbilled = event("ctxctl.usage.reported", {"model": "gpt-5"})
    held = [item("a", "one two three four"), assembly("w1", ["a"]), inject("w1"), unbilled]
    path.write_bytes(lines(at("1", "1", *held)))
    run(["replay", "--plain", str(path)])
    said = " ".join(capsys.readouterr().out.split())
    assert "cost not known: no bill tells how much was sent besides the recorded content" in said
    assert "$" not in said
    run(["cost", "--json", str(path)])
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["sent"], told["sent_tokens"], told["unsized_steps"]) == (None, None, 1)
    assert told["counted"]["total"] == "0.000005"
    run(["cost", "--by", "session", str(path)])
    (row,) = (line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("t.jsonl"))
    assert row[-5:] == ["1", "≥4", "-", "-", "-"]


def test_a_broken_prefix_costs_what_it_could_have_been_read_for(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    first = [
        item("a", "one two three four"),
        item("b", "red green"),
        assembly("w1", ["a", "b"]),
        inject("w1"),
    ]
    second = [update("a", "five six seven eight"), assembly("w2", ["a", "b"]), inject("w2")]
    bill = usage(60, cached=0, written=0, output=0)
    path.write_bytes(lines(at("1", "1", *first, bill) + at("1", "2", *second, bill)))
    _, steps = spend(path)
    assert steps[0].broken is None
    # 2 tokens of the request before stand behind the change, at 10 - 1 dollars a million.
    assert steps[1].broken == Decimal(9) * 2 / 1_000_000


def broken(tmp_path: Path, second: list[Event], bill: Event) -> Decimal | None:
    """What the break in the second of two requests cost; the first holds 8 tokens."""
    path = tmp_path / "t.jsonl"
    first = [
        item("a", "one two three four"),
        item("b", "red green"),
        item("c", "up down"),
        assembly("w1", ["a", "b", "c"]),
        inject("w1"),
    ]
    path.write_bytes(lines(at("1", "1", *first, usage(8)) + at("1", "2", *second, bill)))
    _, steps = spend(path)
    return steps[1].broken  # type: ignore[no-any-return]


def test_what_is_not_sent_again_is_no_cost_of_a_break(tmp_path: Path) -> None:
    second = [assembly("w2", ["c"]), inject("w2")]
    assert broken(tmp_path, second, usage(60)) == Decimal(9) * 2 / 1_000_000
    second = [item("d", "six seven"), assembly("w2", ["d"]), inject("w2")]
    assert broken(tmp_path, second, usage(60)) is None


def test_a_break_costs_no_more_than_the_bill_has_beside_the_cache(tmp_path: Path) -> None:
    second = [item("d", "six seven"), assembly("w2", ["d", "a", "b", "c"]), inject("w2")]
    assert broken(tmp_path, second, usage(10)) == Decimal(9) * 8 / 1_000_000
    # 5 tokens were not read from the cache, and 2 are new.
    assert broken(tmp_path, second, usage(10, cached=5)) == Decimal(9) * 3 / 1_000_000
    assert broken(tmp_path, second, usage(10, cached=8)) is None


@pytest.mark.parametrize("by", ["item", "kind", "segment"])
def test_expenses_add_up_to_the_context_exactly(by: str) -> None:
    costs, steps = spend(DEMO, by)
    assert costs.sent.context > costs.counted.context > 0
    assert sum(s.money for s in costs.spent()) == costs.sent.context
    assert sum(s.tokens for s in costs.spent()) == costs.sent_tokens.context
    assert costs.counted.total == sum(s.counted.total for s in steps)
    assert costs.billed.total == sum(s.billed.total for s in steps)


def test_a_model_without_a_price_is_said_and_not_guessed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.jsonl"
    steps = [item("a", "one two"), assembly("w1", ["a"]), inject("w1"), usage(9, model="nobody-knows")]
    path.write_bytes(lines(at("1", "1", *steps)))
    assert run(["cost", str(path)]) == 0
    out = capsys.readouterr().out
    assert "not priced; 2 input" in out
    assert "1 step: nobody-knows: no price is known" in out


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["cost", str(DEMO), "--json", "--by", "kind"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    whole = rows[-1]
    assert whole["type"] == "cost"
    billed = [Decimal(row["billed"]["total"]) for row in rows if row["type"] == "step_cost"]
    assert sum(billed) == Decimal(whole["billed"]["total"])
    assert len(billed) == whole["steps"]


def test_a_grouping_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["cost", str(DEMO), "--by", "colour"]) == 2
    assert "kind, item, source, segment" in capsys.readouterr().err


def test_what_the_bill_does_not_say_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.jsonl"
    bills = [
        event("ctxctl.usage.reported", {"model": "gpt-5", "input_tokens": 9}),
        event(
            "ctxctl.usage.reported",
            {"model": "gpt-5", "input_tokens": 9, "cached_tokens": 99, "output_tokens": 1},
        ),
    ]
    events = []
    for n, bill in enumerate(bills, 1):
        events += at("1", str(n), item("a", "one two"), assembly(f"w{n}", ["a"]), inject(f"w{n}"), bill)
    path.write_bytes(lines(events))
    assert run(["cost", str(path), "--json"]) == 0
    whole = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert sorted(whole["assumed"].values()) == [1, 1, 1]
    assert whole["billed_tokens"] == {"input": 18, "cached": 0, "written": 0, "output": 1, "written_1h": 0}
    assert run(["cost", str(path)]) == 0
    assert "1 step: no output is recorded: none priced" in " ".join(capsys.readouterr().out.split())


def test_hours_are_a_part_of_their_own_in_every_sum(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    told = {"model": "claude-opus-4-5", "provider": "anthropic", "input_tokens": 1000, "output_tokens": 0}
    bill = event(
        "ctxctl.usage.reported",
        {**told, "cached_tokens": 0, "cache_write_tokens": 900, "cache_write_1h_tokens": 600},
    )
    steps = [item("a", "one two three four five"), assembly("w1", ["a"]), inject("w1"), bill]
    path.write_bytes(lines(at("1", "1", *steps)))
    costs, rows = spend(path)
    assert rows[0].billed_tokens == Tokens(100, 0, 300, 0, 600)
    # 100 at 5, 300 at 6.25, 600 at 10 dollars a million.
    assert costs.billed.total == Decimal("0.008375")
    assert costs.billed.written_1h == Decimal("0.006")
    counted = rows[0].counted_tokens
    assert counted == Tokens(1, 0, 1, 0, 3)
    assert sum(s.money for s in costs.spent()) == costs.sent.context == costs.billed.context


def test_an_hour_without_a_known_rate_is_not_priced(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    told = {"model": "mine", "input_tokens": 1000, "output_tokens": 0, "cached_tokens": 0}
    bill = event("ctxctl.usage.reported", {**told, "cache_write_tokens": 900, "cache_write_1h_tokens": 600})
    steps = [item("a", "one two three four five six"), assembly("w1", ["a"]), inject("w1"), bill]
    path.write_bytes(lines(at("1", "1", *steps)))
    costs, rows = spend(path)
    assert rows[0].billed is None
    assert costs.unpriced == {"mine: a rate that it needs is not known": 1}


def test_a_bill_of_a_model_without_a_price_is_unpriced_also_where_nothing_is_recorded(tmp_path: Path) -> None:
    """What nothing is recorded of costs nothing at any rate, and what was billed for it is not known."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(lines(at("1", "1", inject(), usage(51, model="nobody-knows"))))
    costs, _ = spend(path)
    assert costs.sources == {}
    assert list(costs.unpriced.values()) == [1]


def test_what_could_not_be_counted_is_no_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.jsonl"
    hidden, partly = item("r", kind="reasoning"), item("b", kind="user_message")
    said = item("a", "one two three four " * 100, kind="user_message")
    shown = assembly("w1", ["r", "a", "b"])
    path.write_bytes(lines(at("1", "1", hidden, said, partly, shown, inject("w1"), usage(1000, "gpt-5"))))
    run(["cost", str(path)])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["reasoning", "1", "-", "-", "-"] in rows
    assert ["user_message", "1", "≥401", "≥$0.0005", "40.1%"] in rows
    run(["cost", "--json", str(path)])
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    spent = [line for line in told if line["type"] == "spent"]
    found = {one["name"]: (one["tokens"], one["cost"], one["lower_bound"]) for one in spent}
    assert found["reasoning"] == (None, None, True)
    assert found["user_message"] == (401, "0.00050125", True)
    assert found["(not recorded)"] == (599, "0.00074875", False)
