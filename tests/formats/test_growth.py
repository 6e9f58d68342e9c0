"""What an importer does grows with its capture and not with the square of it, in each of its dimensions.

Work is counted, so that no machine and no other process decides: lines of Python that are executed, calls of
Python and of C, and placements in what comes out.  What C does within one call is not in it.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.importers import registry
from ctxctl.importers.registry import REPEATED
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.parents import CIRCLE, Kinship, Lineage
from ctxctl.model import vocab
from ctxctl.model.problem import Problem
from ctxctl.trace.source import Source
from tests.formats import growing, multiplied
from tests.formats.damage import captures, imported

GROWTH = 1.2
"""The most that a record may cost in four times the input, of what it costs in the smaller one: n log n, and
what is done in steps."""
LEAST = 3_000
"""Units of work that are too few to compare."""


class Spent(NamedTuple):
    """What an import took."""

    work: int
    slugs: frozenset[str]


def counted(work: Callable[[], object]) -> int:
    """Lines and calls of some work."""
    count = 0

    def local(_frame: FrameType, event: str, _argument: object) -> object:
        nonlocal count
        count += event == "line"
        return local

    def called(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "c_call"

    before = sys.gettrace(), sys.getprofile()
    gc.disable()
    sys.settrace(lambda *_: local)
    sys.setprofile(called)
    try:
        work()
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
        gc.enable()
    return count


def spent(importer: Format, data: bytes) -> Spent:
    """Import bytes and count the work."""
    slugs: set[str] = set()
    placed = 0

    def work() -> None:
        nonlocal placed
        source = Source.from_bytes("x", data)
        for event in registry.capture_events(importer, source, lambda problem: slugs.add(problem.slug)):
            blocks = event["data"].get("ordered_blocks")
            placed += len(blocks) if isinstance(blocks, list) else 0

    return Spent(counted(work) + placed, frozenset(slugs))


def grows(importer: Format, make: Callable[[int], bytes], count: int) -> str | None:
    """How the work grows from `count` to four times that, if it grows too fast."""
    list(registry.capture_events(importer, Source.from_bytes("x", make(2)), lambda _problem: None))
    # What is imported, compiled and remembered at first is not counted.
    none = spent(importer, make(1)).work
    small = spent(importer, make(count)).work - none
    large = spent(importer, make(4 * count)).work - none
    times = (4 * count - 1) / (count - 1)  # as one is in what is subtracted
    if large <= GROWTH * times * max(small, LEAST):
        return None
    # One may take more than its share: some importers read it in another way.  What is added tells more.
    half, whole = (spent(importer, make(4 * count * n)).work - none for n in (2, 4))
    if whole - half <= GROWTH * 2 * max(half - large, LEAST):
        return None
    return f"{small:,} units for {count}, {large:,} for {4 * count}: {large / small:.1f} times"


# -- parents that cannot be, and rewinds ----------------------------------------------------------------

BUILT = [
    *(pytest.param("claude-code", make, id=f"claude-code-{make.__name__}") for make in growing.CLAUDE_CODE),
    *(pytest.param("otel", make, id=f"otel-{make.__name__}") for make in growing.SPANS),
    *(pytest.param("pi", make, id=f"pi-{make.__name__}") for make in growing.PI),
]
BOUNDED = frozenset(
    {"from_the_beginning", "two_ends", "pi_from_the_beginning", "pi_compacted", "pi_edited", "one_long_run"}
)
"""Captures whose honest reading is a square: each record stands for a whole window."""
CIRCULAR = frozenset(
    {
        "of_itself",
        "one_cycle",
        "pairs",
        "spans_of_themselves",
        "spans_in_a_circle",
        "pi_of_itself",
        "pi_circle",
    }
)


@pytest.mark.parametrize(("name", "make"), [one for one in BUILT if one.values[1].__name__ not in BOUNDED])
def test_work_grows_with_parents_of_any_shape(name: str, make: Callable[[int], bytes]) -> None:
    told = grows(registry.by_name(name), make, 32)
    assert told is None, told


CHANGING = [
    *(pytest.param("opencode", make, id=f"opencode-{make.__name__}") for make in growing.OPENCODE),
    *(pytest.param("copilot-cli", make, id=f"copilot-cli-{make.__name__}") for make in growing.COPILOT),
    *(pytest.param("codex", make, id=f"codex-{make.__name__}") for make in growing.CODEX),
    *(
        pytest.param(name, make, id=f"{name}-{make.__name__}")
        for name, makers in growing.NAMING.items()
        for make in makers
    ),
]
"""Captures whose records change a window that others made, each of them a little."""


@pytest.mark.parametrize(("name", "make"), CHANGING)
def test_work_grows_with_changes_of_a_long_window(name: str, make: Callable[[int], bytes]) -> None:
    told = grows(registry.by_name(name), make, 300)
    assert told is None, told


@pytest.mark.slow
@pytest.mark.parametrize(("name", "make"), [one for one in BUILT if one.values[1].__name__ in BOUNDED])
def test_windows_that_are_listed_again_and_again_end_the_import_with_a_word(
    name: str, make: Callable[[int], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "REPEATED", REPEATED // 60)
    monkeypatch.setattr("ctxctl.ingest.run.WORK", 5_000)
    monkeypatch.setattr("ctxctl.providers.spans.traces._SAID_AGAIN", 5_000)
    importer = registry.by_name(name)
    small, large = (spent(importer, make(count)) for count in (150, 600))
    assert "windows-too-large" in large.slugs
    assert large.work < 4 * GROWTH * small.work


@pytest.mark.parametrize(("name", "make"), [one for one in BUILT if one.values[1].__name__ in CIRCULAR])
def test_a_circle_of_parents_is_told_by_line(name: str, make: Callable[[int], bytes]) -> None:
    found = imported(registry.by_name(name), make(6))
    told = [problem for problem in found.problems if problem.slug == CIRCLE]
    assert told
    assert all(problem.line for problem in told)


@pytest.mark.parametrize(("name", "make"), [one for one in BUILT if one.values[1].__name__ not in CIRCULAR])
def test_no_circle_is_told_where_there_is_none(name: str, make: Callable[[int], bytes]) -> None:
    if make.__name__ == "same_uuid":  # its second line names itself
        return
    found = imported(registry.by_name(name), make(8))
    assert CIRCLE not in {problem.slug for problem in found.problems}


# -- the gate -------------------------------------------------------------------------------------------

_PARENTS = st.lists(st.tuples(st.integers(0, 12), st.none() | st.integers(0, 12)), max_size=30)


@given(_PARENTS)
def test_whatever_parents_are_named_each_walk_ends(records: list[tuple[int, int | None]]) -> None:
    lineage: Lineage[int] = Lineage()
    believed: dict[int, int | None] = {}
    for record, parent in records:
        kinship = lineage.enter(record, parent)
        if record in believed:
            assert (kinship is Kinship.SECOND) == (parent != lineage.parent(record))
            continue
        # By the plain definition: it is a circle if a walk from the parent comes by the record.
        at, steps = parent, 0
        while at is not None and at != record:
            at, steps = believed.get(at), steps + 1
            assert steps <= len(believed) + 1
        assert (kinship is Kinship.CIRCLE) == (parent is not None and at == record)
        believed[record] = None if kinship is Kinship.CIRCLE else parent
        assert lineage.parent(record) == believed[record]


def test_the_gate_takes_a_chain_of_records_in_any_order() -> None:
    count = 3000
    for order in (range(count), range(count - 1, -1, -1), [*range(0, count, 2), *range(1, count, 2)]):
        lineage: Lineage[int] = Lineage()
        found: list[Kinship] = []
        work = counted(partial(found.extend, (lineage.enter(at, (at + 1) % count) for at in order)))
        assert found.count(Kinship.CIRCLE) == 1
        assert work < 60 * count


_SHAPES = st.lists(
    st.tuples(st.booleans(), st.none() | st.integers(0, 14), st.integers(0, 14)), min_size=1, max_size=15
)


@settings(max_examples=60)
@given(_SHAPES)
def test_each_line_of_any_graph_is_in_one_place_or_in_a_problem(
    lines: list[tuple[bool, int | None, int]],
) -> None:
    rows = [
        growing.answered(str(own), None if parent is None else str(parent), f"m{at}")
        if is_answer
        else growing.asked(str(own), None if parent is None else str(parent), f"q {at}")
        for at, (is_answer, parent, own) in enumerate(lines)
    ]
    for at, (row, (is_answer, _, _)) in enumerate(zip(rows, lines, strict=True)):
        if is_answer:
            row["message"]["content"] = [{"type": "text", "text": f"a {at}"}]
    found = imported(registry.by_name("claude-code"), growing.as_lines(rows))
    texts = found.texts()
    told = {problem.line for problem in found.problems}
    for at, (is_answer, _, _) in enumerate(lines):
        text = f"{'a' if is_answer else 'q'} {at}"
        assert texts[text] == 1 or (at + 1 in told and texts[text] == 0), text
    windows = [event for event in found.events if event["event_type"].endswith("assembly.created")]
    assert len(windows) == sum(is_answer for is_answer, _, _ in lines)


# -- every importer -------------------------------------------------------------------------------------

_BYTES = 6_000
"""About the size of the smaller capture of a pair."""
_ALL = "CTXCTL_GROWTH"
"""The variable that has every place of every fixture multiplied, and not the records alone: some minutes."""


BOUNDED_CELLS: Final = frozenset(
    {("openhands/events.json", " afresh"), ("sanqian/agents.jsonl", "records afresh")}
)
"""Fixtures that stand for a square when they are multiplied: each condensation takes out of the whole window,
each turn lists all that is attached."""
LATER: Final = {("aider/restored.chat.history.md", "repeated"): 100}
"""How many it takes until work grows as it goes on: aider restores no more than so much of a history."""


class _Fixture(NamedTuple):
    name: str
    path: Path
    importer: Format


def _fixtures() -> Iterator[_Fixture]:
    for name, path in captures():
        if name.startswith(("lint/", "bills_and_content/")):
            continue
        importer = registry.of_head(path.read_bytes()[: registry.HEAD])
        if importer is not None:
            yield _Fixture(name, path, importer)


def _is_bounded(one: _Fixture, cell: multiplied.Cell) -> bool:
    return (one.name, cell.what) in BOUNDED_CELLS


def _is_whole(cell: multiplied.Cell) -> bool:
    return cell.what in ("repeated", "records again", "records afresh")


def _cells() -> Iterator[tuple[bool, Any]]:
    """The ways to make each importer's fixtures larger, and whether one is always tried: the records as a
    whole, or of a document the longest list."""
    tried: set[tuple[str, str]] = set()
    for one in _fixtures():
        found = list(multiplied.cells(one.path))
        lists = [cell for cell in found if cell.what.endswith((" again", " afresh"))]
        largest = (
            sorted(lists, key=lambda cell: -len(cell.make(5)))[:2] if not any(map(_is_whole, found)) else []
        )
        for cell in found:
            how = cell.what if _is_whole(cell) else cell.what.rpartition(" ")[2] if cell in largest else ""
            always = bool(how) and (one.importer.name, how) not in tried
            tried.add((one.importer.name, how))
            if always or _is_bounded(one, cell) or os.environ.get(_ALL):
                yield always, pytest.param(one, cell, id=f"{one.importer.name}-{one.name}-{cell.what}")


CELLS = list(_cells())


def _check(one: _Fixture, cell: multiplied.Cell) -> None:
    each = max(1, (len(cell.make(9)) - len(cell.make(5))) // 4)
    count = max(5, min(60, _BYTES // each))
    told = grows(one.importer, cell.make, LATER.get((one.name, cell.what), count))
    assert told is None, told


@pytest.mark.parametrize(("one", "cell"), [cell for always, cell in CELLS if always])
def test_work_grows_with_the_records_of_a_capture(one: _Fixture, cell: multiplied.Cell) -> None:
    _check(one, cell)


@pytest.mark.skipif(not os.environ.get(_ALL), reason=f"{_ALL}=1 multiplies every place of every fixture")
@pytest.mark.parametrize(
    ("one", "cell"), [cell for always, cell in CELLS if not (always or _is_bounded(*cell.values))]
)
def test_work_grows_with_what_is_in_a_record(one: _Fixture, cell: multiplied.Cell) -> None:
    _check(one, cell)


@pytest.mark.parametrize(("one", "cell"), [cell for _, cell in CELLS if _is_bounded(*cell.values)])
def test_records_that_list_all_again_and_again_end_the_import_with_a_word(
    one: _Fixture, cell: multiplied.Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "REPEATED", REPEATED // 60)
    monkeypatch.setattr("ctxctl.ingest.run.WORK", 3_000)
    small, large = (spent(one.importer, cell.make(count)) for count in (100, 400))
    assert "windows-too-large" in large.slugs
    assert large.work < 4 * GROWTH * small.work


CONTRADICTORY = ("of_itself", "one_cycle", "pairs", "star", "same_uuid", "spans_of_themselves")
"""Captures of which hardly a record can be true, or that answer one prompt again and again."""


@pytest.mark.parametrize(("name", "make"), [one for one in BUILT if one.values[1].__name__ in CONTRADICTORY])
def test_records_that_contradict_each_other_all_over_end_the_import_with_a_word(
    name: str, make: Callable[[int], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctxctl.importers.claude_code.lineage._FOLLOWERS", 5)
    importer = registry.by_name(name)

    def requests() -> tuple[int, list[Problem]]:
        told: list[Problem] = []
        events = list(registry.capture_events(importer, Source.from_bytes("x", make(400)), told.append))
        ended = [problem for problem in told if problem.slug == "contradictory-records"]
        return sum(event["event_type"] == vocab.INJECTION_APPLIED for event in events), ended

    whole, none = requests()
    assert none == []
    monkeypatch.setattr(registry, "CONTRADICTED", 20)
    some, (ended,) = requests()
    assert some < whole
    assert f"after {some} requests the rest of the capture is not read" in ended.message


FOLDERS: frozenset[str] = frozenset()
"""Formats whose fixtures are no single files."""


def test_every_importer_is_made_to_grow() -> None:
    grown = {cell.values[0].importer.name for always, cell in CELLS if always}
    assert {one.name for one in registry.built_in()} - grown == FOLDERS
