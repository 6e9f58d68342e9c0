"""The parameters of a replay, resolved once and named first in every output.

Values that the user did not name come from the trace (`ModeLookahead`), from the model table, and from the
runtimes' own rules (`LimitFinder`).
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from ctxctl.engine.replay.rules import CataloguedModel, ThreadAhead, ThresholdRule
from ctxctl.engine.replay.step_tracker import StepTracker, ThreadKey
from ctxctl.errors import UsageError
from ctxctl.importers.capture import NATIVE
from ctxctl.model import vocab
from ctxctl.model.records import Assembly, Injection, Selection, Usage
from ctxctl.model.vocab import ABOUT_THE_TRACE, Mode, mode_of
from ctxctl.model.whatif import AS_RECORDED, UNEDITED, Edited, Limits
from ctxctl.policies.registry import Strategy, is_policy, policy_by_name
from ctxctl.session import calibration as calibrating
from ctxctl.session.counting import CountingRoom
from ctxctl.session.opening import Opened
from ctxctl.tokens.model_encodings import resolve_encoding
from ctxctl.tokens.ranks import NAMES, RANKS_OF
from ctxctl.trace.decode import parse_line
from ctxctl.trace.reader import Trace

if TYPE_CHECKING:
    from ctxctl.model.fitting import Fitter
    from ctxctl.model.policy import Policy
    from ctxctl.model.recompute import Recomputer
    from ctxctl.tokens.catalogue.limits import LimitBook

_MAX_LINE = 1 << 16
_MAX_PEEK = 4 << 20
"""Bytes at the head of a trace in which a model's name is searched."""
_MAX_FORMAT_NAME = 40
"""Longest name of a format, in characters."""
_MODEL = re.compile(rb'"model(?:_ref)?"\s*:')

_NOTHING_AHEAD = ThreadAhead(frozenset(), None)

OwnModels = dict[str, dict[str, Any]]
"""The user's own table of models by name (`[models."name"]` of the settings)."""


class ModeLookahead:
    """Each thread's injection points and declared mode for one target, from one pass over envelopes."""

    def __init__(self, trace: Trace, target: str) -> None:
        self._trace = trace
        self._target = target
        self._tracker = StepTracker()
        self._points: dict[ThreadKey, set[str]] = {}
        self._declared: dict[ThreadKey, Mode] = {}
        self._end = 0
        self.extend()

    def extend(self) -> None:
        """Read what was added to the trace. The part read before must have ended with a line end."""
        start, self._end = self._end, self._trace.source.size
        if start == self._end:
            return
        for event in self._trace.headers(start):
            if event.event_type in ABOUT_THE_TRACE:
                # A session's end changes a thread's turns, but not which thread an event belongs to.
                continue
            key = self._tracker.place(event).cursor.key
            record = event.record
            if isinstance(record, Injection):
                if record.target == self._target and record.injection_point is not None:
                    self._points.setdefault(key, set()).add(record.injection_point)
            elif isinstance(record, Assembly) and record.target == self._target:
                mode = mode_of(record.mode)
                if mode is not None:
                    self._declared.setdefault(key, mode)

    def of(self, key: ThreadKey) -> ThreadAhead:
        """Return what the trace says about a thread."""
        points = self._points.get(key)
        declared = self._declared.get(key)
        if points is None and declared is None:
            return _NOTHING_AHEAD
        return ThreadAhead(frozenset(points or ()), declared)


