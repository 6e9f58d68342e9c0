"""Cases: what is known of the request's own body, and what a provider's cache makes of it."""

from __future__ import annotations

from typing import Any

from tests.oracle.build import ABC, HELLO, ONE_TWO, RED, Event, assembly, at, block, inject, item
from tests.oracle.case import Case, ledger, skipped, updated

ANTHROPIC = {"api": "anthropic", "thinking": {"type": "enabled", "budget_tokens": 4000}}


def placed(ref: str, field: str = "messages", **leaf: Any) -> dict[str, Any]:
    """A block with its place in a body."""
    wire = {"in": field, "leaf": {"type": "text", "text": {"$": "text"}, **leaf}}
    return block(ref, metadata={"ctxctl": {"wire": wire}})


def window(*last: dict[str, Any]) -> list[Any]:
    """Tools, system prompt, messages: 3, 5 and 2 tokens, and what comes behind."""
    return [placed("T", "tools"), placed("S", "system"), placed("U"), *last]


def asked(step: str, refs: list[Any], model: str = "claude-opus-5", **request: Any) -> list[Event]:
    """A request."""
    ctxctl: dict[str, Any] = {"model": model}
    if request:
        ctxctl["request"] = request
    return at("t1", step, assembly(f"m-{step}", refs, ctxctl=ctxctl), inject(f"m-{step}"))


ITEMS = at(
    "t1",
    "s1",
    item("T", ONE_TWO, kind="tool_definition"),
    item("S", ABC, kind="system_prompt"),
    item("U", HELLO, kind="user_message"),
    item("R", RED, kind="reasoning"),
    item("N", HELLO, kind="system_prompt"),
)


def _by(setting: str, level: str, position: int) -> dict[str, Any]:
    return {"item": None, "setting": setting, "level": level, "position": position, "status": "updated"}


SETTINGS = Case(
    "parameters-break-what-the-provider-says",
    # Anthropic, "Prompt caching": tools, system, messages; each parameter breaks its level and what follows.
    ITEMS
    + asked("s1", window(), **ANTHROPIC)
    + asked("s2", window(), **ANTHROPIC, tool_choice={"type": "any"})
    + asked("s3", window())
    + asked("s4", window(), **ANTHROPIC, speed="fast")
    + asked("s5", window(), model="claude-sonnet-5")
    + asked("s6", window(), model="claude-sonnet-5", api="gemini", speed="slow"),
    {
        "1.1": {"cache": {"possible_prefix": None}},
        "1.2": {
            "ledger": ledger(10, 0, 0, 10),
            "changes": {"T": skipped(), "S": skipped(), "U": skipped()},
            "cache": {"possible_prefix": 8, "broken_by": _by("tool_choice", "messages", 2)},
        },
        "1.3": {"cache": {"possible_prefix": 10, "broken_by": None}},
        "1.4": {"cache": {"possible_prefix": 3, "broken_by": _by("speed", "system", 1)}},
        "1.5": {"cache": {"possible_prefix": 0, "broken_by": _by("model", "tools", 0)}},
        "1.6": {"cache": {"possible_prefix": 10, "broken_by": None}},
    },
)

FIRST = Case(
    "what-breaks-first-breaks-it",
    # A placement in front of the level that a parameter breaks has ended the run before.
    ITEMS
    + asked("s1", window(), **ANTHROPIC)
    + asked(
        "s2", [placed("T", "tools", strict=True), *window()[1:]], **ANTHROPIC, tool_choice={"type": "any"}
    ),
    {
        "1.1": {},
        "1.2": {
            "ledger": ledger(10, 3, 3, 10),
            "cache": {"possible_prefix": 0, "broken_by": {"item": "T", "position": 0, "status": "updated"}},
        },
    },
)

FIELDS = Case(
    "another-signature-is-another-rendering",
    # The text is the same, what was sent is not: "another version or another rendering".
    ITEMS
    + asked("s1", window(placed("R", signature="one")), **ANTHROPIC)
    + asked("s2", window(placed("R", signature="two")))
    + asked("s3", window(placed("R", signature="two", id="x", status="done"))),
    {
        "1.1": {"ledger": ledger(0, 14, 0, 14)},
        "1.2": {
            "ledger": ledger(14, 4, 4, 14),
            "changes": {
                "T": skipped(),
                "S": skipped(),
                "U": skipped(),
                "R": updated(new=4, freed=4, flags=["rendering"]),
            },
            "cache": {"possible_prefix": 10, "broken_by": {"item": "R", "position": 3, "status": "updated"}},
        },
        "1.3": {
            "changes": {name: skipped() for name in "TSUR"},
            "cache": {"possible_prefix": 14, "broken_by": None},
        },
    },
)

LATE = Case(
    "a-system-message-among-the-messages-stays-there",
    # Anthropic, "Prompt caching": it leaves the prefix in front of it as it is.
    ITEMS + asked("s1", window(), **ANTHROPIC) + asked("s2", window(placed("N"))),
    {"1.1": {}, "1.2": {"cache": {"possible_prefix": 10, "broken_by": None}}},
)

CASES = [SETTINGS, FIRST, FIELDS, LATE]
