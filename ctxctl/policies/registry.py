"""The policies by name, those of plug-ins included (entry point group ``ctxctl.policies``).

A policy is asked for as ``NAME`` or ``NAME:PARAMETER=VALUE,…``: ``fifo:target=0.8,protect_recent=2``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import msgspec

from ctxctl.entry_points import BUNDLED, POLICIES, Plugin, bundled, installed, loaded
from ctxctl.errors import UsageError

if TYPE_CHECKING:
    from ctxctl.model.fitting import Fitter
    from ctxctl.model.policy import Policy
    from ctxctl.model.recompute import Recomputer

RECORDED: Final = "recorded"
"""Trust the trace; needs no strategy."""

Strategy: TypeAlias = "Policy | Fitter | Recomputer"
_OWN: Final = {
    "fifo": "fitting.eviction:Fifo",
    "priority": "fitting.eviction:Priority",
    "reject": "fitting.overflow:Reject",
    "truncate_tail": "fitting.overflow:TruncateTail",
    "truncate_middle": "fitting.overflow:TruncateMiddle",
    "summarize_oldest": "fitting.overflow:SummarizeOldest",
    "summarize_low_priority": "fitting.overflow:SummarizeLowPriority",
    "defer_to_retrieval": "fitting.overflow:DeferToRetrieval",
    "ask_for_choice": "fitting.overflow:AskForChoice",
    "policy_block": "fitting.overflow:PolicyBlock",
}
"""Where each policy of this package is, below it; imported when it is asked for.

Those of single runtimes are plug-ins that come along (`entry_points.BUNDLED`).
"""


class Parameter(NamedTuple):
    """One parameter of a policy."""

    name: str
    kind: str
    """`int`, `float`, `bool`, `str` or `list`."""
    default: Any
    what: str
    """What it does, in a few words; empty where its policy does not say."""


class PolicyListing(NamedTuple):
    """A policy as it is listed."""

    name: str
    what: str
    """Its rule in one sentence."""
    rules: str
    """All of its rules: paragraphs, as its own documentation has them."""
    fits: bool
    """Whether it says what is left out of a window that is too small."""
    parameters: tuple[Parameter, ...]


def policy_names() -> tuple[str, ...]:
    """All policy names: `recorded`, those that any session can be tried under, those of single runtimes."""
    return (
        RECORDED,
        *_OWN,
        *BUNDLED[POLICIES],
        *(plugin.made.name for plugin in _installed() if plugin.made),
    )


def is_policy(name: str) -> bool:
    """Whether a policy is called that; plug-ins of other packages, which are slow to find, are asked last."""
    return is_own(name) or name in policy_names()


def is_own(name: str) -> bool:
    """Whether a policy of this package is called that, those of its plug-ins included."""
    return name == RECORDED or name in BUNDLED[POLICIES] or name in _OWN


def described_policies() -> Iterator[PolicyListing]:
    """All policies with their parameters, `recorded` first."""
    from inspect import cleandoc

    trust = "Trust the trace: nothing is decided anew."
    yield PolicyListing(RECORDED, trust, trust, False, ())
    for made in _all():
        rules = cleandoc(made.__doc__ or "")
        what = " ".join(rules.split("\n\n")[0].split())
        yield PolicyListing(made.name, what, rules, is_fitter(made), tuple(_parameters(made)))


def is_fitter(strategy: object) -> bool:
    """Whether a strategy is one that leaves out what does not fit."""
    return hasattr(strategy, "fit")


def policy_by_name(asked: str) -> Strategy | None:
    """The policy of this name with its parameters; None for `recorded`.

    Raises UsageError: `unknown-policy`, `bad-policy-parameter`.
    """
    name, _, given = asked.partition(":")
    if name == RECORDED and not given:
        return None
    found = _own(name) if name in _OWN else _plugged(name)
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
            defaults = ", ".join(f"{p.name}={parameter_text(p.default)}" for p in known.values()) or "none"
            raise UsageError(
                "bad-policy-parameter",
                f"policy {policy.name} has no parameter {key!r}"
                if parameter is None
                else f"{key} has no value",
                hint=f"parameters and their defaults: {defaults}",
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
        meta = next((m for m in getattr(field.type, "__metadata__", ()) if isinstance(m, msgspec.Meta)), None)
        what = (meta.description or "") if meta is not None else ""
        kind = "list" if isinstance(default, tuple) else type(default).__name__
        yield Parameter(field.name, kind, default, what)


def parameter_text(value: Any) -> str:
    """A parameter's value as it is written."""
    if isinstance(value, tuple):
        return "+".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _own(name: str) -> Any:
    return _made(loaded(f"ctxctl.policies.{_OWN[name]}"))


def _all() -> Iterator[Any]:
    """Every policy that loads, in the order of `policy_names`."""
    yield from map(_own, _OWN)
    ours = (bundled(POLICIES, name, _made) for name in BUNDLED[POLICIES])
    yield from (plugin.made for plugin in ours if plugin.error is None)
    yield from (plugin.made for plugin in _installed() if plugin.error is None)


def _plugged(name: str) -> Any:
    """The policy of a plug-in, ours or another package's; raises UsageError("unknown-policy").

    One that did not load is told with its error.
    """
    ours = [bundled(POLICIES, name, _made)] if name in BUNDLED[POLICIES] else []
    for plugin in (*ours, *_installed()):
        if plugin.error is None and plugin.made.name == name:
            return plugin.made
        if plugin.error is not None and plugin.name == name:
            hint = f"the plug-in {plugin.value} did not load: {plugin.error}"
            raise UsageError("unknown-policy", f"no policy is called {name!r}", hint=hint)
    raise UsageError(
        "unknown-policy", f"no policy is called {name!r}", hint=f"there are: {', '.join(policy_names())}"
    )


def _installed() -> Iterator[Plugin]:
    return installed(POLICIES, _made)


def _made(found: Any) -> Any:
    """A policy of its class; raises TypeError for what has no name."""
    made = found()
    if not isinstance(getattr(made, "name", None), str):
        raise TypeError("has no `name`")
    return made
