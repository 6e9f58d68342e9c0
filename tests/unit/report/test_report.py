"""Reports from values made by hand: no trace, no terminal."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.item_names import NAMELESS, ItemNames
from ctxctl.model.outline import Life
from ctxctl.model.problem import Problem
from ctxctl.model.results import (
    BrokenBy,
    Cache,
    Change,
    Counts,
    Ledger,
    StageView,
    Step,
    Summary,
    Turn,
    UsageView,
    Window,
)
from ctxctl.model.terms import Pass, Terms
from ctxctl.report import jsonout
from ctxctl.report.changes import cause_text, changes_table, counts_line, counts_short, rows
from ctxctl.report.heading import Header, header_lines, one_line
from ctxctl.report.life import life_lines, life_spans
from ctxctl.report.paint import ansi, plain
from ctxctl.report.replay import ReplayReport
from ctxctl.report.step import cache_text, facts, sent_text, step_lines, usage_text
from ctxctl.report.tables import (
    Column,
    bar,
    labelled,
    layout,
    letters,
    problem_line,
    problem_lines,
    table,
    wrap,
)
from ctxctl.report.totals import Totals
from ctxctl.text import cells
from ctxctl.wording import number, plural, signed

HEADER = Header("t.jsonl", "native", "recorded", None, "o200k_base", True, "", "model", "0")


def change(status: str = "added", **given: object) -> Change:
    fields: dict[str, object] = {
        "status": status, "item": "doc", "kind": "retrieval_result", "title": None, "version": "v1",
        "previous_version": None, "tokens": 10, "in_window": 10, "new": 10, "freed": 0, "cause": None,
        "reason": None, "into": None, "flags": (), "source": None, "provenance": "native",
    }  # fmt: skip
    return Change(**{**fields, **given})  # type: ignore[arg-type]


def step(**given: object) -> Step:
    fields: dict[str, object] = {
        "session": "s", "thread": "main", "turn": 1, "step": 1, "turn_id": None, "step_id": None,
        "time": None, "target": "model", "model": None, "mode": "window", "mode_declared": False,
        "basis": "assembly", "layer": "injected",
        "window": Window(None, None, None, 10, None, None, 0, {"exact:o200k_base": 10}),
        "ledger": Ledger(0, 10, 0, 10, None, 0, 0), "counts": Counts(added=1), "changes": (change(),),
        "stages": {"budget": StageView("not_recorded")}, "cache": Cache(None, None, None, None),
        "usage": None, "segments": {"context": 10},
    }  # fmt: skip
    return Step(**{**fields, **given})  # type: ignore[arg-type]


def turn(**given: object) -> Turn:
    fields: dict[str, object] = {
        "session": "s", "thread": "main", "turn": 1, "turn_id": None, "target": "model", "steps": 1,
        "ledger": Ledger(0, 10, 0, 10, None, 0, 0), "counts": Counts(added=1), "changes": (),
    }  # fmt: skip
    return Turn(**{**fields, **given})  # type: ignore[arg-type]


def summary(**given: object) -> Summary:
    fields: dict[str, object] = {
        "sessions": 9, "threads": 9, "turns": 9, "steps": 9, "events": 20, "problems": 1,
        "new": 99, "freed": 9, "counts": Counts(), "unique_contents": 3, "by_method": {},
    }  # fmt: skip
    return Summary(**{**fields, **given})  # type: ignore[arg-type]


def test_numbers() -> None:
    assert [number(1234567), number(None), signed(5), signed(-1234), signed(0)] == [
        "1,234,567", "-", "+5", "\u22121,234", "0",
    ]  # fmt: skip
    assert [plural(1, "step"), plural(2, "step"), plural(0, "entry", "entries")] == [
        "1 step",
        "2 steps",
        "0 entries",
    ]


def test_a_table_is_measured_in_cells_and_leaves_empty_columns_out() -> None:
    columns = (Column("name", least=4), Column("none"), Column("n", right=True))
    found = table(columns, [("日本", "", "1"), ("e\u0301", "", "20")], 40)
    assert found.head == ["name   n"]
    assert found.rows == [["日本   1"], ["e\u0301     20"]]
    assert table(columns, [("a long name", "", "1")], 9).rows == [["a lon…  1"]]
    stacked = table(columns, [("a long name", "", "1,234,567")], 14)
    assert stacked.head == []
    assert stacked.rows == [["a long name", "  n 1,234,567"]]


def test_layout_squeezes_the_least_telling_column_first() -> None:
    columns = (Column("a", least=8), Column("b", least=12), Column("c"))
    body = [("x" * 20, "y" * 20, "z" * 5)]
    assert layout(columns, body, 49) == [20, 20, 5]
    assert layout(columns, body, 40) == [11, 20, 5]
    assert layout(columns, body, 30) == [8, 13, 5]
    assert layout(columns, body, 26) == [6, 11, 5]
    assert layout(columns, body, 10) == [6, 6, 5]


@given(st.text(alphabet="ab 日", max_size=80), st.integers(4, 30))
def test_wrap_loses_no_word_that_fits(text: str, width: int) -> None:
    lines = list(wrap(text, width))
    assert all(cells(line) <= width for line in lines)
    if all(cells(word) <= width for word in text.split()):
        assert " ".join(lines).split() == text.split()


def test_labelled_hangs() -> None:
    assert list(labelled("label", "one two three", 24, indent=2, tab=8)) == ["  label   one two three"]
    assert list(labelled("label", "four words in a row to wrap", 30, tab=8)) == [
        "label   four words in a row to",
        "        wrap",
    ]


@given(
    st.dictionaries(
        st.sampled_from(["tools", "system", "history", "context", "user", "x", "y"]), st.integers(0, 9999)
    ),
    st.integers(0, 20000),
    st.integers(0, 120),
)
def test_a_bar_is_exact_and_hides_no_segment(segments: dict[str, int], cap: int, width: int) -> None:
    drawn = bar(segments, cap, width)
    assert len(drawn) == width
    held = [name for name, tokens in segments.items() if tokens]
    if held and width > len(held) + 1:
        names = letters(s for s in segments if segments[s])
        assert all(names[name] in drawn for name in held)
        assert ("." in drawn) == (cap > sum(segments.values()))


def test_letters_are_distinct_and_shares_are_right() -> None:
    assert letters(["user", "tools", "context", "cache", "usage"]) == {
        "tools": "T", "context": "C", "user": "U", "cache": "A", "usage": "S",
    }  # fmt: skip
    assert bar({"system": 50, "user": 25}, 100, 20) == "S" * 10 + "U" * 5 + "." * 5
    assert bar({"user": 1, "system": 9999}, 10000, 10) == "SSSSSSSSSU"
    assert bar({}, 0, 5) == "....."


def test_counts() -> None:
    counts = Counts(1, 2, 3, 4000, 5)
    assert counts_line(counts) == "+1 added  ~2 updated  \u22123 removed  =4,000 skipped  ∅5 omitted"
    assert "  =4,000 skipped (unchanged, sent again)  " in counts_line(counts, "window")
    assert "  =4,000 skipped (not sent)  " in counts_line(counts, "append")
    assert "  =0 skipped  " in counts_line(Counts(), "append")
    assert counts_short(counts) == "+1 ~2 \u22123 =4,000 ∅5"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (change(), ""),
        (change("updated", previous_version="v0"), "v0 -> v1"),
        (change("updated", previous_version="v1", flags=("truncated",)), "[truncated]"),
        (change("updated", version=None, previous_version="0123456789abcdef"), "01234567 -> ?"),
        (change("removed", cause="compacted", into="sum"), "compacted into sum"),
        (change("removed", cause="omitted", reason="budget_limit"), "omitted (budget_limit)"),
        (change("omitted", cause="omitted", reason="budget_limit"), "budget_limit (10 tokens)"),
        (change("omitted", cause="redacted", tokens=0), "redacted"),
        (
            change(flags=("carried-in", "derived-identity", "moved"), provenance="derived"),
            "carried in [moved] [derived]",
        ),
        (change(provenance="simulated"), "[simulated]"),
        (change("removed", cause="evil\x1b[2J\n"), "evil␛[2J␊"),
    ],
)
def test_why(value: Change, said: str) -> None:
    assert cause_text(value, NAMELESS, {}) == said


def test_changes_are_grouped_and_skipped_ones_left_out() -> None:
    found = [
        change("omitted"),
        change("skipped"),
        change("added", item="a"),
        change("removed"),
        change("added", item="b"),
    ]
    assert [(c.status, c.item) for c in rows(found)] == [
        ("added", "a"), ("added", "b"), ("removed", "doc"), ("omitted", "doc"),
    ]  # fmt: skip
    assert [c.status for c in rows(found, skipped=True)][3] == "skipped"


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_a_table_of_changes_fits(width: int) -> None:
    found = rows(
        [
            change(
                item="toolu_01JeP6oukpU5NaavjrGbRHEx",
                title="Read: a/long/path/to/some/file.py",
                in_window=1234567,
            ),
            change("updated", previous_version="abcdef", flags=("moved", "truncated"), title="日本語" * 20),
            change("removed", cause="compacted", into="summary-of-everything-so-far", new=0, freed=99999),
        ]
    )
    lines = list(changes_table(found, width, plain, NAMELESS, indent=2))
    assert len([line for line in lines if line.lstrip()[0] in "+~\u2212"]) == 3
    assert max(map(cells, lines)) <= width
    assert "1,234,567" in "\n".join(lines)
    painted = list(changes_table(found, width, ansi, NAMELESS, indent=2))
    assert [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in painted] == lines


def test_a_cause_that_changes_share_stands_once_below_them_and_names_the_summary() -> None:
    summary = "b6246ee1-b19c-4785-a0a4-db55f0d1fce5"
    went = [
        change("removed", item=f"m{n}", cause="compacted", into=f"{summary}@v1", title="A long title " * 4)
        for n in range(3)
    ]
    other = change("removed", item="x", cause="expired")
    came = change("added", item=summary, title="What was said up to here, in short")
    lines = list(changes_table([came, *went, other], 80, plain, NAMELESS, indent=0))
    assert [line.strip() for line in lines if "compacted" in line] == [
        "all 3: compacted into What was said up to here, in short"
    ]
    assert [n for n, line in enumerate(lines) if "compacted" in line] == [5]
    assert lines[-1].strip() == "expired"
    with_ids = "\n".join(changes_table([came, *went], 200, plain, NAMELESS._replace(ids=True), indent=0))
    assert f"compacted into {summary}@v1" in with_ids
    known = ItemNames(words={summary: "So far we have planted tomatoes"}.get)  # type: ignore[arg-type]
    assert known.of_ref(f"{summary}@v1", {}) == "“So far we have planted tomatoes”"
    assert known.of_ref("a@b", {"a@b": "Both"}) == "Both"


def test_what_was_sent_in_words() -> None:
    full = Window(
        8000, 1000, 7000, 244, 6756, 0, 0, {}, 200, 44, "reported", limit_source="catalogue", threshold=6500
    )
    assert sent_text(full) == (
        "244 of 7,000 (3.5%), 6,756 free; billed; window 8,000, 1,000 reserved, from the model table;"
        " compacts at 6,500"
    )
    over = Window(None, None, 100, 130, 0, 30, 0, {}, 90, 40, "expected", 12, limit_source="runtime")
    assert sent_text(over) == (
        "about 130 ±12 of 100 (130%), OVER BY 30; expected, not billed; limit on input, said by the client"
    )
    bare = Window(None, None, None, 90, None, None, 0, {}, 90)
    assert sent_text(bare) == "not known: no bill was read; 90 recorded; limit unknown"
    blind = msgspec.structs.replace(bare, used=0, recorded=0, uncounted=3)
    assert sent_text(blind) == "not known: no bill was read; 3 items of unknown size; limit unknown"
    capped = msgspec.structs.replace(blind, cap=1000, free=1000, over=0)
    assert (
        sent_text(capped) == "not known: no bill was read; 3 items of unknown size, of 1,000; limit on input"
    )


def billed(*fields: Any, expected: int | None = None) -> str:
    stages = {"evidence": StageView("recorded", {} if expected is None else {"expected_input": expected})}
    return usage_text(step(usage=UsageView(*fields), stages=stages))


def test_usage_and_cache_in_words() -> None:
    assert billed(100, 40, 7, 90, -10) == "billed 100 in (40 cached), 7 out"
    assert billed(100, 40, 7, 90, -10, expected=98) == (
        "billed 100 in (40 cached), 7 out; 98 was expected (\u22122, \u22122.0%)"
    )
    assert billed(100, None, None, 90, -10, "derived") == "derived 100 in"
    passes, advisor = (
        (Pass("compaction", None, 80), Pass("message", None, 20)),
        Pass("advisor_message", "m", 5),
    )
    view = UsageView(100, 40, 7, 90, -10, terms=Terms(passes=passes, further=(advisor,)))
    assert usage_text(step(usage=view)) == (
        "billed 100 in (40 cached; passes of 80 and 20), 7 out, other model m: 5 in, 0 out"
    )
    assert billed(None, None, 7, 90, None) == "7 out"
    assert billed(None, None, None, 90, None) == "no input billed"
    assert billed(0, 0, 0, 0, 0) == "billed 0 in (0 cached), 0 out"
    assert cache_text(Cache(None, None, None, None)) == "no request before this one"
    broken = BrokenBy("d\x9boc", None, 3, "removed", "compacted")
    assert cache_text(Cache(5, broken, 4, 1)) == (
        "possible prefix 5; broken at position 3 by d⟨U+009B⟩oc (removed, compacted);"
        " reported cached 4; written 1"
    )


def test_missing_facts_are_shown_as_missing() -> None:
    told = dict(facts(step()))
    assert told["missing"] == "limit unknown, usage not reported"
    whole = step(
        window=Window(20, 5, 15, 10, 5, 0, 0, {}), usage=UsageView(9, None, None, 10, 1), flags=("compacted",)
    )
    told = dict(facts(whole))
    assert "missing" not in told
    assert told["flags"] == "compacted"


def test_several_methods_are_named() -> None:
    window = Window(None, None, None, 10, None, None, 1, {"declared": 4, "exact:x": 6})
    told = dict(facts(step(window=window, ledger=Ledger(0, 10, 0, 10, 3, 2, 1))))
    assert told["window"] == (
        "0 before + 10 new \u2212 0 freed = 10 recorded"
        " (2 stale, 3 saved by skipping, 1 placement uncounted, declared 4, exact:x 6)"
    )


@given(st.integers(40, 160))
def test_a_step_fits_its_width(width: int) -> None:
    value = step(
        step_id="msg_01JeP6oukpU5NaavjrGbRHEx", time="2026-02-12T15:36:41.068Z",
        model="claude-haiku-4-5-20251001", window=Window(200000, 32000, 168000, 22829, 145171, 0, 0, {}),
        usage=UsageView(45627, 40725, 4, 22829, -22798),
        segments={"history": 20000, "user": 2829},
    )  # fmt: skip
    lines = list(step_lines(value, width, plain, NAMELESS))
    assert max(map(cells, lines)) <= width


def test_a_replay_adds_up() -> None:
    report = ReplayReport(HEADER, 100, plain, NAMELESS)
    lines = [
        line
        for result in (
            step(),
            step(step=2, ledger=Ledger(10, 5, 3, 12, None, 0, 0), counts=Counts(updated=1), changes=()),
            turn(steps=2, title="Do it\nnow"),
            step(thread="sub", ledger=Ledger(0, 7, 0, 7, None, 0, 0)),
            turn(thread="sub"),
            step(turn=2, session="other"),
        )
        for line in report.feed(result)
    ]
    lines += report.end(summary())
    text = "\n".join(lines)
    assert "    prompt   Do it now" in lines
    assert "turn sub:1" in lines
    assert "turn other/2" in lines
    assert "  = turn 1: 2 steps, +1 ~0 \u22120 =0 ∅0, 0 before + 10 new \u2212 0 freed = 10 recorded" in lines
    assert "0 before + 32 new \u2212 3 freed = 29 recorded in the last windows of 3 threads" in text
    assert "2 sessions, 3 threads, 3 turns, 4 steps" in text
    assert "20 events, 3 distinct contents, 1 problem" in text


def test_totals_narrow_a_summary() -> None:
    totals = Totals()
    totals.add(step(turn=3, ledger=Ledger(50, 10, 20, 40, None, 0, 0)))
    totals.add(
        step(
            turn=3,
            step=2,
            stages={"selection": StageView("differs")},
            ledger=Ledger(40, 0, 0, 40, None, 0, 0),
        )
    )
    narrow = totals.narrow(summary())
    assert (narrow.turns, narrow.steps, narrow.new, narrow.freed, narrow.events) == (1, 2, 10, 20, 20)
    assert totals.before + narrow.new - narrow.freed == totals.after == 40
    assert totals.differs == 1
    assert narrow.by_method == {"exact:o200k_base": 10}


def test_a_turn_that_goes_on_after_another_thread_says_so() -> None:
    report = ReplayReport(HEADER, 80, plain, NAMELESS)
    lines = [line for s in (step(), step(thread="sub"), step(step=2)) for line in report.feed(s)]
    assert "turn 1, continued" in lines


def test_an_empty_replay_has_a_header_and_a_summary() -> None:
    lines = list(ReplayReport(HEADER, 80, plain, NAMELESS).end(summary(sessions=0)))
    assert lines[0] == "trace     t.jsonl"
    assert "  counted  nothing" in lines


def test_headers() -> None:
    assumed = msgspec.structs.replace(
        HEADER, encoding_known=False, assumed="guessed", thread="a\x1b", turn="-1"
    )
    lines = list(header_lines(assumed, 80, mode="append (declared)"))
    assert lines[5] == "assumed   guessed"
    assert lines[-3:] == ["mode      append (declared)", "thread    only a␛", "turn      only -1"]
    assert one_line(assumed) == "policy recorded, encoding o200k_base (assumed), target model"


def test_problems() -> None:
    found = [Problem(3, 120, "bad-json", "x\x1b\ny"), Problem(0, 0, "odd", "whole file")]
    assert problem_line("a\nb", found[0]) == "a␊b:3: byte 120: bad-json: x␛␊y"
    assert problem_line("f", found[1]) == "f: odd: whole file"
    assert list(problem_lines("f", found, 5, 1))[-1] == "f: 4 more problems not shown (5 in all)"
    assert len(list(problem_lines("f", found, 2, None))) == 2
    cut = Problem(9, 0, "windows-too-large", "the rest is not read")
    assert list(problem_lines("f", [*found, cut], 6, 1))[1:] == [
        problem_line("f", cut), "f: 4 more problems not shown (6 in all)"
    ]  # fmt: skip


def life(
    number: int, status: str, *, turn: int, step: int = 1, thread: str = "main", **given: object
) -> Life:
    fields: dict[str, object] = {
        "ordinal": number, "session": "s", "thread": thread, "turn": turn, "step": step, "status": status,
        "version": "v", "tokens": 5, "cause": None, "reason": None, "into": None,
    }  # fmt: skip
    return Life(**{**fields, **given})  # type: ignore[arg-type]


def test_a_life_merges_what_was_skipped() -> None:
    lives = [
        life(0, "added", turn=2),
        *(life(n, "skipped", turn=n) for n in (3, 4)),
        life(5, "updated", turn=5, version="w"),
        *(life(n, "skipped", turn=n, version="w") for n in (6, 7, 8, 9)),
        life(10, "removed", turn=10, cause="compacted", into="sum", version="w"),
    ]
    assert [(s.first.turn, s.last.turn) for s in life_spans(lives)] == [
        (2, 2),
        (3, 4),
        (5, 5),
        (6, 9),
        (10, 10),
    ]
    lines = list(life_lines("doc", lives, 80, plain))
    assert lines[0] == "doc"
    assert [line.split()[2] for line in lines[2:]] == ["2", "3\u20134", "5", "6\u20139", "10"]
    assert lines[-1].endswith("compacted into sum")


def test_a_life_says_whether_what_was_skipped_was_sent() -> None:
    lives = [
        life(0, "added", turn=1), life(1, "skipped", turn=2), life(2, "skipped", turn=3, mode="append"),
        life(3, "skipped", turn=4, mode="append"),
    ]  # fmt: skip
    lines = list(life_lines("doc", lives, 80, plain))
    assert [(line.split()[2], line.split("5  ", 1)[-1]) for line in lines[3:]] == [
        ("2", "unchanged, sent again"), ("3\u20134", "not sent")
    ]  # fmt: skip


def test_a_life_in_two_threads_and_with_steps() -> None:
    lives = [
        life(0, "added", turn=1), life(1, "added", turn=1, thread="sub"), life(2, "skipped", turn=1, step=2),
        life(3, "skipped", turn=1, step=2, thread="sub"), life(4, "skipped", turn=2),
    ]  # fmt: skip
    lines = list(life_lines("doc", lives, 80, plain))
    assert [line.split()[2] for line in lines[2:]] == ["1.1", "sub:1.1", "1.2\u20132.1", "sub:1.2"]


def test_json_of_values_that_json_has_no_word_for() -> None:
    assert jsonout.line({"a": "\ud800", "b": 2**70}) == b'{"a":"\\ud800","b":1180591620717411303424}\n'
    assert (
        jsonout.line({"a": "é\u202e\x7f##[x]"})
        == "é".join(['{"a":"', '\\u202e\\u007f#\\u0023[x]"}\n']).encode()
    )
    assert jsonout.line({"a": "plain"}) == b'{"a":"plain"}\n'
    told = jsonout.changes([change(line=3)], skipped=True)
    for line in (jsonout.line({"told": told}), jsonout.line({"told": told, "b": 2**70})):
        (written,) = json.loads(line)["told"]
        assert written["item"] == "doc"
        assert "line" not in written
