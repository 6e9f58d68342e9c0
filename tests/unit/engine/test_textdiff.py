"""The bounded text diff."""

from __future__ import annotations

import difflib
import random
import time
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxctl import listdiff
from ctxctl.engine.textdiff import unified as textdiff
from ctxctl.engine.textdiff.unified import unified_diff

TEXTS = st.lists(st.sampled_from(["a", "b", "c", "", "d e", "a\r", "é", "\U0001f600"]), max_size=30).map(
    "\n".join
)
BRANCHES = {
    "texts": {},
    "lines": {"quick": 0},
    "table": {"quick": 0, "_GREEDY": 0},
    "unique lines": {"quick": 0, "_GREEDY": 0, "_TABLE": 4},
    "windows": {"quick": 0, "_GREEDY": 0, "_TABLE": 40, "_WINDOW": 3, "_DEPTH": 0},
    "small windows": {"quick": 0, "_GREEDY": 0, "_TABLE": 40, "_WINDOW": 1, "_DEPTH": 0},
    "given up": {"quick": 0, "_GREEDY": 0, "_TABLE": 0, "_DEPTH": 0},
    "unique lines, then given up": {"quick": 0, "_GREEDY": 0, "_TABLE": 0},
    "no characters left": {"quick": 0, "_CODES": 1},
    "no characters left for a table": {"quick": 0, "_CODES": 1, "_GREEDY": 0},
}
EXACT = ("texts", "lines", "table", "no characters left", "no characters left for a table")


@pytest.fixture(params=BRANCHES)
def branch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Force one way of comparing."""
    limits = dict(BRANCHES[request.param])
    if "quick" in limits:
        monkeypatch.setattr(textdiff, "_QUICK_STEPS", limits.pop("quick"))
        if limits.get("_GREEDY") == 0:
            monkeypatch.setattr(listdiff, "_QUICK", 0)
    for name, value in limits.items():
        monkeypatch.setattr(listdiff, name, value)
    return str(request.param)


def sides(diff: textdiff.TextDiff) -> tuple[list[str], list[str]]:
    old = [line.text for line in diff.lines if line.kind in " -"]
    new = [line.text for line in diff.lines if line.kind in " +"]
    return old, new


def applied(old: str, diff: textdiff.TextDiff) -> str:
    """The new text, from the old one and the hunks, as a patch tool makes it."""
    lines = old.split("\n")
    out: list[str] = []
    at = 0
    for kind, text in diff.lines:
        if kind == "@":
            first, _, size = text.split(" ")[0][1:].partition(",")
            start = int(first) - (size != "0")
            assert start >= at
            out += lines[at:start]
            at = start
            first, _, size = text.split("+")[1].partition(",")
            assert len(out) == int(first) - (size != "0")
        elif kind == "+":
            out.append(text)
        else:
            assert lines[at] == text
            at += 1
            out += [text] * (kind == " ")
    return "\n".join(out + lines[at:])


def kept(old: list[str], new: list[str]) -> int:
    """The length of a longest common subsequence, by the textbook's table."""
    row = [0] * (len(new) + 1)
    for line in old:
        corner = 0
        for at, other in enumerate(new, 1):
            corner, row[at] = row[at], corner + 1 if line == other else max(row[at], row[at - 1])
    return row[-1]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS, TEXTS, st.integers(0, 4))
def test_every_branch_gives_a_diff_that_makes_the_new_text(
    branch: str, old: str, new: str, context: int
) -> None:
    diff = unified_diff(old, new, context=context)
    assert applied(old, diff) == new
    assert diff.added == sum(line.kind == "+" for line in diff.lines)
    assert diff.removed == sum(line.kind == "-" for line in diff.lines)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS, TEXTS)
def test_what_is_not_said_to_be_degraded_is_minimal(branch: str, old: str, new: str) -> None:
    diff = unified_diff(old, new)
    a, b = old.split("\n"), new.split("\n")
    assert not (branch in EXACT and diff.degraded)
    if not diff.degraded:
        most = kept(a, b)
        assert (diff.removed, diff.added) == (len(a) - most, len(b) - most)


