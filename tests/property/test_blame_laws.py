"""Blame over random traces: the blocks are the text, and a copy is there since there were as many of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given

from ctxctl.analysis.blame import blame_frame
from ctxctl.model.blame import Blame
from ctxctl.session import Inspector
from tests.oracle.build import Event, lines
from tests.oracle.random_traces import traces
from tests.property.test_laws import FEWER


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("blame") / "trace.jsonl"


def explained(inspector: Inspector, ordinal: int) -> list[tuple[int, int]]:
    """For each placement the ordinals of `since` and `entered`, by looking at every frame before."""
    history = [ordinal]
    while (before := inspector.previous(history[-1])) is not None:
        history.append(before)
    frames = [inspector.frame(n).placements for n in history]
    copies = [Counter(p.key for p in frame) for frame in frames]
    items = [Counter(p.item for p in frame) for frame in frames]
    nth: Counter[int] = Counter()
    found = []
    for placement in frames[0]:
        key = placement.key
        nth[key] += 1
        held = [n for n, count in zip(history, copies, strict=True) if count[key] < nth[key]]
        there = [n for n, count in zip(history, items, strict=True) if not count[placement.item]]
        found.append((first_after(history, held), first_after(history, there)))
    return found


def first_after(history: list[int], without: list[int]) -> int:
    """The step behind the last one without it."""
    return min(n for n in history if not without or n > without[0])


def holds(found: Blame, inspector: Inspector, ordinal: int) -> None:
    """The laws of one frame."""
    text, joint = found.text, found.joint
    assert text == inspector.assembled(ordinal)
    assert joint.join(text[b.start : b.end] for b in found.blocks) == text
    assert all(b.start <= b.body <= b.stop <= b.end for b in found.blocks)
    recorded = found.step.window.recorded
    assert sum(b.placement.tokens for b in found.blocks) == recorded
    for sums in (found.totals.kinds, found.totals.sources, found.totals.ages):
        assert sum(total.tokens for total in sums) == recorded
        assert sum(total.blocks for total in sums) == len(found.blocks)
    for block in found.blocks:
        if block.twin is not None:
            other = found.blocks[block.twin.position]
            assert other.position < block.position
            same = text[other.body : other.stop] == text[block.body : block.stop]
            assert same == (block.twin.share == 100)


@FEWER
@given(events=traces())
def test_blocks_are_the_text_and_stand_since_they_came(trace: Path, events: list[Event]) -> None:
    trace.write_bytes(lines(events))
    with Inspector.open(trace) as fresh, Inspector.open(trace) as inspector:
        rows = inspector.outline().rows
        for ordinal in range(len(rows)):
            found = blame_frame(inspector, ordinal)
            holds(found, inspector, ordinal)
            moments = [
                (b.since.ordinal, b.entered.ordinal)
                for b in found.blocks
                if b.since is not None and b.entered is not None
            ]
            carried = [p.carried for p in inspector.frame(ordinal).placements]
            told = [
                pair
                for pair, before in zip(explained(inspector, ordinal), carried, strict=True)
                if not before
            ]
            assert moments == told
            walked = blame_frame(fresh, ordinal)
            assert [(b.since, b.entered, b.twin) for b in walked.blocks] == [
                (b.since, b.entered, b.twin) for b in found.blocks
            ]
