"""What a bill holds beside its counts: how it was served and what is billed apart, and what that costs."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ctxctl.analysis.costs import Costs, step_costs
from ctxctl.analysis.request_cost import StepCost
from ctxctl.cli.main import run
from ctxctl.model.billed import fields_of
from ctxctl.model.money import Rates, Tokens, without_separate_parts
from ctxctl.model.results import Step
from ctxctl.model.terms import PLAIN, Pass, Terms, terms_of
from ctxctl.record.bills import bill_of
from ctxctl.session import Inspector
from ctxctl.tokens.catalogue.rates import RateBook
from tests.oracle.build import assembly, at, event, inject, item, lines

D = Decimal
UNNAMED = Terms(passes=(Pass("unnamed"),))


@pytest.mark.parametrize(
    ("usage", "response", "terms"),
    [
        ({"service_tier": "standard", "inference_geo": "not_available", "speed": "standard"}, {}, PLAIN),
        ({"service_tier": "batch"}, {}, Terms(service_tier="batch")),
        ({}, {"service_tier": "flex"}, Terms(service_tier="flex")),
        ({"trafficType": "ON_DEMAND"}, {}, PLAIN),
        ({"speed": "fast", "inference_geo": "us"}, {}, Terms(speed="fast", inference_geo="us")),
        (
            {
                "server_tool_use": {
                    "web_search_requests": 3,
                    "web_fetch_requests": 0,
                    "code_execution_requests": 1,
                }
            },
            {},
            Terms(units={"web_search": 3, "code_execution": 1}),
        ),
        (
            {"prompt_tokens_details": {"audio_tokens": 9}, "completion_tokens_details": {"audio_tokens": 4}},
            {},
            Terms(modalities={"audio_input": 9, "audio_output": 4}),
        ),
        (
            {
                "promptTokensDetails": [
                    {"modality": "TEXT", "tokenCount": 5},
                    {"modality": "AUDIO", "tokenCount": 7},
                ]
            },
            {"candidates": [{"groundingMetadata": {"webSearchQueries": ["a", "b"]}}]},
            Terms(modalities={"audio_input": 7}, units={"grounding_query": 2}),
        ),
        (
            {},
            {
                "output": [
                    {"type": "web_search_call", "action": {"type": "search"}},
                    {"type": "web_search_call", "action": {"type": "open_page"}},
                    {"type": "file_search_call"},
                    {"type": "message"},
                ]
            },
            Terms(units={"web_search": 1, "file_search": 1}),
        ),
        ({"server_tool_use": [1], "iterations": "x", "service_tier": 7}, [], PLAIN),
        ({"iterations": [{"type": [1]}]}, {"context_management": {"applied_edits": [[], {}]}}, UNNAMED),
    ],
)  # fmt: skip
def test_what_providers_write_is_read(usage: Any, response: Any, terms: Terms) -> None:
    assert terms_of(fields_of(usage, response)) == terms


MESSAGE = {"type": "message", "input_tokens": 180, "output_tokens": 8, "cache_read_input_tokens": 40}
COMPACTION = {"type": "compaction", "input_tokens": 100, "output_tokens": 83, "cache_read_input_tokens": 5000}
ADVISOR = {"type": "advisor_message", "model": "claude-b", "input_tokens": 900, "output_tokens": 70}
PASSES = (Pass("compaction", None, 5100, 5000, 0, 0, 83), Pass("message", None, 220, 40, 0, 0, 8))
ASKED = (Pass("advisor_message", "claude-b", 900, 0, 0, 0, 70),)


@pytest.mark.parametrize(
    ("totals", "iterations", "passes", "further", "whole", "sent"),
    [
        # The totals leave the compaction out, or hold it already: the bill is the passes in sum.
        ((180, 40, 8), [COMPACTION, MESSAGE], PASSES, (), (5320, 91), 220),
        ((280, 5040, 91), [COMPACTION, MESSAGE], PASSES, (), (5320, 91), 220),
        # They hold both passes of the model, the first alone, or the advisor's too.
        ((360, 80, 16), [MESSAGE, ADVISOR, MESSAGE], PASSES[1:] * 2, ASKED, (440, 16), 220),
        ((180, 40, 16), [MESSAGE, ADVISOR, MESSAGE], PASSES[1:] * 2, ASKED, (440, 16), 220),
        ((1260, 80, 86), [MESSAGE, ADVISOR, MESSAGE], PASSES[1:] * 2, ASKED, (440, 16), 220),
        # An answer that ends with its compaction was sent what that read.
        ((0, 0, 0), [COMPACTION], PASSES[:1], (), (5100, 83), 5100),
        # One pass is the bill; what is less than the totals is of their last request.
        ((180, 40, 8), [MESSAGE], (), (), (None, None), 7),
        ((9000, 40, 8), [COMPACTION, MESSAGE], (), (), (None, None), 7),
    ],
)  # fmt: skip
def test_the_passes_of_a_request_are_its_bill_and_the_last_its_size(
    totals: Any, iterations: Any, passes: Any, further: Any, whole: Any, sent: int
) -> None:
    names = ("input_tokens", "cache_read_input_tokens", "output_tokens")
    usage = {**dict(zip(names, totals, strict=True)), "iterations": iterations}
    fields = fields_of(usage)
    terms = terms_of(fields)
    assert (terms.passes, terms.further, terms.sent(7)) == (passes, further, sent)
    assert (fields.get("input_tokens"), fields.get("output_tokens")) == whole
    if passes:
        recorded = bill_of({"usage": usage})
        assert (recorded["input_tokens"], recorded["output_tokens"]) == whole


def test_what_older_traces_tell_of_further_samplings_is_read() -> None:
    old = {"type": "compaction", "input_tokens": 100, "cached_tokens": 5000, "output_tokens": 83}
    assert terms_of({"further": [old]}) == Terms(further=PASSES[:1])


def test_a_recorder_keeps_them_too() -> None:
    usage = {"input_tokens": 5, "output_tokens": 1, "server_tool_use": {"web_search_requests": 2}}
    found = bill_of({"model": "claude-x", "usage": usage | {"service_tier": "batch"}})
    assert (found["service_tier"], found["units"]) == ("batch", {"web_search": 2})


def test_what_has_a_price_of_its_own_leaves_what_it_is_counted_among() -> None:
    told = {"audio_input": 30, "audio_cached": 10, "audio_output": 5, "image_input": 8, "reasoning": 4}
    rates = Rates(D(1), D(4), D("0.5"), audio_input=D(10), audio_cached=D(2), audio_output=D(20))
    made, unpriced = without_separate_parts(Tokens(100, 50, 0, 40), told, rates)
    assert made == Tokens(80, 40, 0, 35, audio_input=20, audio_cached=10, audio_output=5)
    assert unpriced == {}
    made, unpriced = without_separate_parts(Tokens(100, 50, 0, 40), told, Rates(D(1), D(4), D("0.5")))
    assert (made, unpriced) == (
        Tokens(100, 50, 0, 40),
        {"audio_input": 20, "audio_cached": 10, "audio_output": 5},
    )
    assert without_separate_parts(Tokens(3), {"audio_input": 9}, rates)[0] == Tokens(audio_input=3)


def spend(tmp_path: Path, bill: dict[str, Any], time: bool = True) -> tuple[Costs, StepCost]:
    path = tmp_path / "t.jsonl"
    told = {"model": "claude-opus-5-5", "provider": "anthropic", "input_tokens": 1000, "output_tokens": 100}
    steps = [item("a", "one two three"), assembly("w", ["a"]), inject("w")]
    steps.append(event("ctxctl.usage.reported", {**told, "cached_tokens": 0, **bill}))
    made = at("1", "1", *steps)
    for one in made if not time else ():
        one.pop("time", None)
    path.write_bytes(lines(made))
    with Inspector.open(path) as inspector:
        costs = Costs(RateBook())
        (cost,) = step_costs(inspector, costs)
    return costs, cost


def test_calls_of_tools_are_priced_apart_and_what_has_no_price_makes_a_lower_bound(tmp_path: Path) -> None:
    costs, _ = spend(tmp_path, {"units": {"web_search": 3, "web_fetch": 2}})
    assert (costs.billed.units, costs.billed.total) == (D("0.03"), D("0.036"))
    assert (costs.not_priced, costs.at_least) == ({}, False)
    costs, cost = spend(tmp_path, {"units": {"web_search": 1, "code_execution": 2}})
    assert (costs.not_priced, costs.at_least) == ({"code_execution": 2}, True)
    assert cost.billed is not None
    assert cost.billed.total == D("0.016")


@pytest.mark.parametrize(("first", "money"), [(190_000, "0.6480"), (250_000, "1.5780")])
def test_each_pass_has_the_price_of_its_own_size(tmp_path: Path, first: int, money: str) -> None:
    passes = [
        {"type": "compaction", "input_tokens": first, "output_tokens": 0},
        {"type": "message", "input_tokens": 24_000, "cached_tokens": 20_000, "output_tokens": 4000},
        {"type": "advisor_message", "model": "claude-opus-4-8", "input_tokens": 1000, "output_tokens": 20},
    ]
    bill = {"input_tokens": first + 24_000, "cached_tokens": 20_000, "output_tokens": 4000}
    costs, cost = spend(tmp_path, {**bill, "model": "claude-sonnet-4-5", "passes": passes})
    # The first pass at 3 or, above 200,000, at 6 dollars a million; then 4,000 at 3, 20,000 at 0.30 and
    # 4,000 at 15; beside them the advisor's 1,000 at 5 and 20 at 25.
    assert costs.billed.total - costs.billed.further == D(money)
    assert costs.billed.further == D("0.0055")
    assert cost.step.window.used == 24_000
    assert cost.billed_tokens == Tokens(first + 4000, 20_000, 0, 4000)


def test_a_compaction_inside_of_a_request_is_billed_beside_it(tmp_path: Path) -> None:
    beside = {"type": "compaction", "input_tokens": 1000, "cached_tokens": 10_000, "output_tokens": 100}
    costs, cost = spend(tmp_path, {"further": [beside]})
    # 1000 at 4, 10,000 at 0.2, 100 at 20 dollars a million.
    assert costs.billed.further == D("0.008")
    assert costs.billed.total == D("0.014")
    assert cost.billed_tokens == Tokens(1000, 0, 0, 100)


def test_text_and_json_say_what_is_not_priced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spend(tmp_path, {"units": {"code_execution": 2}})
    path = str(tmp_path / "t.jsonl")
    assert run(["cost", path]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "billed ≥$0.0060" in text
    assert "not priced 2 code executions: no price is listed; the sums are lower bounds" in text
    assert run(["cost", path, "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (rows[-1]["not_priced"], rows[-1]["lower_bound"]) == ({"code_execution": 2}, True)
    assert rows[1]["not_priced"] == {"code_execution": 2}


def test_a_tier_without_a_price_leaves_the_request_unpriced_and_says_so(tmp_path: Path) -> None:
    costs, cost = spend(tmp_path, {"service_tier": "priority"})
    assert cost.billed is None
    assert costs.unpriced == {"claude-opus-5-5: no price is known for service tier 'priority'": 1}
    assert costs.at_least


def test_requests_without_a_time_have_the_prices_of_a_stated_day(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spend(tmp_path, {"model": "gpt-5.6-sol", "provider": "openai"}, time=False)
    path = str(tmp_path / "t.jsonl")

    def said(*more: str) -> dict[str, Any]:
        assert run(["cost", path, "--json", *more]) == 0
        whole: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
        return whole

    now, then = said(), said("--as-of", "2026-08-01")
    assert (now["billed"]["input"], now["as_of"]) == ("0.004", now["catalogue"]["date"])
    assert (then["billed"]["input"], then["as_of"]) == ("0.005", "2026-08-01")
    assert [key for key in then["assumed"] if "2026-08-01, as asked (--as-of)" in key]
    assert run(["cost", path, "--as-of", "yesterday"]) == 2
    assert "2026-07-02" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("first", "read", "missed"), [(80_000, 82_600, []), (20_000, 20_300, [60_000, 62_300])]
)
def test_the_first_pass_meets_the_cache_and_the_last_leaves_it_to_the_next(
    tmp_path: Path, first: int, read: int, missed: list[int]
) -> None:
    """The sums of a bill read more from the cache than any of its passes was long."""

    def bill(whole: int, cached: int, **more: Any) -> dict[str, Any]:
        told = {
            "model": "claude-opus-5-5",
            "provider": "anthropic",
            "input_tokens": whole,
            "output_tokens": 9,
        }
        counts = {"cached_tokens": cached, "cache_write_tokens": whole - cached}
        return event("ctxctl.usage.reported", {**told, **counts, **more})

    def one(whole: int, cached: int) -> dict[str, Any]:
        counts = {"cached_tokens": cached, "cache_write_tokens": whole - cached}
        return {"type": "message", "input_tokens": whole, **counts}

    passes = [one(80_500, first), one(82_600, 80_500)]
    start = [item("a", "one two three"), assembly("w", ["a"]), inject("w"), bill(80_000, 0)]
    both = [assembly("x", ["a"]), inject("x"), bill(163_100, first + 80_500, passes=passes)]
    last = [assembly("y", ["a"]), inject("y"), bill(92_000, read)]
    path = tmp_path / "t.jsonl"
    path.write_bytes(lines([*at("1", "1", *start), *at("1", "2", *both), *at("1", "3", *last)]))
    with Inspector.open(path) as inspector:
        misses = [found.cache.miss for found in inspector.replay() if isinstance(found, Step)]
    assert [miss.tokens for miss in misses if miss is not None] == missed


@pytest.mark.parametrize("output", [100, None])
def test_a_pass_without_a_known_price_leaves_the_cost_by_kind_without_it(
    tmp_path: Path, output: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    passes = [
        {"type": "compaction", "model": "nobody", "input_tokens": 100},
        {"type": "message", "input_tokens": 7},
    ]
    spend(tmp_path, {"passes": passes, "output_tokens": output, "output_is_partial": True})
    assert run(["cost", str(tmp_path / "t.jsonl"), "--json"]) == 0
    kinds = [
        line for line in map(json.loads, capsys.readouterr().out.splitlines()) if line["type"] == "spent"
    ]
    assert {kind["name"]: kind["unpriced_tokens"] for kind in kinds}["(earlier passes)"] == 100
