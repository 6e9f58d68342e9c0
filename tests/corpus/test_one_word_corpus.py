"""Real captures: every view words the same sizes, shares and limits the same."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ctxctl.errors import UnreadableError
from tests.unit.report.one_word import VIEWS, disagreements, faults, output, printed

FOLDERS = (
    "claude-code",
    "codex",
    "pi",
    "amplifier",
    "gemini-cli",
    "goose",
    "opencode",
    "openhands",
    "copilot-cli",
)
LARGEST = 400_000
"""Bytes of a capture: whole runs of a dozen fit in a minute."""


def captures() -> list[Path]:
    """Return two small captures of each folder that there is."""
    data = Path(os.environ.get("CTXCTL_CORPUS", "")) / "data"
    found: list[Path] = []
    for folder in FOLDERS:
        files = sorted((data / folder).rglob("*.json*")) if (data / folder).is_dir() else []
        sized = [path for path in files if 20_000 < path.stat().st_size < LARGEST and "meta" not in path.name]
        found += sized[:: max(1, len(sized) // 2)][:2]
    return found[:14]


@pytest.mark.corpus
@pytest.mark.skipif(shutil.which("node") is None, reason="needs a JavaScript engine")
def test_two_hundred_values_of_captures_have_one_wording() -> None:
    paths = captures()
    assert len(paths) >= 6
    asked = 0
    for path in paths:
        try:
            found, values = disagreements(path)
        except UnreadableError:  # a file beside a capture
            continue
        assert found == [], path.name
        asked += values
    assert asked >= 200


@pytest.mark.corpus
def test_no_view_of_a_capture_words_a_value_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    looked = 0
    for path in captures()[::3]:
        raw = path.read_text("utf-8", "replace")
        for view in VIEWS:
            if view in ("find", "markdown"):
                continue  # excerpts of contents, cut anywhere
            try:
                text = output(path, view, printed(capsys))
            except AssertionError:
                continue
            looked += 1
            assert faults(text, raw) == [], (path.name, view)
    assert looked >= 4
