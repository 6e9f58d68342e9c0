"""Cache misses on every surface, from a trace in which one request came seven minutes late."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from ctxctl.analysis.costs import Costs, step_costs
from ctxctl.cli.main import run
from ctxctl.model.cost_sums import MissSum
from ctxctl.model.missed import miss_reason
from ctxctl.model.money import Rates, Tokens
from ctxctl.model.results import Miss, Step
from ctxctl.report.bill_notes import miss_text
from ctxctl.session import Inspector
from ctxctl.session.priced_bills import miss_price
from ctxctl.tokens.catalogue.rates import RateBook

ROOT = Path(__file__).resolve().parents[3]
LATE = ROOT / "fixtures" / "lint" / "CTX028-positive.jsonl"
"""30,000 tokens, 29,990 of them written; 12 minutes later 30,100 and nothing read, all but 10 written."""
IN_TIME = ROOT / "fixtures" / "lint" / "CTX028-negative.jsonl"
WORDS = "↯ missed 29,990 (expired: idle 12 min, kept for 5 min)"
MISSED = Decimal("0.1034655")
"""Sonnet 4.5: 29,990 tokens written at $3.75 a million that could have been read at $0.30."""


def steps(path: Path) -> list[Step]:
    with Inspector.open(path) as inspector:
        return [step for step in inspector.replay() if isinstance(step, Step)]


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(list(arguments)) == 0
    return " ".join(capsys.readouterr().out.split())


def test_the_miss_is_on_its_step_and_on_no_other() -> None:
    first, second = steps(LATE)
    assert first.cache.miss is None
    assert second.cache.miss == Miss(29_990, 0, 29_990, "expired", None, 724.0, 300)
    assert all(step.cache.miss is None for step in steps(IN_TIME))


def test_it_is_the_same_after_a_jump() -> None:
    with Inspector.open(LATE) as inspector:
        list(inspector.replay())
        assert inspector.step(1).cache.miss == steps(LATE)[1].cache.miss


def test_cost(capsys: pytest.CaptureFixture[str]) -> None:
    with Inspector.open(LATE) as inspector:
        costs = Costs(RateBook())
        rows = list(step_costs(inspector, costs))
    assert [row.missed for row in rows] == [None, MISSED]
    assert costs.misses.by_cause == {"expired": MissSum(1, 29_990, MISSED, 0)}
    text = said(capsys, "cost", str(LATE))
    assert "misses $0.1035 for 29,990 tokens that a cache could have returned, but did not" in text
    assert "cache misses by cause: expired 1, $0.1035; derived" in text
    assert "29,990 expired $0.1035" in said(capsys, "cost", str(LATE), "--steps")
    assert run(["cost", str(LATE), "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    by_step = [line["miss"] for line in lines if line["type"] == "step_cost"]
    assert by_step == [None, {"cause": "expired", "tokens": 29_990, "usd": "0.1034655"}]
    sums = {"count": 1, "tokens": 29_990, "usd": "0.1034655", "unpriced": 0}
    assert lines[-1]["cache_misses"] == {**sums, "by_cause": {"expired": sums}}


def test_reports_say_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert WORDS in said(capsys, "replay", str(LATE), "--steps")
    assert WORDS in said(capsys, "find", str(LATE), "miss:expired")
    assert "expired 1, $0.1035" in said(capsys, "export", str(LATE), "--format", "markdown")
    assert ",29990,expired," in said(capsys, "export", str(LATE), "--format", "csv")
    assert '"ctxctl.cache.miss_cause"' in said(capsys, "export", str(LATE), "--format", "otlp")
    assert WORDS not in said(capsys, "replay", str(IN_TIME), "--steps")


def test_the_json_contract(capsys: pytest.CaptureFixture[str]) -> None:
    from jsonschema import Draft202012Validator

    schema = json.loads((ROOT / "docs" / "json.schema.json").read_text())
    assert run(["replay", str(LATE), "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    told = [line["cache"]["miss"] for line in lines if line["type"] == "step"]
    assert told[0] is None
    assert list(told[1]) == schema["$defs"]["miss"]["required"]
    for line in lines:
        Draft202012Validator(schema).validate(line)


@pytest.mark.parametrize("query", ["miss", "is:miss", "miss:expired", "missed>=29990"])
def test_queries(query: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "@2.1" in said(capsys, "find", str(LATE), query)


@pytest.mark.parametrize("query", ["miss:model", "missed>29990"])
def test_queries_that_nothing_fits(query: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["find", str(LATE), query]) in (0, 1)
    assert "0 steps of 2" in capsys.readouterr().err


def test_a_cause_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["find", str(LATE), "miss:bored"]) == 2
    assert "unexplained" in capsys.readouterr().err


def test_what_a_client_says_reaches_no_terminal_raw() -> None:
    miss = Miss(9_000, 0, 9_000, "unexplained", "\x1b[31mred" + "x" * 99, 59.5, None)
    assert "\x1b" not in miss_text(miss)
    assert len(miss_reason(miss)) < 120
    assert miss_text(miss).startswith("↯ missed 9,000 (not explained: idle 60 s, said to be ")


def test_tokens_are_taken_from_what_stands_behind_the_read_ones() -> None:
    rates = Rates(*map(Decimal, ("3", "15", "0.3", "3.75", "6")))
    miss = Miss(1_000, 0, 1_000, "model")
    bill = Tokens(input=500, cached=0, written=300, output=9, written_1h=200)
    # 200 at 6, 300 at 3.75 and 500 at 3, less 1,000 at 0.30.
    assert miss_price(miss, bill, rates) == Decimal("3525") / 1_000_000
    assert miss_price(miss, bill, rates._replace(cache_write_1h=None)) is None
    assert miss_price(miss, bill, rates._replace(cache_read=None)) is None
    assert miss_price(None, bill, rates) is None
    assert miss_price(miss, None, rates) is None
