"""The table of kinds: one word for each row, aliases that mean one row, and the page that lists them."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from ctxctl.kinds import BRIEF, KINDS, WORDS, Kind, brief_kind, kinds_called, short_kind, usual_segment
from ctxctl.model.vocab import SEGMENTS
from ctxctl.report.events import STANDARD_KINDS

NAMES = [kind.name for kind in KINDS]
PAGE = Path(__file__).parents[2] / "docs" / "search.md"


def test_every_standard_kind_is_in_the_table_once() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert set(NAMES) >= STANDARD_KINDS


@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
def test_a_row_holds_together(kind: Kind) -> None:
    name, word, brief, segment, aliases = kind
    assert kinds_called(name) == (name,)
    assert name in kinds_called(word)
    assert all(kinds_called(alias) == kinds_called(word) for alias in aliases)
    assert all(short_kind(other) == word for other in kinds_called(word))
    assert len(brief) <= BRIEF
    letters = iter(word)
    assert all(letter in letters for letter in brief), "a brief word is the word, or the word shortened"
    assert segment in SEGMENTS
    assert (short_kind(name), brief_kind(name), usual_segment(name)) == (word, brief, segment)


def test_no_word_means_kinds_that_views_tell_apart() -> None:
    assert {word for word, names in WORDS.items() if len({short_kind(name) for name in names}) > 1} == set()


def test_no_name_is_a_part_of_another_one() -> None:
    assert [pair for pair in permutations(NAMES, 2) if pair[0] in pair[1]] == []


def test_words_are_taken_as_people_write_them() -> None:
    assert kinds_called("Tool-Result") == kinds_called("tool result") == ("tool_result",)
    assert kinds_called("Reply") == kinds_called("asst") == ("assistant_message",)
    assert kinds_called("tool") == kinds_called("message") == kinds_called("") == ()


def test_a_kind_of_somebody_else_goes_by_its_name() -> None:
    assert (short_kind("mood_board"), brief_kind("mood_board")) == ("mood_board", "mood_b")
    assert usual_segment("mood_board") == "context"


def test_the_page_on_searches_lists_the_table() -> None:
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE.read_text("utf-8").splitlines()
        if line.startswith("| `") and line.count("|") == 5
    ]
    listed = [row for row in cells if row[0].strip("`") in NAMES]
    assert listed == [
        [f"`{k.name}`", k.word, "" if k.brief == k.word else k.brief, ", ".join(k.aliases)] for k in KINDS
    ]
