"""How long a command takes that has hardly anything to do."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.bench.cases import Bench
from tools.bench.rows import Row, ratio
from tools.bench.section import Section

SMALL = Path("traces") / "coding-agent.jsonl"
FOREIGN = Path("fixtures") / "claude_code" / "session.jsonl"
COMMANDS = (
    ("small trace", 12, ("replay", "--json", str(SMALL))),
    ("small trace", 16, ("show", "--json", f"{SMALL}@-1")),
    ("small trace", 18, ("diff", "--json", f"{SMALL}@3", f"{SMALL}@-1")),
    ("small trace", 18, ("why", "--json", f"{SMALL}@-1", "tool:search")),
    ("small trace", 18, ("cost", "--json", str(SMALL))),
    ("small Claude Code session", 18, ("replay", "--json", str(FOREIGN))),
    ("small Claude Code session", 20, ("cost", "--json", str(FOREIGN))),
)
"""Of what, how many times a bare start it may take, and the command line."""


def add_bare_start(bench: Bench) -> None:
    """The floor of every start."""
    bench.add("pass", [sys.executable, "-c", "pass"], runs=3 * bench.runs, cache="start")


def _name(what: str, arguments: tuple[str, ...]) -> str:
    return f"{arguments[0]}, {what}"


def _add(bench: Bench) -> None:
    often = 3 * bench.runs
    add_bare_start(bench)
    bench.add_command("--version", "--version", runs=often, cache="start")
    bench.add_command("--help", "--help", runs=often, cache="start")
    for what, _, arguments in COMMANDS:
        bench.prime(*arguments, cache="start")
        bench.add_command(_name(what, arguments), *arguments, runs=often, cache="start")


def _rows(bench: Bench) -> list[Row]:
    floor = "`python -c pass`"
    return [
        ratio(bench, "`ctxctl --version`", "--version", "pass", 6, floor),
        ratio(bench, "`ctxctl --help`", "--help", "pass", 6, floor),
        *(
            ratio(
                bench, f"`ctxctl {arguments[0]} --json`, {what}", _name(what, arguments), "pass", limit, floor
            )
            for what, limit, arguments in COMMANDS
        ),
    ]


SECTION = Section(
    "start",
    "How long does a command take to start?",
    "Commands on inputs so small that starting is most of their work; each ran once before. The small "
    "trace is `traces/coding-agent.jsonl`, the small session `fixtures/claude_code/session.jsonl`.",
    _add,
    _rows,
)
