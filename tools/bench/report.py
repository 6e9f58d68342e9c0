# ruff: noqa: E501 - the page is written with its own line lengths
"""Writes docs/benchmarks.md from the cases that ran."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tools.bench.cases import Bench
from tools.bench.machine import load_line, machine
from tools.bench.redacted import without_places
from tools.bench.rows import Row, megabytes
from tools.bench.section import Section

__all__ = ["Row", "page", "write"]

_METHOD = """\
# Benchmarks

Written by `make bench`; do not edit. Numbers are ratios to a floor that was measured in the same run, because absolute
times mean little on a shared machine. Rows that are elapsed time or memory say so.
Whether descriptors, memory and lag stay flat under load for minutes is in [benchmarks-soak.md](benchmarks-soak.md), written by `make soak`.

**How.** Each program runs as its own child process. What counts is its CPU time, user and system, including
the processes it starts (`wait4`) and the start of the interpreter. The programs take turns: one run of each, then again, up to {runs} rounds, more
for short programs, fewer for long ones. The table has medians, and for memory the highest peak. The page cache is
warm. Stdout goes to the null device. “Nothing cached” means an empty cache directory. Byte code is compiled beforehand,
as installers do. The user's settings are not read. Peak memory is that of the largest process, unless
the row says otherwise; it is never less than the 15 MB or so of the process that starts it.

**Floors.** One orjson pass over its lines; tiktoken over its contents, each once, with the
vocabulary loaded from the package; `python -c pass`. Two interpreter starts are subtracted from
the sum of orjson and tiktoken.

**Input.** Made by `tools/bench/generate.py`, with the same bytes every time, unless a section says otherwise.
"""


def page(bench: Bench, sections: Sequence[Section], load: float) -> str:
    """The whole page as Markdown."""
    lines = [_METHOD.format(runs=bench.runs), machine(), "", load_line(load), ""]
    told: list[Row] = []
    for section in sections:
        rows = section.rows(bench)
        told += rows
        lines += [f"## {section.title}", "", section.about, ""]
        if section.name in bench.broken:
            lines += [f"Not measured: {bench.broken[section.name]}", ""]
        lines += ["| what | target | reached | met |", "|---|---|---|---|", *map(_line, rows), ""]
    lines += ["## All together", "", summary(told), ""]
    lines += ["| program | CPU s (median) | elapsed s | peak memory | runs |", "|---|---|---|---|---|"]
    for case in bench.cases.values():
        if case.ready:
            numbers = f"{case.cpu:.3f} | {case.wall:.3f} | {megabytes(case.rss)} | {len(case.samples)}"
            lines.append(f"| {case.name} | {numbers} |")
    sizes = ", ".join(f"{name}: {size:,} bytes" for name, size in bench.inputs.items())
    lines += ["", f"Inputs: {sizes or 'none'}.", ""]
    return without_places("\n".join(lines), bench.scratch)


def _line(row: Row) -> str:
    met = {True: "yes", False: "**no**", None: "-"}[row.met]
    cells = (cell.replace("|", "\\|").replace("\n", " ") for cell in (row.what, row.target, row.reached))
    return f"| {' | '.join(cells)} | {met} |"


def summary(rows: Sequence[Row]) -> str:
    """How many targets were met, missed, and not measured."""
    met = sum(row.met is True for row in rows)
    missed = sum(row.met is False for row in rows)
    return f"{met} of {len(rows)} targets met, {missed} missed, {len(rows) - met - missed} not measured."


def write(path: Path, text: str) -> None:
    """Write the page."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
