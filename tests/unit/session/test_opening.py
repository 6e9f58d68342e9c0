"""Opening and closing a capture leaves no file open."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from ctxctl.session import Inspector

ROOT = Path(__file__).parents[3]


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="open files cannot be listed here")
@pytest.mark.parametrize(
    "path",
    [
        ROOT / "traces" / "notes-assistant.jsonl",
        ROOT / "fixtures" / "otel" / "otlp.json",
        next((ROOT / "fixtures" / "claude_code").rglob("*.jsonl")),
        ROOT / "fixtures" / "sibyl",
    ],
    ids=lambda path: path.name,
)
def test_no_file_stays_open(path: Path) -> None:
    gc.collect()
    before = len(os.listdir("/dev/fd"))
    gc.disable()  # what is closed by chance only is not closed
    try:
        with Inspector.open(path) as inspector:
            assert list(inspector.replay())
        after = len(os.listdir("/dev/fd"))
    finally:
        gc.enable()
    assert after == before
