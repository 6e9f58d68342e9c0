"""A live session is read in slices, however much of it there is at once, and questions to it are few."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxctl.session import Inspector
from ctxctl.session.live import LiveSession
from ctxctl.session.live_inspector import _MAX_FED
from ctxctl.tokens.cache import CountCache
from tests.oracle.build import lines
from tests.unit.engine.making import add, inject


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.jsonl"
    events = []
    for n in range(300):
        ids = {"turn": f"t{n}", "step": f"s{n}"}
        events += [add(f"i{n % 40}", f"text {n}", **ids), inject(f"a{n}", **ids)]
    path.write_bytes(lines(events))
    return path


def test_it_stops_between_events_and_shows_what_it_has(trace: Path) -> None:
    with Inspector.open(trace) as whole, LiveSession(trace) as live:
        expected = [whole.step(row.ordinal) for row in whole.outline().rows]
        news = live.poll(0)
        inspector = news.inspector
        assert inspector is not None
        live._anew(inspector)
        inspector = live.inspector
        assert inspector is not None
        fed, more = [], True
        while more:
            more = inspector.feed(lambda: True)
            inspector.publish(open_too=not more)
            fed.append(inspector.events)
            over = inspector.rows.settled
            assert whole.trace.source.read(max(0, inspector.read - 1), 1) == b"\n"
            for ordinal in {0, over // 2, over - 1}:  # some are remembered, some are replayed
                assert inspector.step(ordinal) == expected[ordinal]
        assert fed[0] == _MAX_FED
        assert fed[-1] == 600
        assert len(fed) > 600 // _MAX_FED - 2
        assert [inspector.step(n) for n in range(300)] == expected


def test_the_cache_of_counts_is_asked_once_for_a_batch(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Inspector.open(trace) as inspector:
        known = [step.window.used for step in map(inspector.step, range(300))]
        monkeypatch.setattr(
            "ctxctl.tokens.counter.Counter._tokenise", lambda *_: pytest.fail("counted again")
        )
    asked = []
    read, read_all = CountCache._read, CountCache._read_all
    monkeypatch.setattr(CountCache, "_read", lambda self, key: asked.append(1) or read(self, key))
    monkeypatch.setattr(CountCache, "_read_all", lambda self, keys: asked.append(1) or read_all(self, keys))
    with Inspector.open(trace) as inspector:
        rows = inspector.outline().rows
        assert [row.used for row in rows] == known
    assert len(asked) == 1
