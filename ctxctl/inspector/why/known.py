"""The chronicle of an inspector: from memory, from the user's cache, or by one replay."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ctxctl import config
from ctxctl.inspector.why.chronicle import Chronicle
from ctxctl.inspector.why.kept import load, save
from ctxctl.model.whatif import AS_RECORDED
from ctxctl.tokens.catalogue.table import load as table

if TYPE_CHECKING:
    from ctxctl.inspector.facade import Inspector, Progress
    from ctxctl.inspector.params import Params


def chronicle_of(inspector: Inspector, progress: Progress | None = None) -> Chronicle:
    """What became of every item of a trace; the first call may replay the trace, and keeps the outline."""
    known, source = inspector.chronicle, inspector.trace.source
    if known is None or known.covered != source.size:
        made_under = _made_under(inspector)
        known = load(source, made_under) if made_under is not None else None
        if known is None:
            inspector.outline(progress)
            known = inspector.chronicle
            if known is None or known.covered != source.size:  # outlined in another way, or grown meanwhile
                known = _walked(inspector, progress)
            # A trace with problems is read anew by each run, which has to tell them.
            if made_under is not None and known.covered == source.size and not inspector.problem_count:
                save(source, made_under, known)
        inspector.chronicle = known
    return known


def _walked(inspector: Inspector, progress: Progress | None) -> Chronicle:
    size = inspector.trace.source.size
    found = Chronicle()
    for at, engine in inspector.walk(progress):
        for _ in found.noting((at.step,), engine):
            last = engine
    return found.finish(last, size) if len(found) else found


def _made_under(inspector: Inspector) -> str | None:
    """All that the rows depend on besides the file; None where they are of no use to another run."""
    if inspector.edits is not None:
        return None
    params = inspector.params
    limits = "" if params.limits is AS_RECORDED else str(params.limits)
    version = getattr(sys.modules["ctxctl"], "__version__", "")
    encoding = f"{params.encoding}{' for all' if params.one_encoding else ''}"
    named = (version, params.target, params.policy, params.model or "", encoding, limits)
    return "\n".join((*named, *_sizes_under(params)))


def _sizes_under(params: Params) -> tuple[str, ...]:
    """What sizes and limits rest on besides: a calibration, the model table, the user's own models."""
    found = params.calibration.calibration
    weighed = params.calibration.origin + (f" {found.digest}" if found is not None else "")
    return weighed, table().date, str(sorted(config.load().models.items()))
