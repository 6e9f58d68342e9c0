"""What a replay is made under."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ctxctl.engine.editing import Edits
from ctxctl.engine.fitting import Trim, uncut
from ctxctl.engine.placing import Count
from ctxctl.engine.track import ThreadKey
from ctxctl.model import vocab
from ctxctl.model.content import ContentStore
from ctxctl.model.fitting import Fitter
from ctxctl.model.policy import Policy
from ctxctl.model.recompute import Recomputer
from ctxctl.model.results import Step
from ctxctl.model.whatif import AS_RECORDED, Limits

Reckon = Callable[[Any, Step], tuple[Any, Step]]
"""Given what it said of the thread's step before (None: nothing) and a finished step: what to remember, and
the step with what it has to say.  What is remembered is never changed, so copies of a replay share it."""


class Ahead(NamedTuple):
    """What the whole trace says of a thread's mode; found by looking ahead only where it is needed."""

    points: frozenset[str]
    """All injection points of the target."""
    declared: vocab.Mode | None
    """The first mode that an assembly declares."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a replay is made under; resolved before it starts."""

    target: str
    store: ContentStore
    count: Count
    encoding: str
    known: Callable[[str | None], bool]
    """Whether a model is known to use the replay's encoding (then counts are exact)."""
    ahead: Callable[[ThreadKey], Ahead]
    list_skipped: bool = False
    """List skipped items among the changes, which is proportional to the frame at each step."""
    model: str | None = None
    """The model that the user named; overrides the trace's."""
    policy: Policy | None = None
    """The strategy to replay under; None trusts the trace (`recorded`)."""
    limits: Limits = AS_RECORDED
    """Limits that are supposed.  They change the verdict on a frame; the frame itself only a policy changes
    that says what is left out then (`fitter`)."""
    fitter: Fitter | None = None
    """The strategy that leaves out what does not fit; None trusts the trace."""
    recomputer: Recomputer | None = None
    """The rules that recorded stages are held against; None takes them as they are."""
    trim: Trim = uncut
    """How a text is cut for it."""
    reckon: Reckon | None = None
    """What says how large a step should be for its model; None: nobody does."""
    edits: Edits | None = None
    """What is left out of the session from the start, and what has another text; None: nothing."""

    @property
    def supposed(self) -> bool:
        """Whether limits or contents are others than recorded: what the runtime did says nothing of these."""
        return self.limits.given or self.edits is not None
