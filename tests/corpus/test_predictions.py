"""A plan from the first half of a long session tells when its bills overflow later, better than a line."""

from __future__ import annotations

import os
from pathlib import Path
from statistics import median

import pytest
from predictions import LINES, Asked, of_the_corpus, relative, summary, table

CORPUS = Path(os.environ.get("CTXCTL_CORPUS") or ".")
MANUAL = Path(__file__).resolve().parents[2] / "docs" / "budget.md"
MARKS = ("<!-- predictions -->", "<!-- end of predictions -->")


@pytest.mark.slow
def test_how_long_sessions_last() -> None:
    """One test: the sessions are replayed once for all that is asked of them."""
    rows = of_the_corpus(CORPUS / "data")
    there_are_long_sessions_of_several_kinds(rows)
    for at in range(len(LINES)):
        the_plan_beats_the_straight_line(rows, 1 + at)
    the_intervals_hold_about_what_they_claim(rows)
    the_table_in_the_manual_is_this_one(rows)


def there_are_long_sessions_of_several_kinds(rows: list[Asked]) -> None:
    assert len({row.session for row in rows}) >= 40
    assert len({row.session.partition("/")[0] for row in rows}) >= 6
    assert {row.unit for row in rows} == {"turn", "request"}
    assert len(rows) == 4 * len({row.session for row in rows})


def the_plan_beats_the_straight_line(rows: list[Asked], at: int) -> None:
    plan = [relative(row, 0) for row in rows]
    line = [relative(row, at) for row in rows]
    assert median(plan) < median(line)
    nearer = sum(a < b for a, b in zip(plan, line, strict=True))
    farther = sum(a > b for a, b in zip(plan, line, strict=True))
    assert nearer > farther
    held_out = [row for row in rows if row.held_out]
    assert median(relative(row, 0) for row in held_out) < median(relative(row, at) for row in held_out)


def the_intervals_hold_about_what_they_claim(rows: list[Asked]) -> None:
    """Nine of ten lie in them; of single sessions, whose four caps hang together, it may be other."""
    within = sum(not row.missed for row in rows) / len(rows)
    assert 0.85 <= within <= 0.95
    wide = [row.late / max(1, row.early) for row in rows]
    assert median(wide) < 8  # an interval that says nothing holds everything


def the_table_in_the_manual_is_this_one(rows: list[Asked]) -> None:
    within = sum(not row.missed for row in rows)
    told = f"Within p5 to p95: {within} of {len(rows)} ({within / len(rows):.0%}; claimed are 90%)."
    whole = median(abs(row.predicted - row.true) / (row.half + row.true) for row in rows)
    said = f"Of the number that is said (`overflow at turn 16`) the median error is {whole:.1%}."
    wanted = "\n".join(["", *summary(rows), "", told, said, "", *table(rows), ""])
    text = MANUAL.read_text()
    head, mark, rest = text.partition(MARKS[0])
    found, end, tail = rest.partition(MARKS[1])
    assert mark
    assert end
    if os.environ.get("CTXCTL_UPDATE_GOLDENS"):
        MANUAL.write_text(head + mark + "\n" + wanted + "\n" + end + tail)
        return
    assert found.strip() == wanted.strip(), "docs/budget.md: CTXCTL_UPDATE_GOLDENS=1 writes the table anew"
