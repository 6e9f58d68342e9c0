"""Check whether a trace has the values that a query names, if ctxctl does not know them.

Kinds, segments, causes and flags are open: a trace may have its own. A value that neither knows is probably a
typing error, which an empty result would hide.
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

_MAX_OWN: Final = 200
"""Most values of a trace's own that are kept, to be listed with an unknown one."""
_MAX_NAMED: Final = 8
_MAX_VALUE: Final = 80


class UnknownValue(NamedTuple):
    """An unknown value of a field."""

    field: str
    value: str
    own: tuple[str, ...] = ()
    """Values of this field in the trace that are not in ctxctl's vocabulary, sorted; untrusted text."""


def unknown_to_both(one: Iterable[UnknownValue], two: Iterable[UnknownValue]) -> tuple[UnknownValue, ...]:
    """Return the values that neither of two traces has."""
    there = {(other.field, other.value): other for other in two}
    return tuple(
        value._replace(own=tuple(sorted({*value.own, *other.own})[:_MAX_OWN]))
        for value in one
        if (other := there.get((value.field, value.value))) is not None
    )


def unknown_values(
    inspector: Inspector, query: Query, progress: Progress | None = None
) -> tuple[UnknownValue, ...]:
    """Return the values of a query that neither ctxctl nor this trace has.

    Reads the whole trace if ctxctl does not know a value, else nothing.
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
                    if len(own[field]) < _MAX_OWN:
                        own[field][found] = None
                    left = [(f, asked) for f, asked in left if f != field or not asked.fits(found)]
            if not left:
                break
    return tuple(_unknown(field, value, own[field]) for field, value in left)


def _unknown(field: str, value: Value, own: Iterable[str]) -> UnknownValue:
    return UnknownValue(field, value.text, tuple(sorted(own)))


def _values(one: Walked, field: str) -> Iterator[str]:
    """Yield a field's values that are new at one step; a trace's first mention of a value is one."""
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
    """Return the error for unknown values, with near values or else all known ones."""
    field, value = unknown.field, _short(unknown.value)
    near = near_values(field, unknown.value, unknown.own)
    if near:
        hint = f"did you mean {' or '.join(f'{field}:{_short(one)}' for one in near)}?"
    else:
        known = [*map(_short, unknown.own[:_MAX_NAMED]), *VOCABULARIES[field]]
        hint = f"there are: {', '.join(known)}"
    return UsageError(
        "unknown-value",
        f"no {field} is called {value!r}: ctxctl does not know it, and nothing that was searched has it",
        hint=hint,
    )


def _short(name: str) -> str:
    return name if len(name) <= _MAX_VALUE else name[: _MAX_VALUE - 1] + "…"
