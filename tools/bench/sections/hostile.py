"""What small files made to cost time do cost."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.scaling.hostile_files import FILES, HostileFile
from tools.bench.cases import Bench, command
from tools.bench.rows import MB, Row, measured, megabytes
from tools.bench.section import Section

COMMANDS = {
    "replay": ["replay", "IN", "--plain"],
    "replay --steps": ["replay", "IN", "--steps", "--plain"],
    "lint": ["lint", "IN"],
    "cost": ["cost", "IN"],
    "why": ["why", "IN", "ITEM"],
    "blame": ["blame", "IN"],
    "validate": ["validate", "IN"],
    "export events": ["export", "IN", "--format", "events", "-o", os.devnull],
    "export html": ["export", "IN", "--format", "html", "-o", os.devnull],
}
"""By name, what is run: each goes through the whole file in a way of its own."""
_ENDED = (0, 1, 2, 3)
"""Exit codes of a command that came to its end; what was cut is among the problems that it tells."""
_SECONDS = 2.0
_A_REQUEST = 1e-3
"""Seconds that a request may cost besides: a file of 20,000 honest ones cannot be told from one that was made to cost
time, so it may cost as much for each as any other log does."""
_BYTES = 300 * MB
_PIECE = 65_536
"""Characters of a long text that the floor counts at a time."""


def _case(file: HostileFile, name: str) -> str:
    return f"{name}, {file.name}"


def _floor(file: HostileFile) -> str:
    return f"tiktoken, {file.name}"


def _add(bench: Bench) -> None:
    folder = Path(bench.scratch) / "hostile"
    folder.mkdir(exist_ok=True)
    for file in FILES:
        path = folder / f"{file.name}{file.ending}"
        path.write_bytes(file.make(file.count))
        bench.add_input(file.name, path)
        if file.is_long:
            pieces = path.with_suffix(".unique")
            text = path.read_text()
            pieces.write_text(
                "".join(json.dumps(text[at : at + _PIECE]) + "\n" for at in range(0, len(text), _PIECE))
            )
            bench.add_probe(_floor(file), "tiktoken", str(pieces), runs=1)
        for name, words in COMMANDS.items():
            given = {"IN": str(path), "ITEM": file.item}
            argv = [given.get(word, word) for word in words]
            bench.add(_case(file, name), command(*argv), runs=1, cache="cold", allowed=_ENDED)


def _row(bench: Bench, file: HostileFile) -> Row:
    names = {name: _case(file, name) for name in COMMANDS}

    def worst() -> tuple[str, bool]:
        slowest = max(names, key=lambda name: bench.cases[names[name]].cpu)
        most = max(bench.cases[case].rss for case in names.values())
        seconds = bench.cases[names[slowest]].cpu
        limit = _SECONDS + requests * _A_REQUEST + (bench.cases[_floor(file)].cpu if file.is_long else 0)
        each = f", {seconds / requests * 1e6:,.0f} µs a request" if requests else ""
        told = f"{seconds:.1f} s (`{slowest}`){each}, {megabytes(most)}"
        return told, seconds <= limit and most <= _BYTES

    requests = file.requests_of(file.count)
    size = megabytes(bench.inputs[file.name]) if file.name in bench.inputs else "?"
    more = f" + {requests:,} × 1 ms" if requests else " + tiktoken" if file.is_long else ""
    label, target = f"{file.name}, {file.count:,} ({size})", f"≤ 2 s{more}, ≤ 300 MB"
    cases = (*names.values(), *([_floor(file)] if file.is_long else []))
    return measured(bench, label, target, cases, worst)


def _rows(bench: Bench) -> list[Row]:
    return [_row(bench, file) for file in FILES]


SECTION = Section(
    "hostile",
    "What do small files cost that were built to cost time?",
    "Each file of `tests/scaling/hostile_files.py`, with nothing cached: CPU of the slowest of "
    + ", ".join(f"`{name}`" for name in COMMANDS)
    + ", and the most memory of any. `make scaling` checks that their work is linear, or bounded. What is bounded has 2 s. "
    "A file of many requests that could all be honest is read to its end, as a bound would cut the logs of a gateway too: "
    "it has another millisecond for each, about what a request costs in any first reading. One of so much text that "
    "counting it takes more than a second may take that besides.",
    _add,
    _rows,
)
