"""Wrapping text of any kind and size.  No event loop."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.session import Inspector
from ctxctl.text import cells, visible
from ctxctl.tui.answers import trace_facts
from ctxctl.tui.document import SLICE, Document, Wrap

TEXTS = st.text(
    st.one_of(st.sampled_from("ab \n\t\x1b世🇩👩\u200d\ufe0f\u0301\u202e"), st.characters()), max_size=120
)


def wrapped(text: str, width: int) -> Wrap:
    wrap = Wrap(Document(text), width)
    while not wrap.done:
        wrap.extend()
    return wrap


def rows(text: str, width: int) -> list[str]:
    wrap = wrapped(text, width)
    return [wrap.row(n).text for n in range(wrap.count)]


def test_short_lines_are_rows() -> None:
    assert rows("one\ntwo\n\nfour", 10) == ["one", "two", "", "four"]


def test_an_empty_text_is_one_empty_row() -> None:
    assert rows("", 10) == [""]


def test_long_lines_break_after_blanks() -> None:
    assert rows("the quick brown fox", 12) == ["the quick", "brown fox"]
    assert rows("the quick brown fox", 9) == ["the quick", "brown fox"]


def test_words_too_long_for_a_row_are_cut() -> None:
    assert rows("abcdefghij", 4) == ["abcd", "efgh", "ij"]


def test_wide_characters_count_two_cells() -> None:
    assert rows("世界世界", 5) == ["世界", "世界"]


def test_rows_know_their_line() -> None:
    wrap = wrapped("aa bb cc\ndd", 5)
    assert [(wrap.row(n).line, wrap.row(n).first) for n in range(wrap.count)] == [
        (0, True),
        (0, False),
        (1, True),
    ]
    assert wrap.row_of(1) == 2


@given(TEXTS, st.integers(1, 30))
def test_no_row_is_wider_than_the_width_unless_one_character_is(text: str, width: int) -> None:
    for row in rows(text, width):
        assert cells(visible(row, newline=True)) <= width or len(row.rstrip("\u200d\ufe0f\u0301")) == 1


@given(TEXTS, st.integers(1, 30))
def test_rows_hold_the_whole_text_but_for_blanks_at_breaks(text: str, width: int) -> None:
    wrap = wrapped(text, width)
    lines: list[str] = []
    for n in range(wrap.count):
        row = wrap.row(n)
        if row.first:
            lines.append(row.text)
        else:
            lines[-1] += row.text
    assert [line.replace(" ", "") for line in lines] == [line.replace(" ", "") for line in text.split("\n")]


def test_kinds_belong_to_lines() -> None:
    document = Document.of_lines([("+", "new"), ("-", "old\nof two"), ("@", "")])
    assert [document.kind(n) for n in range(4)] == ["+", "-", "@", " "]
    assert document.text == "new\nold␊of two\n"


@pytest.mark.parametrize(
    "text",
    ["word " * 2_000_000, "x" * 10_000_000, "\n" * 1_000_000, "世" * 3_000_000, "\x1b[31m" * 2_000_000],
    ids=["words", "one line", "empty lines", "wide", "escapes"],
)
def test_ten_megabytes_show_their_first_rows_at_once(text: str) -> None:
    started = time.process_time()
    wrap = Wrap(Document(text), 80)
    wrap.extend()
    spent = time.process_time() - started
    assert wrap.count >= SLICE // 25
    assert spent < 0.5, "one slice of wrapping must not depend on the size of the text"


def test_further_rows_of_a_line_stand_under_its_text() -> None:
    wrap = Wrap(Document("1.1  one two three four\nfive six seven", hangs=[5]), 12)
    wrap.extend()
    found = [(wrap.row(n).hang, wrap.row(n).text) for n in range(wrap.count)]
    assert found == [(0, "1.1  one two"), (5, "three"), (5, "four"), (0, "five six"), (0, "seven")]


def test_a_narrow_row_keeps_room_for_its_text() -> None:
    wrap = Wrap(Document("a " * 12, hangs=[40]), 10)
    wrap.extend()
    assert {wrap.row(n).hang for n in range(1, wrap.count)} == {6}


def test_stages_hang_below_what_they_say() -> None:
    trace = Path(__file__).parents[2] / "traces" / "coding-agent.jsonl"
    with Inspector.open(trace, calibration="shipped") as inspector:
        document = trace_facts.stages(inspector, 9)
    wrap = Wrap(document, 44)
    while not wrap.done:
        wrap.extend()
    rows = [wrap.row(n) for n in range(wrap.count)]
    further = [row for row in rows if not row.first]
    assert further
    assert {row.hang for row in further} <= {2, 22}
    assert 22 in {row.hang for row in further}
