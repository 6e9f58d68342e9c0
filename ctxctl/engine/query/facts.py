"""What a query can ask of a step and of a change, by the names that users type."""

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
"""Characters of a word for which near ones are looked for."""


def tool_server_of(thing: Change | Placement) -> str | None:
    """The tool server that an item's names tell: `mcp__SERVER__TOOL`, `mcp:SERVER:TOOL`, `mcp://SERVER/…`."""
    return first_tool_server(thing.source, thing.title, thing.item)


def first_tool_server(*names: str | None) -> str | None:
    """The tool server that some names tell, by the first that tells one."""
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
"""Fields of a change that have one value; `segment` and `flag` are found otherwise."""

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
"""Fields of what a step's window holds, whether it changed or not: its items, and what its texts say."""

FIELDS: Final = (*OF_CHANGE, "segment", "flag", *OF_STEP, *OF_WINDOW)
"""All fields whose values are texts."""

RANGES: Final[Mapping[str, Callable[[Step], int]]] = {
    "turn": lambda step: step.turn,
    "step": lambda step: step.step,
}
"""Fields whose values are numbers or runs of them."""

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
"""Fields that have these values and no others."""

VOCABULARIES: Final[Mapping[str, tuple[str, ...]]] = {
    "kind": tuple(kind.name for kind in KINDS),
    "segment": SEGMENTS,
    "cause": CAUSES,
    "flag": (
        "moved", "rescored", "truncated", "stale", "redacted", "rendering", "derived-identity", "carried-in",
    ),
}  # fmt: skip
"""Fields with values that ctxctl knows, beside which a trace may have others of its own."""

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
"""What else people call a field's values, and the values that each means."""


def values_called(field: str, word: str) -> tuple[str, ...]:
    """The values of a field that an alias means, whatever its case; nothing for what is none."""
    named = word.strip().casefold().replace("-", "_").replace(" ", "_")
    return ALIASES[field].get(named, ()) if field in ALIASES else ()


def near_values(field: str, word: str, others: Iterable[str] = ()) -> list[str]:
    """The known values of a field, and of `others`, that a word is near to, the nearest first; at most three.

    An alias that is near stands for its value.
    """
    from difflib import get_close_matches

    known = dict.fromkeys((*others, *VOCABULARIES.get(field, ()), *CLOSED.get(field, ())))
    called: dict[str, tuple[str, ...]] = {name.casefold(): (name,) for name in known}
    for alias, names in ALIASES.get(field, {}).items():
        called.setdefault(alias, names)
    near = get_close_matches(word.casefold()[:_NEAR_HEAD], called, 3, 0.6)
    return list(dict.fromkeys(name for one in near for name in called[one]))[:3]


def _cache(step: Step) -> str | None:
    """Whether a cache could have been of use; a thread's first request has none before it."""
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
    """The window in force; of a step with nothing but a limit on its input, that."""
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
"""Those that may be compared with a part of the cap, in per cent."""
COST: Final = "cost"
"""What a step was billed: its value is in nanodollars, and whoever asks has to know prices."""
CENTS: Final = 9
"""Digits of a price behind the point."""
NUMBERS: Final = (*CHANGE_NUMBERS, *STEP_NUMBERS, COST)
"""What can be compared with a number; None where the trace does not say."""


def _flag(*names: str) -> Callable[[Step], bool]:
    return lambda step: any(name in step.flags for name in names)


def _over(step: Step) -> bool | None:
    """Whether more was sent than the cap, or another limit exceeded; None where no cap is known."""
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
"""What holds of a step or does not, written `is:NAME`; None where the trace does not say."""

BARE: Final = ("compacted", "warning", "cachebreak", "miss", "over", "missing", "partial")
"""Step states that may be written without `is:`."""
