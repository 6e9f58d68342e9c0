"""The laws of the true window with a calibration in force that weighs otherwise after every bill."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.engine.replay.cursor import StepAt
from ctxctl.model.results import Step, Turn
from ctxctl.session.live import LiveSession
from tests.oracle import scales
from tests.oracle.build import ABC, HELLO, Event, assembly, block, inject, item, lines, usage
from tests.oracle.build import at as put
from tests.oracle.random_traces import traces

WRAPPER = "<x>\n{content}\n</x>"
EXAMPLES = settings.default.max_examples if settings.default else 100
FEWER = settings(max_examples=max(EXAMPLES // 2, 1))
FEW = settings(max_examples=max(EXAMPLES // 4, 1))


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scaled") / "trace.jsonl"


def walked(trace: Path, events: list[Event], **how: Any) -> list[StepAt]:
    with scales.opened(trace, events, **how) as inspector:
        return [at for at, _ in inspector.walk()]


def by_thread(ats: Iterable[StepAt]) -> list[list[StepAt]]:
    found: dict[tuple[str | None, str], list[StepAt]] = {}
    for at in ats:
        found.setdefault((at.step.session, at.step.thread), []).append(at)
    return list(found.values())


def frame(at: StepAt) -> list[tuple[Any, ...]]:
    return [(p.item, p.version, p.digest, p.stale, p.method, p.tokens, p.counted) for p in at.placements]


def holds(step: Step, last: Step | None) -> None:
    window, ledger = step.window, step.ledger
    assert ledger.window_before == (0 if last is None else last.ledger.window_after)
    assert (
        ledger.window_after
        == ledger.window_before + ledger.reweighed + ledger.new - ledger.freed
        == window.recorded
    )
    assert sum(window.by_method.values()) == window.recorded
    assert window.used == window.recorded + (window.unrecorded or 0)
    assert (window.used_method == "recorded") == (window.unrecorded is None)
    assert sum(step.segments.values()) == window.used
    assert (
        list(step.segments)[:1] == ["unrecorded"] if window.unrecorded else "unrecorded" not in step.segments
    )
    if window.used_method == "reported":
        assert step.usage is not None
        assert window.used == step.usage.reported_input
    if last is not None and window.unrecorded is not None and last.window.unrecorded is not None:
        moved = ledger.new - ledger.freed + window.unrecorded - last.window.unrecorded
        assert window.used == last.window.used + moved


@FEWER
@given(events=traces(threads=2, steps=16), raw=st.booleans())
def test_what_is_weighed_adds_up_and_stays_as_it_came(trace: Path, events: list[Event], raw: bool) -> None:
    for thread in by_thread(walked(trace, events, scales=scales.Restless(raw_first=raw))):
        weighed: dict[int, tuple[int, str]] = {}
        last = None
        for at in thread:
            holds(at.step, last)
            assert sum(p.tokens for p in at.placements) == at.step.window.recorded
            assert sum(p.counted for p in at.placements) == at.step.window.counted
            for p in at.placements:
                assert weighed.setdefault(p.key, (p.tokens, p.method)) == (p.tokens, p.method)
            last = at.step


@FEWER
@given(events=traces(threads=2, steps=16))
def test_what_is_expected_is_the_last_bill_and_what_moved(trace: Path, events: list[Event]) -> None:
    for thread in by_thread(walked(trace, events)):
        size = None
        for at in thread:
            window, ledger = at.step.window, at.step.ledger
            size = None if size is None else max(0, size + ledger.new - ledger.freed)
            if window.used_method == "reported":
                size = window.used
            elif size is None:
                assert window.used_method == "recorded"
            else:
                assert (window.used_method, window.used) == ("expected", size)


@FEW
@given(events=traces(threads=2, steps=16), raw=st.booleans(), start=st.integers(0, 30))
def test_a_step_opened_by_itself_is_the_step_that_passed_by(
    trace: Path, events: list[Event], raw: bool, start: int
) -> None:
    restless = scales.Restless(raw_first=raw)
    ats = walked(trace, events, scales=restless)
    with scales.opened(trace, events, restless) as inspector:
        first = start % len(ats)
        assert inspector.step(first) == ats[first].step, "before there are any snapshots"
        inspector.outline()
        for ordinal in [*reversed(range(len(ats))), *range(len(ats))]:
            found = inspector.at(ordinal)
            assert found.step == ats[ordinal].step
            assert frame(found) == frame(ats[ordinal])


@FEW
@given(events=traces(threads=2, steps=16), cuts=st.lists(st.floats(0, 1), max_size=5))
def test_what_is_watched_is_what_is_replayed(trace: Path, events: list[Event], cuts: list[float]) -> None:
    data = lines(events)
    replayed = {key_of(at.step): at.step for at in walked(trace, events)}
    path = trace.with_name("grows.jsonl")
    path.write_bytes(b"")
    said: dict[tuple[Any, ...], Step] = {}

    def take(result: Step | Turn) -> None:
        if isinstance(result, Step):
            said[key_of(result)] = result

    with scales.calibrated(scales.Restless()), LiveSession(path, take=take) as live:
        at = 0
        for cut in [*sorted(cuts), 1.0]:
            end = max(at, round(cut * len(data)))
            with path.open("ab") as file:
                file.write(data[at:end])
            at = end
            while (news := live.poll(0)).state == "reading":
                pass
            for row in news.rows:
                assert news.inspector is not None
                assert news.inspector.step(row.ordinal).window.used == row.used
        news = live.finish()
        assert news.inspector is not None
        for row in news.rows:
            opened = news.inspector.frame(row.ordinal)
            assert sum(p.tokens for p in opened.placements) == opened.step.window.recorded
    assert {key: step.window for key, step in said.items()} == {
        key: step.window for key, step in replayed.items()
    }


def key_of(step: Step) -> tuple[Any, ...]:
    return step.session, step.thread, step.turn, step.step


def test_what_came_before_there_was_a_scale_stays_unscaled_wherever_one_begins(trace: Path) -> None:
    """A placement that a snapshot has to make anew is as large as it was when it came."""
    events = put("t1", "s1", item("A", ABC))
    for n in range(1, 6):
        blocks = [block("A", wrapper=WRAPPER), f"N{n}"]
        events += put("t1", f"s{n}", item(f"N{n}", HELLO), assembly(f"m{n}", blocks), inject(f"m{n}"))
        events += put("t1", f"s{n}", usage(50 + n))
    with scales.opened(trace, events) as inspector:
        inspector.outline()
        found = [inspector.at(n) for n in reversed(range(5))][::-1]
    # The wrapped text has 11 tokens; the new one's two weigh 2, 2, then three, four and five times as much.
    assert [[p.tokens for p in one.placements] for one in found] == [
        [11, 2],
        [11, 2],
        [11, 6],
        [11, 8],
        [11, 10],
    ]
    assert [one.step.ledger.window_after for one in found] == [13, 13, 17, 19, 21]


def test_a_look_at_an_open_step_weighs_nothing_for_good(trace: Path) -> None:
    """A step that is still open is shown at today's scale; what comes later has a later one."""
    head = put("t1", "s1", item("A", ABC), assembly("m1", ["A"]), inject("m1"), usage(50))
    head += put("t1", "s2", assembly("m2", ["A"]), inject("m2"), usage(51))
    head += put("t1", "s3", item("B", HELLO), usage(52))
    tail = put("t1", "s3", assembly("m3", ["A"]), inject("m3"), usage(52))
    tail += put("t1", "s4", assembly("m4", ["A", "B"]), inject("m4"), usage(53))
    said = [one.step.window.recorded for one in walked(trace, head + tail)]
    path = trace.with_name("looked-at.jsonl")
    whole = lines(head + tail)
    path.write_bytes(whole[: len(lines(head))])
    with scales.calibrated(scales.Restless()), LiveSession(path) as live:
        live.poll(0)
        path.write_bytes(whole)
        live.poll(0)
        news = live.finish()
        assert [row.used for row in news.rows] == [50, 51, 52, 53]
        assert news.inspector is not None
        assert [news.inspector.step(n).window.recorded for n in range(4)] == said
