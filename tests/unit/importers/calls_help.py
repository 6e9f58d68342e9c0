"""What a capture of calls adds up to, for the tests of its importers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ctxctl.importers import registry
from ctxctl.model.problem import Problem
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.trace.source import Source

Json = dict[str, Any]
FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"


class Seen(NamedTuple):
    """One step: where, what was in the window (kind and text), and what was billed as input."""

    thread: str
    turn: int
    window: list[tuple[str, str | None]]
    billed: int | None
    model: str | None

    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.window]

    def texts(self) -> list[str | None]:
        return [text for _, text in self.window]


def seen(path: Path | str) -> tuple[list[Seen], list[Problem]]:
    """The steps of a capture (a path below the fixtures, or any path), and its problems."""
    found: list[Seen] = []
    inspector = Inspector.open(FIXTURES / path)
    with inspector:
        steps = [result for result in inspector.replay() if isinstance(result, Step)]
        for ordinal, step in enumerate(steps):
            frame = inspector.frame(ordinal)
            window = [(p.kind, inspector.text(p.content) if p.content else None) for p in frame.placements]
            billed = step.usage.reported_input if step.usage is not None else None
            found.append(Seen(step.thread, step.turn, window, billed, step.model))
            ledger = step.ledger
            assert ledger.window_before + ledger.reweighed + ledger.new - ledger.freed == ledger.window_after
        return found, list(inspector.problems)


def detected(data: bytes) -> str | None:
    """The name of the format that claims a capture."""
    found = registry.of_head(data[: registry.HEAD])
    return found.name if found is not None else None


def events(name: str, data: bytes) -> tuple[list[Json], list[Problem]]:
    """The events of a capture in memory, by one format."""
    problems: list[Problem] = []
    source = Source.from_bytes("capture", data)
    return list(registry.capture_events(registry.by_name(name), source, problems.append)), problems


def slugs(problems: list[Problem]) -> list[str]:
    return [problem.slug for problem in problems]


def no_secrets(name: str, path: str) -> None:
    """Nothing of the headers' and addresses' keys is in the events."""
    found, _ = events(name, (FIXTURES / path).read_bytes())
    assert "SECRET" not in repr(found)
