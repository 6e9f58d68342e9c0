"""Run a fitting policy on one thread: from the unfitted window to what the policy sends."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from ctxctl.engine.replay.changes import Cause, NamedItem
from ctxctl.engine.replay.frames import FrameDelta
from ctxctl.engine.replay.rules import Trim
from ctxctl.engine.simulate.incremental import IncrementalWindow
from ctxctl.engine.simulate.placements import PlacementMaker
from ctxctl.engine.simulate.runtime_record import RecordComparison, RuntimeFollower
from ctxctl.engine.simulate.unfitted_window import ALL_SENT, UnfittedWindow, UnplacedItem
from ctxctl.model.fitting import Candidate, Fit, Fitter, Kept, Room, Verdict
from ctxctl.model.results import Placement
from ctxctl.model.whatif import Limits

if TYPE_CHECKING:
    from ctxctl.engine.replay.item_table import ItemVersion
    from ctxctl.engine.replay.placements import Placer
    from ctxctl.engine.replay.thread_data import ThreadData
    from ctxctl.model.records import Budget


class Fitted(NamedTuple):
    """What a policy did at a step, for views."""

    policy: str
    verdict: Verdict
    wanted: int
    """Tokens if nothing had been left out."""
    cap: int | None
    """None if unknown, in which case the policy did nothing."""
    restored: int
    """Number of placements that the runtime left out, or replaced, and the policy restored."""
    dropped: int = 0
    """Number of candidates left out."""
    cut: int = 0
    """Number of candidates replaced by another text."""
    noted: bool = False
    """Whether the policy added a text of its own."""
    level: int | None = None
    cause_of: dict[str, Cause] = {}  # noqa: RUF012 (never changed)
    """Causes of the items that it left out, at least of those in the previous frame."""
    named: tuple[NamedItem, ...] = ()
    """The items left out that no frame had."""
    truncated: frozenset[str] = frozenset()
    held: RecordComparison | None = None
    """If the trace is of the policy's own runtime: the comparison with that runtime's record."""

    @property
    def changes_frame(self) -> bool:
        """Whether the policy leaves out or changes anything."""
        return bool(self.dropped or self.cut or self.noted)


LimitsOf = Callable[["Budget | None", str | None, str | None, str | None], Limits]
"""Returns the limits for a step's budget record, model, provider and client version."""


