"""Blame, find, bisect and the comparison of sessions on a sample of real captures of every kind.

The captures are not in the repository: CTXCTL_CORPUS names the directory that holds `data`.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from ctxctl.analysis.bisect import bisect, first_parting
from ctxctl.analysis.blame import blame_frame
from ctxctl.analysis.series import content_key
from ctxctl.analysis.sessions import compare_sessions
from ctxctl.analysis.where import steps_where
from ctxctl.engine.query import parse_query
from ctxctl.errors import UnreadableError
from ctxctl.report.blame import text_lines
from ctxctl.report.paint import plain
from ctxctl.session import Inspector

pytestmark = pytest.mark.corpus
EACH = 2
"""Captures of each kind."""
SMALL, LARGE = 4_000, 600_000
QUERIES = ("window > 5k", "cache:broken or compacted", "text:error", "-text:error turn>1", "status:removed")


def captures() -> list[Path]:
    """Some files of each kind, the same ones every time."""
    found: list[Path] = []
    for kind in sorted((Path(os.environ["CTXCTL_CORPUS"]) / "data").iterdir()):
        files = (p for p in islice(kind.rglob("*.json*"), 400) if p.is_file())
        fit = [p for p in files if SMALL <= p.stat().st_size <= LARGE]
        found += sorted(fit, key=lambda p: hashlib.sha256(str(p.name).encode()).digest())[:EACH]
    return found


def opened() -> Iterator[Inspector]:
    """Inspectors on those that can be read and have a step, one after the other."""
    for path in captures():
        try:
            with Inspector.open(path) as inspector:
                if inspector.outline().rows:
                    yield inspector
        except UnreadableError:
            continue


def test_the_questions_are_answered_alike_however_they_are_asked() -> None:
    asked: Counter[str] = Counter()
    for inspector in opened():
        with Inspector.open(inspector.name) as fresh:
            rows = inspector.outline().rows
            for ordinal in sorted({len(rows) // 2, len(rows) - 1}):
                found = blame_frame(inspector, ordinal)
                assert found.text == inspector.assembled(ordinal)
                assert found.joint.join(found.text[b.start : b.end] for b in found.blocks) == found.text
                assert sum(b.placement.tokens for b in found.blocks) == found.step.window.recorded
                walked = blame_frame(fresh, ordinal)
                assert [(b.since, b.entered) for b in walked.blocks] == [
                    (b.since, b.entered) for b in found.blocks
                ]
                assert all(b.age is None or b.age >= 0 for b in found.blocks)
                assert "\x1b" not in "".join(text_lines(found, found.blocks, 80, plain, wrapped=True))
                asked["frames"] += 1
            _finds(inspector, asked)
            _compares(inspector, asked)
    assert asked["frames"] > 60, asked
    assert asked["found"] > 100, asked
    assert asked["pairs"] > 60, asked


def _finds(inspector: Inspector, asked: Counter[str]) -> None:
    used = [row.used for row in inspector.outline().rows]
    over = [stop.ordinal for stop in steps_where(inspector, parse_query("window > 5k")) if stop.held.truth]
    assert over == [n for n, tokens in enumerate(used) if tokens > 5_000]
    for text in QUERIES:
        query = parse_query(text)
        stops = [stop for stop in steps_where(inspector, query) if stop.held.truth]
        firsts = [turned.first for turned in bisect(inspector, query) if turned.first is not None]
        threads = {(stop.at.step.session, stop.at.step.thread): stop for stop in reversed(stops)}
        assert sorted((s.session or "", s.thread, s.turn, s.step) for s in firsts) == sorted(
            (s.at.step.session or "", s.at.step.thread, s.at.step.turn, s.at.step.step)
            for s in threads.values()
        )
        asked["found"] += len(stops)


def _compares(inspector: Inspector, asked: Counter[str]) -> None:
    """A trace is as it is itself, and its first half differs from it where the half ends."""
    found = compare_sessions(inspector, inspector)
    assert not found.differs
    assert all(parted.parting is None for parted in first_parting(inspector, inspector))
    for thread in found.threads:
        for pair in thread.turns:
            assert pair.a is not None
            frame = inspector.frame(pair.a.ordinal).placements
            assert pair.same == len([content_key(p) for p in frame if not p.stale])
            asked["pairs"] += 1
