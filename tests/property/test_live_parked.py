"""A parked snapshot goes on as the engine would have that it was taken of, whatever that has done since."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from types import FunctionType, ModuleType

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.engine.replay.cursor import Snapshots, StepAt, ignore_problem, steps_with_turns
from ctxctl.engine.replay.item_table import ItemVersion
from ctxctl.engine.replay.rules import ReplayRules
from ctxctl.engine.replay.run import Engine
from ctxctl.model.content import Content
from ctxctl.model.event import Event
from ctxctl.model.records import Assembly, Item
from ctxctl.model.results import Placement
from ctxctl.session import Inspector
from tests.oracle.build import Event as Line
from tests.oracle.build import lines
from tests.oracle.random_traces import traces
from tests.unit.engine.making import add, assembly, inject, remove

EXAMPLES = settings.default.max_examples if settings.default else 100
FEWER = settings(max_examples=EXAMPLES // 2)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("parked") / "trace.jsonl"


def plain(at: StepAt) -> object:
    """All that a step says; placements are the same only where they are one object."""
    return at.step, [msgspec.structs.astuple(p) for p in at.placements], at.turn


def run(engine: Engine, events: list[Event]) -> list[object]:
    found: list[object] = []
    for event in events:
        if done := engine.feed(event):
            found += map(plain, steps_with_turns(engine, done))
    return found + [plain(at) for at in steps_with_turns(engine, engine.end())]


def hold(inspector: Inspector, cuts: set[int]) -> int:
    """Park the engine in front of some events; how many steps came after the first of these."""
    events = list(inspector.trace.events())
    engine = Engine(inspector.rules(), ignore_problem)
    parked: list[tuple[int, int, Engine]] = []
    whole: list[object] = []
    for n, event in enumerate(events):
        if n in cuts:
            twin = engine.copy(ignore_problem)
            twin.park()
            parked.append((n, len(whole), twin))
        if done := engine.feed(event):
            whole += map(plain, steps_with_turns(engine, done))
    whole += map(plain, steps_with_turns(engine, engine.end()))
    for n, steps, twin in parked:
        for _ in range(2):  # whoever goes on from a snapshot leaves it as it is
            assert run(twin.copy(ignore_problem), events[n:]) == whole[steps:]
        again = twin.copy(ignore_problem)
        again.park()
        assert run(again.copy(ignore_problem), events[n:]) == whole[steps:]
    return len(whole) - parked[0][1] if parked else 0


@given(traces(), st.sets(st.integers(0, 200), max_size=5))
@FEWER
def test_a_parked_engine_goes_on_as_the_one_it_was_taken_of(
    trace: Path, events: list[Line], cuts: set[int]
) -> None:
    trace.write_bytes(lines(events))
    with Inspector.open(trace) as inspector:
        hold(inspector, cuts)


@st.composite
def windows(draw: st.DrawFn) -> list[dict]:
    """Long chains of spliced assemblies, bases of before included, in a window that grows and shrinks."""
    events: list[dict] = []
    sizes: dict[str, int] = {}
    for n in range(draw(st.integers(40, 80))):
        ids = {"turn": f"t{n // 3}", "step": f"s{n}"}
        name = f"i{draw(st.integers(0, 40))}"
        events.append(add(name, f"text {draw(st.integers(0, 9))}", **ids))
        if draw(st.integers(0, 9)) == 0:
            events.append(remove(f"i{draw(st.integers(0, 40))}", **ids))
        names = list(sizes)
        base = None if not names else draw(st.sampled_from([*names[-1:] * 6, *names[-20:]]))
        if base is None or draw(st.integers(0, 19)) == 0:
            whole = draw(st.integers(1, 30))
            events.append(assembly(f"a{n}", *[f"i{k}" for k in range(whole)], **ids))
            sizes[f"a{n}"] = whole
        else:
            at = draw(st.integers(0, sizes[base]))
            out = draw(st.integers(0, min(3, sizes[base] - at)))
            blocks = [name] * draw(st.integers(0, 2))
            ours = {"base": base, "splices": [[at, out, len(blocks)]]}
            events.append(assembly(f"a{n}", *blocks, ours=ours, **ids))
            sizes[f"a{n}"] = sizes[base] - out + len(blocks)
        events.append(inject(f"a{n}", "message_history", **ids))
    return events


@given(windows(), st.sets(st.integers(0, 350), min_size=1, max_size=4))
@settings(FEWER, max_examples=8, deadline=None)
def test_a_window_of_many_splices_is_the_same_from_a_parked_engine(
    trace: Path, events: list[dict], cuts: set[int]
) -> None:
    trace.write_bytes(lines(events))
    with Inspector.open(trace) as inspector:
        hold(inspector, cuts)


def own_bytes(snapshots: Snapshots, engine: Engine) -> int:
    """Bytes of what the snapshots hold and the engine does not, what the trace itself says left out."""
    said = (ItemVersion, Placement, Item, Content, Assembly, ReplayRules, str, type, ModuleType, FunctionType)

    def reach(roots: list[object], seen: dict[int, object]) -> int:
        size = 0
        while roots:
            found = roots.pop()
            if id(found) not in seen and not isinstance(found, said):
                seen[id(found)] = found
                size += sys.getsizeof(found)
                roots += gc.get_referents(found)
        return size

    seen: dict[int, object] = {}
    reach([engine], seen)
    return reach([snapshot.engine for snapshot in snapshots._all], seen)


@pytest.mark.parametrize("append", [False, True])
def test_snapshots_hold_as_much_as_is_reckoned_and_no_more_than_they_may(
    trace: Path, monkeypatch: pytest.MonkeyPatch, *, append: bool
) -> None:
    monkeypatch.setattr("ctxctl.engine.replay.cursor._MAX_SNAPSHOT_CELLS", 6_000)
    events: list[dict] = []
    for n in range(600):
        ids = {"turn": f"t{n}", "step": f"s{n}"}
        events.append(add(f"i{n}", f"text {n}", **ids))
        if not append:
            ours = {"base": f"a{n - 1}", "splices": [[0, 1 if n > 40 else 0, 0], [min(n, 41), 0, 1]]}
            events.append(assembly(f"a{n}", f"i{n}", ours=ours if n else None, **ids))
        events.append(inject(f"a{n}", "user_message_appendix" if append else "message_history", **ids))
    trace.write_bytes(lines(events))
    with Inspector.open(trace) as inspector:
        engine = Engine(inspector.rules(), ignore_problem)
        snapshots = Snapshots(engine)
        done = largest = 0
        for event in inspector.trace.events():
            for at in steps_with_turns(engine, engine.feed(event) or ()):
                done += 1
                assert len(at.placements) == (done if append else min(done, 41))
            before = sum(s.cells for s in snapshots._all)
            snapshots.offer(engine, done, event.offset, event.line)
            largest = max(largest, snapshots._all[-1].cells)
            assert sum(s.cells for s in snapshots._all) <= max(6_000, 2 * largest), before
        reckoned = 32 * sum(s.cells for s in snapshots._all)
        assert len(snapshots._all) > 1
        assert own_bytes(snapshots, engine) < 2 * reckoned + 30_000
