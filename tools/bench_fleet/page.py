# ruff: noqa: E501 - rows of a table
"""docs/benchmarks-fleet.md, from what was measured."""

from __future__ import annotations

from typing import NamedTuple

from tools.bench_fleet.asking import Timed
from tools.bench_fleet.model import Point

_RATE = 25
_SHARE = 0.03
_MEMORY = 500e6
_AGAIN = 0.02
_ANSWER = 2.0


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
    versions: str
    """Of the engines."""
    questions: list[Timed]
    lists: list[Timed]
    overview: float
    """Seconds of `ctxctl fleet` as a whole command."""
    points: list[tuple[Point, int]]
    """Datasets of several sizes, each with the rows of its stays."""


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

How fast do sessions go in, how large is the dataset, what does the next run cost, and how long do the questions take? Written by `make bench-fleet` on
{found.date} ({found.cores} cores, {found.machine}). The fleet is {found.captures:,} captures, {found.raw / 1e6:,.0f} MB
({found.raw / found.captures / 1e3:,.0f} kB each), made of {shapes}: copies under other ids, in other words of the same
length, over six months (`tools/bench_fleet/generator.py`). No text was counted before.

| | measured | target | |
|:--|--:|--:|:--|
{chr(10).join(lines)}

| table | rows | a session | files | size | of the raw bytes |
|:--|--:|--:|--:|--:|--:|
{chr(10).join(tables)}

{_questions(found)}
{_sizes(found)}"""


def _questions(found: Measured) -> str:
    """How long each question took."""
    slow = [one for one in found.questions if one.command > _ANSWER]
    told = "".join(f" As a command `{one.name}` takes {one.command:.2f} s." for one in slow)
    return f"""## Questions

Over all sessions, with the files in the memory of the system ({found.versions}). *First* is the first question of a process that has
loaded DuckDB, *again* the best of three further times there, *command* all of `ctxctl fleet ask NAME --json`, the start of Python included. The target is {_ANSWER:.0f} s
for *again*.{told} `ctxctl fleet --plain` takes {found.overview:.2f} s.

| question | rows | first | again | command | |
|:--|--:|--:|--:|--:|:--|
{chr(10).join(map(_question, found.questions))}

What lists the dataset, apart from the twenty questions:

| list | rows | first | again | command | |
|:--|--:|--:|--:|--:|:--|
{chr(10).join(map(_question, found.lists))}
"""


def _question(one: Timed) -> str:
    return (
        f"| `{one.name}` | {one.rows} | {one.first:.2f} s | {one.warm:.2f} s | {one.command:.2f} s "
        f"| {_mark(one.warm <= _ANSWER)} |"
    )


def _sizes(found: Measured) -> str:
    """The same of other sizes."""
    rows = [
        f"| {one.sessions:,} | {stays:,} | {one.megabytes:,.2f} MB | `{one.name}` | {one.slowest:.3f} s | {one.every:.3f} s |"
        for one, stays in found.points
    ]
    return f"""## Other sizes

Parts of this dataset, by chance, and all of it several times over under other digests. Of the questions that read no texts, the slowest and all
together, again in one process. From these rows and the first table comes [the model](fleet.md#how-far-it-goes).

| sessions | stays | dataset | slowest | again | all questions |
|--:|--:|--:|:--|--:|--:|
{chr(10).join(rows)}
"""


def _mark(met: bool | None) -> str:
    return "" if met is None else "met" if met else "not met"
