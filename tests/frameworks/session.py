"""A trace that a hook records, held against what the fake server received."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import orjson

from ctxctl.session import Inspector
from tests.frameworks.fake import CACHED, INPUT, OUTPUT, Fake, Received
from tests.unit.providers.wire_rebuild import check

SECRET = "sk-" + "proj-" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"
"""An API key that must never reach the file; it is made here, and nobody's."""
BILL = {"input_tokens": INPUT, "cached_tokens": CACHED, "output_tokens": OUTPUT}


class Row(NamedTuple):
    """One event."""

    type: str
    thread: str | None
    turn: str | None
    step: str | None
    data: dict[str, Any]


class Recording:
    """One test's trace."""

    def __init__(self, path: Path, fake: Fake) -> None:
        self.path = path
        self.fake = fake

    def rows(self, event_type: str = "") -> list[Row]:
        """Its events, or those of one type."""
        found = []
        # While somebody writes, what stands behind the last line end is no line yet.
        for line in self.path.read_bytes().split(b"\n")[:-1]:
            event = orjson.loads(line)
            if event["event_type"] == event_type or not event_type:
                place = (event.get(name) for name in ("thread_id", "turn_id", "step_id"))
                found.append(Row(event["event_type"], *place, event["data"]))
        return found

    def bills(self) -> list[dict[str, int]]:
        """What was billed, request by request."""
        return [{name: row.data.get(name) for name in BILL} for row in self.rows("ctxctl.usage.reported")]

    def errors(self) -> list[str]:
        """Why requests failed."""
        return [row.data["error"] for row in self.rows("ctxctl.step.failed")]

    def said(self, kind: str = "assistant_message") -> list[str | None]:
        """The texts of the items of a kind, in the order in which they were first told."""
        return [
            row.data.get("content")
            for row in self.rows("context.item.added")
            if row.data["context_kind"] == kind
        ]

    def check(self, received: list[Received] | None = None, *, billed: int | None = None) -> None:
        """Hold every frame against the body that the server received.

        Fails where a step is lacking or too many, where its items, their order or any byte of their JSON
        differ, where the usage does, or where the key was written.

        Args:
            received: The bodies, in the order of the steps; None: all that came, retries once.
            billed: Answers that told what they bill; None: as many as succeeded.
        """
        bodies = without_retries(self.fake.received) if received is None else received
        assert bodies, "the server received nothing"
        with Inspector.open(str(self.path)) as inspector:
            list(inspector.replay())
            assert [problem.message for problem in inspector.problems] == []
            made = check(inspector, [(one.dialect, one.body) for one in bodies])
        assert made == len(bodies)
        number = len(self.fake.answered) if billed is None else billed
        assert self.bills() == [BILL] * number
        assert SECRET not in self.path.read_text(encoding="utf-8")
        assert SECRET[8:] not in self.path.read_text(encoding="utf-8")


def without_retries(received: list[Received]) -> list[Received]:
    """What came, less what a client sent again after an error."""
    kept: list[Received] = []
    for one in received:
        again = any(old.body == one.body and old.path == one.path and old.status >= 400 for old in kept)
        if not again:
            kept.append(one)
    return kept
