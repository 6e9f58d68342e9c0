"""Small traces made at run time, and what the rules say of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ctxctl.lint.registry import choose_rules
from ctxctl.lint.run import LintResult, lint_with_tally
from ctxctl.session import Inspector

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures" / "lint"
VERSION = "0.1.1"
TIME = "2026-05-04T08:00:00Z"
PROSE = "\n".join(
    f"Line {n} says that boat {n * 7 % 23} leaves pier {n % 5} in weather {n % 3}." for n in range(30)
)


class Made:
    """A trace in the making: events of one session, a step at a time."""

    def __init__(self, path: Path, session: str = "made") -> None:
        self.path = path
        self.session = session
        self.lines: list[str] = []
        self._turn = 0

    def turn(self, number: int) -> Made:
        """Begin a turn of one step."""
        self._turn = number
        return self

    def event(self, kind: str, **data: Any) -> Made:
        """One event; `metadata` and all else are its record's."""
        event = {
            "schema_version": VERSION, "event_id": f"{self.session}-{len(self.lines)}", "event_type": kind,
            "source": "test/1", "time": TIME, "session_id": self.session, "turn_id": f"turn-{self._turn}",
            "step_id": f"step-{self._turn}", "data": {"schema_version": VERSION, **data},
        }  # fmt: skip
        self.lines.append(json.dumps(event))
        return self

    def item(
        self, name: str, text: str, kind: str = "external_resource", how: str = "added", **more: Any
    ) -> Made:
        """An item with a text."""
        return self.event(
            f"context.item.{how}", item_id=name, context_kind=kind, content_mode="inline", content=text,
            visibility=["model"], **more,
        )  # fmt: skip

    def sent(self, names: Iterable[str], **metadata: Any) -> Made:
        """The step's window, injected."""
        blocks = [{"block_id": f"b{n}", "item_refs": [name]} for n, name in enumerate(names)]
        more = {"metadata": metadata} if metadata else {}
        self.event(
            "context.assembly.created", assembly_id=f"a{self._turn}", target="model", ordered_blocks=blocks,
            created_at=TIME, **more,
        )  # fmt: skip
        return self.event(
            "context.injection.applied", injection_id=f"i{self._turn}", assembly_id=f"a{self._turn}",
            target="model", injection_point="message_history", created_at=TIME,
        )  # fmt: skip

    def billed(self, tokens: int, model: str = "claude-sonnet-4-5") -> Made:
        """What the provider reported."""
        return self.event("ctxctl.usage.reported", model=model, provider="anthropic", input_tokens=tokens)

    def save(self) -> Path:
        """Write it."""
        self.path.write_text("\n".join(self.lines) + "\n", encoding="utf-8")
        return self.path


def found(path: Path, *select: str, values: dict[str, dict[str, Any]] | None = None) -> LintResult:
    """What the rules say of a trace; none named: those that are on by default."""
    with Inspector.open(path) as inspector:
        return lint_with_tally(inspector, choose_rules(select, values=values))


def duplicates(path: Path, steps: int = 3, session: str = "made", **more: Any) -> Path:
    """A trace with one finding, CTX010, at each of its steps but the first."""
    made = Made(path, session).turn(1).item("first", PROSE, title="rules.md").sent(["first"])
    made.turn(2).item("second", PROSE, title="copy of rules.md", **more)
    for turn in range(2, steps + 1):
        made.turn(turn).sent(["first", "second"]).billed(2000)
    return made.save()
