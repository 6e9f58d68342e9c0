"""One thread under replay: its items, its frame, and the step that is open (DESIGN section 3)."""

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
    """A policy takes an item back because it is no longer attached, unless the trace says otherwise."""

    def cause(item: str) -> Cause:
        found = cause_of(item)
        return Cause("detached") if item in taken_back and found.cause == "unrecorded" else found

    return cause


class SealedStep(NamedTuple):
    """A step whose frame is taken; only its usage may still come."""

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
    """Items that the selection records as skipped unchanged."""
    order: list[Placement]
    context: ChangeContext
    """What its facts say of its changes."""
    was: dict[str, int]
    """Current copies, before the step, of the items that it touched or named."""
    settings: RequestSettings
    """Its request less the window."""


class FrameTotals(NamedTuple):
    """A frame's sums before an edit."""

    used: int
    """In today's encoding."""
    reweighed: int
    """Of it, what came with a change of the encoding."""
    placements: list[Placement]


class DeclaredMode(NamedTuple):
    """A mode and whether the trace (or an importer, or a policy) said it."""

    mode: Mode
    declared: bool


class ThreadState(ThreadData):
    """Everything replay remembers of one thread and target."""

    asked: str | None = None
    """When the open step's request was sent, as near as is recorded."""

    provider: str | None = None
    """Who billed last."""
    reweighed = 0
    """How much larger the frame became since the last seal by being counted with another encoding."""
    final = False
    """No later event belongs to it: it is forgotten with its last step."""
    client: str | None = None
    """Version of the client that sent the last request."""

    retried: tuple[Failure, ...] = ()
    """Failures of the open step's request that an answer followed, in order."""

    def __init__(self, key: ThreadKey, target: str, store: ContentStore, count: Count) -> None:
        super().__init__(key, target, store, count)
        self.frame = FrameState()
        self.windows = WindowResolver(self.placer)
        self.mode: DeclaredMode | None = None
        self.sealed: SealedStep | None = None
        self.facts_shared = True
        """Somebody else may hold the sealed step's facts: to be copied before anything is added to them."""
        self.usage: Usage | None = None
        self.stated: tuple[Stated, ...] = ()
        """Totals that the runtime states for the requests up to this one."""
        self.failures: tuple[Failure, ...] = ()
        """Of the open step's request, in order, that no answer followed."""
        self.model: str | None = None
        self.root: str | None = None
        self.first = True
        """No frame yet."""
        self.over = False
        """The trace, or the thread itself, has ended."""
        self.shared = False
        """A snapshot holds it too: to be copied before anything changes it."""
        self.laid_out: list[Placement] = []
        """The last frame in the provider's order."""
        self.billed: BilledStep | None = None
        """The last step with a bill."""
        self.entered: list[Placement] = []
        """Placements that entered the recorded frame at the last sealed step."""
        self.sent_part: SentPart | None = None
        """The recorded frame without what was not sent; None: no bill shows a cut."""
        self.settings = RequestSettings()
        """The last request's, less its window."""
        self.cached: CacheMemory | None = None
        """The last request with a bill, as far as a prompt cache remembers it."""
        self.ahead: list[Placement] = []
        """As `assembled`, of an assembly that came after the seal."""
        self.simulation: Simulation | None = None
        """The policy that decides what is sent; None where the trace does."""
        self.sent: SentStep | None = None
        """What it sent at the last sealed step."""
        self.fitting: Fitting | None = None
        """The policy that decides what is left out; None where the trace does."""
        self.fitted: Fitted | None = None
        """What it did at the last sealed step."""
        self.compacted: int | None = None
        """Tokens at which the runtime last compacted by itself."""
        self.running = NEW
        """What its bills say of its size; never changed, so copies share it."""
        self.recorded_used = 0
        """Tokens of the recorded frame, where an edit or a policy makes another one of it."""
        self.recorded_moved: Vector = NOTHING
        """What came and left of that one at the last sealed step."""
        self.annotations = AnnotationState()

    def kept(self) -> ThreadState:
        """What a snapshot holds: a copy, or the thread itself once it has ended, for it seldom goes on."""
        if not self.over:
            return self.copy()
        self.shared = True
        return self

    def copy(self) -> ThreadState:
        """An independent copy; sealed frames are shared, they never change."""
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
        """Let go of what can be made again: from here on this can only be copied, and the copy can go on."""
        self.book.park()
        self.windows.park()

    def weight(self) -> int:
        """About how much a parked copy holds, in units of 32 bytes."""
        frame = len(self.frame.placements) // 4 + 6 * len(self.frame.held) + 3 * len(self.frame.stale_copies)
        ever = 2 * (len(self.placed) + len(self.scores) + len(self.index or ()))
        ever += self.fitting.weight() if self.fitting is not None else 0
        ever += self.annotations.weight()
        return frame + ever + (len(self.book.live) + self.windows.kept) // 4

    def recorded(self) -> list[Placement]:
        """The frame as the trace has it, also where a policy or an edit makes another one of it."""
        if self.editing is not None:
            return self.editing.recorded
        return self.frame.placements if self.fitting is None else self.fitting.recorded

    @property
    def own_frames(self) -> bool:
        """Whether a policy makes its frames."""
        return self.simulation is not None or self.fitting is not None

    def edit(self, editing: ThreadEdits) -> None:
        """Leave out and replace from the first frame on."""
        self.editing = editing
        self.placer.texts = editing.texts
        if self.fitting is not None:
            self.fitting.alone = True

    @property
    def edited(self) -> bool:
        """Whether the last sealed frame is another one than recorded because of what is dropped or set."""
        return self.editing is not None and self.editing.changes(self.frame.held)

    @property
    def altered(self) -> bool:
        """Whether the last sealed frame is another one than was sent: what was billed says nothing of it."""
        return self.edited or (self.fitted is not None and self.fitted.changes_frame)

    @property
    def recorded_tokens(self) -> int:
        """Tokens of what is recorded for the last sealed step, whatever frame is shown in its place."""
        if self.editing is not None or self.fitting is not None:
            return self.recorded_used
        return self.frame.recorded

    def open_facts(self) -> StepFacts:
        """Where a record of the current line belongs: this step, or what follows its seal."""
        return self.facts if self.later is None else self.later

    def opens(self, ids: StepIds) -> None:
        """Begin a step; what came after the last one's seal is its first part."""
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
        """The open step's request got its answer: what failed before was tried again."""
        if self.failures:
            self.retried += self.failures
            self.failures = ()

    def take_assembly(self) -> None:
        """The open stretch of facts now ends with an assembly: resolve it as of this line.

        Before a seal the assembly closes the step's facts so far; after one it is the next step's.
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
        """A second injection point of the request that is sealed."""
        assert self.sealed is not None
        if self.facts_shared:
            self.sealed = self.sealed._replace(facts=self.sealed.facts.copy())
            self.facts_shared = False
        self.sealed.facts.injections.append(injection)

    def take_injection(self, injection: Injection) -> None:
        """An injection ends the step's facts; it may name an assembly other than the last."""
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
        """The frame less what was redacted, and with what a budget cut as it left it; None: as it is."""
        made = self.annotations.hide_redacted(frame, self.placer.redacted_copy, self.windows.delta)
        left = reading.cut_to()
        if not left:
            return made
        shown = frame if made is None else made
        cut = [self.placer.cut(p, left[p.item]) if holds_uncut(p, left.get(p.item)) else p for p in shown]
        return cut if cut != frame else None  # equal is the same: placements are compared by identity

    def seal(self, *, list_skipped: bool = False, only_sizes: bool = False) -> SealedStep:
        """Take the open step's frame and compare it with the one before, or weigh it only (`only_sizes`)."""
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
        """Begin the next frame from what the sealed step is known to have sent."""
        if self.sent_part is None:
            self.sent_part = SentPart(self.recorded())
        self.sent_part.keep(sent)

    def _shown_frame(
        self, before: list[Placement], facts: StepFacts, reading: FactsReading
    ) -> tuple[Basis, list[Placement], FrameDelta]:
        """The frame's basis, the frame without what was not sent, and its difference from the one before."""
        if self.sent_part is None:
            return self._recorded_frame(before, facts, reading)
        basis, _, delta = self._recorded_frame(self.sent_part.recorded, facts, reading)
        shown = self.sent_part.frame(delta)
        return basis, shown.after, shown

    def _recorded_frame(
        self, before: list[Placement], facts: StepFacts, reading: FactsReading
    ) -> tuple[Basis, list[Placement], FrameDelta]:
        """The frame's basis, the whole frame, and its difference from the one before."""
        basis, after, known = self._next_frame(before, facts, reading)
        left = self._left(after, reading)
        if left is not None:
            return basis, left, delta_of(before, left, *self.annotations.same_ends(before, left))
        return basis, after, known if isinstance(known, FrameDelta) else delta_of(before, after, known)

    def _next_frame(
        self, before: list[Placement], facts: StepFacts, reading: FactsReading
    ) -> tuple[Basis, list[Placement], FrameDelta | int]:
        """What the frame is by, the frame, and its difference from the one before: or how much of their heads
        is surely the same.
        """
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
        """What the step's request begins with like the one before, which it then takes the place of."""
        was, now = self.laid_out, provider_order(after, self.frame.head, self.frame.heads)
        setting = broken_setting(self.settings, settings)
        self.laid_out, self.settings = now, settings
        if self.first or self.book.target != MODEL:
            return None
        same = delta.prefix if was is before.placements and now is after else 0
        held = self.frame.held_before(delta), self.frame.holds
        return possible_prefix(was, now, before.used, same, held, setting)

    def _settings(self, facts: StepFacts) -> RequestSettings:
        """The step's request less its window: what is told of it, else as the one before."""
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
        """Tokens of the items recorded as skipped at this step, and their number."""
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
