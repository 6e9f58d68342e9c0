"""Bills alone: of every capture, what they come to is what the whole reading says, or they decline."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ctxctl.errors import CtxctlError
from ctxctl.importers.capture import open_capture
from tests.corpus.both_readings import listed, of_bills, printed

LARGEST = 32 << 20
CERTAIN = {"claude-code": 80, "codex": 20, "gemini-cli": 15, "opencode": 4, "pi": 20, "roo": 5}
"""How many captures of a format are answered by bills at least, of those at hand."""


def format_of(path: Path) -> str | None:
    try:
        with open_capture(str(path)) as capture:
            return None if capture.format is None else capture.format.name
    except CtxctlError:
        return None


@pytest.mark.slow
def test_every_capture_costs_the_same_by_its_bills(corpus: Path) -> None:
    answered: Counter[str] = Counter()
    for path in sorted((corpus / "data").rglob("*")):
        kind = format_of(path) if path.is_file() and path.stat().st_size < LARGEST else None
        if kind is None or of_bills(path, kind) is None:
            continue
        answered[kind] += 1
        assert printed(path, kind) == printed(path, kind, contents=True), path
        if (both := listed(path, kind)) is not None:
            assert both[0] == both[1], path
    assert {kind: answered[kind] for kind, least in CERTAIN.items() if answered[kind] < least} == {}
