"""A fitting policy at work on one thread: from what would be in the window to what it sends."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ctxctl.engine.changes import Cause, Named
from ctxctl.engine.following import Following, Held
from ctxctl.engine.frames import Delta
from ctxctl.engine.history import History
from ctxctl.model.fitting import Candidate, Cut, Fit, Fitter, Note, Room, Swap
from ctxctl.model.results import Placement
from ctxctl.model.vocab import rank_of, segment_of
from ctxctl.model.whatif import Limits

if TYPE_CHECKING:
    from ctxctl.engine.placing import Placer
    from ctxctl.engine.thread import ThreadState

Trim = Callable[[str, int, str], str]
"""Cuts a text exactly at a token bound: the text, the most tokens, and which end stays (`head`, `tail`)."""


def uncut(text: str, _tokens: int, _side: str) -> str:
    """No cutting: for replays under policies that cut nothing."""
    return text


class Fitted(NamedTuple):
    """What a policy did at a step, for views."""

    policy: str
    fit: Fit
    wanted: int
    """Tokens that there would be had nothing been left out."""
    cap: int | None
    """None: not known, and nothing was done."""
    cause_of: dict[str, Cause]
    """Of the items that it took out."""
    named: tuple[Named, ...]
    """Those of them that were in no frame before."""
    truncated: frozenset[str]
    restored: int
    """Placements that the runtime left out and that are there again, or that stood for them."""
    held: Held | None = None
    """Where the trace is of the policy's own runtime: what it recorded beside what it ought to have."""

    @property
    def changes_frame(self) -> bool:
        """Whether something is out of the window, or in another form."""
        return bool(self.fit.drops or self.fit.cuts or self.fit.swaps or self.fit.notes)


