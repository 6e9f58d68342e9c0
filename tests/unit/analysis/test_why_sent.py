"""`ctxctl why` speaks of what was sent: shares, room and the smallest limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxctl.analysis.why.answer import explain_item
from ctxctl.analysis.why.supposing import supposed_outcomes
from ctxctl.model.sizes import limit_words, rounded_size
from ctxctl.model.why import Link, Why
from ctxctl.session.store_rows import lives_of
from tests.oracle import build
from tests.oracle.build import assembly, at, budget, compact, inject, item, usage
from tests.oracle.real import opened
from tests.unit.engine.billed_help import catalogue, compacting, expecting, three_steps


def said(why: Why, verdict: str) -> Link:
    found = [link for link in why.links if link.verdict == verdict]
    assert len(found) == 1, [link.verdict for link in why.links]
    return found[0]


def test_a_share_is_of_the_bill(tmp_path: Path) -> None:
    with opened(tmp_path / "t.jsonl", three_steps()) as inspector:
        link = said(explain_item(inspector, 1, "B"), "current")
        spent = said(explain_item(inspector, 1, "A"), "spent")
    assert "its copies hold 8 of 115 billed, 7.0%; nothing recorded has taken it out" in link.text
    assert link.numbers == {
        "held": 8,
        "used": 115,
        "recorded": 13,
        "unrecorded": 102,
        "used_method": "reported",
        "since_turn": 2,
    }
    assert spent.text == "has cost 10 tokens in 2 requests so far, 4.5% of what was billed for them"


def test_without_a_bill_it_is_of_what_is_expected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expecting(monkeypatch)
    with opened(tmp_path / "t.jsonl", three_steps()) as inspector:
        link = said(explain_item(inspector, 2, "C"), "current")
        spent = said(explain_item(inspector, 2, "A"), "spent")
    assert "hold 4 of about 119 expected (±7), 3.4%; nothing" in link.text
    assert (link.numbers["used_method"], link.numbers["used"]) == ("expected", 119)
    assert spent.text.endswith("of what is known to have been sent in them")


def test_without_any_bill_nobody_knows_what_was_sent_beside(tmp_path: Path) -> None:
    steps = at("t1", "s1", item("A", build.ABC), assembly("asm1", ["A"]), inject("asm1"))
    with opened(tmp_path / "t.jsonl", steps) as inspector:
        link = said(explain_item(inspector, 0, "A"), "current")
    assert "hold 5 of the 5 that are recorded, 100.0%; what was sent besides them is not known" in link.text
    assert "unrecorded" not in link.numbers


def test_room_is_what_the_bill_leaves(tmp_path: Path) -> None:
    """By what is recorded (5 of 112) B would have fitted twelve times; 105 were billed."""
    steps = at(
        "t1", "s1", item("A", build.ABC), item("B", build.WALK), budget(112, None, {"B": "budget_limit"}),
        assembly("asm1", ["A"]), inject("asm1"), usage(105),
    )  # fmt: skip
    with opened(tmp_path / "t.jsonl", steps) as inspector:
        link = said(explain_item(inspector, 0, "B"), "short")
    assert link.text == (
        "it would take 8 tokens with 7 free of 112 after 105 billed: 1 would have to go, or the window "
        "would have to be 113 instead of 112"
    )
    assert (link.numbers["free"], link.numbers["need"], link.numbers["used"]) == (7, 1, 105)


def test_a_limit_of_the_catalogue_is_called_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [
        *at(
            "t1", "s1", item("A", build.ABC), item("B", build.WALK), assembly("asm1", ["A", "B"]), usage(115)
        ),
        *at("t2", "s2", compact(["B"]), assembly("asm2", ["A"]), inject("asm2"), usage(105)),
    ]
    catalogue(monkeypatch, 200)
    with opened(tmp_path / "t.jsonl", steps) as inspector:
        link = said(explain_item(inspector, 1, "B"), "fits")
        limit = supposed_outcomes(inspector, explain_item(inspector, 1, "B")).links
    assert link.text == (
        "its size would have fitted: 8 tokens, and 95 of 200 (from the model table) were free after "
        "105 billed (models.dev as of 2026-07-02: listed by the maker)"
    )
    assert link.numbers["limit_source"] == "catalogue"
    assert any("with the limit of 200 (from the model table) tokens of input" in one.text for one in limit)


def test_the_clients_own_line_is_told_of_what_it_compacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [
        *at(
            "t1", "s1", item("A", build.ABC), item("B", build.WALK), assembly("asm1", ["A", "B"]), usage(115)
        ),
        *at("t2", "s2", compact(["B"]), assembly("asm2", ["A"]), inject("asm2"), usage(105)),
        *at("t3", "s3", assembly("asm3", ["A"]), inject("asm3"), usage(106)),
    ]
    with opened(tmp_path / "t.jsonl", steps) as inspector:
        assert "compacts" not in {link.verdict for link in explain_item(inspector, 2, "B").links}
    catalogue(monkeypatch, 200)
    compacting(monkeypatch, 114)
    with opened(tmp_path / "t.jsonl", steps) as inspector:
        link = said(explain_item(inspector, 2, "B"), "compacts")
    assert link.text == (
        "the client compacts by itself at 114 tokens (Client 1: a rule); the request before the compaction"
        ": 115 billed"
    )
    assert (link.numbers["threshold"], link.numbers["sent_before"]) == (114, 115)
    assert link.at is not None
    assert link.at.turn == 2


def test_why_no_limit_is_known_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = at(
        "t1", "s1", item("A", build.ABC), item("B", build.WALK), assembly("asm1", ["A"]), usage(105)
    ) + at("t2", "s2", compact(["A"]), assembly("asm2", ["B"]), usage(108))  # fmt: skip
    catalogue(monkeypatch, 100)
    with opened(tmp_path / "t.jsonl", steps) as inspector:
        link = said(explain_item(inspector, 1, "A"), "no-limit")
    assert link.text == (
        "it would take 5 tokens; no limit is known (108 tokens were billed, so the 100 of the model table is "
        "not its window here), so whether they were free is not known"
    )


def test_the_smallest_limit_holds_what_is_not_recorded(tmp_path: Path) -> None:
    """20 tokens of content must be there for A to be kept (`test_the_smallest_limit_is_the_smallest`); beside
    them 100 are sent that nobody recorded."""
    steps = [
        *at(
            "t1", "s1", item("A", build.WALK), item("B", build.CAT), assembly("asm1", ["A", "B"]), usage(116)
        ),
        *at(
            "t2", "s2", item("Q", build.RED, kind="user_message"), compact(["A"]), budget(114),
            assembly("asm2", ["B", "Q"]), usage(112),
        ),
    ]  # fmt: skip
    with opened(tmp_path / "t.jsonl", steps) as inspector:
        found = supposed_outcomes(inspector, explain_item(inspector, 1, "A"))
    link = next(link for link in found.links if link.verdict == "limit")
    assert (link.numbers["cap"], link.numbers["absent_at"]) == (120, 119)
    assert link.text.endswith(
        "with a limit of 120 tokens of input or more (recorded: 114), about 100 of them for what is sent and "
        "not recorded"
    )


def test_lives_have_the_sizes_of_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    catalogue(monkeypatch, 200)
    expecting(monkeypatch)
    with opened(tmp_path / "t.jsonl", three_steps()) as inspector:
        lives = lives_of(inspector)
        windows = [lives.step(n).window for n in range(3)]
    assert [(one.used_method, one.recorded, one.limit_source) for one in windows] == [
        ("reported", 5, "catalogue"),
        ("reported", 13, "catalogue"),
        ("expected", 17, "catalogue"),
    ]
    assert [one.unrecorded for one in windows] == [100, 102, 102]


def test_words() -> None:
    assert [rounded_size(n) for n in (0, 7, 999, 1_234, 61_250, -1_239)] == [0, 7, 999, 1_230, 61_300, -1_240]
    assert limit_words(4_976, "recorded") == limit_words(4_976, None) == "4,976"
    assert limit_words(200_000, "runtime") == "200,000 (said by the client)"


def test_what_nobody_can_count_has_no_size(tmp_path: Path) -> None:
    """An encrypted block stands with 0 in the ledger; that is no size of it."""
    steps = at("t1", "s1", item("A", build.ABC), item("X"), assembly("asm1", ["A", "X"]), inject("asm1"))
    steps += at("t2", "s2", item("S"), compact(["A"], "S"), assembly("asm2", ["S", "X"]), inject("asm2"))
    with opened(tmp_path / "t.jsonl", steps) as inspector:
        there, gone = explain_item(inspector, 1, "X"), explain_item(inspector, 1, "A")
    link = said(there, "current")
    assert "is in the window since turn 1; its size is not known; nothing recorded" in link.text
    assert (there.tokens, link.numbers["held"]) == (None, None)
    summary = said(gone, "summary-present")
    assert summary.text == "the summary is in the window, its size is not known"
    assert summary.numbers["tokens"] is None
