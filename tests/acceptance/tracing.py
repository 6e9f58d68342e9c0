"""A sound trace small enough to predict, the ways to damage it, and the ways to spell it."""

from __future__ import annotations

import json
import random
from typing import Any

Json = dict[str, Any]
ITEMS = ("alpha", "beta", "gamma")
TEXTS = {
    "alpha": "The first note says hello.",
    "beta": "The second note says more.",
    "gamma": "The third note says goodbye.",
}
TOKENS = {"alpha": 6, "beta": 6, "gamma": 6}
"""o200k_base: one token a word and one for the full stop (`goodbye` is one too)."""


def event(number: int, kind: str, turn: int, data: Json) -> Json:
    """One event of the session `s` with a time of its own."""
    time = f"2026-01-01T00:00:{number:02d}Z"
    return {
        "schema_version": "0.1.1",
        "event_id": f"e{number}",
        "event_type": kind,
        "source": "acceptance",
        "time": time,
        "session_id": "s",
        "turn_id": f"t{turn}",
        "step_id": f"r{turn}",
        "data": {"schema_version": "0.1.1", **data},
    }


def sound() -> list[Json]:
    """Nine events, three turns: each adds one item and resends the whole window, which is injected."""
    events: list[Json] = []
    for turn, name in enumerate(ITEMS, 1):
        item = {
            "item_id": name,
            "context_kind": "file_excerpt",
            "content_mode": "inline",
            "content": TEXTS[name],
            "visibility": ["model"],
            "token_estimate": 6,
        }
        blocks = [{"block_id": f"b-{n}", "item_refs": [n]} for n in ITEMS[:turn]]
        assembly = {
            "assembly_id": f"a{turn}",
            "target": "model",
            "ordered_blocks": blocks,
            "created_at": "2026-01-01T00:00:00Z",
            "metadata": {"ctxctl": {"model": "gpt-4o", "mode": "window"}},
        }
        injection = {
            "injection_id": f"i{turn}",
            "assembly_ref": f"a{turn}",
            "target": "model",
            "injection_point": "message_history",
            "created_at": "2026-01-01T00:00:00Z",
        }
        n = 3 * turn
        events.append(event(n - 2, "context.item.added", turn, item))
        events.append(event(n - 1, "context.assembly.created", turn, assembly))
        events.append(event(n, "context.injection.applied", turn, injection))
    return events


def compact(value: Any) -> bytes:
    """JSON without a space, UTF-8 as it is."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


LINES = tuple(compact(one) + b"\n" for one in sound())
"""The lines of the sound trace; BETA is the fourth."""
BETA = LINES[3]
BEFORE, AFTER = b"".join(LINES[:3]), b"".join(LINES[4:])
SOUND = b"".join(LINES)


def with_beta(line: bytes) -> bytes:
    """The trace with something else in the place of its fourth line."""
    return BEFORE + line + AFTER


def in_beta(old: bytes, new: bytes) -> bytes:
    """The trace with something replaced inside its fourth line."""
    assert BETA.count(old) == 1
    return with_beta(BETA.replace(old, new))


def at(old: bytes) -> int:
    """Where something inside the fourth line is, as a byte of the file."""
    return len(BEFORE) + BETA.index(old)


def shuffled(value: Any, dice: random.Random) -> Any:
    """The same JSON value with the keys of every object in another order."""
    if isinstance(value, dict):
        keys = list(value)
        dice.shuffle(keys)
        return {key: shuffled(value[key], dice) for key in keys}
    return [shuffled(one, dice) for one in value] if isinstance(value, list) else value
