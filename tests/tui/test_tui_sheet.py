"""A text diff laid out as lines of one column or two, and its rows."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.engine.textdiff.unified import DiffLine, TextDiff, unified_diff
from ctxctl.text import cells
from ctxctl.tui.screens.diff.sheet import OVER, Section, Sheet, SheetRows, layout, make, row_parts

OLD = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight"
NEW = "one\ntwo\nthree!\nfour\nfive\nsix\nnine\nseven\neight"
WHOLE = 1 << 40
TEXTS = st.lists(st.text("ab \t\u200d\x1b\u202eé漢👩", max_size=30), max_size=12).map("\n".join)


def sheet(old: str = OLD, new: str = NEW, *, split: bool = True, whole: bool = False) -> Sheet:
    diff = unified_diff(old, new, context=WHOLE if whole else 3)
    return make([Section(None, diff)], split=split, whole=whole)


def rows(of: Sheet, width: int) -> list[str]:
    lay = layout(of, width)
    found = SheetRows(of, lay.texts)
    while not found.done:
        found.extend()
    return [
        "".join(text for text, _ in row_parts(of, found.row(n), lay, current=False))
        for n in range(found.count)
    ]


def column(of: Sheet, side: int) -> list[str]:
    """The lines of one side, fillers and heads left out."""
    texts = of.columns[side].text.split("\n")
    return [texts[n] for n in range(of.lines) if of.numbers[side][n]]


def test_an_edited_line_and_its_origin_share_a_row() -> None:
    made = sheet()
    assert made.kinds == b"@  ~   +  "
    assert [made.columns[0].text.split("\n")[3], made.columns[1].text.split("\n")[3]] == ["three", "three!"]
    assert list(made.numbers[0]) == [0, 1, 2, 3, 4, 5, 6, 0, 7, 8]
    assert list(made.numbers[1]) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert [list(made.changes), list(made.ends)] == [[3, 7], [4, 8]]
    assert made.words == ({}, {3: [(5, 6)]})


def test_unified_shows_what_left_above_what_came() -> None:
    made = sheet(split=False)
    assert made.kinds == b"@  -+   +  "
    assert made.text() == (
        "@@ -1,8 +1,9 @@\n one\n two\n-three\n+three!\n four\n five\n six\n+nine\n seven\n eight\n"
    )


def test_the_text_of_two_columns_is_a_unified_diff_too() -> None:
    assert sheet().text() == sheet(split=False).text()


def test_whole_texts_have_no_heads() -> None:
    old = "\n".join(str(n) for n in range(50))
    made = sheet(old, old.replace("25", "twenty-five"), whole=True)
    assert b"@" not in made.kinds
    assert column(made, 0) == old.split("\n")


def test_lines_that_are_nothing_alike_share_a_row_without_marks() -> None:
    made = sheet("a\nqqqqqqqq\nb", "a\n1234\n5678\nb")
    assert made.kinds == b"@ |+ "
    assert made.words == ({}, {})


def test_each_row_is_as_wide_as_the_screen() -> None:
    made = sheet("a 漢字 line\twith tabs " * 9, "a 漢字 line\twith tubs " * 9)
    for width in (1, 5, 20, 33, 60, 99, 100, 160):
        assert {cells(row) for row in rows(made, width)} <= {width} or width < 20


def test_wrapped_lines_stay_beside_each_other() -> None:
    made = sheet("short\n" + "long words " * 12, "short\n" + "long words " * 30, whole=True)
    found = rows(made, 60)
    at = next(n for n, row in enumerate(found) if row.count(" 2 ") == 2)
    assert all("│" in row for row in found)
    assert found[at - 1].count("short") == 2


def test_headings_go_across_and_begin_no_change() -> None:
    made = make(
        [
            Section(
                "~ user  a question that is longer than one of the two columns is wide",
                unified_diff("a", "b"),
            ),
            Section("+ tool  another", None, ["The trace holds no text of it."]),
        ],
        split=True,
    )
    assert made.kinds == b"#@|#!"
    assert list(made.changes) == [2]
    assert "longer than one of the two columns" in rows(made, 80)[0]
    assert len(rows(made, 80)) == 5


@pytest.mark.slow
@given(TEXTS, TEXTS, st.booleans())
def test_both_texts_are_there_line_by_line(old: str, new: str, split: bool) -> None:
    diff = unified_diff(old, new, context=WHOLE)
    made = make([Section(None, diff)], split=split, whole=True)
    if old == new:
        assert made.lines == 0
        return
    if split:
        assert column(made, 0) == old.split("\n")
        assert column(made, 1) == new.split("\n")
    else:
        lines = made.columns[0].text.split("\n")
        assert [lines[n] for n in range(made.lines) if made.numbers[0][n]] == old.split("\n")
        assert [lines[n] for n in range(made.lines) if made.numbers[1][n]] == new.split("\n")
    for width in (24, 61, 120):
        assert {cells(row) for row in rows(made, width)} == {width}


@given(TEXTS, TEXTS, st.integers(1, 40), st.integers(1, 40), st.integers(1, 50))
def test_rows_do_not_depend_on_the_slices(old: str, new: str, left: int, right: int, work: int) -> None:
    made = sheet(old, new)
    one, other = SheetRows(made, (left, right)), SheetRows(made, (left, right))
    one.extend(10**9)
    while not one.done:
        one.extend(10**9)
    counts = []
    for _ in range(100_000):
        if other.done:
            break
        other.extend(work)
        counts.append(other.count)
    assert counts == sorted(counts)
    assert other.count == one.count
    assert [one.row(n) for n in range(one.count)] == [other.row(n) for n in range(other.count)]
    for n in range(one.count):
        assert one.row_of(one.line_at(n)) <= n


def test_a_line_of_megabytes_is_seen_before_it_is_wrapped() -> None:
    made = sheet("x" * 2_000_000 + "\nend", "y" * 2_000_000 + "\nend")
    found = SheetRows(made, (40, 40))
    found.extend()
    found.extend()
    assert not found.done
    assert found.count > 100
    assert found.row(100).line <= 1


@pytest.mark.parametrize("split", [True, False])
def test_many_lines_are_laid_out_in_little_work(split: bool) -> None:
    rng = random.Random(7)
    old = [f"line {n} {rng.random()}" for n in range(20_000)]
    new = [line if rng.random() > 0.1 else line + " changed" for line in old]
    made = make([Section(None, unified_diff("\n".join(old), "\n".join(new)))], split=split)
    assert len(made.changes) > 1000
    assert made.lines == len(made.numbers[0])


def test_a_bare_diff_without_lines_is_empty() -> None:
    made = make([Section(None, TextDiff((), False, 0, 0))], split=True)
    assert made.lines == 0
    assert rows(made, 80) == []
    assert made.text() == ""


def test_kinds_across_are_no_lines_of_either_text() -> None:
    made = make([Section("a\nb", TextDiff((DiffLine("+", "x"),), False, 1, 0), ["r"])], split=False)
    assert made.kinds == b"#!+"
    assert [made.numbers[1][n] for n in range(3)] == [0, 0, 1]
    assert all(chr(kind) in OVER for kind in made.kinds[:2])
