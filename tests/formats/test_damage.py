"""Each importer survives its fixture with every line deleted, duplicated, cut and swapped in turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxctl.importers import registry
from tests.formats.damage import FIXTURES, captures, each_line_damaged, each_place_damaged, imported, is_lines

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


@pytest.mark.parametrize("path", CAPTURES)
def test_damage_costs_what_depends_on_the_damaged_line(path: Path) -> None:
    data = path.read_bytes()
    importer = registry.of_head(data[: registry.HEAD])
    assert importer is not None, "a fixture of no known format"
    sound = imported(importer, data)
    texts = sound.texts()
    lines = is_lines(data)
    deciding = DECIDING.get(path.relative_to(FIXTURES).as_posix(), set())
    for damaged in each_line_damaged(data) if lines else each_place_damaged(data):
        try:
            found = imported(importer, damaged.data)
        except Exception as error:
            raise AssertionError(f"{damaged.what}: {type(error).__name__}: {error}") from error
        if lines and not damaged.hurt & deciding:
            lost = set(texts) - set(found.texts()) - sound.texts_of(damaged.hurt)
            assert not lost, f"{damaged.what}: other lines' texts are gone: {sorted(lost)[:3]}"


@pytest.mark.parametrize("path", CAPTURES)
def test_sound_fixtures_have_no_problems_of_ours(path: Path) -> None:
    data = path.read_bytes()
    importer = registry.of_head(data[: registry.HEAD])
    assert importer is not None
    found = imported(importer, data)
    assert not [p for p in found.problems if p.slug in ("invalid-event", "bad-json")]
    ids = [event["event_id"] for event in found.events]
    assert len(set(ids)) == len(ids)
