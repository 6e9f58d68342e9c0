"""One thread under replay: its items, its frame, and its open step (DESIGN section 3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ctxctl.engine.replay.annotations import AnnotationState
from ctxctl.engine.replay.append import appended_frame
from ctxctl.engine.replay.changes import (
    Cause,
    ChangeContext,
    Changes,
    changes_of,
    rescored_items,
    standing_copies,
    unlisted_changes,
)
from ctxctl.engine.replay.edits import SentPart, ThreadEdits
from ctxctl.engine.replay.frames import FrameDelta, FrameState, delta_of, recorded_sum
from ctxctl.engine.replay.placements import Count
from ctxctl.engine.replay.renderings import rendering_difference
from ctxctl.engine.replay.step_facts import FactsReading, StepFacts, holds_uncut
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.engine.replay.thread_data import StepIds, ThreadData
from ctxctl.engine.replay.window_mode import WindowResolver
from ctxctl.engine.sizes.bills import BilledStep
from ctxctl.engine.sizes.cache_misses import CacheMemory
from ctxctl.engine.sizes.cache_settings import RequestSettings, broken_setting
from ctxctl.engine.sizes.prefix import CommonPrefix, possible_prefix, provider_order
from ctxctl.engine.sizes.sent import NEW, moved_by
from ctxctl.model.content import ContentStore
from ctxctl.model.records import Failure, Injection, Usage
from ctxctl.model.results import Placement
from ctxctl.model.terms import Stated
from ctxctl.model.vocab import MODEL, Basis, Layer, Mode
from ctxctl.tokens.calibrate.features import NOTHING, Vector

if TYPE_CHECKING:
    from ctxctl.engine.simulate.policy_run import Fitted, Fitting
    from ctxctl.engine.simulate.policy_step import SentStep, Simulation

_NO_SEGMENTS: dict[str, str] = {}


def _or_detached(cause_of: Callable[[str], Cause], taken_back: frozenset[str]) -> Callable[[str], Cause]:
    """Return `cause_of`, with `detached` for items that a policy took back without a recorded cause."""

    def cause(item: str) -> Cause:
        found = cause_of(item)
        return Cause("detached") if item in taken_back and found.cause == "unrecorded" else found

    return cause


class SealedStep(NamedTuple):
    """A step whose frame is final. Only its usage may still be recorded."""

    ids: StepIds
    facts: StepFacts
    reading: FactsReading
    basis: Basis
    layer: Layer
    before: FrameTotals
    delta: FrameDelta
    changes: Changes
    prefix: CommonPrefix | None
    saved: int | None
    skips: int
    """Number of items that the selection records as skipped because they are unchanged."""
    order: list[Placement]
    context: ChangeContext
    """What the step's facts say about its changes."""
    was: dict[str, int]
    """Current copies, before the step, of each item that it changed or named."""
    settings: RequestSettings
    """The step's request without its window."""


class FrameTotals(NamedTuple):
    """A frame's totals before an edit, in tokens."""

    used: int
    """Counted with the current encoding."""
    reweighed: int
    """The part of `used` that a change of the encoding added."""
    placements: list[Placement]


class DeclaredMode(NamedTuple):
    """A mode, and whether the trace, its importer or a policy declared it."""

    mode: Mode
    declared: bool