class Fitting:
    """A policy, the history that it is given, and its last decision."""

    def __init__(self, policy: Fitter, in_force: LimitsOf, trim: Trim, *, alone: bool) -> None:
        self.policy = policy
        self.in_force = in_force
        """The limits to keep."""
        self.alone = alone
        """Whether anything is supposed. If so, the policy is not compared with the runtime's record."""
        self.recorded: list[Placement] = []
        """The recorded frame, without the policy."""
        self.peak = 0
        """The most tokens that any step so far would have had if nothing had been left out."""
        self._history = UnfittedWindow()
        self._following = RuntimeFollower(policy)
        self._turns: dict[int, int] = {}
        self._pairs: dict[str, str] = {}
        self._open_calls: OrderedDict[str, None] = OrderedDict()
        self._state: object = None
        self._gone: frozenset[str] = frozenset()
        self._made = PlacementMaker(policy.name, trim)
        self._candidates: dict[Placement, tuple[object, float | None, Candidate]] = {}
        """Candidates for a policy without a keeper, each with the version and score that it was made from."""
        self._keeping: IncrementalWindow | None = None
        self._beside = 0
        """Unrecorded tokens of the last step."""
        self._keeps = isinstance(policy, Kept) and policy.keeper() is not None
        self._told: dict[str, None] = {}
        """Items that the trace mentioned since the previous step."""
        self._last: ItemVersion | None = None
        """The last version that the thread had learned at the previous step."""

    def copy(self) -> Fitting:
        """Return an independent copy, for a snapshot of a replay. The policy's placements are shared."""
        twin = Fitting.__new__(Fitting)
        twin.__dict__.update(self.__dict__)
        twin._history = self._history.copy()
        twin._following = self._following.copy()
        twin._turns, twin._pairs = dict(self._turns), dict(self._pairs)
        twin._open_calls = self._open_calls.copy()
        twin._told = dict(self._told)
        if self._keeping is not None:
            twin._state, twin._gone = self._keeping.made_of
            twin._keeping = None
        return twin

    def under(self, policy: Fitter, in_force: LimitsOf) -> Fitting:
        """Return a copy under another policy and other limits. Nothing may have been left out so far."""
        twin = self.copy()
        twin.policy, twin.in_force = policy, in_force
        twin._following = RuntimeFollower(policy)
        twin._made = PlacementMaker(policy.name, self._made.trim)
        twin._keeps = isinstance(policy, Kept) and policy.keeper() is not None
        return twin

    def weight(self) -> int:
        """Return about how much a copy holds, in units of 32 bytes."""
        return self._history.weight() // 4 + 3 * (len(self._turns) + len(self._pairs))

    def scored(self, items: Mapping[str, float]) -> None:
        """Note scores that the sealed step gives. They count from the next step on."""
        self._told.update(dict.fromkeys(items))

    def frame(
        self,
        thread: ThreadData,
        delta: FrameDelta,
        cap: Limits,
        cause_of: Callable[[str], Cause],
        beside: int = 0,
    ) -> tuple[list[Placement], FrameDelta | None, Fitted]:
        """Return the window under the policy after the recorded one went through `delta`.

        `beside` is the unrecorded part of the thread's last bill: it is sent again, so it takes room. The
        second value is the difference from the previous step's window, if known.
        """
        self._enter(delta.inserted, thread.ids.turn if thread.ids is not None else 0)
        self._history.move_to(delta, cause_of, self._unsent(thread, delta))
        self.recorded = delta.after
        # A runtime's record is followed by the runtime's own measure, which does not include bills.
        self._beside = 0 if self._following.follows and not self.alone else max(0, beside)
        wanted, limit = self._history.tokens + self._beside, cap.cap
        self.peak = max(self.peak, wanted)
        candidates = self._history.visible()
        room = None
        if limit is not None and (wanted > limit or self._following.early):
            room = self._room(limit, cap)
        compactions = () if self.alone else thread.facts.compactions
        sent = lambda: [self._known(thread, p) for p in delta.after]  # noqa: E731
        follower, native = self._following.record(compactions, sent) if room is not None else (None, {})
        if self._keeping is not None and follower is not None:
            (self._state, self._gone), self._keeping = self._keeping.made_of, None
        if self._keeps and follower is None and (room is not None or self._keeping is not None):
            return self._kept(thread, room, limit)
        fitted = Fitted(self.policy.name, "fits", wanted, limit, self._history.restored)
        if room is None:
            self._state, self._gone = None, frozenset()
            return candidates, None, fitted
        policy = self.policy if follower is None else follower
        fit = policy.fit([self._known(thread, p) for p in candidates], room, self._state)
        self._state = fit.state
        frame, fitted = self._carried_out(thread.placer, candidates, fit, fitted)
        if follower is not None and not self.alone:
            held = self._following.held(policy, fit, native, frame, self.recorded)
            fitted = fitted._replace(held=held)
        return frame, None, self._judged(fitted, sum(p.tokens for p in frame))

    def _unsent(self, thread: ThreadData, delta: FrameDelta) -> UnplacedItem:
        """Return what the records say was left out or cut before any request carried it."""
        facts = thread.facts
        if not facts.entered or not (facts.compactions or facts.budgets):
            return ALL_SENT
        sources = [ref for one in facts.compactions for ref in one.sources]
        # A policy that follows no record of compactions cuts its rendering, which is no item's own text.
        budgets = facts.budgets if self._following.follows else ()
        cuts = [one.ref for budget in budgets for one in budget.truncations if not one.dropped]
        item_of, placer = thread.book.item_of, thread.placer
        named = {ref: placer.ref(ref) for ref in (*sources, *cuts) if item_of(ref) in facts.entered}
        named = {ref: p for ref, p in named.items() if p.key not in self._turns and not p.truncated}
        if not named:
            return ALL_SENT
        there = {p.item: p for p in delta.after if not p.stale}
        gone = [named[ref] for ref in dict.fromkeys(sources) if ref in named]
        gone = [p for p in gone if p.item not in there]
        found = [named[ref] for ref in cuts if ref in named]
        whole = {p.item: p for p in found if p.item in there and there[p.item].key != p.key}
        self._enter((*gone, *whole.values()), thread.ids.turn if thread.ids is not None else 0)
        return UnplacedItem(gone, whole) if gone or whole else ALL_SENT

    def _room(self, cap: int, limits: Limits) -> Room:
        """Return the room for content, after the unrecorded part that is sent too."""
        beside = self._beside
        window, most = (
            None if limit is None else max(0, limit - beside) for limit in (limits.window, limits.max_input)
        )
        return Room(max(0, cap - beside), window, limits.reserve, most)

    def _judged(self, fitted: Fitted, tokens: int) -> Fitted:
        """Return the verdict by the trace's count, if the policy's own measure says that the window fits."""
        over = fitted.cap is not None and tokens + self._beside > fitted.cap
        return fitted._replace(verdict="still_over") if over and fitted.verdict in _FITS else fitted

    def _kept(
        self, thread: ThreadData, room: Room | None, cap: int | None
    ) -> tuple[list[Placement], FrameDelta | None, Fitted]:
        """Run a step of a policy with a keeper."""
        keeping = self._keeping
        if keeping is None:
            assert isinstance(self.policy, Kept)
            keeping = self._keeping = IncrementalWindow(self.policy, self._state, self._gone)
        changed_values = self._heard(thread)
        make = partial(self._candidate, thread)
        history = self._history
        seen = keeping.step(
            history.visible(), changed_values, make, room, self._made, thread.placer, history.grown
        )
        outcome = seen.outcome
        fitted = Fitted(
            self.policy.name, outcome.verdict, self._history.tokens + self._beside, cap,
            self._history.restored, outcome.dropped, outcome.cut, bool(outcome.notes), outcome.level,
            seen.causes, seen.named, seen.truncated,
        )  # fmt: skip
        return seen.frame, seen.delta, self._judged(fitted, seen.tokens)

    def _heard(self, thread: ThreadData) -> dict[str, None]:
        """Return the items that the trace mentioned since the last kept step."""
        changed_values, self._told = self._told, {}
        for facts in (thread.facts, thread.later):
            if facts is not None:
                changed_values.update(facts.entered)
        version = newest = thread.book.last
        while version is not None and version is not self._last:
            changed_values[version.item] = None
            version = version.before
        self._last = newest
        return changed_values

    def _enter(self, came: Iterable[Placement], turn: int) -> None:
        """Note when each placement entered, and which call each result belongs to."""
        for placement in came:
            self._turns.setdefault(placement.key, turn)
            item = placement.item
            if placement.kind == "tool_call":
                if item not in self._pairs:
                    self._pairs[item] = item
                    self._open_calls[item] = None
            elif placement.kind == "tool_result" and item not in self._pairs:
                self._pairs[item] = call = self._call_of(item)
                self._open_calls.pop(call, None)

    def _call_of(self, result: str) -> str:
        """Return the call in a result's id (`ID/result`), else the oldest call without a result."""
        named = result.removesuffix("/result")
        if named != result and self._pairs.get(named) == named:
            return named
        return next(iter(self._open_calls), result)

    def _known(self, thread: ThreadData, p: Placement) -> Candidate:
        """Return the candidate of a placement. It is made again if its version or score changed."""
        known, score = thread.book.find(p.item), thread.scores.get(p.item)
        before = self._candidates.get(p)
        if before is not None and before[0] is known and before[1] == score:
            return before[2]
        made = self._candidate(thread, p)
        self._candidates[p] = (known, score, made)
        return made

    def _candidate(self, thread: ThreadData, p: Placement) -> Candidate:
        known = thread.book.find(p.item)
        placer, content = thread.placer, p.content
        pair = self._pairs.get(p.item)
        return Candidate(
            name=str(p.key),
            item=p.item,
            kind=p.kind,
            segment=p.segment,
            role=p.role,
            tokens=p.tokens,
            chars=content.size if content is not None else 0,
            priority=known.record.priority if known is not None else None,
            score=thread.scores.get(p.item),
            pairs=(pair,) if pair is not None else (),
            source=p.source,
            title=p.title,
            turn=self._turns.get(p.key, 0),
            read=(lambda: placer.text(content)) if content is not None else _unknown,
        )

    def _carried_out(
        self, placer: Placer, candidates: list[Placement], fit: Fit, fitted: Fitted
    ) -> tuple[list[Placement], Fitted]:
        """Carry out a `fit` of a policy without a keeper, or of one that follows its runtime's record."""
        dropped = {drop.at: drop.reason for drop in fit.drops}
        other: dict[int, Placement] = {}
        for cut in fit.cuts:
            other[cut.at] = self._made.cut(placer, candidates[cut.at], cut)
        for swap in fit.swaps:
            other[swap.at] = self._made.swapped(placer, candidates[swap.at], swap)
        notes: dict[int, list[Placement]] = {}
        causes: dict[str, Cause] = {}
        for note in fit.notes:
            made = self._made.note(placer, note)
            notes.setdefault(note.before, []).append(made)
            causes.update(
                (candidates[at].item, Cause("compacted", None, made.item, True)) for at in note.sources
            )
        frame: list[Placement] = []
        for at, placement in enumerate(candidates):
            frame += notes.get(at, ())
            if at not in dropped:
                frame.append(other.get(at, placement))
        frame += notes.get(len(candidates), ())
        for at, reason in dropped.items():
            causes.setdefault(candidates[at].item, Cause("omitted", reason, None, True))
        named = tuple(
            NamedItem(candidates[at].item, candidates[at], Cause(None, reason, None, True))
            for at, reason in dropped.items()
            if candidates[at].item not in self._gone
        )
        self._gone = frozenset(candidates[at].item for at in dropped)
        return frame, fitted._replace(
            verdict=fit.verdict, dropped=len(fit.drops), cut=len(fit.cuts) + len(fit.swaps),
            noted=bool(fit.notes), level=fit.level, cause_of=causes, named=named,
            truncated=frozenset(candidates[at].item for at in other),
        )  # fmt: skip


_FITS: Final = frozenset({"fits", "fitted"})


def _unknown() -> None:
    return None


def cause_under_policy(cause_of: Callable[[str], Cause], fitted: Fitted) -> Callable[[str], Cause]:
    """Return why an item left under the policy. The policy's own causes come before recorded ones."""

    def cause(item: str) -> Cause:
        return fitted.cause_of.get(item) or cause_of(item)

    return cause
