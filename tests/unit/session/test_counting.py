"""Counting the contents of a trace: what the cache of counts knows is taken over without the vocabulary."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxctl.session import Inspector
from tools.bench import generate


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("counting") / "trace.jsonl"
    path.write_bytes(b"".join(generate.working(60)))
    return path


def test_counts_of_an_earlier_run_are_taken_over_and_nothing_is_counted_again(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXCTL_CACHE_DIR", str(tmp_path / "cache"))
    with Inspector.open(trace) as inspector:
        expected = [step for step, _ in inspector.walk()][-1].placements
        tokens = [placement.tokens for placement in expected]
    monkeypatch.setattr(
        "ctxctl.tokens.counter.get_encoding", lambda base: pytest.fail("a text is counted again")
    )
    with Inspector.open(trace) as inspector:
        again = [step for step, _ in inspector.walk()][-1].placements
        assert [placement.tokens for placement in again] == tokens


@pytest.mark.parametrize("first", [1, 40])
def test_passes_beside_one_another_are_the_same(
    trace: Path, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    monkeypatch.setenv("CTXCTL_CACHE", "off")
    with Inspector.open(trace) as inspector:
        expected = list(inspector.replay())
    with Inspector.open(trace) as inspector:
        one, other = inspector.replay(), inspector.replay()
        both = [[next(one) for _ in range(first)], [next(other)]]
        both[1] += other
        both[0] += one
    assert both == [expected, expected]
