"""No command's work grows faster than n log n in any dimension of a native trace.

Work is counted, not timed (`counting`), place by place, at n, 2n, 4n and 8n: so a loop over a whole frame at
each step shows at a hundred steps, whatever it costs beside the rest, and the test says which line it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

import pytest

from tests.scaling.native_inputs import DIMENSIONS

N: Final = 12
_FASTER: Final = 2.7
"""What comes in from 2n to 4n over what does from n to 2n: 2 for n, 2.3 for n log n, 4 for n²."""
_LEAST: Final = 6
"""Work for each of n, below which nothing is said: what starts late or comes in pieces."""

COMMANDS: Final = {
    "steps": ["replay", "IN", "--steps", "--plain"],
    "summary": ["replay", "IN", "--plain"],
    "oneline": ["replay", "IN", "--oneline"],
    "replay-json": ["replay", "IN", "--json"],
    "what-if": ["replay", "IN", "--plain", "--drop", "item:ITEM"],
    # A window that is full in the smallest input too: until it is, what a step compares grows with the steps.
    "policy": ["replay", "IN", "--plain", "--policy", "fifo", "--window", "500"],
    "show": ["show", "IN"],
    "show-json": ["show", "IN", "--json"],
    "diff": ["diff", "IN"],
    "diff-json": ["diff", "IN", "--json"],
    "why": ["why", "IN", "ITEM"],
    "log": ["log", "IN", "ITEM"],
    "find": ["find", "IN", "tokens>1"],
    "search": ["find", "IN", "text:of"],
    "bisect": ["bisect", "IN", "tokens>100"],
    "blame": ["blame", "IN"],
    "blame-json": ["blame", "IN", "--json"],
    "lint": ["lint", "IN"],
    "lint-json": ["lint", "IN", "--json"],
    "cost": ["cost", "IN"],
    "cost-steps": ["cost", "IN", "--steps"],
    "compactions": ["compactions", "IN"],
    "check": ["check", "IN", "--max", "100000", "--no-misses", "--stable-prefix"],
    "validate": ["validate", "IN"],
    "import": ["import", "IN", "-o", "OUT", "--force"],
    "ls": ["ls", "DIR"],
    "calibrate": ["calibrate", "IN"],
    **{
        f"export-{name}": ["export", "IN", "--format", name, "-o", "OUT"]
        for name in ("events", "html", "markdown", "csv", "parquet", "otlp", "envelopes")
    },
}
"""By name, what is run: IN a trace, DIR its directory, OUT a new file, ITEM an item that is told of often."""

OF_A_TRACE: Final = tuple(name for name in COMMANDS if name != "import")
"""What can be asked of a native trace; importers have tests of their own (`tests.formats.test_growth`)."""
_NOTHING: Final = ("first frame of its thread", "was in no frame", "is not worked out")
"""Why `diff` and `log` have nothing to tell of some traces; that a what-if came to its bound."""

Work = dict[str, int]
Answer = dict[str, Any]
Ask = Callable[[list[str], str, int], Answer]
"""Runs a command on a dimension of a size, under counters (`conftest`)."""


def refusals(answers: list[Answer]) -> list[str]:
    """What a command said in the place of an answer: of work that was not done, nothing is known."""
    said = [one["error"] for one in answers if one["code"] not in (0, 1)]
    return [error for error in said if not any(words in error for words in _NOTHING)]


def growing(works: list[Work], n: int) -> list[str]:
    """The places whose work grows faster than n log n, given at n, 2n, 4n, 8n; each with its figures."""
    found = []
    for place in sorted(works[-1]):
        counts = [work.get(place, 0) for work in works]
        added = [after - before for before, after in pairwise(counts)]
        faster = all(b > _FASTER * a > 0 for a, b in pairwise(added))
        if faster and counts[-1] > _LEAST * 8 * n:
            found.append(f"{place}: {counts}")
    return found


def _faults(ask: Ask, command: str, dimension: str) -> list[str]:
    """Where the work grows too fast, or what the command said in the place of doing it."""
    answers = [ask(COMMANDS[command], dimension, N * times) for times in (1, 2, 4, 8)]
    return refusals(answers) or growing([answer["work"] for answer in answers], N)


def test_growth_is_told_from_what_is_linear() -> None:
    sizes = [N, 2 * N, 4 * N, 8 * N]
    works: list[Work] = [
        {
            "linear": 50 * n,
            "n log n": 10 * n * n.bit_length(),
            "late": 0 if n < 4 * N else 100 * n,
            "bounded": min(n * n, 3000),
            "once": 100_000,
            "square": n * n // 2,
            "power 1.6": int(8 * n**1.6),
        }
        for n in sizes
    ]
    assert [place.partition(":")[0] for place in growing(works, N)] == ["power 1.6", "square"]


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_a_replay_grows_as_its_trace_does(ask: Ask, dimension: str) -> None:
    assert _faults(ask, "steps", dimension) == []


@pytest.mark.parametrize("command", [name for name in OF_A_TRACE if name != "steps"])
def test_a_command_grows_as_a_growing_window_does(ask: Ask, command: str) -> None:
    assert _faults(ask, command, "growing_window") == []


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("CTXCTL_SCALING"), reason="minutes of work: make scaling")
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_every_command_grows_as_the_trace_does(ask: Ask, dimension: str) -> None:
    found = {command: _faults(ask, command, dimension) for command in OF_A_TRACE}
    assert {command: faults for command, faults in found.items() if faults} == {}
