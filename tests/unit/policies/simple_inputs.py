"""Random histories and settings for context-simple, and what ctxctl's rules make of them.

The same seed gives the same input everywhere, so that what the original code made of it can be kept as a
digest (`tests/property/context_simple/views.digests`).
"""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any, Final, NamedTuple

from ctxctl.plugins.amplifier.policy.ladder import Rules, climb
from ctxctl.plugins.amplifier.policy.messages import Message, of_rows, total
from ctxctl.plugins.amplifier.policy.notice import notice

Json = dict[str, Any]
INPUTS: Final = 3000
KEPT: Final = Path(__file__).resolve().parents[2] / "property/context_simple"
"""What the original code made: of random histories, as digests, and in live sessions, as their logs."""
DIGESTS: Final = KEPT / "views.digests"
_WORDS: Final = (
    "river",
    "table",
    "it's",
    '"quoted"',
    "naïve",
    "日本語",
    "line\nbreak",
    "tab\tbed",
    "a/b.py",
    "0",
)
_TIME: Final = {"timestamp": "2026-11-22T10:00:00.000+00:00"}


class Input(NamedTuple):
    """A history, and how context-simple is set."""

    rows: list[Json]
    budget: int
    threshold: float
    target: float
    recent: float
    results: int
    chars: int


class View(NamedTuple):
    """What came of it."""

    rows: list[Json]
    told: Json | None
    """The event; None: nothing was done."""

    @property
    def digest(self) -> str:
        """Of the messages without context-simple's own marks, and of the event."""
        plain = [{k: v for k, v in row.items() if not k.startswith("_")} for row in self.rows]
        raw = json.dumps([plain, self.told], sort_keys=True)
        return hashlib.sha256(raw.encode()).hexdigest()[:8]


def made(seed: int) -> Input:
    """The input of a seed."""
    dice = random.Random(seed)
    rows = _history(dice)
    size = sum(len(str(row)) // 4 for row in rows)
    return Input(
        rows,
        budget=max(1, int(size * dice.choice((0.3, 0.5, 0.7, 0.9, 1.0, 1.05, 1.2)))),
        threshold=dice.choice((0.92, 0.92, 0.5, 0.99)),
        target=dice.choice((0.5, 0.5, 0.3, 0.1, 0.8)),
        recent=dice.choice((0.3, 0.3, 0.1, 0.02, 0.0, 0.6, 1.0)),
        results=dice.choice((5, 5, 0, 1, 2, 12)),
        chars=dice.choice((250, 250, 0, 40, 1000)),
    )


def _history(dice: random.Random) -> list[Json]:
    rows: list[Json] = []
    for _ in range(dice.choice((0, 1, 1, 1, 2))):
        rows.append(_row("system", _text(dice, 60)))
    calls = 0
    for _ in range(dice.randint(1, 12)):
        text: Any = _text(dice, 90)
        if dice.random() < 0.1:
            text = [{"type": "text", "text": text}]
        rows.append(_row("user", text))
        if dice.random() < 0.06:
            rows.append({**_row("system", _text(dice, 20)), "metadata": {"source": "hook", **_TIME}})
        for _ in range(dice.choice((0, 0, 1, 1, 2, 3))):
            answer, results = _called(dice, calls)
            calls += 1
            rows += [answer, *results]
        if dice.random() < 0.9:
            rows.append(_row("assistant", [{"type": "text", "text": _text(dice, 60), "visibility": None}]))
    return rows


def _called(dice: random.Random, number: int) -> tuple[Json, list[Json]]:
    """An answer with calls, and their results: some are late, some never come, an id may come twice."""
    made: list[Json] = []
    results: list[Json] = []
    for n in range(dice.choice((1, 1, 2, 3))):
        key = "same" if dice.random() < 0.03 else f"call_{number}_{n}"
        made.append({"id": key, "tool": "read", "arguments": {"path": _text(dice, 2)}})
        if dice.random() < 0.96:
            named = {"name": "read"} if number % 2 else {}
            results.append({"role": "tool", **named, "tool_call_id": key, "content": _text(dice, 300),
                            "metadata": _TIME})  # fmt: skip
    blocks = [
        {"type": "tool_call", "id": one["id"], "name": "read", "input": one["arguments"]} for one in made
    ]
    content: Any = blocks if dice.random() < 0.8 else _text(dice, 10)
    if dice.random() < 0.05:
        results = results[1:] + results[:1]
    return {"role": "assistant", "content": content, "tool_calls": made, "metadata": _TIME}, results


def _row(role: str, content: Any) -> Json:
    return {"role": role, "content": content, "metadata": _TIME}


def _text(dice: random.Random, most: int) -> str:
    return " ".join(dice.choice(_WORDS) for _ in range(dice.randint(0, most)))


def ours(given: Input) -> View:
    """What ctxctl's rules make of an input: those of the older version."""
    messages = of_rows(given.rows)
    system = [message for message in messages if message.role == "system"]
    rest = [message for message in messages if message.role != "system"]
    before = total(messages)
    if before / given.budget < given.threshold:
        return View(given.rows, None)
    rules = Rules(int(given.budget * given.target), given.recent, given.results, given.chars, older=True)
    done = climb(rest, rules, total(system))
    view = [given.rows[message.of[0]] for message in system]
    view += [_shown(given.rows[message.of[0]], message) for message in done.kept]
    told = {
        "before_tokens": before, "after_tokens": total(system) + total(done.kept),
        "before_messages": len(messages), "after_messages": len(view),
        "messages_removed": len(done.removed), "messages_truncated": done.truncated,
        "user_messages_stubbed": done.stubbed, "system_messages_preserved": len(system),
        "strategy_level": done.level, "budget": given.budget, "target_tokens": rules.target,
        "protected_recent": given.recent, "protected_tool_results": given.results,
    }  # fmt: skip
    said = notice(told, recent=given.recent, results=given.results, older=True)
    marks = {"source": "context-compaction", "ephemeral": True}
    view.insert(1, {"role": "system", "content": said, "metadata": marks})
    return View(view, told)


def _shown(row: Json, message: Message) -> Json:
    return row if message.said is None else {**row, "content": message.said}