class Fitting:
    """The policy, the history that it is given, and what it decided last."""

    def __init__(self, policy: Fitter, limits: Limits, trim: Trim) -> None:
        self.policy = policy
        self.limits = limits
        self.recorded: list[Placement] = []
        """The recorded frame, as it is without the policy."""
        self._trim = trim
        self._history = History()
        self._following = Following(policy)
        self._turns: dict[int, int] = {}
        self._pairs: dict[str, str] = {}
        self._open_calls: list[str] = []
        self._state: object = None
        self._gone: frozenset[str] = frozenset()
        self._made: dict[tuple[object, ...], Placement] = {}
        self._candidates: dict[Placement, tuple[object, float | None, Candidate]] = {}
        """Made before, with the version and score that they were made of."""

    def copy(self) -> Fitting:
        """An independent copy, for a snapshot of a replay; what was made by the policy is shared."""
        twin = Fitting(self.policy, self.limits, self._trim)
        twin.__dict__.update(self.__dict__)
        twin._history = self._history.copy()
        twin._following = self._following.copy()
        twin._turns, twin._pairs = dict(self._turns), dict(self._pairs)
        twin._open_calls = list(self._open_calls)
        return twin

    def weight(self) -> int:
        """About how much a copy holds, in units of 32 bytes."""
        return len(self._history.rows) // 4 + 3 * (len(self._turns) + len(self._pairs))

    def frame(
        self, thread: ThreadState, delta: Delta, cap: Limits, cause_of: Callable[[str], Cause]
    ) -> tuple[list[Placement], Fitted]:
        """The window under the policy after the recorded one went through `delta`."""
        self._history.move_to(delta, cause_of)
        self._note_entries(delta, thread.ids.turn if thread.ids is not None else 0)
        self.recorded = delta.after
        wanted = self._history.tokens
        limit = cap.cap
        candidates = self._history.visible()
        if limit is None or (wanted <= limit and not self._following.early):
            self._state, self._gone = None, frozenset()
            restored = self._history.restored
            return candidates, Fitted(
                self.policy.name, Fit("fits"), wanted, limit, {}, (), frozenset(), restored
            )
        room = Room(limit, cap.window, cap.reserve, cap.max_input)
        compactions = () if self.limits.given else thread.facts.compactions
        follower, native = self._following.record(compactions)
        policy = self.policy if follower is None else follower
        fit = policy.fit([self._candidate(thread, p) for p in candidates], room, self._state)
        self._state = fit.state
        frame, fitted = self._carried_out(thread.placer, candidates, fit, wanted, limit)
        if follower is not None and not self.limits.given:
            held = self._following.held(policy, fit, native, frame, self.recorded)
            fitted = fitted._replace(held=held)
        if fit.verdict in ("fits", "fitted") and sum(p.tokens for p in frame) > limit:
            # By the policy's own measure it fits; by the trace's count it does not.
            fitted = fitted._replace(fit=fit._replace(verdict="still_over"))
        return frame, fitted

    def _note_entries(self, delta: Delta, turn: int) -> None:
        """When each placement came, and which call each result belongs to."""
        for placement in delta.inserted:
            self._turns.setdefault(placement.key, turn)
            item = placement.item
            if placement.kind == "tool_call":
                if item not in self._pairs:
                    self._pairs[item] = item
                    self._open_calls.append(item)
            elif placement.kind == "tool_result" and item not in self._pairs:
                self._pairs[item] = call = self._call_of(item)
                if call in self._open_calls:
                    self._open_calls.remove(call)

    def _call_of(self, result: str) -> str:
        """The call that a result names in its id (`ID/result`), else the oldest that has none yet."""
        named = result.removesuffix("/result")
        if named != result and self._pairs.get(named) == named:
            return named
        return self._open_calls[0] if self._open_calls else result

    def _candidate(self, thread: ThreadState, p: Placement) -> Candidate:
        known, score = thread.book.find(p.item), thread.scores.get(p.item)
        before = self._candidates.get(p)
        if before is not None and before[0] is known and before[1] == score:
            return before[2]
        placer, content = thread.placer, p.content
        pair = self._pairs.get(p.item)
        made = Candidate(
            name=str(p.key),
            item=p.item,
            kind=p.kind,
            segment=p.segment,
            role=p.role,
            tokens=p.tokens,
            chars=content.size if content is not None else 0,
            priority=known.record.priority if known is not None else None,
            score=score,
            pairs=(pair,) if pair is not None else (),
            source=p.source,
            title=p.title,
            turn=self._turns.get(p.key, 0),
            read=(lambda: placer.text(content)) if content is not None else _unknown,
        )
        self._candidates[p] = (known, score, made)
        return made

    def _carried_out(
        self, placer: Placer, candidates: list[Placement], fit: Fit, wanted: int, cap: int
    ) -> tuple[list[Placement], Fitted]:
        dropped = {drop.at: drop.reason for drop in fit.drops}
        other: dict[int, Placement] = {}
        for cut in fit.cuts:
            other[cut.at] = self._cut(placer, candidates[cut.at], cut)
        for swap in fit.swaps:
            other[swap.at] = self._swapped(placer, candidates[swap.at], swap)
        notes: dict[int, list[Placement]] = {}
        causes: dict[str, Cause] = {}
        for note in fit.notes:
            made = self._note(placer, note)
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
        gone = frozenset(candidates[at].item for at in dropped)
        named = tuple(
            Named(candidates[at].item, candidates[at], Cause(None, reason, None, True))
            for at, reason in dropped.items()
            if candidates[at].item not in self._gone
        )
        self._gone = gone
        truncated = frozenset(candidates[at].item for at in other)
        restored = self._history.restored
        return frame, Fitted(self.policy.name, fit, wanted, cap, causes, named, truncated, restored)

    def _cut(self, placer: Placer, p: Placement, cut: Cut) -> Placement:
        memo = (p, cut.tokens, cut.side)
        made = self._made.get(memo)
        if made is None:
            if p.content is None:
                made = placer.resized(p, min(p.tokens, cut.tokens))
            else:
                made = placer.reworded(p, self._trim(placer.text(p.content), cut.tokens, cut.side))
            made = self._made.setdefault(memo, made)
        return made

    def _swapped(self, placer: Placer, p: Placement, swap: Swap) -> Placement:
        memo = (p, swap.text)
        made = self._made.get(memo)
        if made is None:
            made = self._made.setdefault(memo, placer.reworded(p, swap.text))
        return made

    def _note(self, placer: Placer, note: Note) -> Placement:
        name = f"{self.policy.name}:{note.kind}"
        memo = (name, note.text, note.tokens, note.role)
        made = self._made.get(memo)
        if made is None:
            segment = segment_of(note.kind)
            plain = Placement(
                item=name, version=None, kind=note.kind, title=f"{note.kind} by {self.policy.name}",
                source=None, segment=segment, rank=rank_of(segment), tokens=0, method="uncounted",
                content=None, digest=None, key=0, line=0, role=note.role, simulated=True,
            )  # fmt: skip
            text = note.text
            made = placer.resized(plain, note.tokens or 0) if text is None else placer.reworded(plain, text)
            made = self._made.setdefault(memo, made)
        return made


def _unknown() -> None:
    return None


def under(cause_of: Callable[[str], Cause], fitted: Fitted) -> Callable[[str], Cause]:
    """Why an item left under the policy: what the policy did goes before what was recorded."""

    def cause(item: str) -> Cause:
        return fitted.cause_of.get(item) or cause_of(item)

    return cause
