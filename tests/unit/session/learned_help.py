"""Streams of events for the tests of what is learned: a few requests, spelled out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ctxctl.importers import registry
from ctxctl.importers.capture import open_capture
from ctxctl.ingest.parts import Part
from ctxctl.ingest.run import Run
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.session.learned.gather import LearnedGatherer
from ctxctl.session.learned.insert import LearnedInserter

Json = dict[str, Any]
FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
DUMP = FIXTURES / "claude_bodies/dump"
LOG = FIXTURES / "claude_bodies/transcript.jsonl"

SYSTEM = Part(
    "system_prompt", "You answer in one word, and never guess at what was not said.", "system", key="s"
)
TOOL = Part("tool_definition", '{"name":"read"}', "system", key="tool:read", title="read")
NOTE = Part("policy_note", "<system-reminder>\nThe house rules are in RULES.md.\n</system-reminder>", "user")


def part(like: Part, text: str | None = None) -> Part:
    """A new part like another one."""
    return Part(like.kind, text or like.text, like.role, key=like.item or None, title=like.title)


def stream(*requests: list[Part], thread: str | None = None, origin: Json | None = None) -> list[Json]:
    """The events of requests that carry these parts, each the whole window."""
    run = Run("test", lambda _: None)
    run.session = "s"
    conversation = run.thread(thread, origin=origin)
    for number, parts in enumerate(requests, 1):
        conversation.turn = f"turn-{number}"
        conversation.replace(parts)
        conversation.request()
    return list(run.finish())


def of_capture(path: Path) -> list[Json]:
    """The events of a capture."""
    with open_capture(path) as (source, importer):
        assert importer is not None
        return list(registry.events(importer, source, lambda _: None))


def gathered(*streams: list[Json]) -> LearnedGatherer:
    """What streams of one recording tell."""
    made = LearnedGatherer()
    for events in streams:
        made.take(events)
    return made


def frames(path: Path, learned: str = "none") -> list[tuple[str, list[tuple[str, str | None]]]]:
    """By step of a capture: its thread, and item and text of each placement."""
    with Inspector.open(path, learned=learned) as inspector:
        steps = [result for result in inspector.replay() if isinstance(result, Step)]
        for step in steps:
            ledger = step.ledger
            assert ledger.window_before + ledger.reweighed + ledger.new - ledger.freed == ledger.window_after
        return [
            (
                step.thread,
                [
                    (p.item, inspector.text(p.content) if p.content else None)
                    for p in inspector.frame(ordinal).placements
                ],
            )
            for ordinal, step in enumerate(steps)
        ]


def inserted(
    events: list[Json], made: LearnedGatherer, client: str = "c", version: str = "1.0"
) -> list[Json]:
    """Events with what was learned put in."""
    learned = made.learned(client, version)
    assert learned is not None
    return list(LearnedInserter(learned).events(events))
