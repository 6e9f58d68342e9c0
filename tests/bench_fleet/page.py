# ruff: noqa: E501 - rows of a table
"""docs/benchmarks-fleet.md, from what was measured."""

from __future__ import annotations

from typing import NamedTuple

_RATE = 25
_SHARE = 0.03
_MEMORY = 500e6
_AGAIN = 0.02


class Measured(NamedTuple):
    """What a run of the benchmark found."""

    captures: int
    raw: int
    """Bytes of all captures."""
    jobs: int
    wall: float
    cpu: float
    memory: int
    sessions: int
    tables: dict[str, dict[str, int]]
    same_cpu: float
    """Of a run over captures of which none has changed."""
    grown: int
    second_wall: float
    second_cpu: float
    machine: str
    cores: int
    is_corpus: bool
    date: str


def page(found: Measured) -> str:
    """The page."""
    size = sum(one["bytes"] for one in found.tables.values())
    rate = found.sessions / found.cpu
    rows = [
        ("sessions read, a second of CPU", f"{rate:.1f}", f"at least {_RATE}", rate >= _RATE),
        ("raw bytes read, a second of CPU", f"{found.raw / found.cpu / 1e6:.1f} MB", "", None),
        ("sessions, a second of the clock", f"{found.sessions / found.wall:.1f} with {found.jobs} processes",
         "", None),
        ("dataset, of the raw bytes", f"{size / found.raw:.2%}", f"at most {_SHARE:.0%}", size / found.raw <= _SHARE),
        ("memory of the largest process", f"{found.memory / 1e6:.0f} MB", f"at most {_MEMORY / 1e6:.0f} MB",
         found.memory <= _MEMORY),
        ("CPU of a run over unchanged captures, of the first", f"{found.same_cpu / found.cpu:.2%}", "", None),
        (f"CPU of a run with {found.grown:,} changed captures, of the first", f"{found.second_cpu / found.cpu:.2%}",
         f"at most {_AGAIN:.0%}", found.second_cpu / found.cpu <= _AGAIN),
    ]  # fmt: skip
    lines = [f"| {what} | {value} | {target} | {_mark(met)} |" for what, value, target, met in rows]
    tables = [
        f"| `{name}` | {one['rows']:,} | {one['rows'] / found.sessions:,.1f} | {one['files']:,} | {one['bytes'] / 1e6:,.2f} MB "
        f"| {one['bytes'] / found.raw:.3%} |"
        for name, one in found.tables.items()
    ]
    shapes = (
        "real captures that are not in this repository"
        if found.is_corpus
        else "the fixtures of this repository"
    )
    return f"""# A fleet into a dataset

How fast do sessions go in, how large is the dataset, and what does the next run cost? Written by `make bench-fleet` on
{found.date} ({found.cores} cores, {found.machine}). The fleet is {found.captures:,} captures, {found.raw / 1e6:,.0f} MB
({found.raw / found.captures / 1e3:,.0f} kB each), made of {shapes}: copies under other ids, in other words of the same
length, over six months (`tests/bench_fleet/generator.py`). No text was counted before.

| | measured | target | |
|:--|--:|--:|:--|
{chr(10).join(lines)}

| table | rows | a session | files | size | of the raw bytes |
|:--|--:|--:|--:|--:|--:|
{chr(10).join(tables)}
"""


def _mark(met: bool | None) -> str:
    return "" if met is None else "met" if met else "not met"
