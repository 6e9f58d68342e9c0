"""Imports and replays for the tests of the seed systems' importers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ctxctl.importers import registry
from ctxctl.ingest.folder import Folder
from ctxctl.model.problem import Problem
from ctxctl.model.results import Change, Step
from ctxctl.session import Inspector
from ctxctl.trace.source import Source
from ctxctl.trace.validate import validate_event

Json = dict[str, Any]
FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"


def lines(*records: Any) -> bytes:
    """Records as JSON lines."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def events(name: str, capture: bytes | Path) -> tuple[list[Json], list[Problem]]:
    """The events of a capture in memory, or of a directory, by one format; all of them validate."""
    problems: list[Problem] = []
    source: Source | Folder
    if isinstance(capture, bytes):
        source = Source.from_bytes("capture", capture)
    else:
        source = Folder(str(capture), capture)
    found = list(registry.capture_events(registry.by_name(name), source, problems.append))
    assert [(e["event_id"], fault) for e in found for fault in validate_event(e)] == []
    return found, problems


def data(found: list[Json], event_type: str) -> list[Json]:
    """The records of one type of event."""
    return [event["data"] for event in found if event["event_type"] == event_type]


def items(found: list[Json]) -> dict[str, Json]:
    """The item records by id, the last of each."""
    entered = ("context.item.added", "context.item.updated")
    return {e["data"]["item_id"]: e["data"] for e in found if e["event_type"] in entered}


def detected(head: bytes) -> str | None:
    """The name of the format that claims a capture."""
    found = registry.of_head(head[: registry.HEAD])
    return found.name if found is not None else None


def steps(path: Path, target: str = "model", policy: str | None = None) -> tuple[list[Step], Inspector]:
    """The steps of a capture; the caller has a few and no need to close the file."""
    inspector = Inspector.open(path, target=target, policy=policy)
    found = [result for result in inspector.replay() if isinstance(result, Step)]
    for step in found:
        ledger = step.ledger
        assert ledger.window_before + ledger.reweighed + ledger.new - ledger.freed == ledger.window_after
    return found, inspector


def named(step: Step, status: str, kind: str | None = None) -> list[str]:
    """The items of a step's changes of one status, in their order."""
    return [c.item for c in step.changes if c.status == status and kind in (None, c.kind)]


def change(step: Step, item: str) -> Change:
    """A step's change of an item."""
    return next(c for c in step.changes if c.item == item)


def slugs(problems: list[Problem]) -> list[str]:
    """The problems by their slugs."""
    return [problem.slug for problem in problems]


ODD: tuple[Any, ...] = (None, 3, -1, 1.5, True, "", "x", [], {}, [None, 3, {}, []], {"id": 1}, {"b64": "%"})
"""Values of all types."""


def deep(levels: int) -> bytes:
    """An array in an array, and so on."""
    return b"[" * levels + b"]" * levels


def spoilt(value: Any) -> Iterator[Any]:
    """The value with each of its parts replaced by values of all types, one at a time."""
    if isinstance(value, dict):
        for key, inner in value.items():
            for odd in (*ODD, *(spoilt(inner) if isinstance(inner, dict | list) else ())):
                yield {**value, key: odd}
            yield {other: kept for other, kept in value.items() if other != key}
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            for odd in (*ODD, *(spoilt(inner) if isinstance(inner, dict | list) else ())):
                yield [*value[:at], odd, *value[at + 1 :]]