class ThreadState(ThreadData):
    """The replay state of one thread and target."""

    asked: str | None = None
    """When the open step's request was sent, as closely as recorded."""

    provider: str | None = None
    """The provider of the last bill."""
    reweighed = 0
    """Tokens that a change of the encoding added to the frame since the last seal."""
    final = False
    """Whether no later event can belong to the thread. If so, it is forgotten after its last step."""
    client: str | None = None
    """Version of the client that sent the last request."""

    retried: tuple[Failure, ...] = ()
    """Failures of the open step's request that were followed by an answer, in order."""

    def __init__(self, key: ThreadKey, target: str, store: ContentStore, count: Count) -> None:
        super().__init__(key, target, store, count)
        self.frame = FrameState()
        self.windows = WindowResolver(self.placer)
        self.mode: DeclaredMode | None = None
        self.sealed: SealedStep | None = None
        self.facts_shared = True
        """Whether a snapshot may share the sealed step's facts. If so, copy them before changing them."""
        self.usage: Usage | None = None
        self.stated: tuple[Stated, ...] = ()
        """Totals that the runtime states for the requests so far."""
        self.failures: tuple[Failure, ...] = ()
        """Failures of the open step's request that were not followed by an answer, in order."""
        self.model: str | None = None
        self.root: str | None = None
        self.first = True
        """Whether the thread has no frame yet."""
        self.over = False
        """Whether the trace, or this thread, has ended."""
        self.shared = False
        """Whether a snapshot shares this thread. If so, copy it before changing it."""
        self.laid_out: list[Placement] = []
        """The last frame in the provider's order."""
        self.billed: BilledStep | None = None
        """The last billed step."""
        self.entered: list[Placement] = []
        """Placements that entered the recorded frame at the last sealed step."""
        self.sent_part: SentPart | None = None
        """The recorded frame without what was not sent; None if no bill shows a cut."""
        self.settings = RequestSettings()
        """The last request without its window."""
        self.cached: CacheMemory | None = None
        """What a prompt cache may hold of the last billed request."""
        self.ahead: list[Placement] = []
        """Like `assembled`, for an assembly that was recorded after the seal."""
        self.simulation: Simulation | None = None
        """The policy that decides what is sent; None if the trace decides."""
        self.sent: SentStep | None = None
        """What the policy sent at the last sealed step."""
        self.fitting: Fitting | None = None
        """The policy that decides what is left out; None if the trace decides."""
        self.fitted: Fitted | None = None
        """What the fitting policy did at the last sealed step."""
        self.compacted: int | None = None
        """The window's tokens when the runtime last compacted automatically."""
        self.running = NEW
        """What earlier bills say about the thread's size. It is immutable, so copies share it."""
        self.recorded_used = 0
        """Tokens of the recorded frame, while an edit or a policy replaces it."""
        self.recorded_moved: Vector = NOTHING
        """What entered and left the recorded frame at the last sealed step, by class."""
        self.annotations = AnnotationState()

    def kept(self) -> ThreadState:
        """Return what a snapshot holds: a copy, or the thread itself if it has ended."""
        if not self.over:
            return self.copy()
        self.shared = True
        return self

    def copy(self) -> ThreadState:
        """Return an independent copy. Sealed frames are immutable and are shared."""
        twin = ThreadState.__new__(ThreadState)
        twin.__dict__.update(self.__dict__)
        twin.shared = False
        self.facts_shared = twin.facts_shared = True
        twin.book = self.book.copy()
        twin.placer = self.placer.copy(twin.book)
        twin.frame = self.frame.copy()
        twin.windows = self.windows.copy(twin.placer)
        twin.facts = self.facts.copy()
        twin.later = self.later.copy() if self.later is not None else None
        twin.simulation = self.simulation.copy() if self.simulation is not None else None
        twin.fitting = self.fitting.copy() if self.fitting is not None else None
        twin.editing = self.editing.copy() if self.editing is not None else None
        twin.sent_part = self.sent_part.copy() if self.sent_part is not None else None
        twin.scores = dict(self.scores)
        twin.placed = set(self.placed)
        twin.annotations = self.annotations.copy()
        twin.index = dict(self.index) if self.index is not None else None
        return twin

    def park(self) -> None:
        """Free what can be rebuilt. After this, the thread can only be copied."""
        self.book.park()
        self.windows.park()

    def weight(self) -> int:
        """Return about how much a parked copy holds, in units of 32 bytes."""
        frame = len(self.frame.placements) // 4 + 6 * len(self.frame.held) + 3 * len(self.frame.stale_copies)
        ever = 2 * (len(self.placed) + len(self.scores) + len(self.index or ()))
        ever += self.fitting.weight() if self.fitting is not None else 0
        ever += self.annotations.weight()
        return frame + ever + (len(self.book.live) + self.windows.kept) // 4

    def recorded(self) -> list[Placement]:
        """Return the recorded frame, even if a policy or an edit replaces it."""
        if self.editing is not None:
            return self.editing.recorded
        return self.frame.placements if self.fitting is None else self.fitting.recorded

    @property
    def own_frames(self) -> bool:
        """Whether a policy makes the thread's frames."""
        return self.simulation is not None or self.fitting is not None

    def edit(self, editing: ThreadEdits) -> None:
        """Apply edits of a what-if from the first frame on."""
        self.editing = editing
        self.placer.texts = editing.texts
        if self.fitting is not None:
            self.fitting.alone = True

    @property
    def edited(self) -> bool:
        """Whether edits of a what-if change the last sealed frame."""
        return self.editing is not None and self.editing.changes(self.frame.held)

    @property
    def altered(self) -> bool:
        """Whether the last sealed frame differs from what was sent. If so, its bill does not apply to it."""
        return self.edited or (self.fitted is not None and self.fitted.changes_frame)

    @property
    def recorded_tokens(self) -> int:
        """Tokens recorded for the last sealed step, whichever frame is shown instead."""
        if self.editing is not None or self.fitting is not None:
            return self.recorded_used
        return self.frame.recorded

    def open_facts(self) -> StepFacts:
        """Return the facts for a record of the current line: the open step's, or those after its seal."""
        return self.facts if self.later is None else self.later

    def opens(self, ids: StepIds) -> None:
        """Begin a step. What was recorded after the last seal is its first part."""
        self.ids = ids
        self.over = False
        self.annotations.opens()
        if self.sealed is not None:
            self.assembled, self.ahead = self.ahead, []
        self.facts = self.later if self.later is not None else StepFacts()
        self.later = None
        self.sealed = None
        self.usage = self.asked = None
        self.stated = ()
        self.failures = self.retried = ()

    def answered(self) -> None:
        """Note that the open step's request was answered, so its earlier failures were retried."""
        if self.failures:
            self.retried += self.failures
            self.failures = ()

    def take_assembly(self) -> None:
        """Resolve the assembly that ends the current facts, as of this line.

        Before a seal, the assembly completes the step's facts; after a seal, it belongs to the next step.
        """
        facts = self.open_facts()
        assembly = facts.assembly
        assert assembly is not None
        segments = facts.budget.segments if facts.budget is not None else _NO_SEGMENTS
        if not segments:
            segments = _NO_SEGMENTS
        placements = self.windows.resolve(assembly, segments)
        if self.sealed is not None:
            self.ahead = placements
            return
        if self.later is not None:
            self.facts.take(self.later)
        self.assembled = placements
        self.later = StepFacts()

    def injected_again(self, injection: Injection) -> None:
        """Add a second injection point to the sealed request."""
        assert self.sealed is not None
        if self.facts_shared:
            self.sealed = self.sealed._replace(facts=self.sealed.facts.copy())
            self.facts_shared = False
        self.sealed.facts.injections.append(injection)

    def take_injection(self, injection: Injection) -> None:
        """Take the injection that completes the step's facts. It may name an assembly other than the last."""
        if self.later is not None:
            self.facts.take(self.later)
            self.later = None
        facts = self.facts
        facts.injections = [one for one in facts.injections if not one.awaits_answer]
        facts.injections.append(injection)
        facts.model = injection.model or facts.model
        wanted = injection.assembly_id
        if wanted is not None and (facts.assembly is None or facts.assembly.assembly_id != wanted):
            named = self.windows.assembly(wanted)
            if named is not None:
                facts.assembly, self.assembled = named

    def _left(self, frame: list[Placement], reading: FactsReading) -> list[Placement] | None:
        """Return the frame without redacted texts and with the budget's cuts; None if it does not change."""
        made = self.annotations.hide_redacted(frame, self.placer.redacted_copy, self.windows.delta)
        left = reading.cut_to()
        if not left:
            return made
        shown = frame if made is None else made
        cut = [self.placer.cut(p, left[p.item]) if holds_uncut(p, left.get(p.item)) else p for p in shown]
        return cut if cut != frame else None  # return the same object: placements are compared by identity

    def seal(self, *, list_skipped: bool = False, only_sizes: bool = False) -> SealedStep:
        """Fix the open step's frame and compare it with the last one; `only_sizes`: only measure it."""
        assert self.ids is not None
        assert self.mode is not None
        facts = self.facts
        reading = FactsReading(facts, self.book, self.placer, self.assembled)
        before, self.reweighed = FrameTotals(self.frame.used, self.reweighed, self.frame.placements), 0
        recorded = self.recorded()
        basis, after, delta = self._shown_frame(recorded, facts, reading)
        named, truncated = reading.named(), reading.truncated()
        cause_of: Callable[[str], Cause] = reading.cause_of
        if facts.assembly is not None:
            self.client = facts.assembly.client or self.client
        self.recorded_moved, self.entered = moved_by(delta), delta.inserted
        if self.editing is not None or self.fitting is not None:
            self.recorded_used += recorded_sum(delta.inserted) - recorded_sum(delta.removed)
        if self.editing is not None:
            delta = self.editing.frame(delta)
            after, named = delta.after, self.editing.named(named)
        if self.fitting is not None:
            model = facts.model or self.model
            limits = self.fitting.in_force(facts.budget, model, self.provider, self.client)
            beside = self.running.bill.unrecorded if self.running.bill is not None else 0
            after, made, self.fitted = self.fitting.frame(self, delta, limits, reading.cause_of, beside)
            delta = made if made is not None else delta_of(before.placements, after)
            named, cut = named + self.fitted.named, self.fitted.truncated
            truncated = truncated | cut if truncated else cut
            from ctxctl.engine.simulate.policy_run import cause_under_policy

            cause_of = cause_under_policy(cause_of, self.fitted)
        was = {} if only_sizes else standing_copies(self.frame, delta, named)
        self.frame.move_to(after, delta)
        scored = self._rescored(reading)
        simulated = self.sent is not None
        taken_back = frozenset(self.sent.removed) if self.sent is not None else frozenset()
        cause_of = _or_detached(cause_of, taken_back) if taken_back else cause_of
        context = ChangeContext(cause_of, truncated, scored, named, simulated, self._differs)
        settings, prefix = self._settings(facts), None
        if only_sizes:
            changes, self.settings = unlisted_changes(delta), settings
        else:
            changes = changes_of(
                before.placements, was, self.frame, delta, context, list_skipped=list_skipped
            )
            prefix = self._prefix(before, after, delta, settings)
        if self.mode.mode == "append":
            self.placed.update(p.item for p in delta.inserted)
        saved, skips = self._saved(reading)
        layer: Layer = "injected" if facts.injections else "available" if basis == "items" else "view"
        self.sealed = SealedStep(
            self.ids, facts, reading, basis, layer, before, delta, changes, prefix, saved, skips, after,
            context, was, settings,
        )  # fmt: skip
        self.first, self.facts_shared = False, True
        self.model = facts.model or self.model
        self.later = self.later or StepFacts()
        return self.sealed

    def keep_sent(self, sent: set[Placement]) -> None:
        """Start the next frame from the placements that the sealed step is known to have sent."""
        if self.sent_part is None:
            self.sent_part = SentPart(self.recorded())
        self.sent_part.keep(sent)

    def _shown_frame(
        self, before: list[Placement], facts: StepFacts, reading: FactsReading
    ) -> tuple[Basis, list[Placement], FrameDelta]:
        """Return the frame's basis, the frame without what was not sent, and its delta to the last one."""
        if self.sent_part is None:
            return self._recorded_frame(before, facts, reading)
        basis, _, delta = self._recorded_frame(self.sent_part.recorded, facts, reading)
        shown = self.sent_part.frame(delta)
        return basis, shown.after, shown

    def _recorded_frame(
        self, before: list[Placement], facts: StepFacts, reading: FactsReading
    ) -> tuple[Basis, list[Placement], FrameDelta]:
        """Return the frame's basis, the whole frame, and its difference from the last one."""
        basis, after, known = self._next_frame(before, facts, reading)
        left = self._left(after, reading)
        if left is not None:
            return basis, left, delta_of(before, left, *self.annotations.same_ends(before, left))
        return basis, after, known if isinstance(known, FrameDelta) else delta_of(before, after, known)

    def _next_frame(
        self, before: list[Placement], facts: StepFacts, reading: FactsReading
    ) -> tuple[Basis, list[Placement], FrameDelta | int]:
        """Return the basis, the frame, and its difference from the last one, or the length of a head both
        share."""
        assert self.mode is not None
        if self.mode.mode == "window":
            basis, after = self.windows.frame(self, facts, reading)
            return basis, after, self.windows.delta(before, after) or 0
        if self.simulation is not None:
            self.sent = self.simulation.send(self, facts)
        basis, after, same = appended_frame(self, facts, reading, self.recorded(), self.sent)
        return basis, after, same

    def _prefix(
        self, before: FrameTotals, after: list[Placement], delta: FrameDelta, settings: RequestSettings
    ) -> CommonPrefix | None:
        """Return the prefix that the request shares with the last one, then store it as the last."""
        was, now = self.laid_out, provider_order(after, self.frame.head, self.frame.heads)
        setting = broken_setting(self.settings, settings)
        self.laid_out, self.settings = now, settings
        if self.first or self.book.target != MODEL:
            return None
        same = delta.prefix if was is before.placements and now is after else 0
        held = self.frame.held_before(delta), self.frame.holds
        return possible_prefix(was, now, before.used, same, held, setting)

    def _settings(self, facts: StepFacts) -> RequestSettings:
        """Return the request without its window. Fields not recorded are the previous request's."""
        recorded = facts.assembly.request if facts.assembly is not None else None
        return RequestSettings(
            facts.model or self.settings.model,
            recorded if recorded is not None else self.settings.request,
            self.frame.images > 0,
            self.frame.cites > 0,
        )

    def _differs(self, was: Placement, now: Placement) -> str:
        return rendering_difference(was, now, self.placer.text)

    def _rescored(self, reading: FactsReading) -> frozenset[str]:
        scores = reading.scores()
        found = rescored_items(self.scores, scores)
        self.scores.update(scores)
        if self.fitting is not None:
            self.fitting.scored(scores)
        return found

    def _saved(self, reading: FactsReading) -> tuple[int | None, int]:
        """Return tokens and number of the items recorded as skipped at this step."""
        if self.facts.selection is None and self.sent is None and self.mode and self.mode.mode == "window":
            return None, 0
        skipped = {self.book.item_of(r.ref) for r in reading.unchanged()}
        if self.sent is not None:
            skipped = set(self.sent.skipped)
        if self.editing is not None:
            skipped -= self.editing.dropped
        if self.mode is None or self.mode.mode == "window":
            return None, len(skipped)
        index = self.index or {}
        frame = self.recorded()
        return sum(frame[index[item]].tokens for item in skipped if item in index), len(skipped)
