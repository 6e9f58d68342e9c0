"""The facts of a step and of a change that a query can ask for, by the names that users type."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, get_args

from ctxctl.engine.replay.annotations import is_open
from ctxctl.engine.sizes.bills import believed_output
from ctxctl.engine.sizes.prefix import breaks_cache
from ctxctl.kinds import KINDS, WORDS
from ctxctl.model.results import Change, Placement, Step
from ctxctl.model.vocab import (
    CAUSES,
    SEGMENTS,
    STATUSES,
    Basis,
    LimitSource,
    MissCause,
    Mode,
    Provenance,
    UsedMethod,
    warns,
)

_SERVER: Final = re.compile(
    r"(?<![A-Za-z0-9])mcp(?:__([A-Za-z0-9](?:[A-Za-z0-9.-]|_(?!_)){0,63})(?=__)"
    r"|:(?://)?([A-Za-z0-9][A-Za-z0-9._-]{0,63})(?=[:/]))"
)
_SERVER_HEAD: Final = 400
_NEAR_HEAD: Final = 80
"""Longest word for which near ones are searched, in characters."""


def tool_server_of(thing: Change | Placement) -> str | None:
    """Return the tool server in an item's name: `mcp__SERVER__TOOL`, `mcp:SERVER:TOOL`, `mcp://SERVER/…`."""
    return first_tool_server(thing.source, thing.title, thing.item)


def first_tool_server(*names: str | None) -> str | None:
    """Return the tool server in the first name that has one."""
    for text in names:
        match = _SERVER.search(text, 0, _SERVER_HEAD) if text is not None and "mcp" in text else None
        if match is not None:
            return match[1] or match[2]
    return None


OF_CHANGE: Final[Mapping[str, Callable[[Change], str | None]]] = {
    "item": lambda change: change.item,
    "title": lambda change: change.title,
    "kind": lambda change: change.kind,
    "source": lambda change: change.source,
    "server": tool_server_of,
    "status": lambda change: change.status,
    "cause": lambda change: change.cause,
    "reason": lambda change: change.reason,
    "provenance": lambda change: change.provenance,
    "version": lambda change: change.version or change.previous_version,
}
"""Fields of a change with one value. `segment` and `flag` are found separately."""

OF_STEP: Final[Mapping[str, Callable[[Step], str | None]]] = {
    "session": lambda step: step.session,
    "thread": lambda step: step.thread,
    "model": lambda step: step.model,
    "mode": lambda step: step.mode,
    "basis": lambda step: step.basis,
    "cache": lambda step: _cache(step),
    "method": lambda step: step.window.used_method,
    "limit": lambda step: step.window.limit_source,
    "miss": lambda step: None if step.cache.miss is None else step.cache.miss.cause,
}

OF_WINDOW: Final = ("has", "text")
"""Fields of a step's window, changed or not: its items, and what its texts say."""

FIELDS: Final = (*OF_CHANGE, "segment", "flag", *OF_STEP, *OF_WINDOW)
"""All fields with text values."""

RANGES: Final[Mapping[str, Callable[[Step], int]]] = {
    "turn": lambda step: step.turn,
    "step": lambda step: step.step,
}
"""Fields with numbers or ranges as values."""

CLOSED: Final[Mapping[str, tuple[str, ...]]] = {
    "status": STATUSES,
    "provenance": get_args(Provenance),
    "mode": get_args(Mode),
    "basis": get_args(Basis),
    "cache": ("broken", "kept"),
    "method": get_args(UsedMethod),
    "limit": get_args(LimitSource),
    "miss": get_args(MissCause),
}
"""Fields with a closed set of values."""

VOCABULARIES: Final[Mapping[str, tuple[str, ...]]] = {
    "kind": tuple(kind.name for kind in KINDS),
    "segment": SEGMENTS,
    "cause": CAUSES,
    "flag": (
        "moved", "rescored", "truncated", "stale", "redacted", "rendering", "derived-identity", "carried-in",
    ),
}  # fmt: skip
"""Fields with values known to ctxctl. A trace may have others."""

ALIASES: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "kind": WORDS,
    "status": {
        "new": ("added",), "changed": ("updated",), "modified": ("updated",), "gone": ("removed",),
        "deleted": ("removed",), "unchanged": ("skipped",), "left_out": ("omitted",),
    },
    "method": {"billed": ("reported",)},
    "limit": {"table": ("catalogue",)},
    "miss": {"unknown": ("unexplained",)},
}  # fmt: skip
"""Other words for a field's values, and the values that each means."""


