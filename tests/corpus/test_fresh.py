"""A plan from a client's other sessions holds what a session's bills did."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fresh import CAPS, of_the_corpus, summary

CORPUS = Path(os.environ.get("CTXCTL_CORPUS") or ".")
MANUAL = Path(__file__).resolve().parents[2] / "docs" / "budget.md"
MARKS = ("<!-- fresh -->", "<!-- end of fresh -->")


@pytest.mark.slow
def test_plans_from_other_sessions() -> None:
    rows = of_the_corpus(CORPUS / "data")
    assert len(rows) >= 90
    for share in CAPS:
        some = [row for row in rows if row.share == share]
        within = sum(not (row.early or row.late) for row in some)
        assert within / len(some) >= 0.85
        # One session in twenty is to overflow before p5; with raw counts alone it was one in three.
        assert sum(row.early for row in some) / len(some) <= 0.1
        code = [row for row in some if row.client == "claude-code"]
        assert len(code) >= 28
        assert sum(not (row.early or row.late) for row in code) >= len(code) - 1
    wanted = "\n".join(summary(rows))
    text = MANUAL.read_text()
    head, mark, rest = text.partition(MARKS[0])
    found, end, tail = rest.partition(MARKS[1])
    assert mark
    assert end
    if os.environ.get("CTXCTL_UPDATE_GOLDENS"):
        MANUAL.write_text(f"{head}{mark}\n\n{wanted}\n\n{end}{tail}")
        return
    assert found.strip() == wanted, "docs/budget.md: CTXCTL_UPDATE_GOLDENS=1 writes the table anew"
