"""The bounded text diff."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxctl.engine import textdiff
from ctxctl.engine.textdiff import unified

TEXTS = st.lists(st.sampled_from(["a", "b", "c", "", "d e"]), max_size=30).map("\n".join)


def sides(diff: textdiff.TextDiff) -> tuple[list[str], list[str]]:
    old = [line.text for line in diff.lines if line.kind in " -"]
    new = [line.text for line in diff.lines if line.kind in " +"]
    return old, new


@given(TEXTS, TEXTS)
def test_with_full_context_the_diff_holds_both_texts(old: str, new: str) -> None:
    diff = unified(old, new, context=10_000)
    if old == new:
        assert diff.lines == ()
    else:
        assert sides(diff) == (old.split("\n"), new.split("\n"))


@given(TEXTS, TEXTS)
def test_a_divided_diff_is_valid_too(old: str, new: str) -> None:
    table = textdiff._TABLE
    textdiff._TABLE = 4
    try:
        diff = unified(old, new, context=10_000)
    finally:
        textdiff._TABLE = table
    if old != new:
        assert sides(diff) == (old.split("\n"), new.split("\n"))


def test_hunks_have_their_line_numbers() -> None:
    old = "\n".join(str(n) for n in range(30))
    new = old.replace("\n5\n", "\nfive\n").replace("\n25\n", "\n25\n25b\n")
    diff = unified(old, new, context=1)
    assert [line for line in diff.lines if line.kind == "@"] == [("@", "-5,3 +5,3"), ("@", "-26,2 +26,3")]
    assert (diff.added, diff.removed, diff.degraded) == (2, 1, False)


def test_a_large_unrelated_text_costs_bounded_work_and_says_so() -> None:
    old = "\n".join(f"a{n}" for n in range(40_000))
    new = "\n".join(f"b{n}" for n in range(40_000))
    assert unified(old, new).degraded
