"""The state and the lines of the search screen, without an event loop."""

from __future__ import annotations

from typing import Any

import pytest
from test_tui_hostile import ALL, BAD

from ctxctl.engine.query import parse_query
from ctxctl.model.hits import Excerpt, Found, Hit
from ctxctl.model.results import Counts
from ctxctl.text import cells
from ctxctl.tui.literal import shown
from ctxctl.tui.screens.search import lines
from ctxctl.tui.screens.search import state as moves
from ctxctl.tui.screens.search.state import Search
from ctxctl.tui.thread_names import ThreadNames


def hit(ordinal: int, **given: Any) -> Hit:
    plain: dict[str, Any] = {"session": "s", "thread": "main", "turn": ordinal + 1, "step": 1}
    if "item" not in given:
        plain |= {"status": "added", "item": f"i{ordinal}", "kind": "tool_result", "title": f"note {ordinal}"}
    return Hit(ordinal=ordinal, **{**plain, **given})


def news(*hits: Hit, total: int | None = None, done: bool = False, **given: Any) -> Found:
    plain = {"part": 0.5, "steps": 9, "textless": 0, "withheld": 0}
    return Found(hits, len(hits) if total is None else total, done=done, **{**plain, **given})


def asking(text: str) -> Search:
    return moves.asked(moves.typed(Search(), text))


def listing(*hits: Hit, query: str = "note", **given: Any) -> Search:
    state = asking(query)
    return moves.found(state, state.serial, news(*hits, **{"done": True, **given}))


def said(parts: lines.Parts) -> str:
    return "".join(text for text, _ in parts)


# The state --------------------------------------------------------------------------------------------------


def test_what_was_found_stays_until_the_next_search_says_something() -> None:
    state = listing(hit(1), hit(2))
    state = moves.asked(moves.typed(moves.moved(state, 1), "other"))
    assert state.running
    assert state.hit == hit(2)
    state = moves.found(state, state.serial, news())
    assert state.finds is not None
    assert (state.finds.count, state.hit, state.running) == (0, None, True)


def test_an_older_search_is_not_heard_any_more() -> None:
    state = asking("a")
    old = state.serial
    state = moves.asked(moves.typed(state, "b"))
    assert moves.found(state, old, news(hit(1))) is state
    assert moves.failed(state, old, "gone") is state
    state = moves.found(state, state.serial, news(hit(2)))
    assert moves.found(state, old, news(hit(1))) is state


def test_the_same_is_not_searched_for_twice_unless_asked_to() -> None:
    state = listing(hit(1))
    assert moves.asked(moves.typed(state, " note ")).serial == state.serial
    assert moves.asked(state, again=True).serial == state.serial + 1
    failed = moves.failed(asking("x"), 1, "no")
    assert moves.asked(failed).serial == 2


def test_hits_are_added_at_the_end_and_the_cursor_stays() -> None:
    state = asking("note")
    state = moves.moved(moves.found(state, 1, news(hit(1), hit(2))), 1)
    state = moves.found(state, 1, news(hit(3), total=3, done=True))
    assert state.finds is not None
    assert [one.ordinal for one in state.finds.hits] == [1, 2, 3]
    assert (state.hit, state.running, state.finds.phase) == (hit(2), False, "done")


def test_nothing_is_asked_for_while_the_query_is_wrong() -> None:
    state = moves.typed(listing(hit(1)), "kind:")
    assert state.fault is not None
    assert moves.asked(state) is state
    assert moves.typed(state, "kind:x").fault is None
    assert moves.typed(state, "  ").fault is None


@pytest.mark.parametrize(
    ("cursor", "by", "here", "expected"),
    [
        (1, 1, (3, 3), 2),
        (1, -1, (3, 3), 0),
        (3, 1, (5, 5), 3),
        (0, -1, (1, 1), 0),
        (0, 1, (4, 4), 3),
        (0, -1, (4, 4), 2),
        (0, 1, (9, 9), 0),
        (3, -1, (0, 0), 3),
        (1, 1, (2, 4), 2),
    ],
)
def test_the_next_hit_is_seen_from_where_one_is(
    cursor: int, by: int, here: tuple[int, int], expected: int
) -> None:
    state = moves.moved(listing(hit(1), hit(3), hit(3), hit(5)), cursor)
    assert moves.stepped(state, by, *here).cursor == expected


