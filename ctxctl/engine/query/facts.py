"""What a query can ask of a step and of a change, by the names that users type."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from ctxctl.engine.told import is_open
from ctxctl.model.results import Change, Step
from ctxctl.model.vocab import STATUSES

WARNED: Final = frozenset(
    {"unrecorded_cut", "still_over_budget", "over_budget", "missing_context", "unknown_base"}
)
"""Flags of a step that warn; the others are facts of the recording."""

_SERVER: Final = re.compile(
    r"(?<![A-Za-z0-9])mcp(?:__([A-Za-z0-9](?:[A-Za-z0-9.-]|_(?!_)){0,63})(?=__)"
    r"|:(?://)?([A-Za-z0-9][A-Za-z0-9._-]{0,63})(?=[:/]))"
)
_SERVER_HEAD: Final = 400


def server_of(change: Change) -> str | None:
    """The tool server that an item's names tell: `mcp__SERVER__TOOL`, `mcp:SERVER:TOOL`, `mcp://SERVER/…`."""
    for text in (change.source, change.title, change.item):
        match = _SERVER.search(text, 0, _SERVER_HEAD) if text is not None and "mcp" in text else None
        if match is not None:
            return match[1] or match[2]
    return None


OF_CHANGE: Final[Mapping[str, Callable[[Change], str | None]]] = {
    "item": lambda change: change.item,
    "title": lambda change: change.title,
    "kind": lambda change: change.kind,
    "source": lambda change: change.source,
    "server": server_of,
    "status": lambda change: change.status,
    "cause": lambda change: change.cause,
    "reason": lambda change: change.reason,
    "provenance": lambda change: change.provenance,
    "version": lambda change: change.version or change.previous_version,
}
"""Fields of a change that have one value; `segment` and `flag` are found otherwise."""

OF_STEP: Final[Mapping[str, Callable[[Step], str | None]]] = {
    "session": lambda step: step.session,
    "thread": lambda step: step.thread,
    "model": lambda step: step.model,
}

FIELDS: Final = (*OF_CHANGE, "segment", "flag", *OF_STEP)
"""All fields whose values are texts."""

RANGES: Final[Mapping[str, Callable[[Step], int]]] = {
    "turn": lambda step: step.turn,
    "step": lambda step: step.step,
}
"""Fields whose values are numbers or runs of them."""

CLOSED: Final[Mapping[str, tuple[str, ...]]] = {
    "status": STATUSES,
    "provenance": ("native", "derived", "simulated"),
}
"""Fields that have these values and no others."""


def _billed(step: Step) -> int | None:
    return None if step.usage is None else step.usage.reported_input


CHANGE_NUMBERS: Final[Mapping[str, Callable[[Change], int | None]]] = {
    "tokens": lambda change: change.tokens,
    "held": lambda change: change.in_window,
    "new": lambda change: change.new,
    "freed": lambda change: change.freed,
}
STEP_NUMBERS: Final[Mapping[str, Callable[[Step], int | None]]] = {
    "window": lambda step: step.window.used,
    "free": lambda step: step.window.free,
    "stale": lambda step: step.ledger.stale,
    "entered": lambda step: step.ledger.new,
    "left": lambda step: step.ledger.freed,
    "billed": _billed,
}
NUMBERS: Final = (*CHANGE_NUMBERS, *STEP_NUMBERS)
"""What can be compared with a number; None where the trace does not say."""


def _flag(*names: str) -> Callable[[Step], bool]:
    return lambda step: any(name in step.flags for name in names)


def _over(step: Step) -> bool:
    return bool(step.window.over) or _flag("over_budget", "still_over_budget")(step)


def _missing(step: Step) -> bool:
    return "missing_context" in step.flags or any(is_open(gap) for gap in step.told.missing)


PREDICATES: Final[Mapping[str, Callable[[Step], bool]]] = {
    "compacted": _flag("compacted"),
    "warning": lambda step: not WARNED.isdisjoint(step.flags),
    "cachebreak": lambda step: step.cache.broken_by is not None,
    "over": _over,
    "missing": _missing,
    "cut": _flag("unrecorded_cut"),
    "cleared": _flag("cleared"),
    "branched": _flag("branched"),
    "redacted": lambda step: bool(step.told.redactions),
    "simulated": _flag("simulated"),
}
"""What holds of a step or does not, written `is:NAME`."""

BARE: Final = ("compacted", "warning", "cachebreak", "over", "missing")
"""Predicates that may be written without `is:`."""