class LimitFinder:
    """Finds limits for captures of one runtime, by the model table and the runtime's rules; caches answers.

    Args:
        runtime: Format of the capture; None if the trace was recorded, so that no client's rule applies.
        own: The models of the user's settings.
    """

    def __init__(self, runtime: str | None, own: OwnModels | None = None) -> None:
        self._runtime = runtime
        self._own = own
        self.compacts_at = lru_cache(maxsize=256)(self._compacts_at)
        """See `ReplayRules.compacts_at`."""

    @cached_property
    def _book(self) -> LimitBook:
        from ctxctl.tokens.catalogue.limits import LimitBook  # only needed if a trace records no limit

        return LimitBook(self._own)

    def catalogue(
        self, model: str | None, provider: str | None, client: str | None
    ) -> CataloguedModel | None:
        """See `ReplayRules.catalogue`: never a guess. Without limits, the note says why."""
        if model is None:
            return None
        known = self._book.of(model, provider, self._runtime, client)
        limits, own = Limits(known.window, None, known.max_input), known.how == "settings"
        return CataloguedModel(limits, known.note, known.max_output, own, known.how == "client")

    def compacted_window(
        self, tokens: int, model: str | None, client: str | None
    ) -> tuple[CataloguedModel, ThresholdRule] | None:
        """See `ReplayRules.compacted_window`."""
        from ctxctl.tokens.catalogue.thresholds import compacted_window

        found = compacted_window(self._runtime or "", tokens, client, model)
        if found is None:
            return None
        window, line = found
        note = f"{window:,} by an automatic compaction at {tokens:,} tokens: in such a window it is due at"
        note += f" {line.tokens:,}"
        return CataloguedModel(Limits(window), note, by_client=True), ThresholdRule(line.tokens, line.source)

    def _compacts_at(
        self, limits: Limits, model: str | None, provider: str | None, client: str | None
    ) -> ThresholdRule | None:
        if self._runtime is None or limits.cap is None:
            return None
        from ctxctl.tokens.catalogue.thresholds import threshold

        known = self._book.of(model, provider, self._runtime, client)
        most = limits.max_input
        if most is None and limits.window == known.window:
            most = known.max_input
        found = threshold(self._runtime, limits.window, known.max_output, client, max_input=most, model=model)
        return ThresholdRule(found.tokens, found.source) if found is not None else None


class Params(msgspec.Struct, frozen=True):
    """Resolved parameters of a replay."""

    format: str
    policy: str
    target: str
    model: str | None
    """The model that the user named; None uses each step's own."""
    encoding: str
    encoding_from: str
    """`flag`, `model` (the user's), `trace` (the first model of the trace) or `default`."""
    first_model: str | None
    """The model that determined the encoding, if one did."""
    assumed: str
    """What was assumed about the encoding, as one sentence; empty if nothing."""
    limits: Limits = AS_RECORDED
    """Supposed limits that replace the recorded ones."""
    fitting: bool = False
    """Whether the policy decides what is left out of a window that is too small."""
    edited: Edited = UNEDITED
    """Items dropped from the session, and texts set in it."""
    calibration: calibrating.Chosen = calibrating.NOTHING
    """The calibration for models without a public tokenizer, also for expected sizes."""
    own_models: OwnModels = {}
    """The models of the user's settings."""
    runtime: str | None = None
    """The foreign format that the trace is in, or was imported from; None if it was recorded."""

    @property
    def original_format(self) -> str:
        """The format of the capture; of an imported trace, of what it was imported from."""
        return self.runtime or self.format

    def uses_encoding(self, model: str | None, encoding: str | None = None) -> bool:
        """Return whether a model is known to use an encoding, so that counts with it are exact."""
        found = resolve_encoding(model)
        return found.known and same_ranks(found.encoding, encoding or self.encoding)

    @property
    def one_encoding(self) -> bool:
        """Whether every step is counted with one encoding, because the user named it or the model."""
        return self.encoding_from == "flag" or self.model is not None

    def encoding_of(self, model: str | None) -> str:
        """Return the encoding of a model; the replay's if the model is unknown, or its encoding counts
        alike."""
        if self.one_encoding or model is None:
            return self.encoding
        found = resolve_encoding(model).encoding
        return self.encoding if same_ranks(found, self.encoding) else found

    def counter(self) -> CountingRoom:
        """Return a counter for the encoding, with the user's cache of counts."""
        return CountingRoom(self.encoding)


def planner_of(strategy: Strategy | None) -> Policy | None:
    """Return the strategy if it decides what is sent; else None."""
    if strategy is None:
        return None
    from ctxctl.model.policy import Policy

    return strategy if isinstance(strategy, Policy) else None


