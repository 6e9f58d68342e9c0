"""Small files that took minutes are made, and no command's work on one of them grows faster than n log n.

What must be quadratic has a bound; those are lowered here (`worker`), so that they are seen to hold.
"""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from ctxctl.model.results import Step
from ctxctl.session import Inspector
from tests.scaling.hostile_files import BY_NAME
from tests.scaling.test_scaling import COMMANDS, OF_A_TRACE, Ask, growing, refusals
from tests.scaling.views import ASKED

_MUCH: Final = 2.5
"""How many times the work may be in twice the file."""
_OF_AN_ITEM: Final = frozenset(f"ui-{request.__name__}" for request in ASKED)
_OPENING: Final = frozenset({"summary", "lint"})
"""Commands that are always tried: one that replays, and one that asks every rule."""


def _faults(ask: Ask, command: str, name: str) -> list[str]:
    file = BY_NAME[name]
    answers = [ask(COMMANDS[command], name, file.least * times) for times in (1, 2, 4, 8)]
    if said := refusals(answers):
        return said
    works = [answer["work"] for answer in answers]
    sums = [sum(work.values()) for work in works]
    whole = [f"in all: {sums}"] if any(b > _MUCH * a for a, b in pairwise(sums)) else []
    return whole + growing(works, file.least * file.each)


@pytest.mark.parametrize("name", BY_NAME)
def test_what_is_always_asked_of_a_hostile_file_is_linear(ask: Ask, name: str) -> None:
    assert {command: found for command in _OPENING if (found := _faults(ask, command, name))} == {}


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("CTXCTL_SCALING"), reason="minutes of work: make scaling")
@pytest.mark.parametrize("name", BY_NAME)
def test_every_command_on_a_hostile_file_is_linear(ask: Ask, name: str) -> None:
    # A capture that is followed is imported again where what came changes how it is read, as time allows.
    commands = OF_A_TRACE if BY_NAME[name].is_trace else [one for one in COMMANDS if one != "ui-watch"]
    # What the UI asks of one item is tried in each dimension (`test_scaling`).
    commands = [one for one in commands if one not in _OF_AN_ITEM]
    assert {command: found for command in commands if (found := _faults(ask, command, name))} == {}


@pytest.mark.parametrize("name", [name for name, file in BY_NAME.items() if file.requests])
def test_a_file_tells_as_many_requests_as_the_benchmark_reckons_with(name: str, tmp_path: Path) -> None:
    file = BY_NAME[name]
    path = tmp_path / f"capture{file.ending}"
    n = 4 * file.least
    path.write_bytes(file.make(n))
    with Inspector.open(path) as inspector:
        assert sum(isinstance(one, Step) for one in inspector.replay()) == file.requests_of(n) > 0
