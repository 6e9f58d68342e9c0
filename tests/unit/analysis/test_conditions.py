"""Each condition of ``ctxctl check``: what it holds of, where it fails, and what it does not know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxctl.analysis.check import check_trace
from ctxctl.analysis.conditions import WANTED, dollar_bound, sent_bound
from ctxctl.model.checks import CheckRules, ConditionResult
from ctxctl.session import Inspector
from tests.oracle.build import (
    ABC,
    ALPHA,
    BETA,
    CAT,
    HELLO,
    WALK,
    Event,
    append,
    assembly,
    at,
    budget,
    compact,
    event,
    inject,
    item,
    lines,
    summary,
    usage,
)
from tests.unit.engine.billed_help import expecting, three_steps

CLAUDE = {"model": "claude-sonnet-4-5", "provider": "anthropic"}


def checked(
    path: Path, events: list[Event], thread: str | None = None, **rules: Any
) -> list[ConditionResult]:
    path.write_bytes(lines(events))
    with Inspector.open(path) as inspector:
        return check_trace(inspector, CheckRules(**rules), {}, thread=thread)


def only(path: Path, events: list[Event], **rules: Any) -> ConditionResult:
    (found,) = checked(path, events, **rules)
    return found


def step(turn: int, *texts: str, bill: Event | None = None, limit: int | None = None) -> list[Event]:
    """A request with these items, each named by its place, and so many tokens billed."""
    made = [item(f"i{n}", text) for n, text in enumerate(texts)] if turn == 1 else []
    made += [budget(limit)] * (limit is not None)
    refs = [f"i{n}" for n in range(len(texts))]
    made += [assembly(f"w{turn}", refs), inject(f"w{turn}")]
    return at(str(turn), "1", *made, *([bill] if bill is not None else []))


def place(found: ConditionResult) -> tuple[int | None, int | None]:
    assert found.place is not None
    return found.place.turn, found.place.step


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "t.jsonl"


@pytest.mark.parametrize(
    ("text", "value", "percent"),
    [("80%", 80, True), (" 120k ", 120_000, False), ("120,000", 120_000, False), ("1.5M", 1_500_000, False)],
)
def test_what_may_be_sent_is_read_as_queries_read_it(text: str, value: int, percent: bool) -> None:
    found = sent_bound(text)
    assert (found.value, found.percent) == (value, percent)


@pytest.mark.parametrize("text", ["", "lots", "=5", "80% or compacted", "-3", "80.5%", "5 compacted"])
def test_what_is_no_bound_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="whole per cent") as found:
        sent_bound(text)
    assert str(found.value) == WANTED


@pytest.mark.parametrize(("text", "plain"), [("2.50", "2.50"), ("$3", "3"), (" 0.0001 ", "0.0001")])
def test_dollars(text: str, plain: str) -> None:
    assert dollar_bound(text) == plain


@pytest.mark.parametrize("text", ["", "-1", "1e3", "three", "1,000", "$"])
def test_no_dollars(text: str) -> None:
    with pytest.raises(ValueError, match="US dollars"):
        dollar_bound(text)


def test_a_share_is_held_against_the_limit_in_force(trace: Path) -> None:
    events = step(1, CAT, bill=usage(79), limit=100) + step(2, CAT, bill=usage(80), limit=100)
    held = only(trace, events, max="80%")
    assert (held.outcome, held.steps, held.failed, held.unknown, held.tokens) == ("holds", 2, 0, 0, 80)
    assert held.message == "80 billed, 80.0% of 100"
    assert place(held) == (2, 1)
    failed = only(trace, events + step(3, CAT, bill=usage(81), limit=100), max="80%")
    assert (failed.outcome, failed.failed, failed.tokens) == ("fails", 1, 81)
    assert failed.message == "1 of 3 requests sent more: 81 billed, 81.0% of 100"
    assert place(failed) == (3, 1)


def test_the_worst_request_is_told_and_not_the_last(trace: Path) -> None:
    events = [e for n, size in enumerate((50, 90, 70), 1) for e in step(n, CAT, bill=usage(size))]
    found = only(trace, events, max="60")
    assert (found.failed, found.tokens) == (2, 90)
    assert found.message == "2 of 3 requests sent more; the worst: 90 billed"
    assert place(found) == (2, 1)


def test_without_a_limit_a_share_is_not_known_and_tokens_are(trace: Path) -> None:
    events = step(1, CAT, bill=usage(79))
    share, tokens = only(trace, events, max="80%"), only(trace, events, max="80")
    assert (share.outcome, share.unknown, tokens.outcome) == ("unknown", 1, "holds")
    assert share.message == "not known at 1 of 1 request: 79 billed, and no limit is known"


def test_what_no_bill_says_is_never_shown_to_hold(trace: Path) -> None:
    """8 tokens are recorded, and what was sent besides them is not known."""
    events = step(1, CAT)
    assert only(trace, events, max="100").outcome == "unknown"
    over = only(trace, events, max="7")
    assert (over.outcome, over.tokens) == ("fails", 8)
    assert only(trace, events, max="8").outcome == "unknown"


def test_an_expected_size_fails_only_beyond_its_error(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """115 are billed; after that 119 are expected, within 7 (`billed_help.Steady`)."""
    expecting(monkeypatch)
    found = {most: only(trace, three_steps(), max=str(most)) for most in (111, 112, 115, 1_000)}
    assert {most: (one.outcome, one.failed, one.unknown) for most, one in found.items()} == {
        111: ("fails", 2, 0),
        112: ("fails", 1, 1),
        115: ("unknown", 0, 1),
        1_000: ("unknown", 0, 1),
    }
    assert found[1_000].message == "not known at 1 of 3 requests: about 119 expected (±7)"
    grown = {most: only(trace, three_steps(), max_growth=most) for most in (-4, -3, 10)}
    assert {most: (one.outcome, one.failed, one.unknown) for most, one in grown.items()} == {
        -4: ("fails", 2, 0),
        -3: ("fails", 1, 1),
        10: ("unknown", 0, 1),
    }


def test_growth_is_from_bill_to_bill_of_a_thread(trace: Path) -> None:
    events = step(1, CAT, bill=usage(100)) + step(2, CAT, bill=usage(130))
    events += [{**e, "thread_id": "other"} for e in step(1, CAT, bill=usage(900))]
    events += step(3, CAT, bill=usage(120))
    held = only(trace, events, max_growth=30)
    assert (held.outcome, held.tokens, held.message) == ("holds", 30, "+30, from 100 billed to 130 billed")
    failed = only(trace, events, max_growth=29)
    assert (failed.outcome, failed.failed, failed.steps) == ("fails", 1, 4)
    assert place(failed) == (2, 1)


def test_growth_without_bills_fails_by_what_is_recorded_and_never_holds(trace: Path) -> None:
    first = at("1", "1", item("a", HELLO), append("w1", ["a"]), inject("w1"))
    second = at("2", "1", item("b", CAT), append("w2", ["b"]), inject("w2"))
    assert only(trace, first + second, max_growth=7).outcome == "fails"
    assert only(trace, first + second, max_growth=8).outcome == "unknown"
    lone = only(trace, first, max_growth=0)
    assert (lone.outcome, lone.message, lone.place) == ("holds", "no request has another before it", None)


def test_tool_results_are_weighed_as_they_come_in(trace: Path) -> None:
    events = at("1", "1", item("r", ABC, kind="tool_result"), item("m", CAT), append("w1", ["r", "m"]))
    events += at("2", "1", item("s", ALPHA, kind="tool_result"), append("w2", ["s"]))
    held = only(trace, events, max_tool_result=5)
    assert (held.outcome, held.tokens, place(held)) == ("holds", 5, (1, 1))
    failed = only(trace, events, max_tool_result=4)
    assert (failed.outcome, failed.failed) == ("fails", 1)
    assert failed.message.startswith("1 of 2 requests took in a larger one: “a b c d e”, 5 tokens (")
    opaque = at("3", "1", item("o", kind="tool_result"), append("w3", ["o"]))
    unknown = only(trace, events + opaque, max_tool_result=5)
    assert (unknown.outcome, unknown.unknown, place(unknown)) == ("unknown", 1, (3, 1))
    plain = at("1", "1", item("m", CAT), item("h", kind="session_history"), append("w", ["m"]))
    assert only(trace, plain, max_tool_result=0).outcome == "holds"
    many = plain + at("2", "1", append("w2", ["h"]))
    assert (
        only(trace, many, max_tool_result=0).message
        == "not known at 1 of 2 requests: h has neither text nor size"
    )


def bill(tokens: int, output: int | None = 0, **more: Any) -> Event:
    data = {"input_tokens": tokens, "output_tokens": output, **CLAUDE, **more}
    return event("ctxctl.usage.reported", {key: value for key, value in data.items() if value is not None})


def test_costs_are_summed_and_compared_exactly(trace: Path) -> None:
    """A million tokens of input are three dollars each."""
    events = step(1, CAT, bill=bill(100_000)) + step(2, CAT, bill=bill(50_000))
    held = only(trace, events, max_cost="0.45")
    assert (held.outcome, str(held.usd), held.tokens) == ("holds", "0.45", None)
    assert held.message == "$0.4500 for 2 requests; the most expensive request $0.3000"
    assert place(held) == (1, 1)
    assert only(trace, events, max_cost="0.449999999").outcome == "fails"


@pytest.mark.parametrize(
    ("bills", "why"),
    [
        (None, "no bill"),
        (bill(10, model="nobody-knows-it"), "no price of nobody-knows-it"),
        (bill(10, None), "no output in the bill"),
    ],
)
def test_a_cost_that_is_known_in_part_fails_or_is_unknown(trace: Path, bills: Event | None, why: str) -> None:
    events = step(1, CAT, bill=bill(100_000)) + step(2, CAT, bill=bills)
    unknown = only(trace, events, max_cost="1")
    assert (unknown.outcome, unknown.unknown, place(unknown)) == ("unknown", 1, (2, 1))
    assert unknown.message.startswith("≥$0.3000 for 2 requests; not known of 1: " + why)
    assert only(trace, events, max_cost="0.29").outcome == "fails"


def test_a_prefix_is_stable_down_to_nine_tenths(trace: Path) -> None:
    held = at("1", "1", item("a", CAT), item("b", ALPHA), assembly("w1", ["a", "b"]), inject("w1"))
    held += at("2", "1", item("c", BETA), assembly("w2", ["a", "b", "c"]), inject("w2"))
    found = only(trace, held, stable_prefix=True)
    assert (found.outcome, found.message) == ("holds", "9 of 9 recorded tokens kept; compared by content")
    broken = held + at("3", "1", assembly("w3", ["b", "c"]), inject("w3"))
    failed = only(trace, broken, stable_prefix=True)
    assert (failed.outcome, failed.failed, failed.tokens, place(failed)) == ("fails", 1, 10, (3, 1))
    assert "0 of 10 recorded tokens kept, up to “the cat sat on the mat all day” (removed)" in failed.message


def test_only_the_models_requests_have_a_cache(trace: Path) -> None:
    trace.write_bytes(lines(at("1", "1", item("a", CAT, visibility=("user",)))))
    with Inspector.open(trace, target="user") as inspector:
        found = check_trace(inspector, CheckRules(stable_prefix=True, no_misses=True), {})
    assert [one.outcome for one in found] == ["unknown", "unknown"]


def cached(tokens: int, read: int | None, written: int = 0) -> Event:
    return bill(tokens, cached_tokens=read, cache_write_tokens=written)


def test_misses_are_told_by_bills_that_have_cache_figures(trace: Path) -> None:
    first, second = step(1, CAT, bill=cached(9_000, 0, 9_000)), step(2, CAT, bill=cached(9_100, 9_000, 100))
    held = only(trace, first + second, no_misses=True)
    assert (held.outcome, held.steps, held.unknown) == ("holds", 2, 0)
    missed = only(trace, first + step(2, CAT, bill=cached(9_100, 0, 9_100)), no_misses=True)
    assert (missed.outcome, missed.failed, place(missed)) == ("fails", 1, (2, 1))
    assert missed.message.startswith("1 of 2 requests missed the cache: ")
    assert missed.tokens is not None
    assert missed.tokens > 8_000


@pytest.mark.parametrize(
    "bills",
    [
        (None, None),
        (cached(9_000, 0), None),
        (usage(9_000), usage(9_100)),
        (usage(9_000), cached(9_100, 0)),
        (cached(9_000, 0), cached(100, 9_000)),
    ],
)
def test_without_cache_figures_no_one_knows_of_misses(trace: Path, bills: tuple[Event | None, ...]) -> None:
    events = [e for n, one in enumerate(bills, 1) for e in step(n, CAT, bill=one)]
    found = only(trace, events, no_misses=True)
    assert (found.outcome, found.unknown) == ("unknown", 1)


def test_compactions_and_unexplained_cuts(trace: Path) -> None:
    events = at("1", "1", item("a", CAT), item("b", WALK), append("w1", ["a", "b"]), inject("w1"))
    assert only(trace, events, no_compaction=True).message == "none is recorded"
    after = at("2", "1", summary("s", HELLO), compact(["a", "b"], "s"), item("c", ALPHA), append("w2", ["c"]))
    found = only(trace, events + after, no_compaction=True)
    assert (found.outcome, found.failed, found.tokens) == ("fails", 1, 16)
    assert found.message == "1 of 2 requests compacted: 2 items, 16 tokens went"


def test_queries_are_three_valued(trace: Path) -> None:
    events = step(1, CAT, bill=usage(80), limit=100) + step(2, CAT, bill=usage(90), limit=100)
    never, always = checked(trace, events, never=("sent>85%",), always=("sent<=85%",))
    assert (never.outcome, never.failed, always.outcome, always.failed) == ("fails", 1, "fails", 1)
    assert place(never) == place(always) == (2, 1)
    assert never.message == "1 of 2 requests matched: 90 billed"
    assert always.message == "1 of 2 requests did not match: 90 billed"
    free = step(1, CAT, bill=usage(80))
    assert [one.outcome for one in checked(trace, free, never=("sent>85%",), always=("sent<=85%",))] == [
        "unknown",
        "unknown",
    ]
    held = checked(trace, events, never=("compacted",), always=("sent>10",))
    assert [(one.outcome, one.message) for one in held] == [
        ("holds", "no request matched"),
        ("holds", "every request matched"),
    ]


def test_a_query_of_changes_names_the_first(trace: Path) -> None:
    found = only(trace, step(1, HELLO, CAT), never=("tokens>0",))
    assert found.message == "1 of 1 request matched: “hello world” and 1 more"


def test_one_thread_alone(trace: Path) -> None:
    events = step(1, CAT, bill=usage(100))
    events += [{**e, "thread_id": "other"} for e in step(1, CAT, bill=usage(900))]
    assert [checked(trace, events, thread, max="500")[0].outcome for thread in (None, "other", "main")] == [
        "fails", "fails", "holds",
    ]  # fmt: skip


def test_where_nothing_was_looked_at_nothing_holds(trace: Path) -> None:
    found = checked(
        trace, step(1, CAT, bill=usage(100)), "nobody", max="500", max_cost="1", stable_prefix=True,
        never=("compacted",),
    )  # fmt: skip
    assert {(one.outcome, one.message, one.steps) for one in found} == {
        ("fails", "no request was looked at", 0)
    }


def test_conditions_come_in_the_order_of_the_options(trace: Path) -> None:
    rules = CheckRules("9", 9, 9, "9", True, True, True, ("compacted", "over"), ("turn>0",))
    trace.write_bytes(lines(step(1, CAT, bill=usage(9))))
    with Inspector.open(trace) as inspector:
        found = [one.label for one in check_trace(inspector, rules, {})]
    assert found == [
        "max 9", "max-growth 9", "max-tool-result 9", "max-cost $9", "stable-prefix", "no-misses",
        "no-compaction", "never compacted", "never over", "always turn>0",
    ]  # fmt: skip


def test_what_is_in_no_capture_is_not_said_to_be_absent(trace: Path) -> None:
    """Two bills, and nothing of what they are for."""
    marker = item("m", kind="tool_definition")
    events = at("1", "1", marker, assembly("w1", ["m"]), inject("w1"), bill(9_000))
    events += at("2", "1", assembly("w2", ["m"]), inject("w2"), bill(9_100))
    found = checked(trace, events, max_tool_result=5, stable_prefix=True, no_compaction=True)
    assert [(one.outcome, one.unknown) for one in found] == [("unknown", 2), ("unknown", 1), ("unknown", 2)]


def test_a_cost_that_nobody_knows_is_no_sum(trace: Path) -> None:
    found = only(trace, step(1, CAT) + step(2, CAT), max_cost="1")
    assert (found.outcome, found.usd, found.message) == (
        "unknown", None, "known of none of 2 requests; the first: no bill",
    )  # fmt: skip


def test_no_rules_are_none() -> None:
    assert not CheckRules()
    assert CheckRules(max="0")
    assert CheckRules(never=("x",))
