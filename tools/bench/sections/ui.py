"""Whether the screen answers at once."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.bench import generate, screens
from tools.bench.cases import Bench, command
from tools.bench.measure import first_screen
from tools.bench.rows import Row, measured
from tools.bench.section import Section
from tools.bench.sections.start import SMALL

MARKS = {"small": b"Since Sunday", "100mb": b"s01", "1gb": b"s01"}
"""Part of the first prompt of each trace."""
LABELS = {"100mb": "100 MB trace", "1gb": "1 GB trace"}
_NAMES = tuple(f"ui, {act.name}" for act in screens.ACTS)
_FIRST = "ui, first look"
"""The first act, on a trace that was never read."""


def _add(bench: Bench) -> None:
    path = generate.turns_10k()
    bench.add_input("10 000 turns", path)
    for name, act, runs in (
        (_FIRST, screens.ACTS[0], 1),
        *((name, act, min(2, bench.runs)) for name, act in zip(_NAMES, screens.ACTS, strict=True)),
    ):
        argv = [sys.executable, "-m", "tools.bench.screens", str(path), act.name]
        bench.add(name, argv, runs=runs, keep=True, cache="ui")
    _add_screen(bench, "small", SMALL)
    _add_screen(bench, "100mb", generate.megabytes_100())
    if bench.gigabyte:
        _add_screen(bench, "1gb", generate.gigabyte())


def _add_screen(bench: Bench, size: str, path: Path) -> None:
    replay = ("replay", str(path))
    bench.prime(*replay, "--json", cache="ui")
    env = bench.env(bench.cache("ui"))
    bench.add_case(f"first screen, {size}", lambda: first_screen(command(*replay), env, MARKS[size], 60.0))


def _key(bench: Bench, act: screens.Act) -> Row:
    """The better of two runs, as another program's work makes any number worse, never better."""
    name = f"ui, {act.name}"

    def work() -> tuple[str, bool]:
        p50, p95 = (min(bench.cases[name].all_printed(column)) for column in (0, 1))
        return f"{p95:.1f} ms p95, {p50:.1f} ms p50", p95 <= act.target

    label = f"{act.label}: work on the event loop"
    return measured(bench, label, f"≤ {act.target:.0f} ms p95", (name,), work)


def _opening(bench: Bench) -> Row:
    """Over all runs: none is picked out."""

    def held() -> tuple[str, bool]:
        found = sorted(value for name in (_FIRST, *_NAMES) for value in bench.cases[name].all_printed(4))
        p50, p95 = found[len(found) // 2], found[min(int(len(found) * 0.95), len(found) - 1)]
        return f"{p95:.1f} ms p95, {p50:.1f} ms p50", p95 <= screens.OPENING

    label = "first screen and reading on: the longest that the event loop is held"
    return measured(bench, label, f"≤ {screens.OPENING:.0f} ms p95", (_FIRST, *_NAMES), held)


def _memory(bench: Bench, *, first: bool) -> Row:
    """Of the first look at the trace, which is a whole replay (200 MB: section "first") beside a screen (100 MB),
    or of all others."""
    names, bound = ((_FIRST,), 300) if first else (_NAMES, 200)

    def most() -> tuple[str, bool]:
        peak = max(value for name in names for value in bench.cases[name].all_printed(5))
        return f"{peak:.0f} MB", peak <= bound

    of = "the first look at the trace" if first else "any of these, once it was read"
    label = f"peak memory of {of} (without the separate process that counts)"
    return measured(bench, label, f"≤ {bound} MB", names, most)


def _screen(bench: Bench, size: str) -> Row:
    case, small = f"first screen, {size}", "first screen, small"

    def more() -> tuple[str, bool]:
        value = bench.cases[case].wall - bench.cases[small].wall
        return f"{value:+.2f} s", value <= 0.3

    label = f"{LABELS[size]}: first turns on the screen, above those of a small trace (elapsed)"
    return measured(bench, label, "≤ 0.3 s", (case, small), more)


def _rows(bench: Bench) -> list[Row]:
    return [
        *(_screen(bench, size) for size in ("100mb", "1gb")[: 1 + bench.gigabyte]),
        *(_key(bench, act) for act in screens.ACTS),
        _opening(bench),
        _memory(bench, first=False),
        _memory(bench, first=True),
    ]


SECTION = Section(
    "ui",
    "Does the screen answer at once?",
    "A session of 10 000 turns over a window of 200 items. Up to 60 key presses in a headless terminal; "
    "what counts is the CPU time of the event loop's thread until all work is done. Targets are 60 frames"
    " per second for moving, and what feels instant for opening. Whoever opens a trace for the first time has it replayed "
    "beside the screen: 300 MB are the 200 of a replay and 100 for the screen.",
    _add,
    _rows,
)
