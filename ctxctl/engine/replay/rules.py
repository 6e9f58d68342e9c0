"""What a replay is made under."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ctxctl.engine.replay.edits import Edits
from ctxctl.engine.replay.ordering import Ends, no_lookahead
from ctxctl.engine.replay.placements import Count
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.engine.sizes.scales import Scales, Uncalibrated
from ctxctl.model import vocab
from ctxctl.model.content import Content, ContentStore
from ctxctl.model.whatif import AS_RECORDED, Limits

if TYPE_CHECKING:
    from ctxctl.model.fitting import Fitter
    from ctxctl.model.policy import Policy
    from ctxctl.model.recompute import Recomputer

Trim = Callable[[str, int, str], str]
"""Cuts a text exactly at a token bound: the text, the most tokens, and which end stays (`head`, `tail`)."""


def uncut(text: str, _tokens: int, _side: str) -> str:
    """No cutting: for replays under policies that cut nothing."""
    return text


class Encodings(NamedTuple):
    """Finds the encoding that a model counts with."""

    of: Callable[[str], str]
    """The encoding of a model; where nobody publishes it, the one that its estimates are made with."""
    counting: Callable[[str], Count]
    """What counts with an encoding."""


class CataloguedModel(NamedTuple):
    """What a table of models says of one, and in what words."""

    limits: Limits
    note: str
    max_output: int | None = None
    own: bool = False
    """It is the user's word, which no bill contradicts."""
    by_client: bool = False
    """It is the client's own rule, not a model table's."""


class ThresholdRule(NamedTuple):
    """Where a runtime compacts by itself."""

    tokens: int
    source: str


def no_window(
    tokens: int, model: str | None, client: str | None
) -> tuple[CataloguedModel, ThresholdRule] | None:
    """Answer that a compaction is no evidence for a window."""
    return None


def uncatalogued(model: str | None, provider: str | None, client: str | None) -> CataloguedModel | None:
    """Answer that a model is unknown: no table of models is asked."""
    return None


def no_threshold(
    limits: Limits, model: str | None, provider: str | None, client: str | None
) -> ThresholdRule | None:
    """Answer that no runtime's rule is known."""
    return None


class ThreadAhead(NamedTuple):
    """What the whole trace says of a thread's mode; found by looking ahead only where it is needed."""

    points: frozenset[str]
    """All injection points of the target."""
    declared: vocab.Mode | None
    """The first mode that an assembly declares."""


class ReplayRules(msgspec.Struct, frozen=True):
    """What a replay is made under; resolved before it starts."""

    target: str
    store: ContentStore
    count: Count
    encoding: str
    known: Callable[[str | None, str], bool]
    """Whether a model is known to use an encoding (then counts with it are exact)."""
    ahead: Callable[[ThreadKey], ThreadAhead]
    encodings: Encodings | None = None
    """What each model counts with; None: all are counted with `encoding`."""
    ends: Callable[[], Ends | None] = no_lookahead
    """What knows where steps end; asked for only where the steps of two threads overlap."""
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
    scales: Scales = msgspec.field(default_factory=Uncalibrated)
    """What says how large texts and requests are for their model."""
    first_model: str | None = None
    """The model that the trace names first: what texts are counted at before a thread names its own."""
    catalogue: Callable[[str | None, str | None, str | None], CataloguedModel | None] = uncatalogued
    """The limits of a model with a provider and a version of the client, where the trace records none."""
    compacts_at: Callable[[Limits, str | None, str | None, str | None], ThresholdRule | None] = no_threshold
    """Where the runtime compacts by itself, given the limits in force, the model, provider and version."""
    compacted_window: Callable[
        [int, str | None, str | None], tuple[CataloguedModel, ThresholdRule] | None
    ] = no_window
    """The window for which an automatic compaction is evidence, and the line at which the client compacts in
    it;
    given the size, the model and the client's version."""
    imported: bool = False
    """The trace is a foreign capture: what it says of limits, the client said."""
    rebuilds_windows: bool = False
    """The format does not list the windows of requests: its importer rebuilds them from a history."""
    read: Callable[[Content], str] | None = None
    """Texts as a view may show them; None: as they stand in the store."""
    edits: Edits | None = None
    """What is left out of the session from the start, and what has another text; None: nothing."""

    @property
    def supposed(self) -> bool:
        """Whether limits or contents are others than recorded: what the runtime did says nothing of these."""
        return self.limits.given or self.edits is not None
