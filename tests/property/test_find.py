"""Finding over random traces: a filter over what a replay prints; bisecting: the first that is found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.analysis.bisect import bisect, first_parting
from ctxctl.analysis.search import search_trace
from ctxctl.analysis.series import content_key
from ctxctl.analysis.sessions import compare_sessions
from ctxctl.analysis.where import steps_where
from ctxctl.engine.query import parse_query
from ctxctl.model.results import Placement, Step
from ctxctl.report import jsonout
from ctxctl.session import Inspector
from tests.oracle.build import Event, lines
from tests.oracle.random_traces import traces
from tests.property.test_laws import EXAMPLES, FEWER

Truth = bool | None
Asked = Callable[[dict[str, Any], list[tuple[Placement, str | None]]], Truth]


def changed(fits: Callable[[dict[str, Any]], bool]) -> Asked:
    return lambda step, _: any(fits(c) for c in step["changes"] if c["status"] != "skipped")


def has(item: str) -> Asked:
    return lambda _, frame: any(p.item == item and not p.stale for p, _ in frame)


def says(word: str) -> Asked:
    def asked(_: dict[str, Any], frame: list[tuple[Placement, str | None]]) -> Truth:
        if any(text is not None and word in text.lower() for _, text in frame):
            return True
        return None if any(text is None for _, text in frame) else False

    return asked


def no(asked: Asked) -> Asked:
    def opposite(step: dict[str, Any], frame: list[tuple[Placement, str | None]]) -> Truth:
        truth = asked(step, frame)
        return None if truth is None else not truth

    return opposite


QUERIES: dict[str, Asked] = {
    "window > 30": lambda step, _: step["window"]["used"] > 30,
    "entered>=5 left<3": lambda step, _: step["ledger"]["new"] >= 5 and step["ledger"]["freed"] < 3,
    "turn >= 2 turn<3": lambda step, _: step["turn"] == 2,
    "compacted": lambda step, _: "compacted" in step["flags"],
    "is over": lambda step, _: (
        bool(step["window"]["over"])
        or not {"over_budget", "still_over_budget"}.isdisjoint(step["flags"])
        or (None if step["window"]["cap"] is None else False)
    ),
    "status:removed": changed(lambda c: c["status"] == "removed"),
    "item:=A is updated": changed(lambda c: c["status"] == "updated" and c["item"] == "A"),
    "new > 5 or status:omitted": changed(lambda c: c["new"] > 5 or c["status"] == "omitted"),
    "-kind:system new>0": changed(lambda c: "system" not in c["kind"] and c["new"] > 0),
    "has:=B": has("B"),
    "-has:=B": no(has("B")),
    "text:red": says("red"),
    "-text:red": no(says("red")),
    "-text:2": no(says("2")),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("find")


@FEWER
@given(events=traces(), query=st.sampled_from(sorted(QUERIES)))
def test_finding_filters_what_a_plain_replay_prints(folder: Path, events: list[Event], query: str) -> None:
    trace = folder / "trace.jsonl"
    trace.write_bytes(lines(events))
    with Inspector.open(trace) as inspector:
        printed = [jsonout.step(r) for r in inspector.replay() if isinstance(r, Step)]
        # JSON as it is printed: changes are structs by then
        steps = [
            {
                **step,
                "window": vars_of(step["window"]),
                "ledger": vars_of(step["ledger"]),
                "changes": [vars_of(change) for change in step["changes"]],
            }
            for step in printed
        ]
        expected = []
        for ordinal, step in enumerate(steps):
            frame = [
                (p, inspector.text(p.content) if p.content is not None else None)
                for p in inspector.frame(ordinal).placements
            ]
            expected.append(QUERIES[query](step, frame))
        found = list(steps_where(inspector, parse_query(query)))
        turned = bisect(inspector, parse_query(query))
        hits = {
            hit.ordinal
            for one in search_trace(inspector, parse_query(query), lambda: None)
            for hit in one.hits
        }
    assert [stop.held.truth for stop in found] == expected
    assert hits == {stop.ordinal for stop in found if stop.held.truth}
    for thread in turned:
        mine = [stop for stop in found if (stop.at.step.session, stop.at.step.thread) == tuple(thread.key)]
        first = next((stop for stop in mine if stop.held.truth), None)
        assert thread.first == (first.at.step if first is not None else None)
        assert thread.held == sum(stop.held.truth is True for stop in mine)
        assert thread.steps == len(mine)
        known = [stop.held.truth for stop in mine if stop.held.truth is not None]
        flips = sum(a != b for a, b in zip([False, *known], known, strict=False))
        assert thread.turns == len(thread.flips) == flips


def vars_of(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    return {name: getattr(value, name) for name in value.__struct_fields__}


@settings(max_examples=EXAMPLES // 4)
@given(one=traces(), two=traces())
def test_two_sessions_differ_in_what_their_windows_hold(
    folder: Path, one: list[Event], two: list[Event]
) -> None:
    for name, events in (("one", one), ("two", two)):
        (folder / name).write_bytes(lines(events))
    with Inspector.open(folder / "one") as a, Inspector.open(folder / "two") as b:
        found = compare_sessions(a, b)
        for thread in found.threads:
            standing = 0
            for pair in thread.turns:
                if pair.a is None or pair.b is None:
                    assert pair.by is None
                    continue
                ours, theirs = (
                    Counter(content_key(p) for p in inspector.frame(side.ordinal).placements if not p.stale)
                    for inspector, side in ((a, pair.a), (b, pair.b))
                )
                assert pair.same == (ours & theirs).total()
                differing = len((ours - theirs) | (theirs - ours))
                assert pair.standing <= min(standing, differing)
                assert (differing == 0) == (not pair.items and not pair.standing)
                standing = differing
        assert found.total_a.steps == sum(isinstance(r, Step) for r in a.replay())
        alike = compare_sessions(a, a)
        assert not alike.differs
        assert alike.alone_a == alike.alone_b == 0
        assert all(parted.parting is None for parted in first_parting(a, a))
        partings = [parted.parting for parted in first_parting(a, b) if parted.parting is not None]
        if not partings:
            assert not found.differs
