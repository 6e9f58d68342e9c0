"""What a replay depends on besides the trace: the key under which its results are kept."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ctxctl.tokens.catalogue.table import load_table as table
from ctxctl.trace.cache_files import code_state

if TYPE_CHECKING:
    from ctxctl.engine.replay.edits import Edits
    from ctxctl.policies.registry import Strategy
    from ctxctl.session.params import Params


def made_under(params: Params, strategy: Strategy | None, edits: Edits | None) -> str | None:
    """All that a replay depends on besides the trace; None where its results are of no use to another run."""
    if edits is not None:
        return None
    if strategy is not None and not type(strategy).__module__.startswith("ctxctl."):
        return None  # nobody knows when a plug-in changes
    limits = str(params.limits) if params.limits.given else ""
    encoding = f"{params.encoding}{' for all' if params.one_encoding else ''}"
    named = (code_state(), sys.byteorder, params.target, params.policy, params.model or "", encoding, limits)
    return "\n".join((*named, *_sizes_under(params)))


def _sizes_under(params: Params) -> tuple[str, ...]:
    """What sizes and limits rest on besides: a calibration, the model table, the user's own models."""
    found = params.calibration.calibration
    weighed = params.calibration.origin + (f" {found.digest}" if found is not None else "")
    return weighed, table().date, str(sorted(params.own_models.items()))
