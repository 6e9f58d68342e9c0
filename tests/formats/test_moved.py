"""What stands at a place that its importer does not know is "not understood", never "not recorded"."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers import registry
from ctxctl.trace.source import open_source
from tests.formats.damage import captures, imported
from tests.formats.moving import FACTS, MOVES, moved

_IN_ARGUMENTS = "they stand among the arguments of an action, which are a tool's and not looked at"
SAYS = ("not-understood", "no-model-calls")
NOT_HELD: dict[tuple[str, str], str] = {
    ("openhands/events.json", "tools"): _IN_ARGUMENTS,
    ("openhands/output.jsonl", "tools"): _IN_ARGUMENTS,
}
"""By fixture and kind of fact, why a move of it is not held against the importer."""


def cases() -> Iterator[Any]:
    for name, path in captures():
        for what in FACTS:
            if (name, what) not in NOT_HELD:
                yield pytest.param(path, what, id=f"{name}-{what}")


def test_no_sound_capture_seems_to_have_a_window_that_never_changes() -> None:
    for name, path in captures():
        with open_source(path) as source:
            importer = registry.detect(source)
            data = source.read(0, source.size)
        if importer is not None:
            assert "same-window" not in {p.slug for p in imported(importer, data).problems}, name


def told(events: list[dict[str, Any]]) -> dict[str, set[str]]:
    """By fact, the levels at which it was met."""
    facts = events[-1]["data"]["facts"]
    return {fact: {level for level, count in levels.items() if count} for fact, levels in facts.items()}


@pytest.mark.parametrize(("path", "what"), cases())
def test_what_is_moved_is_read_or_said_to_be_there(path: Path, what: str) -> None:
    with open_source(path) as source:
        importer = registry.detect(source)
        data = source.read(0, source.size)
    if importer is None:
        return
    before = told(imported(importer, data).events)
    there = [
        fact
        for fact in FACTS[what]
        if before.get(fact, set()) - {"not recorded", "not understood", "in totals"}
    ]
    for how in MOVES:
        changed = moved(data, what, how) if there else None
        if changed is None:
            continue
        found = imported(importer, changed)
        levels, understood = told(found.events), found.events[-1]["data"]["understood"]
        for fact in there:
            if levels.get(fact, set()) - {"not recorded", "not understood"}:
                continue
            assert levels.get(fact) == {"not understood"}, (how, fact, levels.get(fact))
            place = understood["places"][fact]
            line = changed.split(b"\n")[place["line"] - 1].decode()
            assert place["key"].rpartition(".")[2] in line, (how, fact, place)
            problems = [p for p in found.problems if p.slug in SAYS and place["key"] in p.message]
            assert problems, (how, fact, place)
