"""Which lines of a replaced block belong together, and which of their words differ."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxctl.engine.textdiff.line_pairs import DiffEffort, Pair, changed_words, line_pairs

LINES = st.lists(st.text("ab c\t\u200dé👩", max_size=12), max_size=8)
LINE = st.text("ab c1.\t\ufe0f\u200dé👩#", max_size=40)


def test_an_edited_line_stands_beside_what_it_was() -> None:
    old = ["import os", "def area(w, h):", "    return w * h"]
    new = ["import os, sys", "# new", "def area(width, h):", "    return width * h"]
    assert line_pairs(old, new, DiffEffort()) == [Pair(0, 0), Pair(None, 1), Pair(1, 2), Pair(2, 3)]


def test_lines_that_are_nothing_alike_are_no_pair() -> None:
    assert line_pairs(["apples and pears"], ["0x7ff3"], DiffEffort()) == [Pair(0, None), Pair(None, 0)]


def test_large_blocks_pair_in_step_where_lines_are_alike() -> None:
    old = [f"value {n} is old" for n in range(500)]
    new = [f"value {n} is new" for n in range(500)]
    new[7] = "%%%%"
    found = line_pairs(old, new, DiffEffort())
    assert Pair(6, 6) in found
    assert Pair(7, None) in found
    assert Pair(None, 7) in found
    assert Pair(499, 499) in found


def test_without_effort_left_nothing_is_looked_for() -> None:
    assert line_pairs(["a b c"], ["a b d", "x"], DiffEffort(0)) == [
        Pair(0, None),
        Pair(None, 0),
        Pair(None, 1),
    ]
    assert changed_words("a b c", "a b d", DiffEffort(0)) == ([], [])


def test_changed_words_are_whole_words() -> None:
    old, new = changed_words("return total - 10", "return subtotal - 100", DiffEffort())
    assert ["return total - 10"[a:b] for a, b in old] == ["total", "10"]
    assert ["return subtotal - 100"[a:b] for a, b in new] == ["subtotal", "100"]


def test_an_emoji_sequence_is_not_cut() -> None:
    line = "by 👩\u200d💻 today"
    old, new = changed_words(line, "by 👩\u200d🚒 today", DiffEffort())
    assert [line[a:b] for a, b in old] == ["👩\u200d💻"]
    assert len(new) == 1


@given(LINES, LINES)
def test_every_line_is_there_once_and_in_order(old: list[str], new: list[str]) -> None:
    found = line_pairs(old, new, DiffEffort())
    assert [pair.old for pair in found if pair.old is not None] == list(range(len(old)))
    assert [pair.new for pair in found if pair.new is not None] == list(range(len(new)))
    assert Pair(None, None) not in found


@given(LINE, LINE)
def test_what_is_not_marked_is_in_both_lines(old: str, new: str) -> None:
    was, now = changed_words(old, new, DiffEffort())
    for line, spans in ((old, was), (new, now)):
        flat = [offset for span in spans for offset in span]
        assert flat == sorted(flat)
        assert all(0 <= offset <= len(line) for offset in flat)
        assert all(a < b for a, b in spans)
    left_old, left_new = _without(old, was), _without(new, now)
    # A lone character between two marks is marked too: what is left is the same but for these.
    assert left_old == left_new or abs(len(left_old) - len(left_new)) <= len(was) + len(now)


def _without(line: str, spans: list[tuple[int, int]]) -> str:
    kept = ""
    at = 0
    for start, end in spans:
        kept += line[at:start]
        at = end
    return kept + line[at:]


def test_a_line_of_a_megabyte_costs_nothing() -> None:
    effort = DiffEffort()
    assert changed_words("a" * 1_000_000, "b" * 1_000_000, effort) == ([], [])
    assert line_pairs(["a " * 500_000], ["a " * 500_000 + "b"], effort) == [Pair(0, 0)]
