"""The policies by name, those of plug-ins included (entry point group ``ctxctl.policies``)."""

from __future__ import annotations

from ctxctl.errors import UsageError
from ctxctl.model.policy import Policy
from ctxctl.policies.sanqian import Sanqian

RECORDED = "recorded"
"""Trust the trace; needs no strategy."""

_OWN: tuple[Policy, ...] = (Sanqian(),)


def names() -> tuple[str, ...]:
    """All policy names, `recorded` first."""
    return (RECORDED, *(policy.name for policy in (*_OWN, *_plugged())))


def by_name(name: str) -> Policy | None:
    """The policy of this name; None for `recorded`.  Raises UsageError("unknown-policy")."""
    if name == RECORDED:
        return None
    for policy in _OWN:
        if policy.name == name:
            return policy
    for policy in _plugged():
        if policy.name == name:
            return policy
    raise UsageError(
        "unknown-policy", f"no policy is called {name!r}", hint=f"there are: {', '.join(names())}"
    )


def _plugged() -> tuple[Policy, ...]:
    from importlib.metadata import entry_points

    return tuple(point.load()() for point in entry_points(group="ctxctl.policies"))
