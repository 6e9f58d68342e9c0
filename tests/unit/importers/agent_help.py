"""Windows that an agent's log adds up to, and short ways to write such logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from ctxctl.importers import registry
from ctxctl.model.problem import Problem
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.trace.source import Source

Json = dict[str, Any]
FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"


class Window(NamedTuple):
    """One request: its place, what it carried, and its bill."""

    thread: str
    turn: str | None
    items: list[tuple[str, str | None]]
    step: Step

    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.items]

    def texts(self) -> list[str | None]:
        return [text for _, text in self.items]

    def billed(self) -> int | None:
        return self.step.usage.reported_input if self.step.usage is not None else None


def windows(path: Path, format_name: str) -> list[Window]:
    """The requests of a capture, thread by thread."""
    found: list[Window] = []
    with Inspector.open(path, format=format_name, encoding="o200k_base") as inspector:
        steps = [result for result in inspector.replay() if isinstance(result, Step)]
        for ordinal, step in enumerate(steps):
            placed = inspector.frame(ordinal).placements
            items = [(p.kind, inspector.text(p.content) if p.content else None) for p in placed]
            found.append(Window(step.thread, step.turn_id, items, step))
            ledger = step.ledger
            assert ledger.window_before + ledger.reweighed + ledger.new - ledger.freed == ledger.window_after
        assert not [p for p in inspector.problems if p.slug == "invalid-event"]
    return found


def jsonl(*records: Any) -> bytes:
    """Records as JSON Lines."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def written(folder: Path, *records: Any) -> Path:
    """A file of JSON Lines."""
    path = folder / "capture.jsonl"
    path.write_bytes(jsonl(*records))
    return path


def imported(format_name: str, data: bytes) -> tuple[list[Json], list[Problem]]:
    """The events and problems of a capture in memory."""
    problems: list[Problem] = []
    found = registry.by_name(format_name).events(Source.from_bytes("capture", data), problems.append)
    return list(found), problems


def of_type(events: list[Json], event_type: str) -> list[Json]:
    """The data of the events of a type."""
    return [event["data"] for event in events if event["event_type"] == event_type]


def items(events: list[Json]) -> dict[str, Json]:
    """The items of an import, each in its last version, by id."""
    return {
        event["data"]["item_id"]: event["data"]
        for event in events
        if event["event_type"] in ("context.item.added", "context.item.updated")
    }


DAMAGES = ("deleted", "twice", "cut", "swapped")


def damaged(data: bytes, how: str) -> list[bytes]:
    """The capture with each line damaged in one way."""
    lines = data.split(b"\n")[:-1]
    made = []
    for at, line in enumerate(lines):
        other = list(lines)
        if how == "deleted":
            del other[at]
        elif how == "twice":
            other.insert(at, line)
        elif how == "cut":
            other[at] = line[: len(line) // 2]
        elif at + 1 < len(lines):
            other[at], other[at + 1] = other[at + 1], other[at]
        made.append(b"\n".join(other) + b"\n")
    return made
