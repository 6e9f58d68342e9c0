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

from ctxctl.cli.commands import COMMANDS as REGISTERED
from ctxctl.cli.commands import named_words
from ctxctl.tui.answers import ANSWERS
from tests.scaling.native_inputs import DIMENSIONS
from tests.scaling.views import ASKED, VIEWS

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
    "cost-items": ["cost", "IN", "--by", "item"],
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
    # Ends once nothing has been written for so long, which leaves it time for all that there is.
    "watch": ["watch", "IN", "--plain", "--idle", "0.2"],
    "watch-json": ["watch", "IN", "--json", "--idle", "0.2"],
    "record": ["record", "--stdin", "-o", "OUT"],
    "sql": [
        "sql",
        "IN",
        "SELECT count(*), (SELECT count(*) FROM steps), (SELECT sum(usd) FROM bills),"
        " (SELECT max(size) FROM texts), (SELECT count(*) FROM items), (SELECT sum(new) FROM changes)"
        " FROM stays",
    ],
    "learn": ["learn", "IN", "--client", "codex", "--version", "1"],
    "budget-from": ["budget", "OUT", "--init", "--from", "IN"],
    **{f"ui-{name}": ["UI", name] for name in VIEWS},
}
"""By name, what is run: IN a trace, DIR its directory, OUT a new file, ITEM an item that is told of often;
what begins with UI is a view of the UI (`views`)."""

_ADD: Final = ["fleet", "add", "DIR", "--dataset", "DATASET", "--jobs", "1"]
ELSEWHERE: Final[dict[str, tuple[str, list[list[str]]]]] = {
    "budget-turns": ("plan_of_turns", [["budget", "IN"]]),
    "budget-parts": ("plan_of_parts", [["budget", "IN"]]),
    "budget-check": ("plan_of_turns", [["budget", "IN", "--check"]]),
    "ls-many": ("many_captures", [["ls", "DIR"]]),
    "ls-many-again": ("many_captures", [["ls", "DIR"], ["ls", "DIR", "--json"]]),
    "lint-many": ("many_captures", [["lint", "DIR"]]),
    "check-many": ("many_captures", [["check", "DIR", "--max", "1000"]]),
    "cost-many": ("many_captures", [["cost", "DIR"]]),
    "calibrate-many": ("many_captures", [["calibrate", "DIR"]]),
    "cache": ("many_captures", [["lint", "DIR"], ["cache"]]),
    "cache-prune": ("many_captures", [["lint", "DIR"], ["cache", "prune", "--max", "0"]]),
    "fleet add": ("many_captures", [_ADD]),
    "fleet add again": ("many_captures", [_ADD, _ADD]),
    **{
        f"fleet {name}": ("many_captures", [_ADD, ["fleet", *name.split(), *more, "--dataset", "DATASET"]])
        for name, more in {
            "": [],
            "status": [],
            "files": ["steps"],
            "compact": [],
            "vacuum": ["--grace", "0s"],
            "forget": ["--before", "2026-03-20"],
            "ask": ["overview"],
            "diff": ["2026-03", "2026-04"],
            "check": ["RULES"],
            "report": [],
        }.items()
    },
}
"""What is not asked of one trace: by name, what there is n of, and the commands, of which the last counts.
DATASET is a folder for one, RULES a file of rules."""

EXEMPT: Final = {
    "formats": "a list of what is built in",
    "policies": "a list of what is built in",
    "models": "a table that is built in",
}
"""Commands whose work depends on no input, and why."""

OF_A_TRACE: Final = tuple(name for name in COMMANDS if name != "import")
"""What can be asked of a native trace; importers have tests of their own (`tests.formats.test_growth`)."""
_NOTHING: Final = (
    "first frame of its thread", "was in no frame", "is not worked out", "holds no complete request",
    "no system prompt, tool or reminder",
)  # fmt: skip
"""Why `diff`, `log` and `learn` have nothing to tell of some traces; that a what-if came to its bound."""

Work = dict[str, int]
Answer = dict[str, Any]
Ask = Callable[..., Answer]
"""Runs a command on a dimension of a size, under counters, and others before it (`conftest`)."""


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


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_command_grows_as_its_folder_or_its_plan_does(ask: Ask, name: str) -> None:
    dimension, (*before, command) = ELSEWHERE[name]
    answers = [ask(command, dimension, N * times, before) for times in (1, 2, 4, 8)]
    assert refusals(answers) == []
    assert growing([answer["work"] for answer in answers], N) == []


def test_every_command_is_counted_or_exempt() -> None:
    from ctxctl.cli.app import whole

    registered = {name for name in REGISTERED if not whole(name).hidden}
    run = [*COMMANDS.values(), *(commands[-1] for _, commands in ELSEWHERE.values())]
    counted = {" ".join(command[: named_words(command)]) for command in run if command[0] != "UI"}
    assert registered - counted == set(EXEMPT)


def test_every_request_of_the_ui_is_counted() -> None:
    assert set(ASKED) == set(ANSWERS)


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("CTXCTL_SCALING"), reason="minutes of work: make scaling")
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_every_command_grows_as_the_trace_does(ask: Ask, dimension: str) -> None:
    found = {command: _faults(ask, command, dimension) for command in OF_A_TRACE}
    assert {command: faults for command, faults in found.items() if faults} == {}
