"""In no list of changes of a real capture do two items look the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ctxctl.errors import CtxctlError
from ctxctl.session import Inspector
from tests.apart import alike

CORPUS = Path(os.environ.get("CTXCTL_CORPUS") or ".")
LARGEST = 700_000
"""Bytes; a large capture has more items in a list, and takes long to import."""
EVERY = 5
"""One capture in so many; all of them with CTXCTL_CORPUS_ALL."""
FRAMES = 3


@pytest.mark.slow
def test_no_two_items_of_a_list_look_the_same() -> None:
    files = sorted((CORPUS / "data").rglob("*.json*"))
    small = [path for path in files if path.is_file() and path.stat().st_size < LARGEST]
    chosen = small if os.environ.get("CTXCTL_CORPUS_ALL") else small[::EVERY]
    looked, found = 0, []
    for path in chosen:
        try:
            with Inspector.open(path, calibration="shipped") as inspector:
                found += alike(inspector, FRAMES)
                looked += 1
        except CtxctlError:  # no capture
            continue
    assert looked >= 100
    assert found == []
