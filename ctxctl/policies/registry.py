"""The policies by name, those of plug-ins included (entry point group ``ctxctl.policies``).

A policy is asked for as ``NAME`` or ``NAME:PARAMETER=VALUE,…``: ``fifo:target=0.8,protect_recent=2``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from ctxctl.errors import UsageError
from ctxctl.model.fitting import Fitter
from ctxctl.model.policy import Policy
from ctxctl.policies.fitting.leaving import Fifo, Priority
from ctxctl.policies.fitting.overflow import (
    AskForChoice,
    DeferToRetrieval,
    PolicyBlock,
    Reject,
    SummarizeLowPriority,
    SummarizeOldest,
    TruncateMiddle,
    TruncateTail,
)
from ctxctl.policies.sanqian import Sanqian

RECORDED: Final = "recorded"
"""Trust the trace; needs no strategy."""

Strategy = Policy | Fitter
_OWN: Final[tuple[type, ...]] = (
    Sanqian, Fifo, Priority, Reject, TruncateTail, TruncateMiddle, SummarizeOldest, SummarizeLowPriority,
    DeferToRetrieval, AskForChoice, PolicyBlock,
)  # fmt: skip


class Parameter(NamedTuple):
    """One parameter of a policy."""

    name: str
    kind: str
    """`int`, `float`, `bool`, `str` or `list`."""
    default: Any


class About(NamedTuple):
    """A policy as it is listed."""

    name: str
    what: str
    """Its rule in one sentence."""
    fits: bool
    """Whether it says what is left out of a window that is too small."""
    parameters: tuple[Parameter, ...]


def names() -> tuple[str, ...]:
    """All policy names, `recorded` first."""
    return (RECORDED, *(made.name for made in _all()))


def described() -> Iterator[About]:
    """All policies with their parameters, `recorded` first."""
    yield About(RECORDED, "Trust the trace: nothing is decided anew.", False, ())
    for made in _all():
        what = " ".join((made.__doc__ or "").split("\n\n")[0].split())
        yield About(made.name, what, fits(made), tuple(_parameters(made)))


def fits(strategy: object) -> bool:
    """Whether a strategy is one that leaves out what does not fit."""
    return hasattr(strategy, "fit")


def by_name(asked: str) -> Strategy | None:
    """The policy of this name with its parameters; None for `recorded`.

    Raises UsageError: `unknown-policy`, `bad-policy-parameter`.
    """
    name, _, given = asked.partition(":")
    if name == RECORDED and not given:
        return None
    found = next((made for made in _all() if made.name == name), None)
    if found is None:
        raise UsageError(
            "unknown-policy", f"no policy is called {name!r}", hint=f"there are: {', '.join(names())}"
        )
    strategy: Strategy = _with(found, given) if given else found
    return strategy


def _with(policy: Any, given: str) -> Any:
    """The policy with parameters in place of its defaults."""
    known = {parameter.name: parameter for parameter in _parameters(policy)}
    values: dict[str, Any] = {}
    for part in given.split(","):
        key, equals, text = (piece.strip() for piece in part.partition("="))
        parameter = known.get(key)
        if parameter is None or not equals:
            told = ", ".join(f"{p.name}={_shown(p.default)}" for p in known.values()) or "none"
            raise UsageError(
                "bad-policy-parameter",
                f"policy {policy.name} has no parameter {key!r}"
                if parameter is None
                else f"{key} has no value",
                hint=f"parameters and their defaults: {told}",
            )
        values[key] = text.split("+") if parameter.kind == "list" else text
    try:
        return msgspec.convert({**msgspec.structs.asdict(policy), **values}, type(policy), strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(
            "bad-policy-parameter",
            f"policy {policy.name}: {error}",
            hint="`ctxctl policies` lists what there is",
        ) from None


def _parameters(policy: Any) -> Iterator[Parameter]:
    if not isinstance(policy, msgspec.Struct):
        return
    for field in msgspec.structs.fields(policy):
        default = getattr(policy, field.name)
        kind = "list" if isinstance(default, tuple) else type(default).__name__
        yield Parameter(field.name, kind, default)


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return "+".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _all() -> Iterator[Any]:
    for made in _OWN:
        yield made()
    yield from _plugged()


def _plugged() -> Iterator[Any]:
    from importlib.metadata import entry_points

    for point in entry_points(group="ctxctl.policies"):
        yield point.load()()