# The lines --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [9, 12, 20, 39, 46, 56, 79, 100, 140, 200])
def test_every_line_is_as_wide_as_it_should_be(width: int) -> None:
    hits = (
        hit(1, excerpt=Excerpt("before it ", "note", " and after it " * 30, False)),
        hit(
            2,
            title=None,
            words="世界 👩\u200d👩\u200d👧 note",
            excerpt=Excerpt("世界" * 20, "note", "世界" * 50, False),
        ),
        hit(3, item=None, counts=Counts(1, 2), flags=("compacted",), tokens=5, cap=10),
        hit(99999, status="removed", cause="compacted", reason="x" * 300),
        hit(5, title=ALL, kind=ALL, reason=ALL, excerpt=Excerpt(ALL, ALL, ALL, True)),
    )
    state = listing(*hits, textless=3, withheld=1)
    for line in range(len(hits)):
        parts = lines.hit_parts(state, line, width, sessions=True, threads=ThreadNames())
        assert cells("".join(shown(text) for text, _ in parts)) == width
        assert not BAD.search("".join(shown(text) for text, _ in parts))
    for parts in (lines.heading(state, width), lines.foot(state, width, 20)):
        assert cells(said(parts)) <= max(width, 2)


def test_the_match_is_marked_in_its_surroundings() -> None:
    parts = lines.excerpt_parts(Excerpt("long " * 12, "needle", "\n\tand\n more", False), 40)
    assert [text for text, style in parts if style == "match"] == ["needle"]
    assert said(parts) == "… long long long needle and more".ljust(40)
    assert said(lines.excerpt_parts(Excerpt("a ", "b", " c", True), 10)) == "a b c     "


def test_a_word_in_the_title_is_marked() -> None:
    state = listing(hit(1, title="A Note of mine"))
    assert ("Note", "match") in lines.hit_parts(state, 0, 100)
    assert not [1 for _, style in lines.hit_parts(listing(hit(1), query="Note"), 0, 100) if style == "match"]


def test_a_caret_stands_under_the_mistake() -> None:
    note = said(lines.note_parts(moves.typed(Search(), "世界 kind:"), 80, 3))
    assert cells(note[: note.index("^")]) == 3 + cells("世界 kind:")
    assert "needs a value" in note


@pytest.mark.parametrize("width", [10, 40, 80])
def test_mistakes_far_to_the_right_are_told_all_the_same(width: int) -> None:
    state = moves.typed(Search(), "word " * 30 + "kind:")
    note = said(lines.note_parts(state, width, 3))
    assert cells(note) <= width
    assert "column" in note


def test_a_query_that_means_what_it_looks_like_is_not_explained() -> None:
    assert said(lines.note_parts(moves.typed(Search(), "a  or b"), 80, 3)) == ""
    assert "is:over" in said(lines.note_parts(moves.typed(Search(), "over"), 80, 3))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"total": 12_000}, "12,000 hits"),
        ({"total": 12_000}, "the first 1 are listed"),
        ({"done": False}, "still searching… 50%"),
        ({"textless": 1}, "1 item has no text recorded: not searched"),
        ({"textless": 1 << 16}, "more than 65,536 items have no text"),
        ({"withheld": 2}, "2 redacted"),
    ],
)
def test_the_foot_says_what_was_not_looked_at(given: dict[str, Any], expected: str) -> None:
    assert expected in said(lines.foot(listing(hit(1), **given), 120))


def test_the_foot_says_that_the_trace_has_grown() -> None:
    assert "r 3 steps more by now: search again" in said(lines.foot(listing(hit(1)), 120, 12))
    assert "more by now" not in said(lines.foot(listing(hit(1)), 120, 9))


def test_what_was_not_searched_is_of_no_interest_where_nothing_was_looked_for_in_texts() -> None:
    assert "no text" not in said(lines.foot(listing(hit(1), query="kind:tool", textless=5), 120))


def test_the_help_is_made_of_queries() -> None:
    for example, _ in (*lines.HELP, *lines.EXAMPLES):
        if "( )" not in example:
            parse_query(example)


@pytest.mark.parametrize("width", [1, 30, 80, 200])
def test_the_help_fits(width: int) -> None:
    for parts in lines.help_parts(width):
        assert cells(said(parts)) <= width


def test_the_help_is_whole_at_eighty_columns() -> None:
    whole = [said(parts).rstrip() for parts in lines.help_parts(400)]
    assert [said(parts).rstrip() for parts in lines.help_parts(80)] == whole
    assert len(whole) <= 19


def test_hits_as_a_text_have_one_line_each() -> None:
    state = listing(hit(1, excerpt=Excerpt("a\n", "note", "\tb", True)), hit(2, item=None))
    assert lines.plain(state).splitlines() == [
        "s/2.1\tadded\ttool_result\ti1\t0\tnote 1\ta note b",
        "s/3.1\tstep\t\t\t0\tnothing changed\t",
    ]
