"""The rules of a replay."""

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
    """Return the text uncut, for replays under policies that cut nothing."""
    return text


class Encodings(NamedTuple):
    """Finds the encoding that a model counts with."""

    of: Callable[[str], str]
    """Returns the encoding of a model; if it is not public, the one used for estimates."""
    counting: Callable[[str], Count]
    """Returns the counter of an encoding."""


class CataloguedModel(NamedTuple):
    """A model table's limits of one model, with notes."""

    limits: Limits
    note: str
    max_output: int | None = None
    own: bool = False
    """Whether the user stated it, so that no bill contradicts it."""
    by_client: bool = False
    """Whether it is the client's own rule, not a model table's."""


class ThresholdRule(NamedTuple):
    """A runtime's threshold for automatic compaction."""

    tokens: int
    source: str


def no_window(
    tokens: int, model: str | None, client: str | None
) -> tuple[CataloguedModel, ThresholdRule] | None:
    """Return None: a compaction is no evidence for a window."""
    return None


def uncatalogued(model: str | None, provider: str | None, client: str | None) -> CataloguedModel | None:
    """Return None: no model table is asked."""
    return None


def no_threshold(
    limits: Limits, model: str | None, provider: str | None, client: str | None
) -> ThresholdRule | None:
    """Return None: no runtime's rule is known."""
    return None


class ThreadAhead(NamedTuple):
    """What the whole trace says about a thread's mode. It is read only if the mode is not clear earlier."""

    points: frozenset[str]
    """All injection points of the target."""
    declared: vocab.Mode | None
    """The first mode that an assembly declares."""


class ReplayRules(msgspec.Struct, frozen=True):
    """The rules of a replay, resolved before it starts."""

    target: str
    store: ContentStore
    count: Count
    encoding: str
    known: Callable[[str | None, str], bool]
    """Returns whether a model is known to use an encoding, so that counts with it are exact."""
    ahead: Callable[[ThreadKey], ThreadAhead]
    encodings: Encodings | None = None
    """The encoding of each model; None counts all with `encoding`."""
    ends: Callable[[], Ends | None] = no_lookahead
    """Returns where steps end, if known. Called only if steps of two threads overlap."""
    list_skipped: bool = False
    """Whether skipped items are listed as changes. The cost of a step is then proportional to its frame."""
    model: str | None = None
    """The model that the user named. It overrides the trace's."""
    policy: Policy | None = None
    """The policy to replay under; None trusts the trace (`recorded`)."""
    limits: Limits = AS_RECORDED
    """Supposed limits. They change the verdict on a frame; only a `fitter` changes the frame itself."""
    fitter: Fitter | None = None
    """The policy that leaves out what does not fit; None trusts the trace."""
    recomputer: Recomputer | None = None
    """The rules that recompute recorded stages; None takes the stages as recorded."""
    trim: Trim = uncut
    """Cuts texts for the fitter."""
    scales: Scales = msgspec.field(default_factory=Uncalibrated)
    """Estimates sizes of texts and requests."""
    first_model: str | None = None
    """The first model that the trace names. Texts are counted for it until their thread names a model."""
    catalogue: Callable[[str | None, str | None, str | None], CataloguedModel | None] = uncatalogued
    """Returns the limits of a model, provider and client version, if the trace records none."""
    compacts_at: Callable[[Limits, str | None, str | None, str | None], ThresholdRule | None] = no_threshold
    """Returns the runtime's compaction threshold, given the limits, model, provider and version."""
    compacted_window: Callable[
        [int, str | None, str | None], tuple[CataloguedModel, ThresholdRule] | None
    ] = no_window
    """Returns the window that an automatic compaction shows, with its compaction threshold, given the size in
    tokens, the model and the client's version."""
    imported: bool = False
    """Whether the trace is a foreign capture, so that its limits are the client's words."""
    rebuilds_windows: bool = False
    """Whether the format does not list windows, so that its importer rebuilds them from a history."""
    read: Callable[[Content], str] | None = None
    """Returns texts as a view may show them; None shows stored texts."""
    edits: Edits | None = None
    """Edits of a what-if; None without any."""

    @property
    def supposed(self) -> bool:
        """Whether limits or contents are supposed, so that the runtime's decisions do not apply."""
        return self.limits.given or self.edits is not None
