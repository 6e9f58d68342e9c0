"""Whether a trace knows the values that a query names, where ctxctl's own words do not.

Kinds, segments, causes and flags are open: a trace may have its own.  A value that neither knows is a slip of
whoever typed it, and finding nothing would hide that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from ctxctl.engine.query.facts import VOCABULARIES, near_values
from ctxctl.errors import UsageError
from ctxctl.session.walked import walked

if TYPE_CHECKING:
    from ctxctl.engine.query import Query, Value
    from ctxctl.engine.replay.walked import Walked
    from ctxctl.session.facade import Inspector, Progress

_MOST: Final = 200
"""Values of a trace's own that are kept to be named beside those that are not known."""
_NAMED: Final = 8
_LONGEST: Final = 80


class UnknownValue(NamedTuple):
    """A value of a field that nobody knows."""

    field: str
    value: str
    own: tuple[str, ...] = ()
    """Values of this field that the trace has and ctxctl's vocabulary does not, sorted: untrusted text."""


def unknown_to_both(one: Iterable[UnknownValue], two: Iterable[UnknownValue]) -> tuple[UnknownValue, ...]:
    """Return the values that two traces do not know, neither of them."""
    there = {(other.field, other.value): other for other in two}
    return tuple(
        value._replace(own=tuple(sorted({*value.own, *other.own})[:_MOST]))
        for value in one
        if (other := there.get((value.field, value.value))) is not None
    )


def unknown_values(
    inspector: Inspector, query: Query, progress: Progress | None = None
) -> tuple[UnknownValue, ...]:
    """Return the values of a query that neither ctxctl nor this trace knows.

    Goes through the whole trace where the query has a value that ctxctl does not know, and not at all else.
    """
    left = list(query.unvouched)
    if not left:
        return ()
    own: dict[str, dict[str, None]] = {field: {} for field, _ in left}
    with inspector.trace.untold():
        for one in walked(inspector, progress):
            for field in own:
                for found in _values(one, field):
                    if found in own[field] or found in VOCABULARIES[field]:
                        continue
                    if len(own[field]) < _MOST:
                        own[field][found] = None
                    left = [(f, asked) for f, asked in left if f != field or not asked.fits(found)]
            if not left:
                break
    return tuple(_unknown(field, value, own[field]) for field, value in left)


def _unknown(field: str, value: Value, own: Iterable[str]) -> UnknownValue:
    return UnknownValue(field, value.text, tuple(sorted(own)))


def _values(one: Walked, field: str) -> Iterator[str]:
    """Yield what comes new at one step in a field: a trace's first mention of a value is such a one."""
    step = one.at.step
    if field == "segment":
        yield from step.segments
    elif field == "cause":
        yield from (change.cause for change in step.changes if change.cause is not None)
    elif field == "flag":
        yield from (flag for change in step.changes for flag in change.flags)
    else:
        yield from (change.kind for change in step.changes)
        yield from (placement.kind for placement in one.delta.inserted)


def unknown_error(unknown: UnknownValue) -> UsageError:
    """The error for a value that nobody knows, with the values that are near, or else all known ones."""
    field, value = unknown.field, _short(unknown.value)
    near = near_values(field, unknown.value, unknown.own)
    if near:
        hint = f"did you mean {' or '.join(f'{field}:{_short(one)}' for one in near)}?"
    else:
        known = [*map(_short, unknown.own[:_NAMED]), *VOCABULARIES[field]]
        hint = f"there are: {', '.join(known)}"
    return UsageError(
        "unknown-value",
        f"no {field} is called {value!r}: ctxctl does not know it, and nothing that was searched has it",
        hint=hint,
    )


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
