"""The parameters a replay is made under, resolved once and named first in every output.

Also what finds them where the user names none: a look through the trace (`ModeLookahead`), the model table
and the runtimes' own rules (`LimitFinder`).
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

_LINE = 1 << 16
_PEEK = 4 << 20
"""Bytes at the head of a trace in which a model's name is looked for."""
_NAME = 40
"""Characters of the longest name of a format."""
_MODEL = re.compile(rb'"model(?:_ref)?"\s*:')

_NOTHING_AHEAD = ThreadAhead(frozenset(), None)

OwnModels = dict[str, dict[str, Any]]
"""The user's own table of models by name (`[models."name"]` of the settings)."""


class ModeLookahead:
    """The injection points and the declared mode of each thread and one target; one pass over envelopes."""

    def __init__(self, trace: Trace, target: str) -> None:
        self._trace = trace
        self._target = target
        self._tracker = StepTracker()
        self._points: dict[ThreadKey, set[str]] = {}
        self._declared: dict[ThreadKey, Mode] = {}
        self._end = 0
        self.extend()

    def extend(self) -> None:
        """Look through what the trace has grown by, if it has; it must have ended with a line end."""
        start, self._end = self._end, self._trace.source.size
        if start == self._end:
            return
        for event in self._trace.headers(start):
            if event.event_type in ABOUT_THE_TRACE:
                # An end changes a thread's turns, but not which thread an event is of.
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
        """What the trace says of a thread."""
        points = self._points.get(key)
        declared = self._declared.get(key)
        if points is None and declared is None:
            return _NOTHING_AHEAD
        return ThreadAhead(frozenset(points or ()), declared)


class LimitFinder:
    """The table and the rules for the captures of one runtime; each question is answered once.

    Args:
        runtime: Format of the capture; None: the trace was recorded, and no client's rule applies.
        own: What the user's settings say of models.
    """

    def __init__(self, runtime: str | None, own: OwnModels | None = None) -> None:
        self._runtime = runtime
        self._own = own
        self.compacts_at = lru_cache(maxsize=256)(self._compacts_at)
        """As `engine.rules.Rules.compacts_at` wants it."""

    @cached_property
    def _book(self) -> LimitBook:
        from ctxctl.tokens.catalogue.limits import LimitBook  # needed where a trace records no limit

        return LimitBook(self._own)

    def catalogue(
        self, model: str | None, provider: str | None, client: str | None
    ) -> CataloguedModel | None:
        """As `engine.rules.Rules.catalogue` wants it: never a guess; without limits the note says why."""
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
    """The model that the user named; None: each step's own."""
    encoding: str
    encoding_from: str
    """`flag`, `model` (the user's), `trace` (the first model the trace names) or `default`."""
    first_model: str | None
    """The model that decided the encoding, if one did."""
    assumed: str
    """What had to be assumed about the encoding, one sentence; empty if nothing."""
    limits: Limits = AS_RECORDED
    """Limits that are supposed in place of the recorded ones."""
    fitting: bool = False
    """The policy says what is left out of a window that is too small."""
    edited: Edited = UNEDITED
    """What is dropped from the session, and what is set in it."""
    calibration: calibrating.Chosen = calibrating.NOTHING
    """What texts are weighed with where the model has no public tokenizer, and what sizes are expected by."""
    own_models: OwnModels = {}
    """What the user's settings say of models."""
    runtime: str | None = None
    """The format of the foreign capture that the trace is, or was imported from; None: it was recorded."""

    @property
    def original_format(self) -> str:
        """The format of the capture; of an imported trace, of what it was imported from."""
        return self.runtime or self.format

    def uses_encoding(self, model: str | None, encoding: str | None = None) -> bool:
        """Whether a model is known to use an encoding, the replay's: only then are counts exact."""
        found = resolve_encoding(model)
        return found.known and same_ranks(found.encoding, encoding or self.encoding)

    @property
    def one_encoding(self) -> bool:
        """Whether every step is counted with the same encoding: the user named it, or the model."""
        return self.encoding_from == "flag" or self.model is not None

    def encoding_of(self, model: str | None) -> str:
        """What a step of a model is counted with; of none, and where nobody knows one, the replay's if that
        counts alike."""
        if self.one_encoding or model is None:
            return self.encoding
        found = resolve_encoding(model).encoding
        return self.encoding if same_ranks(found, self.encoding) else found

    def counter(self) -> CountingRoom:
        """A counter for the encoding, over the user's cache of counts."""
        return CountingRoom(self.encoding)


def planner_of(strategy: Strategy | None) -> Policy | None:
    """The strategy, if it is one that says what is sent."""
    if strategy is None:
        return None
    from ctxctl.model.policy import Policy

    return strategy if isinstance(strategy, Policy) else None


def fitter_of(strategy: Strategy | None) -> Fitter | None:
    """The strategy, if it is one that says what is left out."""
    if strategy is None:
        return None
    from ctxctl.model.fitting import Fitter

    return strategy if isinstance(strategy, Fitter) else None


def recomputer_of(strategy: Strategy | None) -> Recomputer | None:
    """The strategy, if it is one that works recorded stages out anew."""
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
    """Settle what a replay is made under; raises UsageError for names that do not exist.

    `calibration` is read anew each time: see `calibrating.chosen`.
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
    """The first model that an event at the head of the trace names."""
    head = trace.source.read(0, _PEEK)
    named = _MODEL.search(head)
    if named is None:
        return None
    # Mostly the first line that may name one does: all the others are left for the replay to decode.
    for start, stop in ((head.rfind(b"\n", 0, named.start()) + 1, named.end()), (0, len(head))):
        # A trace of its own over the same bytes: this look must not report problems or count as a pass.
        for event in Trace(trace.source).events(start, 1, stop):
            record = event.record
            if isinstance(record, Usage | Assembly | Injection | Selection) and record.model:
                return record.model
    return None


def imported_policy(trace: Trace) -> str | None:
    """The policy that an imported trace's first event says its format is replayed under."""
    found = _first_says(trace, "policy")
    return found if found is not None and is_policy(found) else None


def imported_format(trace: Trace) -> str | None:
    """The format that an imported trace's first event says it was; None where it says none."""
    found = _first_says(trace, "format")
    return found if found is not None and len(found) <= _NAME else None


def working_directory(trace: Trace) -> str | None:
    """The directory in which an imported session ran, as the trace's first event says; None where it says
    none."""
    return _first_says(trace, "cwd")


def _first_says(trace: Trace, name: str) -> str | None:
    """A word of `metadata.ctxctl` of the trace's first event."""
    line = trace.source.read(0, _LINE).split(b"\n", 1)[0]
    first = parse_line(line) if f'"{name}"'.encode() in line else None
    metadata = first.get("metadata") if first is not None else None
    ours = metadata.get("ctxctl") if isinstance(metadata, dict) else None
    found = ours.get(name) if isinstance(ours, dict) else None
    return found if isinstance(found, str) else None


def same_ranks(one: str, other: str) -> bool:
    """Whether two encodings count alike: o200k_harmony tokenises ordinary text exactly as o200k_base does."""
    return RANKS_OF[one] == RANKS_OF[other]
