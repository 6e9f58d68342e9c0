"""What a runtime says that its requests cost: read under its names, kept apart, and laid beside the table."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ctxctl.analysis.costs import Costs, step_costs
from ctxctl.cli.main import run
from ctxctl.importers import registry
from ctxctl.model.billed import dollars, fields_of
from ctxctl.report.cost_sums import stated_lines, stated_object
from ctxctl.session import Inspector
from ctxctl.tokens.catalogue.rates import RateBook
from ctxctl.trace.source import Source, open_source
from tests.oracle.build import Event, assembly, at, event, inject, item, lines

OWN = {"mine": {"window": 1000, "input_price": 10, "output_price": 50}}


@pytest.mark.parametrize(
    ("usage", "said"),
    [
        ({"cost": 0.0125}, "0.0125"),  # OpenRouter
        ({"cost": {"input": 0.001, "output": 0.002, "total": 0.003}}, "0.003"),  # pi
        ({"cost_usd": "0.4724725"}, "0.4724725"),  # Amplifier
        ({"response_cost": 1.5e-7}, "0.00000015"),  # LiteLLM
        ({"cost": 0}, "0"),
        ({"cost": {"input": 0.001}}, None),
        ({"cost": "cheap"}, None),
        ({"cost": -1}, None),
        ({"cost": float("nan")}, None),
        ({"cost": True}, None),
        ({"cost": "9" * 200}, None),
        ({"cost": 10**7}, None),
        ({"input_tokens": 12}, None),
    ],
)
def test_the_names_and_forms_of_a_stated_cost(usage: dict[str, Any], said: str | None) -> None:
    assert fields_of(usage).get("stated_usd") == said


def test_no_amount_is_made_of_what_is_none() -> None:
    assert [dollars(value) for value in (None, [], {}, "", "inf", "1e999", {"total": {"total": 1}})] == [
        None
    ] * 7


def usage(tokens: int, model: str = "mine", **more: str) -> Event:
    return event(
        "ctxctl.usage.reported", {"model": model, "input_tokens": tokens, "output_tokens": 0, **more}
    )


def trace(path: Path, *bills: Event) -> Path:
    steps = []
    for number, bill in enumerate(bills, 1):
        refs = [f"i{n}" for n in range(1, number + 1)]
        steps += at(
            1, number, item(f"i{number}", "some words"), assembly(f"w{number}", refs), inject(f"w{number}")
        )
        steps += at(1, number, bill)
    path.write_bytes(lines(steps))
    return path


def sums(path: Path) -> Costs:
    with Inspector.open(path) as inspector:
        costs = Costs(RateBook(OWN))
        list(step_costs(inspector, costs))
        return costs


def test_the_same_requests_are_compared(tmp_path: Path) -> None:
    """1 000 tokens are $0.01 by the table; the third has no stated cost and enters no side."""
    path = trace(
        tmp_path / "t.jsonl", usage(1000, stated_usd="0.011"), usage(2000, stated_usd="0.02"), usage(500)
    )
    stated = sums(path).stated
    assert (stated.requests, stated.usd, stated.table) == (2, Decimal("0.031"), Decimal("0.03"))
    (line,) = stated_lines(stated, 3)
    assert line == (
        "$0.0310 by the runtime's own account, for 2 of 3 steps;"
        " the table's prices come to $0.0300 for the same (stated +3.3%)"
    )


def test_what_the_table_does_not_know_is_said(tmp_path: Path) -> None:
    path = trace(
        tmp_path / "t.jsonl", usage(1000, stated_usd="0.01"), usage(1000, "nobody's", stated_usd="0.5")
    )
    (line,) = stated_lines(sums(path).stated, 2)
    assert line.endswith("the table's prices come to $0.0100, without 1 that have none")
    alone = trace(tmp_path / "u.jsonl", usage(1000, "nobody's", stated_usd="0.5"))
    (line,) = stated_lines(sums(alone).stated, 1)
    assert line.endswith("the table has no price for them")
    told = stated_object(sums(alone).stated)
    assert told is not None
    assert (told["usd"], told["table_usd"], told["unpriced_requests"]) == ("0.5", None, 1)


def test_a_running_total_is_the_last_one_and_starts_anew_where_it_falls(tmp_path: Path) -> None:
    said = ("0.01", "0.02", "0.05", "0.03", "0.04")
    path = trace(tmp_path / "t.jsonl", *(usage(1000, stated_total_usd=usd) for usd in said))
    stated = sums(path).stated
    assert (stated.requests, stated.whole) == (0, Decimal("0.09"))
    told = list(stated_lines(stated, 5))
    assert [line.partition(" by")[0] for line in told] == ["$0.0500", "$0.0400"]
    held = stated_object(stated)
    assert held is not None
    assert [(one["usd"], one["step"], one["billed_usd"]) for one in held["runs"]] == [
        ("0.05", 3, "0.03"), ("0.04", 5, "0.02"),
    ]  # fmt: skip


def test_nothing_is_said_where_nothing_states_a_cost(tmp_path: Path) -> None:
    stated = sums(trace(tmp_path / "t.jsonl", usage(1000))).stated
    assert stated_object(stated) is None
    assert not list(stated_lines(stated, 1))


def test_a_stream_says_what_its_run_cost() -> None:
    found = [
        path
        for path in sorted(Path("fixtures/claude_stream_json").rglob("*.jsonl"))
        if b'"total_cost_usd"' in path.read_bytes()
    ]
    assert found
    for path in found:
        with open_source(path) as source:
            form = registry.detect(source)
            assert form is not None
            events = list(registry.capture_events(form, source, lambda _: None))
        ends = [e["data"]["totals"] for e in events if e["event_type"] == "ctxctl.total.stated"]
        said = [total["usd"] for totals in ends for total in totals if "usd" in total]
        # A run that nobody answered costs 0 and has no request to stand with.
        raw = re.findall(r'"total_cost_usd": *([0-9.]*[1-9][0-9]*)', path.read_text())
        assert said == [dollars(one) for one in raw]


def test_copilots_premium_requests_are_no_dollars() -> None:
    path = Path("fixtures/copilot_cli/resumed.jsonl")
    lines_ = [json.loads(line) for line in path.read_text().splitlines()]
    told = [line["data"]["usage"] for line in lines_ if line["type"] == "session.usage_record"]
    assert told
    for usage_ in told:
        usage_["cost"] = 1
    data = "\n".join(json.dumps(line) for line in lines_).encode()
    form = registry.of_head(data)
    assert form is not None
    events = list(registry.capture_events(form, Source.from_bytes("events.jsonl", data), lambda _: None))
    bills = [e["data"] for e in events if e["event_type"] == "ctxctl.usage.reported"]
    assert len(bills) >= len(told)
    assert not [bill for bill in bills if "stated_usd" in bill]


def test_the_command_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = trace(tmp_path / "t.jsonl", usage(1000, "gpt-4o", stated_usd="0.01"))
    assert run(["cost", str(path)]) == 0
    assert "stated      $0.0100 by the runtime's own account" in capsys.readouterr().out
    assert run(["cost", str(path), "--json", "--steps"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert next(one for one in told if one["type"] == "step_cost")["stated"] == "0.01"
    assert next(one for one in told if one["type"] == "cost")["stated"]["usd"] == "0.01"
