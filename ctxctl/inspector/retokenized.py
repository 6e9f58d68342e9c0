"""What a step would have sent in the tokens of another model.

A bill is in the tokens of the model that was asked.  Under another one what is recorded is counted anew; what
was sent beside it, of which nobody has the text, is taken to grow or shrink as the recorded content does.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ctxctl.model.results import Placement, Step
from ctxctl.model.vocab import UNRECORDED


def ratio(ours: Sequence[Placement], theirs: Sequence[Placement]) -> float:
    """Tokens of the texts that both frames hold, theirs to ours; 1 where they hold none in common."""
    sizes = {p.digest: p.tokens for p in ours if p.digest is not None}
    both = [(p.tokens, sizes[p.digest]) for p in theirs if p.digest in sizes]
    before = sum(tokens for _, tokens in both)
    return sum(tokens for tokens, _ in both) / before if before else 1.0


def retokenized(step: Step, other: Step, ours: Sequence[Placement], theirs: Sequence[Placement]) -> Step:
    """The simulated step with a size in its own model's tokens; as it is where nothing beside it is known.

    Args:
        step: The recorded step, in the tokens of the bill.
        other: The simulated one.
        ours: The recorded frame.
        theirs: The simulated one, counted anew.
    """
    window = other.window
    if step.window.unrecorded is None:
        return other
    beside = round(step.window.unrecorded * ratio(ours, theirs))
    used, cap = max(0, window.recorded + beside), window.cap
    replaced = msgspec.structs.replace(
        window,
        used=used,
        used_method="expected",
        used_error=None,
        unrecorded=used - window.recorded,
        free=None if cap is None else max(0, cap - used),
        over=None if cap is None else max(0, used - cap),
    )
    segments = {name: tokens for name, tokens in other.segments.items() if name != UNRECORDED}
    if replaced.unrecorded:
        segments = {UNRECORDED: replaced.unrecorded, **segments}
    return msgspec.structs.replace(other, window=replaced, segments=segments)