@given(TEXTS, TEXTS)
def test_with_full_context_the_diff_holds_both_texts(old: str, new: str) -> None:
    diff = unified_diff(old, new, context=10_000)
    if old == new:
        assert diff.lines == ()
    else:
        assert sides(diff) == (old.split("\n"), new.split("\n"))


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.sampled_from([0.002, 0.02, 0.3]), st.integers(2, 400))
def test_longer_texts_with_lines_moved_dropped_and_replaced(seed: int, share: float, kinds: int) -> None:
    rng = random.Random(seed)
    old = [f"line {rng.randrange(kinds)}" for _ in range(rng.randrange(300))]
    new = [rng.choice(old) if rng.random() < share else line for line in old if rng.random() >= share]
    new[len(new) // 2 : len(new) // 2] = old[: rng.randrange(5)]
    diff = unified_diff("\n".join(old), "\n".join(new))
    assert applied("\n".join(old), diff) == "\n".join(new)
    assert (not diff.degraded, len(old or [""]) - diff.removed) == (True, kept(old or [""], new or [""]))


def test_hunks_have_their_line_numbers() -> None:
    old = "\n".join(str(n) for n in range(30))
    new = old.replace("\n5\n", "\nfive\n").replace("\n25\n", "\n25\n25b\n")
    diff = unified_diff(old, new, context=1)
    assert [line for line in diff.lines if line.kind == "@"] == [("@", "-5,3 +5,3"), ("@", "-26,2 +26,3")]
    assert (diff.added, diff.removed, diff.degraded) == (2, 1, False)


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("", "", []),
        ("", "a", ["@-1 +1", "-", "+a"]),
        ("a", "", ["@-1 +1", "-a", "+"]),
        ("a\n", "a", ["@-1,2 +1", " a", "-"]),
        ("a\nb\n", "a\r\nb\r\n", ["@-1,3 +1,3", "-a", "-b", "+a\r", "+b\r", " "]),
        ("ab\nc", "b\nc", ["@-1,2 +1,2", "-ab", "+b", " c"]),
        ("x\nx\nx", "x\nx", ["@-1,3 +1,2", " x", " x", "-x"]),
    ],
)
def test_small_texts_and_line_ends(old: str, new: str, lines: list[str]) -> None:
    assert [kind + text for kind, text in unified_diff(old, new).lines] == lines


def test_a_few_edits_in_a_large_repetitive_log_are_found_exactly() -> None:
    rng = random.Random(5)
    old = rng.choices([f"worker {n} did what it did before" for n in range(300)], k=24_000)
    new = list(old)
    for at in range(1_000, 24_000, 2_000):
        new[at] = old[at - 7] if at % 3 else f"edit {at}"
    theirs = list(difflib.unified_diff(old[:4_000], new[:4_000], lineterm="", n=3))
    ours = unified_diff("\n".join(old), "\n".join(new))
    assert not ours.degraded
    assert (ours.added, ours.removed) == (12, 12)
    assert [
        line
        for line in unified_diff("\n".join(old[:4_000]), "\n".join(new[:4_000])).lines
        if line.kind in "+-"
    ] == [(line[0], line[1:]) for line in theirs[2:] if line[0] in "+-"]


def test_texts_without_a_common_line_are_known_to_share_none() -> None:
    old = "\n".join(f"a{n}" for n in range(40_000))
    new = "\n".join(f"b{n}" for n in range(40_000))
    assert (unified_diff(old, new).degraded, unified_diff(old, new).added) == (False, 40_000)


def _shuffled(size: int, kinds: int) -> tuple[str, str]:
    rng = random.Random(size)
    lines = [f"{n:x}" for n in range(kinds)]
    return "\n".join(rng.choices(lines, k=size)), "\n".join(rng.choices(lines, k=size))


def _permuted(size: int) -> tuple[str, str]:
    rng = random.Random(size)
    lines = [f"line {n}" for n in range(size)]
    return "\n".join(lines), "\n".join(rng.sample(lines, size))


LARGE: dict[str, Callable[[], tuple[str, ...]]] = {
    "1 MB of log in another order": lambda: _shuffled(300_000, 300),
    "1 MB of unique lines in another order": lambda: _permuted(90_000),
    "1 MB of two lines": lambda: _shuffled(500_000, 2),
    "5 MB of 300 lines": lambda: tuple(text.replace("\n", " of a log\n") for text in _shuffled(420_000, 300)),
    "1 MB of one line, and half of it": lambda: ("x\n" * 500_000, "x\n" * 250_000 + "y"),
    "one line of 1 MB": lambda: ("x" * 1_000_000, "x" * 500_000 + "y" + "x" * 500_000),
    "long lines that differ at their ends": lambda: (
        "\n".join("x" * 20_000 + f"a{n}" for n in range(100)),
        "\n".join("x" * 20_000 + f"b{n}" for n in range(100)),
    ),
}


@pytest.mark.parametrize("case", LARGE)
def test_the_worst_texts_take_bounded_work(case: str) -> None:
    old, new = LARGE[case]()
    start = time.process_time()
    diff = unified_diff(old, new)
    spent = time.process_time() - start
    # On the machine this was written on no case takes a fifth of it.
    assert spent < 8
    assert applied(old, diff) == new


def test_what_is_given_up_says_so() -> None:
    assert unified_diff(*_shuffled(300_000, 300)).degraded


@pytest.mark.parametrize(
    ("between", "context", "hunks"), [(6, 3, 1), (7, 3, 2), (2, 1, 1), (3, 1, 2), (1, 0, 2)]
)
def test_hunks_whose_contexts_touch_are_one(between: int, context: int, hunks: int) -> None:
    same = [f"same {n}" for n in range(between)]
    old = ["head", "old", *same, "was", "tail"]
    new = ["head", "new", *same, "is", "tail"]
    diff = unified_diff("\n".join(old), "\n".join(new), context=context)
    assert sum(line.kind == "@" for line in diff.lines) == hunks
