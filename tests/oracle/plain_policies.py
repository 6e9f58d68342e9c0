"""Plain definitions of the fitting policies: each decides one whole window from nothing but its arguments.

The policies that ship decide from step to step (`Keeper`); tests hold every decision of theirs to these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import singledispatch
from typing import Any, NamedTuple

from ctxctl.model.fitting import Candidate, Cut, Drop, Fit, Fitter, Note, Room, Swap, Verdict, characters
from ctxctl.plugins.amplifier.policy.contract import AmplifierContract
from ctxctl.plugins.sibyl.policy.markdown import sizes, trailer
from ctxctl.plugins.sibyl.policy.packs import Sibyl
from ctxctl.plugins.sibyl.policy.pieces import HEADER, KIND, TRAILER, is_heading, shortened
from ctxctl.policies.fitting.eviction import Fifo, Leaving, Priority
from ctxctl.policies.fitting.overflow import (
    AskForChoice,
    DeferToRetrieval,
    PolicyBlock,
    Reject,
    SummarizeLowPriority,
    SummarizeOldest,
    Summarizing,
    TruncateMiddle,
    TruncateTail,
)
from ctxctl.policies.fitting.protection import HEAD_SEGMENTS
from tests.oracle.plain_units import (
    drops_in_order,
    protected_indexes,
    removable_units,
    tokens_of,
    units_of,
)

Order = Callable[[Sequence[Candidate], tuple[int, ...]], Any]
_SYSTEM = frozenset({"system_prompt", "developer_instruction"})


class Plain:
    """A policy by its plain definition; the engine asks it as it asks a plug-in that has only `fit`."""

    def __init__(self, policy: Any) -> None:
        self.name: str = policy.name
        self.early: bool = getattr(policy, "early", False)
        self._policy = policy

    def fit(self, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
        return plain_fit(self._policy, candidates, room, state)


@singledispatch
def plain_fit(policy: Fitter, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
    """Decide one window; a policy without another definition is its own reference."""
    return policy.fit(candidates, room, state)


@plain_fit.register
def _(policy: Fifo, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
    return leave(policy, candidates, room, state, lambda _, unit: unit[0])


@plain_fit.register
def _(policy: Priority, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
    def rank(candidates: Sequence[Candidate], unit: tuple[int, ...]) -> tuple[float, float, int]:
        of = [candidates[at] for at in unit]
        priority = max(policy.default if c.priority is None else c.priority for c in of)
        return priority, max(c.score or 0.0 for c in of), unit[0]

    return leave(policy, candidates, room, state, rank)


@plain_fit.register
def _(policy: Reject, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
    return Fit("fits" if tokens_of(candidates) <= room.cap else "rejected")


@plain_fit.register
def _(policy: AskForChoice, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
    return Fit("fits" if tokens_of(candidates) <= room.cap else "asks")


@plain_fit.register
def _(policy: PolicyBlock, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
    return Fit("fits" if tokens_of(candidates) <= room.cap else "blocked")


@plain_fit.register
def _(policy: TruncateTail, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
    total = tokens_of(candidates)
    if total <= room.cap:
        return Fit("fits")
    loose = removable_units(candidates, protected_indexes(candidates, policy))
    space = room.cap - total + sum(tokens_of(candidates, unit) for unit in loose)
    front = _front(candidates, loose, space)
    return _without(candidates, loose[front.whole :], front.cut, (), space, room)


@plain_fit.register
def _(policy: TruncateMiddle, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
    total = tokens_of(candidates)
    if total <= room.cap:
        return Fit("fits")
    loose = removable_units(candidates, protected_indexes(candidates, policy))
    space = room.cap - total + sum(tokens_of(candidates, unit) for unit in loose)
    front = _front(candidates, loose, space - space // 2)
    back = _front(candidates, loose[front.whole :][::-1], space // 2)
    middle = loose[front.whole : len(loose) - back.whole]
    behind = back.cut if len(middle) > 1 else ()
    return _without(
        candidates, middle, front.cut, tuple(c._replace(side="tail") for c in behind), space, room
    )


@plain_fit.register
def _(policy: SummarizeOldest, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
    return _summarized(policy, candidates, room, state, lambda unit: unit[0])


@plain_fit.register
def _(policy: SummarizeLowPriority, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
    def rank(unit: tuple[int, ...]) -> tuple[float, int]:
        return max(candidates[at].priority or 0.0 for at in unit), unit[0]

    return _summarized(policy, candidates, room, state, rank)


@plain_fit.register
def _(policy: DeferToRetrieval, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
    total = tokens_of(candidates)
    if total <= room.cap:
        return Fit("fits")
    before: frozenset[str] = state or frozenset()
    kept = protected_indexes(candidates, policy)
    able = [
        (c.name not in before, -c.tokens, at, _reference(c))
        for at, c in enumerate(candidates)
        if c.kind in policy.kinds and at not in kept
    ]
    swaps: list[Swap] = []
    for new, negative, at, text in sorted(able):
        if new and total <= room.cap:
            break
        saved = -negative - _most_tokens(text)
        if saved > 0:
            swaps.append(Swap(at, text, "budget_limit"))
            total -= saved
    verdict: Verdict = "fitted" if total <= room.cap else "still_over"
    left = frozenset(candidates[swap.at].name for swap in swaps)
    return Fit(verdict, swaps=tuple(sorted(swaps)), state=left)


@plain_fit.register
def _(policy: AmplifierContract, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
    gone: frozenset[str] = state or frozenset()
    messages = [at for at, c in enumerate(candidates) if c.segment != "tools"]
    left = {at for at in messages if candidates[at].name not in gone}
    chars = sum(_chars(candidates[at]) for at in left)
    if chars // 4 > room.cap * policy.threshold:
        for unit in units_of(candidates) if policy.pairs else [(at,) for at in messages]:
            if not policy.literal and chars // 4 <= room.cap * policy.target:
                break
            if not any(_stays(candidates[at]) for at in unit):
                chars -= sum(_chars(candidates[at]) for at in left.intersection(unit))
                left.difference_update(unit)
    away = [at for at in messages if at not in left]
    verdict: Verdict = "fitted" if away else "fits"
    if chars // 4 > room.cap:
        verdict = "still_over"
    return Fit(
        verdict,
        drops_in_order(away, "budget_limit"),
        state=gone.union(candidates[at].name for at in away),
    )


@plain_fit.register
def _(policy: Sibyl, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
    items = [at for at, c in enumerate(candidates) if c.kind == KIND]
    sections = {c.segment for c in candidates if c.kind == KIND}
    limit = sizes(room.cap, len(items), len(sections))
    assert limit.chars is not None
    pack = [*items, *_header(candidates), *_headings(candidates)]
    if not items or sum(characters(candidates[at]) + 1 for at in pack) <= limit.chars:
        # By characters, as Sibyl has it; an item that takes more than its share is cut all the same.
        cut = {at: text for at in items if (text := _cut(candidates[at], limit.content)) is not None}
        if cut:
            return _fit(candidates, set(), cut, room)
        return Fit("fits" if tokens_of(candidates) <= room.cap else "still_over")
    used = sum(characters(candidates[at]) + 1 for at in _header(candidates))
    kept: list[int] = []
    swaps: dict[int, str] = {}
    opened: set[int] = set()
    heading: int | None = None
    for at, candidate in enumerate(candidates):
        if is_heading(candidate):
            heading = at
        elif candidate.kind == KIND:
            was = candidate.read()
            text = shortened(was, limit.content)
            block = (characters(candidate) if text is None else len(text)) + 1
            if heading is not None and heading not in opened:
                block += characters(candidates[heading]) + 1
            if kept and used + block > limit.chars:
                break
            if heading is not None:
                opened.add(heading)
            kept.append(at)
            used += block
            if text is not None and text != was:
                swaps[at] = text
    gone = set(items).difference(kept)
    if gone:
        gone |= set(_headings(candidates)).difference(opened)
        ends = (at for at, c in enumerate(candidates) if c.item == TRAILER and at not in gone)
        swaps |= dict.fromkeys(ends, trailer(room.cap))
    return _fit(candidates, gone, swaps, room)


def leave(rules: Leaving, candidates: Sequence[Candidate], room: Room, state: Any, order: Order) -> Fit:
    """Take units out in `order`, the lowest first."""
    total = tokens_of(candidates)
    if total <= room.cap:
        return Fit("fits")
    before: frozenset[str] = state if rules.sticky and state is not None else frozenset()
    kept = protected_indexes(candidates, rules)
    waiting = sorted(removable_units(candidates, kept), key=lambda unit: order(candidates, unit))
    gone: set[int] = set()
    for unit in waiting:
        if any(candidates[at].name in before for at in unit):
            gone.update(unit)
    total -= tokens_of(candidates, gone)
    if total > room.cap:
        bound = int(room.cap * rules.target)
        for unit in waiting:
            if total <= bound:
                break
            if unit[0] not in gone:
                gone.update(unit)
                total -= tokens_of(candidates, unit)
    left = frozenset(candidates[at].name for at in gone)
    verdict: Verdict = "fitted" if total <= room.cap else "still_over"
    return Fit(verdict, drops_in_order(gone, "budget_limit"), state=left)


class _End(NamedTuple):
    """What of an end of the loose units goes into a space."""

    whole: int
    cut: tuple[Cut, ...]
    """The next one, if a part of it still goes in."""


def _front(candidates: Sequence[Candidate], loose: Sequence[tuple[int, ...]], space: int) -> _End:
    for number, unit in enumerate(loose):
        tokens = tokens_of(candidates, unit)
        if tokens > space:
            part = len(unit) == 1 and space > 0
            return _End(number, (Cut(unit[0], space),) if part else ())
        space -= tokens
    return _End(len(loose), ())


def _without(
    candidates: Sequence[Candidate],
    middle: Sequence[tuple[int, ...]],
    head: tuple[Cut, ...],
    tail: tuple[Cut, ...],
    space: int,
    room: Room,
) -> Fit:
    """All of `middle` goes but what is cut out of it; it is still over if there is no space at all."""
    cuts = (*head, *tail)
    gone = {at for unit in middle for at in unit}.difference(cut.at for cut in cuts)
    verdict: Verdict = "fitted" if space >= 0 else "still_over"
    return Fit(verdict, drops_in_order(gone, "budget_limit"), tuple(sorted(cuts)))


def _summarized(
    rules: Summarizing,
    candidates: Sequence[Candidate],
    room: Room,
    state: Any,
    order: Callable[[tuple[int, ...]], Any],
) -> Fit:
    total = tokens_of(candidates)
    if total <= room.cap:
        return Fit("fits")
    before: frozenset[str] = state or frozenset()
    loose = sorted(removable_units(candidates, protected_indexes(candidates, rules)), key=order)
    gone = {at for unit in loose if any(candidates[at].name in before for at in unit) for at in unit}
    total -= tokens_of(candidates, gone) - (rules.summary_tokens if gone else 0)
    bound = int(room.cap * rules.target) if total > room.cap else room.cap
    for unit in loose:
        if total <= bound:
            break
        if unit[0] not in gone:
            total += rules.summary_tokens if not gone else 0
            gone.update(unit)
            total -= tokens_of(candidates, unit)
    if not gone:
        return Fit("still_over")
    sources = tuple(sorted(gone))
    note = Note(sources[0], None, rules.summary_tokens, sources=sources)
    verdict: Verdict = "fitted" if total <= room.cap else "still_over"
    left = frozenset(candidates[at].name for at in gone)
    return Fit(verdict, drops_in_order(gone, "superseded_by_summary"), notes=(note,), state=left)


def _reference(candidate: Candidate) -> str:
    name = " ".join((candidate.title or candidate.item).split())[:60]
    return f"[deferred: {name}; fetch it again if needed]"


def _most_tokens(text: str) -> int:
    """No encoding makes more tokens of a text than it has bytes."""
    return len(text.encode("utf-8", "replace"))


def _stays(candidate: Candidate) -> bool:
    return candidate.segment in HEAD_SEGMENTS or candidate.kind in _SYSTEM


def _chars(candidate: Candidate) -> int:
    return characters(candidate) or 4 * candidate.tokens


def _cut(candidate: Candidate, most: int) -> str | None:
    """An item with no more content than its share; None where it has no more."""
    text = None if is_heading(candidate) else shortened(candidate.read(), most)
    return text if text is not None and text != candidate.read() else None


def _header(candidates: Sequence[Candidate]) -> list[int]:
    return [at for at, c in enumerate(candidates) if c.item == HEADER]


def _headings(candidates: Sequence[Candidate]) -> list[int]:
    return [at for at, c in enumerate(candidates) if is_heading(c)]


def _fit(candidates: Sequence[Candidate], gone: set[int], swaps: Mapping[int, str], room: Room) -> Fit:
    kept = tokens_of(candidates) - tokens_of(candidates, gone)
    verdict: Verdict = "fitted" if kept <= room.cap else "still_over"
    drops = tuple(Drop(at, "budget_limit") for at in sorted(gone))
    return Fit(verdict, drops, swaps=tuple(Swap(at, swaps[at]) for at in sorted(swaps)))
