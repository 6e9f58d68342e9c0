"""What a plan's prompt may hold and what its tokens cost, and who says so."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from ctxctl.budget.plan import Model
from ctxctl.errors import UsageError
from ctxctl.model.fitting import Room
from ctxctl.model.whatif import Limits
from ctxctl.text import visible
from ctxctl.tokens.encodings import NAMES
from ctxctl.tokens.models import resolve_encoding

_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


class PlanBase(NamedTuple):
    """What the numbers rest on."""

    room: Room
    limits_from: str
    """One sentence."""
    encoding: str
    exact: bool
    """Whether the model is known to use the encoding."""
    assumed: str
    """What was assumed about the encoding, one sentence; empty: nothing."""


def plan_base(model: Model, own: dict[str, dict[str, Any]]) -> PlanBase:
    """Settle it; raises UsageError: `unknown-window`, `unknown-encoding`, `bad-plan`.

    Args:
        model: The plan's table.
        own: Models of the user's own settings.
    """
    limits, told = _limits(model, own)
    cap = limits.cap
    assert cap is not None
    if limits.window is not None and model.reserve >= limits.window:
        raise UsageError(
            "bad-plan", f"model.reserve ({model.reserve:,}) leaves nothing of the window ({limits.window:,})"
        )
    if model.date is not None and _DAY.fullmatch(model.date) is None:
        raise UsageError("bad-plan", "model.date must be a day, as '2026-11-01'")
    if model.encoding is not None and model.encoding not in NAMES:
        raise UsageError(
            "unknown-encoding",
            f"no encoding is called {visible(model.encoding)!r}",
            hint=f"there are: {', '.join(NAMES)}",
        )
    found = resolve_encoding(model.name)
    room = Room(cap, limits.window, limits.reserve, limits.max_input)
    if model.encoding is not None and (model.name is None or model.encoding != found.encoding):
        return PlanBase(room, told, model.encoding, model.name is None, "")
    assumed = found.assumed.replace("The trace names", "The plan names")
    return PlanBase(room, told, found.encoding, found.known, assumed)


def _limits(model: Model, own: dict[str, dict[str, Any]]) -> tuple[Limits, str]:
    """The limits and who says so: the plan goes before all that is known of the model."""
    if model.window is not None or model.max_input is not None:
        return Limits(model.window, model.reserve, model.max_input), "The plan says so."
    if model.name is None:
        raise UsageError(
            "unknown-window",
            "the plan names neither a model nor a window",
            hint="[model] needs name = '…', or window = 128000",
        )
    from ctxctl.tokens.catalogue.find import find_model, near_names

    known = find_model(model.name, model.provider, own=own)
    if known.window is None and known.max_input is None:
        alike = near_names(model.name) if known.how == "unknown" else []
        raise UsageError(
            "unknown-window",
            f"the window of {visible(model.name[:80])!r} is not known: {visible(known.note)}",
            hint=(f"near: {', '.join(alike)}; or " if alike else "") + "give window = 128000 in [model]",
        )
    told = known.note if known.sure else f"{known.note} Name the provider to be sure."
    return Limits(known.window, model.reserve, known.max_input), told
