"""`ctxctl why`: every sentence, how names are understood, and what is supposed.  Agreement with the events is
held by `test_why_walk`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ctxctl.analysis.why.answer import explain_item
from ctxctl.analysis.why.cost import fewest_items
from ctxctl.analysis.why.supposing import supposed_outcomes
from ctxctl.cli.main import run
from ctxctl.errors import UsageError
from ctxctl.model.why import Link, Why
from ctxctl.report.paint import plain
from ctxctl.report.why import why_lines
from ctxctl.session import Inspector
from tests.oracle import build, real
from tests.oracle.build import Event, assembly, at, budget, compact, event, inject, item, remove, select

TRACES = Path(__file__).parents[3] / "traces"
Out = pytest.CaptureFixture[str]


@contextmanager
def opened(where: Path, *events: list[Event], **how: Any) -> Iterator[Inspector]:
    with real.opened(where / "trace.jsonl", [one for some in events for one in some], **how) as inspector:
        yield inspector


def said(why: Why, verdict: str) -> str:
    """The one sentence of a verdict."""
    found = [link.text for link in why.links if link.verdict == verdict]
    assert len(found) == 1, [link.verdict for link in why.links]
    return found[0]


def verdicts(links: tuple[Link, ...]) -> list[str]:
    return [link.verdict for link in links]


STEP_1 = at(
    "t1",
    "s1",
    item("A", build.ABC),
    item("B", build.WALK),
    select(["A"], {"B": "low_relevance"}, ["A", "B"]),
    assembly("asm1", ["A"]),
    inject("asm1"),
)


def test_what_is_there(tmp_path: Path) -> None:
    with opened(tmp_path, STEP_1) as inspector:
        why = explain_item(inspector, 0, "A")
    assert (why.state, why.present, why.tokens, why.in_window) == ("current", True, 5, 5)
    assert verdicts(why.links) == ["available", "kept", "entered", "injected", "current", "spent"]
    assert said(why, "entered") == "entered the window: block 1 of 1 of the request; 5 tokens"
    assert said(why, "injected") == "was sent"
    assert said(why, "kept") == "was kept by the selection (among 2 candidates)"
    assert said(why, "current").startswith(
        "is in the window since turn 1; its copies hold 5 of the 5 that are recorded, 100.0%; "
        "what was sent besides them is not known; "
    )
    assert said(why, "spent") == "has cost 5 tokens in 1 request so far, 100.0% of what is recorded of it"
    lines = [link.event.line if link.event else None for link in why.links]
    assert lines == [1, 3, 4, 5, 4, None]


def test_what_was_left_out(tmp_path: Path) -> None:
    scored = select(["A"])
    scored["data"]["selected_item_refs"] = [{"item_ref": "A", "score": 0.9, "rank": 1}]
    scored["data"]["omitted_item_refs"] = [
        {
            "item_ref": "B",
            "score": 0.25,
            "rank": 2,
            "reason": "low_relevance",
            "native_reason": "below the bar",
        }
    ]
    steps = [
        at(
            "t1",
            "s1",
            item("A", build.ABC),
            item("B", build.WALK),
            scored,
            assembly("asm1", ["A"]),
            inject("asm1"),
        ),
        at("t2", "s2", scored, assembly("asm2", ["A"]), inject("asm2")),
    ]
    with opened(tmp_path, *steps) as inspector:
        why = explain_item(inspector, 1, "B")
        supposed = supposed_outcomes(inspector, why)
    assert (why.state, why.present) == ("omitted", False)
    assert [link.text for link in why.links if link.verdict == "omitted"] == [
        'was left out by the selection: low_relevance (in its own words: "below the bar") '
        "(rank 2, score 0.25, among 2 candidates); the lowest score kept was 0.9"
    ] * 2
    assert said(why, "left-out") == "was left out at each of 2 steps in a row, from turn 1 to turn 2"
    assert said(why, "no-limit") == (
        "it would take 8 tokens; no limit is known, so whether they were free is not known"
    )
    assert [link.text for link in supposed.links] == [
        "no limit and no fitting policy brings it in: it was left out as low_relevance, not for lack of room"
    ]
    assert supposed.replays == 0


def test_dropped_for_room(tmp_path: Path) -> None:
    steps = at(
        "t1",
        "s1",
        item("A", build.ABC),
        item("B", build.WALK),
        item("C", build.CAT),
        select(["A", "B", "C"]),
        budget(16, 2, {"C": "budget_limit"}, actual_tokens=13),
        assembly("asm1", ["A", "B"]),
        inject("asm1"),
    )
    with opened(tmp_path, steps) as inspector:
        why = explain_item(inspector, 0, "C")
        supposed = supposed_outcomes(inspector, why)
    assert why.state == "omitted"
    assert said(why, "dropped").startswith("was dropped by the budget: budget_limit; ")
    assert "of 16 tokens used, 2 of them reserved" in said(why, "dropped")
    assert said(why, "short") == (
        "it would take 8 tokens with 1 free of 14 after the 13 that are recorded: 7 would have to go, "
        "or the window would have to be 23 instead of 16"
    )
    assert said(why, "fewest") == "the fewest that would have to go: 1 item with 8 tokens: B (8)"
    assert "it never was in a frame" in supposed.links[-1].text


def test_compacted_and_what_became_of_the_summary(tmp_path: Path) -> None:
    steps = [
        at(
            "t1",
            "s1",
            item("A", build.WALK),
            item("B", build.ABC),
            assembly("asm1", ["A", "B"]),
            inject("asm1"),
        ),
        at(
            "t2",
            "s2",
            build.summary("S", build.HELLO),
            compact(["A"], "S"),
            assembly("asm2", ["S", "B"]),
            inject("asm2"),
        ),
        at(
            "t3",
            "s3",
            build.summary("T", build.HELLO),
            compact(["S"], "T"),
            assembly("asm3", ["T", "B"]),
            inject("asm3"),
        ),
    ]
    with opened(tmp_path, *steps) as inspector:
        second, third = (explain_item(inspector, n, "A", ids=True) for n in (1, 2))
        words = explain_item(inspector, 2, "A")
        supposed = supposed_outcomes(inspector, third)
    assert second.state == third.state == "out"
    assert said(second, "compacted") == (
        "was compacted into S by cmp (abstractive_summary, token_pressure) with 0 other items"
    )
    assert said(second, "summary-present") == "summary S is in the window, 2 tokens"
    assert said(third, "summary-left").startswith("summary S was compacted into T by cmp")
    assert said(third, "summary-present") == "summary T is in the window, 2 tokens"
    assert said(words, "compacted").startswith("was compacted into a summary (abstractive_summary, ")
    assert said(words, "summary-left").startswith("the summary was compacted into a summary (")
    assert said(words, "summary-present") == "the summary is in the window, 2 tokens"
    assert [link.numbers for link in words.links] == [link.numbers for link in third.links]
    assert verdicts(supposed.links)[-1] == "limit"
    assert supposed.links[-1].numbers["cap"] == 13
    assert supposed.links[-1].provenance == "simulated"


def test_the_smallest_limit_is_the_smallest(tmp_path: Path) -> None:
    """One token less, and a replay under it does not have the item."""
    steps = [
        at(
            "t1",
            "s1",
            item("A", build.WALK),
            item("B", build.CAT),
            assembly("asm1", ["A", "B"]),
            inject("asm1"),
        ),
        at(
            "t2",
            "s2",
            item("Q", build.RED, kind="user_message"),
            compact(["A"]),
            budget(14),
            assembly("asm2", ["B", "Q"]),
            inject("asm2"),
        ),
    ]
    events = [one for some in steps for one in some]
    with opened(tmp_path, events) as inspector:
        found = supposed_outcomes(inspector, explain_item(inspector, 1, "A"))
    limit = next(link for link in found.links if link.verdict == "limit")
    assert limit.numbers == {
        "policy": "summarize_oldest",
        "recorded": 14,
        "limit_source": "recorded",
        "cap": 20,
        "absent_at": 19,
    }
    from ctxctl.model.whatif import Limits

    for cap, there in ((20, True), (19, False)):
        limits = Limits(cap, 0, cap)
        with Inspector.open(tmp_path / "trace.jsonl", policy="summarize_oldest", limits=limits) as inspector:
            assert ("A" in {p.item for p in inspector.at(1).placements}) is there


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        ("expired", "was removed by the runtime: expired"),
        (None, "was removed by the runtime, without a cause"),
    ],
)
def test_removed(cause: str | None, text: str, tmp_path: Path) -> None:
    steps = [STEP_1, at("t2", "s2", remove("A", cause), assembly("asm2", ["B"]), inject("asm2"))]
    with opened(tmp_path, *steps) as inspector:
        why = explain_item(inspector, 1, "A")
        supposed = supposed_outcomes(inspector, why)
    assert said(why, "removed") == text
    assert supposed.links[-1].text.startswith("no limit brings it back: it left as ")


def test_left_and_nothing_says_why(tmp_path: Path) -> None:
    steps = [STEP_1, at("t2", "s2", assembly("asm2", ["B"]), inject("asm2"))]
    with opened(tmp_path, *steps) as inspector:
        why = explain_item(inspector, 1, "A")
    link = next(link for link in why.links if link.verdict == "unrecorded")
    assert (link.text, link.provenance) == ("left the window; nothing recorded says why", "derived")
    assert link.event is not None
    assert link.event.line == 6


def test_only_a_stale_copy(tmp_path: Path) -> None:
    steps = [
        at(
            "t1",
            "s1",
            item("A", build.ABC),
            build.append("asm1", ["A"]),
            inject("asm1", "user_message_appendix"),
        ),
        at(
            "t2",
            "s2",
            remove("A", "detached"),
            item("B", build.RED),
            build.append("asm2", ["B"]),
            inject("asm2", "user_message_appendix"),
        ),
    ]
    with opened(tmp_path, *steps) as inspector:
        why = explain_item(inspector, 1, "A")
    assert (why.state, why.present, why.in_window) == ("stale", True, 5)
    assert said(why, "stale") == "its old copies stayed in the window, stale, with 5 tokens"


def test_updated_moved_and_the_version_before(tmp_path: Path) -> None:
    steps = [
        at(
            "t1",
            "s1",
            item("A", build.ABC, version="v1"),
            item("B", build.RED),
            assembly("asm1", ["A", "B"]),
            inject("asm1"),
        ),
        at(
            "t2",
            "s2",
            build.update("A", build.WALK, version="v2"),
            assembly("asm2", ["B", "A"]),
            inject("asm2"),
        ),
    ]
    with opened(tmp_path, *steps) as inspector:
        why, old, new = (explain_item(inspector, 1, name) for name in ("A", "A@v1", "A@v2"))
        never = explain_item(inspector, 1, "A@v3")
    assert said(why, "updated") == "was updated to version v2; 8 tokens now, 8 in all its copies"
    assert (old.state, said(old, "superseded")) == ("out", "version v1 was replaced by version v2")
    assert new.state == "current"
    assert said(never, "never") == "version v3 was in no frame so far"


def test_available_later_and_unseen(tmp_path: Path) -> None:
    hidden = item("H", build.RED)
    hidden["data"]["visibility"] = ["ui"]
    steps = [
        at(
            "t1",
            "s1",
            item("A", build.ABC),
            item("N", build.RED),
            hidden,
            assembly("asm1", ["A"]),
            inject("asm1"),
        ),
        at("t2", "s2", item("L", build.UP), assembly("asm2", ["A", "L"]), inject("asm2")),
    ]
    with opened(tmp_path, *steps) as inspector:
        named, later, unseen = (explain_item(inspector, 0, name) for name in ("N", "L", "H"))
    assert (named.state, said(named, "not-named")) == (
        "available",
        "no selection, budget or assembly has named it so far",
    )
    assert (later.state, later.links[0].verdict) == ("later", "later")
    assert said(unseen, "hidden") == "is not visible to model: its record names ui"


def missing(kind: str, **data: Any) -> Event:
    record = {"schema_version": "0.1.1", "missing_id": "m1", "created_at": build.TIME, **data}
    return event(f"context.missing.{kind}", record)


def test_never_on_the_surface(tmp_path: Path) -> None:
    surface = event(
        "context.surface.created",
        {
            "schema_version": "0.1.1",
            "surface_id": "surf",
            "surface_kind": "custom",
            "available_source_refs": [
                {"schema_version": "0.1.1", "source_id": "calendar", "source_kind": "other"}
            ],
            "created_at": build.TIME,
        },
    )
    steps = at(
        "t1",
        "s1",
        surface,
        item("A", build.ABC),
        missing("detected", question="no price list was found", severity="high", status="open"),
        missing("requested", requested_from="user", status="requested"),
        assembly("asm1", ["A"]),
        inject("asm1"),
    )
    with opened(tmp_path, steps) as inspector:
        prices, calendar, nothing = (
            explain_item(inspector, 0, name) for name in ("price list", "calendar", "zebras")
        )
    assert {why.state for why in (prices, calendar, nothing)} == {"unknown"}
    assert [link.text for link in prices.links] == [
        "context m1 was found missing; no price list was found",
        "context m1 was asked for; asked of user",
    ]
    assert [link.text for link in calendar.links] == [
        "source calendar was attached, and nothing of it is in the window"
    ]
    assert nothing.links[0].verdict == "unknown"
    assert len(nothing.links) == 3
    with opened(tmp_path, STEP_1) as inspector:
        why = explain_item(inspector, 0, "zebras")
    assert why.links[-1].text == "nothing was recorded as missing, asked for or failed so far"


def test_a_source_that_gave_nothing_this_time(tmp_path: Path) -> None:
    """The item is still there, of an earlier turn; that its source failed at the step is told."""
    gap = missing("detected", question="A returned nothing while attached", status="open")
    second = at("t2", "s2", gap, assembly("asm2", ["A"]), inject("asm2"))
    with opened(tmp_path, STEP_1, second) as inspector:
        first, why = explain_item(inspector, 0, "A"), explain_item(inspector, 1, "A")
    assert why.state == "current"
    assert said(why, "detected") == "context m1 was found missing; A returned nothing while attached"
    assert "detected" not in verdicts(first.links)


def test_names(tmp_path: Path) -> None:
    with Inspector.open(TRACES / "retrieval-agent.jsonl") as inspector:
        for name, item_id, how in (
            ("bikes#1", "bikes#1", ()),
            ("bicycles on board", "bikes#1", ("by its title",)),
            ("PARKING#1", "parking#1", ("by its id, in another case",)),
            ("park", "parking#1", ("by the beginning of its id",)),
            ("groups and trailers", "bikes#2", ("by a part of its title",)),
            ("five minutes on foot", "parking#1", ("by its text",)),
        ):
            why = explain_item(inspector, 0, name)
            assert (why.item, why.sources) == (item_id, how)
        with pytest.raises(UsageError) as many:
            explain_item(inspector, 0, "bikes#")
        with pytest.raises(UsageError) as near:
            explain_item(inspector, 0, "parkin#1")
        with pytest.raises(UsageError) as empty:
            explain_item(inspector, 0, "  ")
    assert many.value.slug == "ambiguous-item"
    assert "Bicycles: groups and trailers (retrieval result, turn 1.1, 242 B, in the window)" in str(
        many.value.hint
    )
    assert (near.value.slug, near.value.hint) == ("no-such-item", "did you mean parking#1?")
    assert empty.value.slug == "no-such-item"


def test_another_threads_item(tmp_path: Path) -> None:
    other = at(
        "t1", "s1", item("X", build.RED), assembly("asmx", ["X"]), inject("asmx"), thread_id="explorer"
    )
    with opened(tmp_path, STEP_1, other) as inspector, pytest.raises(UsageError) as error:
        explain_item(inspector, 0, "X")
    assert error.value.hint == "it is in explorer; write TRACE@THREAD:TURN"


def test_a_redacted_text_is_not_searched(tmp_path: Path) -> None:
    steps = [STEP_1, at("t2", "s2", build.redact("A"), assembly("asm2", ["A"]), inject("asm2"))]
    with opened(tmp_path, *steps) as inspector:
        assert explain_item(inspector, 0, build.WALK[3:]).item == "B"
        assert explain_item(inspector, 0, build.ABC[2:]).state == "unknown"


def test_the_fewest() -> None:
    held = {1: 5, 2: 9, 3: 9, 4: 2, 5: 30}
    assert fewest_items(held, 4) == [1]
    assert fewest_items(held, 9) == [3]
    assert fewest_items(held, 31) == [5, 4]
    assert fewest_items(held, 56) is None


def test_hostile_names_and_texts(tmp_path: Path) -> None:
    bad = "evil\x1b[31m\u202e\n::error::\t" + "x" * 300
    steps = at(
        "t1",
        "s1",
        item(bad, build.ABC),
        item("B", build.RED),
        select(["B"], {bad: "\x1b]0;t\x07" * 50}),
        assembly("asm\x1b[2J", ["B"]),
        inject("asm\x1b[2J"),
    )
    with opened(tmp_path, steps) as inspector:
        for name in (bad, "B"):
            why = explain_item(inspector, 0, name)
            for width in (40, 80, 200):
                for line in why_lines(why, width, plain):
                    assert line.isprintable() or line == ""
                    assert len(line) <= max(width, 40)
    for arguments in ([bad], ["B", "--json"]):
        assert run(["why", f"{tmp_path / 'trace.jsonl'}@1", *arguments]) == 0


def test_the_command(tmp_path: Path, capsys: Out) -> None:
    trace = str(TRACES / "retrieval-agent.jsonl")
    assert run(["why", f"{trace}@2", "bikes#2"]) == 0
    out = capsys.readouterr().out
    assert "At turn 2 it is not in the window: it was, and has left." in out
    assert "line 24" in out
    assert "retrieval-0024" not in out
    assert run(["why", f"{trace}@2", "bikes#2", "--ids"]) == 0
    assert "line 24, id retrieval-0024" in capsys.readouterr().out
    assert run(["why", f"{trace}@2", "bikes#2", "--json", "--no-what-if"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["type"] == "trace"
    assert (second["type"], second["state"], second["what_if"]) == ("why", "out", None)
    assert run(["why", f"{trace}@99", "bikes#2"]) == 2
    assert run(["why", trace, "bicycles on board"]) == 0
    assert run(["why", trace, "fares"]) == 2
    assert "choose one by its number" in capsys.readouterr().err


def test_problems_are_told_by_every_run(tmp_path: Path, capsys: Out) -> None:
    where = tmp_path / "trace.jsonl"
    where.write_bytes(build.lines(STEP_1) + b"{broken\n")
    told = []
    for _ in range(2):
        assert run(["why", f"{where}@1", "A", "--strict", "--no-what-if"]) == 1
        told.append(capsys.readouterr())
    assert told[0] == told[1]
    assert "6" in told[0].err


@pytest.mark.parametrize("name", ["coding-agent", "notes-assistant", "retrieval-agent"])
def test_what_it_costs_is_what_the_cost_report_says(name: str) -> None:
    """`cost --by item` knows where in a request an item stood: money in the range, tokens the same."""
    from decimal import Decimal

    from ctxctl.analysis.costs import Costs, step_costs
    from ctxctl.analysis.spending import NOT_RECORDED
    from ctxctl.tokens.catalogue.rates import RateBook

    with Inspector.open(TRACES / f"{name}.jsonl") as inspector:
        costs = Costs(RateBook(), lambda placement: placement.item)
        steps = [cost.step for cost in step_costs(inspector, costs)]
        last = max(n for n, step in enumerate(steps) if step.thread == "main")
        others = {c.item for step in steps if step.thread != "main" for c in step.changes}
        compared = 0
        for spent in costs.spent():
            if spent.name in others or spent.name == NOT_RECORDED:
                continue
            why = explain_item(inspector, last, spent.name, everything=True)
            spent_on = next(link.numbers for link in why.links if link.verdict == "spent")
            assert (spent_on["requests"], spent_on["tokens"]) == (spent.steps, spent.tokens), spent.name
            money = [link.numbers for link in suppose_money(inspector, why) if link.verdict == "money"]
            for numbers in money:
                least, most = Decimal(str(numbers["least"])), Decimal(str(numbers["most"]))
                assert least <= spent.money <= most, spent.name
                compared += 1
        assert compared > 10


def suppose_money(inspector: Inspector, why: Why) -> list[Link]:
    from ctxctl.analysis.why.money import money_for_item

    return list(money_for_item(inspector, why, None))