def fitter_of(strategy: Strategy | None) -> Fitter | None:
    """Return the strategy if it decides what is left out; else None."""
    if strategy is None:
        return None
    from ctxctl.model.fitting import Fitter

    return strategy if isinstance(strategy, Fitter) else None


def recomputer_of(strategy: Strategy | None) -> Recomputer | None:
    """Return the strategy if it recomputes recorded stages; else None."""
    if strategy is None:
        return None
    from ctxctl.model.recompute import Recomputer

    return strategy if isinstance(strategy, Recomputer) else None


def resolve_params(
    opened: Opened,
    target: str,
    model: str | None,
    encoding: str | None,
    policy: str | None,
    calibration: str | None = calibrating.NONE,
    own_models: OwnModels | None = None,
) -> tuple[Params, Strategy | None]:
    """Resolve the parameters of a replay. Raises UsageError for unknown names.

    `calibration` is read anew each time; see `calibration.chosen_calibration`.
    """
    if target not in vocab.TARGETS:
        known = ", ".join(vocab.TARGETS)
        raise UsageError("unknown-target", f"no target is called {target!r}", hint=f"there are: {known}")
    if encoding is not None and encoding not in NAMES:
        known = ", ".join(NAMES)
        raise UsageError(
            "unknown-encoding", f"no encoding is called {encoding!r}", hint=f"there are: {known}"
        )
    name = policy if policy is not None else imported_policy(opened.trace) or opened.default_policy
    strategy = policy_by_name(name)
    first = model if model is not None else first_model(opened.trace)
    found = resolve_encoding(first)
    if encoding is not None:
        origin, assumed = "flag", ""
    else:
        origin = "model" if model is not None else "trace" if first is not None else "default"
        encoding, assumed = found.encoding, found.assumed
    return (
        Params(
            opened.format,
            name,
            target,
            model,
            encoding,
            origin,
            first,
            assumed,
            fitting=fitter_of(strategy) is not None,
            calibration=calibrating.chosen_calibration(calibration),
            own_models=own_models or {},
            runtime=opened.format if opened.format != NATIVE else imported_format(opened.trace),
        ),
        strategy,
    )


def first_model(trace: Trace) -> str | None:
    """Return the first model that an event at the head of the trace names."""
    head = trace.source.read(0, _MAX_PEEK)
    named = _MODEL.search(head)
    if named is None:
        return None
    # Usually the first line that may name a model does, so avoid decoding the others.
    for start, stop in ((head.rfind(b"\n", 0, named.start()) + 1, named.end()), (0, len(head))):
        # Use a separate trace over the same bytes, so that no problem is reported and no pass is counted.
        for event in Trace(trace.source).events(start, 1, stop):
            record = event.record
            if isinstance(record, Usage | Assembly | Injection | Selection) and record.model:
                return record.model
    return None


def imported_policy(trace: Trace) -> str | None:
    """Return the policy for an imported trace, as its first event states it."""
    found = _first_says(trace, "policy")
    return found if found is not None and is_policy(found) else None


def imported_format(trace: Trace) -> str | None:
    """Return the format of an imported trace, as its first event states it; else None."""
    found = _first_says(trace, "format")
    return found if found is not None and len(found) <= _MAX_FORMAT_NAME else None


def working_directory(trace: Trace) -> str | None:
    """Return the working directory of an imported session, as its first event states it; else None."""
    return _first_says(trace, "cwd")


def _first_says(trace: Trace, name: str) -> str | None:
    """Return a string of `metadata.ctxctl` in the trace's first event."""
    line = trace.source.read(0, _MAX_LINE).split(b"\n", 1)[0]
    first = parse_line(line) if f'"{name}"'.encode() in line else None
    metadata = first.get("metadata") if first is not None else None
    ours = metadata.get("ctxctl") if isinstance(metadata, dict) else None
    found = ours.get(name) if isinstance(ours, dict) else None
    return found if isinstance(found, str) else None


def same_ranks(one: str, other: str) -> bool:
    """Return whether two encodings count alike: o200k_harmony tokenises ordinary text as o200k_base does."""
    return RANKS_OF[one] == RANKS_OF[other]
