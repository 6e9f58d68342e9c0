"""Every frame of every capture is rebuilt exactly from the rows of its session store."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.store.rebuilt import differences

LARGEST = 4_500_000
"""Bytes of a capture."""
PARTS = 12


@pytest.mark.parametrize("part", range(PARTS))
def test_rows_say_what_the_replay_said(corpus: Path, part: int) -> None:
    suffixes = {".json", ".jsonl", ".yaml", ".eval", ".log", ".md"}
    paths = [path for path in sorted((corpus / "data").rglob("*")) if path.suffix in suffixes]
    mine = [path for path in paths[part::PARTS] if path.stat().st_size < LARGEST]
    assert mine
    wrong = {str(path): found for path in mine if (found := differences(path))}
    assert wrong == {}
