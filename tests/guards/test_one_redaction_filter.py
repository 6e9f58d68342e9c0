"""One filter stands between a trace and its views, and whoever reads a text past it is named here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ctxctl

PACKAGE = Path(ctxctl.__file__).parent
ROOMS = ("session", "analysis", "lint", "budget", "report", "cli", "tui")
UNMASKED = {
    "report/content_policy.py": "asks the filter about each text before an export has it",
    "session/counting.py": "counts tokens",
    "session/redaction/masking.py": "is the filter",
    "session/redaction/untouched.py": "stands in its place where a trace redacts nothing",
}
_READS = re.compile(r"contents\.text\(")
_MAKES = re.compile(r"\bRedactionFilter\(")


def modules(pattern: re.Pattern[str]) -> set[str]:
    """Return the modules between a trace and its views in whose source something stands."""
    paths = (path for room in ROOMS for path in (PACKAGE / room).rglob("*.py"))
    return {p.relative_to(PACKAGE).as_posix() for p in paths if pattern.search(p.read_text("utf-8"))}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [(_READS, set(UNMASKED)), (_MAKES, {"session/redaction/untouched.py"})],
    ids=["reads", "makes"],
)
def test_texts_come_through_the_one_filter(pattern: re.Pattern[str], expected: set[str]) -> None:
    assert modules(pattern) == expected
