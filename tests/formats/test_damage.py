"""Each importer survives its fixture with every line deleted, duplicated, cut and swapped in turn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from ctxctl.importers import registry
from ctxctl.ingest.declaration import Format
from tests.formats.damage import (
    FIXTURES,
    Damaged,
    captures,
    each_line_damaged,
    each_place_damaged,
    imported,
    is_lines,
)

SOME = 32
"""Damages of a fixture that are tried in each run; `make slow` tries all."""
CAPTURES = [pytest.param(path, id=name) for name, path in captures()]

DECIDING: dict[str, set[int]] = {
    # What tells it from any other list of messages with times.
    "amplifier/context-messages.jsonl": {3},
    # Only a session that was resumed sends the short message which its log holds of a call that failed.
    "copilot_cli/resumed.jsonl": {19},
    # A message that is told whole says how what other lines put into it was worded, to the blank line.
    "claude_code/requests/subagents/agent-a7d22d8a0a2d535aa.jsonl": {9},
    # A patch does not say what run it is of: without the creation nobody knows what was asked.
    "langsmith/run_ops.jsonl": {4},
    # Which contexts are attached decides which answers of providers are context.
    "sanqian/agents.jsonl": {1, 2, 3, 5, 9, 12, 14},
    "sanqian/provider-calls.jsonl": {1},
    "sanqian/resources.jsonl": {1, 9},
}
"""Lines that decide what other lines mean, by fixture: without them the others' texts may go."""


def damages(path: Path, data: bytes, most: int | None) -> Sequence[Damaged]:
    """All damages of a capture, or so many of them: others in another capture, in every run the same."""
    every = list(each_line_damaged(data) if is_lines(data) else each_place_damaged(data))
    return every if most is None or len(every) <= most else Random(path.name).sample(every, most)


def losses(path: Path, data: bytes, importer: Format, some: Sequence[Damaged]) -> list[str]:
    """The damages by which texts of other lines are lost, or the import fails."""
    sound = imported(importer, data)
    texts, lines = set(sound.texts()), is_lines(data)
    deciding = DECIDING.get(path.relative_to(FIXTURES).as_posix(), set())
    found = []
    for damaged in some:
        try:
            left = imported(importer, damaged.data)
        except Exception as error:
            found.append(f"{damaged.what}: {type(error).__name__}: {error}")
            continue
        if lines and not damaged.hurt & deciding:
            lost = texts - set(left.texts()) - sound.texts_of(damaged.hurt)
            found += [f"{damaged.what}: other lines' texts are gone: {sorted(lost)[:3]}"] if lost else []
    return found


@pytest.mark.parametrize("most", [SOME, pytest.param(None, marks=pytest.mark.slow)], ids=["some", "every"])
@pytest.mark.parametrize("path", CAPTURES)
def test_damage_costs_what_depends_on_the_damaged_line(path: Path, most: int | None) -> None:
    data = path.read_bytes()
    importer = registry.of_head(data[: registry.HEAD])
    assert importer is not None, "a fixture of no known format"
    assert losses(path, data, importer, damages(path, data, most)) == []


@pytest.mark.parametrize("path", CAPTURES)
def test_sound_fixtures_have_no_problems_of_ours(path: Path) -> None:
    data = path.read_bytes()
    importer = registry.of_head(data[: registry.HEAD])
    assert importer is not None
    found = imported(importer, data)
    assert not [p for p in found.problems if p.slug in ("invalid-event", "bad-json")]
    ids = [event["event_id"] for event in found.events]
    assert len(set(ids)) == len(ids)