def values_called(field: str, word: str) -> tuple[str, ...]:
    """Return the values that an alias means, whatever its case; none if it is no alias."""
    named = word.strip().casefold().replace("-", "_").replace(" ", "_")
    return ALIASES[field].get(named, ()) if field in ALIASES else ()


def near_values(field: str, word: str, others: Iterable[str] = ()) -> list[str]:
    """Return at most three known values of a field, or of `others`, that are near a word, the nearest first.

    A near alias stands for its value.
    """
    from difflib import get_close_matches

    known = dict.fromkeys((*others, *VOCABULARIES.get(field, ()), *CLOSED.get(field, ())))
    called: dict[str, tuple[str, ...]] = {name.casefold(): (name,) for name in known}
    for alias, names in ALIASES.get(field, {}).items():
        called.setdefault(alias, names)
    near = get_close_matches(word.casefold()[:_NEAR_HEAD], called, 3, 0.6)
    return list(dict.fromkeys(name for one in near for name in called[one]))[:3]


def _cache(step: Step) -> str | None:
    """Return the state of the cache; a thread's first request had no cache to use."""
    if step.cache.possible_prefix is None:
        return None
    return "broken" if breaks_cache(step) else "kept"


def _cached(step: Step) -> int | None:
    return None if step.usage is None else step.usage.reported_cached


def _missed(step: Step) -> int:
    return 0 if step.cache.miss is None else step.cache.miss.tokens


def _answered(step: Step) -> int | None:
    return believed_output(step.usage)


def _billed(step: Step) -> int | None:
    return None if step.usage is None else step.usage.reported_input


CHANGE_NUMBERS: Final[Mapping[str, Callable[[Change], int | None]]] = {
    "tokens": lambda change: change.tokens,
    "held": lambda change: change.in_window,
    "new": lambda change: change.new,
    "freed": lambda change: change.freed,
}


def _limit(step: Step) -> int | None:
    """Return the window in force, or else the input limit."""
    window = step.window
    return window.cap if window.limit is None else window.limit


STEP_NUMBERS: Final[Mapping[str, Callable[[Step], int | None]]] = {
    "window": lambda step: step.window.used,
    "sent": lambda step: step.window.used,
    "recorded": lambda step: step.window.recorded,
    "unrecorded": lambda step: step.window.unrecorded,
    "limit": _limit,
    "free": lambda step: step.window.free,
    "stale": lambda step: step.ledger.stale,
    "entered": lambda step: step.ledger.new,
    "left": lambda step: step.ledger.freed,
    "billed": _billed,
    "cached": _cached,
    "answered": _answered,
    "missed": lambda step: None if _cached(step) is None else _missed(step),
    **RANGES,
}
SHARES: Final = ("window", "sent")
"""Numbers that may be compared with a percentage of the cap."""
COST: Final = "cost"
"""What a step was billed, in nanodollars. The caller must know prices."""
CENTS: Final = 9
"""Number of decimal digits of a price."""
NUMBERS: Final = (*CHANGE_NUMBERS, *STEP_NUMBERS, COST)
"""Numbers that can be compared; None if the trace does not say."""


def _flag(*names: str) -> Callable[[Step], bool]:
    return lambda step: any(name in step.flags for name in names)


def _over(step: Step) -> bool | None:
    """Return whether a step exceeded its cap or another limit; None if no cap is known."""
    if bool(step.window.over) or _flag("over_budget", "still_over_budget")(step):
        return True
    return None if step.window.cap is None else False


def _missing(step: Step) -> bool:
    return "missing_context" in step.flags or any(is_open(gap) for gap in step.annotations.missing)


STEP_STATES: Final[Mapping[str, Callable[[Step], bool | None]]] = {
    "compacted": _flag("compacted"),
    "warning": lambda step: warns(step.flags, over=bool(step.window.over)),
    "cachebreak": lambda step: step.cache.broken_by is not None,
    "miss": lambda step: step.cache.miss is not None,
    "over": _over,
    "missing": _missing,
    "cut": _flag("unrecorded_cut"),
    "cleared": _flag("cleared"),
    "branched": _flag("branched"),
    "redacted": lambda step: bool(step.annotations.redactions),
    "simulated": _flag("simulated"),
    "partial": lambda step: step.has_partial_output,
}
"""States of a step, written `is:NAME`; None if the trace does not say."""

BARE: Final = ("compacted", "warning", "cachebreak", "miss", "over", "missing", "partial")
"""States that may be written without `is:`."""
