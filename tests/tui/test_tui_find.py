"""Finding in texts, stretches with styles, folded and unbroken rows, lines that are typed.  No event loop."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.text import cells, visible
from ctxctl.tui.document import Document, Wrap
from ctxctl.tui.find import MOST, Find
from ctxctl.tui.lineedit import History, Line
from ctxctl.tui.spans import Spans, overlaid, styled_pieces


def searched(text: str, query: str, work: int = 1 << 18) -> Find:
    find = Find(text, query)
    for _ in range(10_000):
        if find.done:
            return find
        find.extend(work)
    raise AssertionError("it never ends")


def test_small_letters_find_both_and_capitals_only_themselves() -> None:
    assert list(searched("Error error ERROR", "error").places) == [0, 6, 12]
    assert list(searched("Error error ERROR", "Error").places) == [0]


def test_a_query_is_no_pattern() -> None:
    assert list(searched("a.c abc [/] (x", ".").places) == [1]
    assert list(searched("a.c abc [/] (x", "[/]").places) == [8]


@given(st.text("abA\n", max_size=60), st.text("abA", min_size=1, max_size=3), st.integers(1, 7))
def test_slices_find_what_one_look_finds(text: str, query: str, work: int) -> None:
    flags = 0 if any(c.isupper() for c in query) else re.IGNORECASE
    expected = [m.start() for m in re.finditer(re.escape(query), text, flags)]
    assert list(searched(text, query, work).places) == expected


@given(st.text(max_size=80), st.text(min_size=1, max_size=4))
def test_any_text_and_query_are_taken(text: str, query: str) -> None:
    find = searched(text, query, 5)
    for at in find.places:
        assert 0 <= at <= len(text) - 1


def test_matches_beyond_the_most_are_not_counted() -> None:
    find = searched("ab" * (MOST + 10), "ab")
    assert len(find.places) == MOST
    assert find.said(0) == f"match 1 of {MOST:,}+"


def test_what_is_said_of_matches() -> None:
    find = Find("one two one", "one")
    assert find.said(None) == "looking…"
    find.extend()
    assert find.said(1) == "match 2 of 2"
    assert find.said(0, wrapped=True) == "match 1 of 2, wrapped around"
    assert searched("text", "nothing").said(None) == "no match"


def test_matches_in_a_stretch_are_cut_at_its_ends() -> None:
    find = searched("xxabcxxabcxx", "abc")
    assert find.within(3, 8, 1) == [(3, 5, "match"), (7, 8, "current")]
    assert find.from_(3) == 1
    assert find.from_(8) is None


# Stretches --------------------------------------------------------------------------------------------------


def test_stretches_are_found_by_their_place() -> None:
    spans = Spans([(0, 3, "a"), (5, 9, "b"), (9, 10, "a")])
    assert spans.within(2, 6) == [(2, 3, "a"), (5, 6, "b")]
    assert spans.within(3, 5) == []
    assert spans.within(9, 50) == [(9, 10, "a")]


def test_a_stretch_over_others_is_seen() -> None:
    assert overlaid([(0, 10, "a")], [(3, 5, "m")]) == [(0, 3, "a"), (3, 5, "m"), (5, 10, "a")]
    assert overlaid([(0, 3, "a"), (4, 6, "b")], [(2, 5, "m")]) == [(0, 2, "a"), (2, 5, "m"), (5, 6, "b")]


HOSTILE = st.text(
    st.one_of(st.sampled_from("ab \t\x1b世\u200d\ufe0f\u0301\u202e👩\x00\ud800"), st.characters()),
    max_size=40,
)


@given(HOSTILE, st.lists(st.integers(0, 40), max_size=6))
def test_pieces_show_what_the_row_shows(text: str, cuts: list[int]) -> None:
    text = text.replace("\n", " ")
    cuts = sorted({min(cut, len(text)) for cut in cuts})
    spans = [(a, b, "m") for a, b in zip(cuts[::2], cuts[1::2], strict=False) if a < b]
    made = styled_pieces(text, 0, spans, "base")
    shown = "".join(visible(piece, newline=True) for piece, _ in made)
    assert shown == visible(text, newline=True)


def test_a_tab_is_as_wide_as_its_place_says() -> None:
    assert styled_pieces("a\tbc", 10, [(12, 13, "m")], "") == [("a   ", ""), ("b", "m"), ("c", "")]


# Rows -------------------------------------------------------------------------------------------------------


def test_lines_that_are_not_broken_are_rows_seen_in_part() -> None:
    document = Document("0123456789" * 10 + "\nshort\n")
    wrap = Wrap(document, 8, broken=False)
    while not wrap.done:
        wrap.extend()
    assert wrap.count == 3
    assert wrap.row(0).text == "01234567"
    assert wrap.row(0, 95).text == "56789"
    assert wrap.row(1, 95).text == ""
    assert wrap.row_at(101) == 1


def test_refolding_keeps_the_rows_before() -> None:
    from ctxctl.tui.jsontext import laid_out

    laid = laid_out('{"a":[1,2],"b":[3,4]}')
    assert laid is not None
    wrap = Wrap(Document(laid.text, fold_regions=laid.fold_regions), 40)
    wrap.extend()
    whole = [wrap.row(n).text for n in range(wrap.count)]
    wrap.refold(frozenset({5}), 5)
    assert wrap.count == 5
    wrap.extend()
    assert [wrap.row(n).text for n in range(wrap.count)] == [*whole[:6], "}"]
    assert wrap.row(5).last
    wrap.refold(frozenset(), 5)
    wrap.extend()
    assert [wrap.row(n).text for n in range(wrap.count)] == whole


@given(HOSTILE, st.integers(1, 12), st.integers(0, 60))
def test_a_row_is_found_by_an_offset(text: str, width: int, offset: int) -> None:
    wrap = Wrap(Document(text), width)
    while not wrap.done:
        wrap.extend()
    row = wrap.row_at(min(offset, len(text)))
    assert row is not None
    assert wrap.start(row) <= min(offset, len(text))
    assert row + 1 == wrap.count or wrap.start(row + 1) > min(offset, len(text))


# Typed lines ------------------------------------------------------------------------------------------------


@given(HOSTILE, st.integers(1, 20), st.lists(st.integers(-1, 1), max_size=8))
def test_the_cursor_is_always_in_view(text: str, width: int, moves: list[int]) -> None:
    line = Line.of(text)
    for by in moves:
        line = line.move(by)
    left, under, right = line.painted(width)
    assert cells(left) + cells(under) + cells(right) <= max(width, cells(under))


def test_history_goes_back_and_returns_to_what_was_typed() -> None:
    history = History()
    for word in ("one", "two", "one"):
        history.add(word)
    assert history.entries == ["two", "one"]
    assert [history.older("draft"), history.older("x"), history.older("x")] == ["one", "two", None]
    assert [history.newer(), history.newer(), history.newer()] == ["one", "draft", None]


@pytest.mark.parametrize("pasted", ["a\nb", "a\r\nb", "a\tb"])
def test_what_is_pasted_becomes_one_line(pasted: str) -> None:
    assert Line().insert(pasted).text == "a b"
