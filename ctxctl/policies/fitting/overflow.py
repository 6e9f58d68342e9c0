"""The overflow strategies of the Agent Context standard (`overflow_strategy` of its budget record, 0.1.1).

The standard names them and says no more; what each does here is written at each.  What it calls a summary is
one that a model would write: its text is not known, and it is given the size `summary_tokens`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

from msgspec import Meta

from ctxctl.model.fitting import Candidate, Cut, Fit, Keeper, Note, Room, Swap, Verdict
from ctxctl.policies.fitting.grouping import Unit
from ctxctl.policies.fitting.incremental_eviction import IncrementalDeferral, IncrementalEviction, SendsAll
from ctxctl.policies.fitting.truncating import Truncator
from ctxctl.policies.fitting.units import (
    Protection,
    drops_in_order,
    protected_indexes,
    removable_units,
    tokens_of,
)


class Reject(Protection, frozen=True, kw_only=True):
    """A request that does not fit is not sent."""

    name = "reject"

    def fit(self, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
        """Takes nothing out."""
        return Fit("fits" if tokens_of(candidates) <= room.cap else "rejected")

    def keeper(self) -> Keeper:
        """Make a keeper that applies this policy incrementally from step to step."""
        return SendsAll("rejected")


class AskForChoice(Protection, frozen=True, kw_only=True):
    """Somebody is asked what to leave out; until then nothing is sent."""

    name = "ask_for_choice"

    def fit(self, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
        """Takes nothing out."""
        return Fit("fits" if tokens_of(candidates) <= room.cap else "asks")

    def keeper(self) -> Keeper:
        """Make a keeper that applies this policy incrementally from step to step."""
        return SendsAll("asks")


class PolicyBlock(Protection, frozen=True, kw_only=True):
    """A policy forbids to cut; the request is blocked."""

    name = "policy_block"

    def fit(self, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
        """Takes nothing out."""
        return Fit("fits" if tokens_of(candidates) <= room.cap else "blocked")

    def keeper(self) -> Keeper:
        """Make a keeper that applies this policy incrementally from step to step."""
        return SendsAll("blocked")


class TruncateTail(Protection, frozen=True, kw_only=True):
    """The end of what may go is cut off: whole units from the last on, and of the next one its end.

    A unit of several candidates (a tool call with its results) is not cut into, it goes whole.
    """

    name = "truncate_tail"

    def fit(self, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
        """Linear in the candidates."""
        total = tokens_of(candidates)
        if total <= room.cap:
            return Fit("fits")
        loose = removable_units(candidates, protected_indexes(candidates, self))
        space = room.cap - total + sum(tokens_of(candidates, unit) for unit in loose)
        front = _front(candidates, loose, space)
        return _without(candidates, loose[front.whole :], front.cut, (), space, room)

    def keeper(self) -> Keeper:
        """Make a keeper that applies this policy incrementally from step to step."""
        return Truncator(self, middle=False)


class TruncateMiddle(Protection, frozen=True, kw_only=True):
    """The middle of what may go is cut out: half of the room is for what is before it, half for the rest.

    Units are taken whole from either end as far as they go into their half; of the next one, if it is a
    single candidate, as much as still goes into it.
    """

    name = "truncate_middle"

    def fit(self, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
        """Linear in the candidates."""
        total = tokens_of(candidates)
        if total <= room.cap:
            return Fit("fits")
        loose = removable_units(candidates, protected_indexes(candidates, self))
        space = room.cap - total + sum(tokens_of(candidates, unit) for unit in loose)
        front = _front(candidates, loose, space - space // 2)
        back = _front(candidates, loose[front.whole :][::-1], space // 2)
        middle = loose[front.whole : len(loose) - back.whole]
        behind = back.cut if len(middle) > 1 else ()
        return _without(
            candidates, middle, front.cut, tuple(c._replace(side="tail") for c in behind), space, room
        )

    def keeper(self) -> Keeper:
        """Make a keeper that applies this policy incrementally from step to step."""
        return Truncator(self, middle=True)


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


class Summarizing(Protection, frozen=True, kw_only=True):
    """Parameters of both summaries."""

    summary_tokens: Annotated[int, Meta(description="size that a summary is given", ge=0)] = 500
    target: Annotated[
        float, Meta(description="share of the cap to go down to once it is exceeded", gt=0, le=1)
    ] = 1.0


class SummarizeOldest(Summarizing, frozen=True, kw_only=True):
    """The oldest units are replaced by one summary that stands where they began.

    What was summarized stays so: the next summary takes the earlier one in.
    """

    name = "summarize_oldest"

    def fit(self, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
        """Linear in the candidates."""
        return _summarized(self, candidates, room, state, lambda unit: unit[0])

    def keeper(self) -> Keeper:
        """Make a keeper that applies this policy incrementally from step to step."""
        return _summarizer(self, lambda unit: (unit.first,))


class SummarizeLowPriority(Summarizing, frozen=True, kw_only=True):
    """The units of the lowest priority are replaced by one summary; among equals the oldest go first."""

    name = "summarize_low_priority"

    def fit(self, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
        """O(n log n) in the candidates; no recorded priority is a priority of 0."""
        return _summarized(
            self, candidates, room, state,
            lambda unit: (max(candidates[at].priority or 0.0 for at in unit), unit[0]),
        )  # fmt: skip

    def keeper(self) -> Keeper:
        """Make a keeper that applies this policy incrementally from step to step."""
        return _summarizer(
            self, lambda unit: (max(seat.candidate.priority or 0.0 for seat in unit.seats), unit.first)
        )


def _summarizer(rules: Summarizing, rank: Callable[[Unit], tuple[float, ...]]) -> Keeper:
    return IncrementalEviction(
        rules, rank, "superseded_by_summary", target=rules.target, sticky=True, summary=rules.summary_tokens
    )


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


class DeferToRetrieval(Protection, frozen=True, kw_only=True):
    """What can be fetched again leaves, the largest first, and a reference stands for it.

    Fetchable are the kinds in `kinds`.  A reference says what it stands for; one that is as large as that is
    no gain, and the candidate stays.
    """

    name = "defer_to_retrieval"
    kinds: Annotated[
        tuple[str, ...], Meta(description="context kinds that can be fetched again, joined by +")
    ] = ("retrieval_result", "file", "document", "memory", "resource", "tool_result")

    def fit(self, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
        """O(n log n) in the candidates."""
        total = tokens_of(candidates)
        if total <= room.cap:
            return Fit("fits")
        before: frozenset[str] = state or frozenset()
        kept = protected_indexes(candidates, self)
        able = [
            (c.name not in before, -c.tokens, at, _reference(c))
            for at, c in enumerate(candidates)
            if c.kind in self.kinds and at not in kept
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

    def keeper(self) -> Keeper:
        """Make a keeper that applies this policy incrementally from step to step."""
        return IncrementalDeferral(self, self.kinds, _gain)


def _gain(candidate: Candidate) -> tuple[str, int]:
    """The reference that stands for a candidate, and the tokens that this saves at least."""
    text = _reference(candidate)
    return text, candidate.tokens - _most_tokens(text)


def _reference(candidate: Candidate) -> str:
    name = " ".join((candidate.title or candidate.item).split())[:60]
    return f"[deferred: {name}; fetch it again if needed]"


def _most_tokens(text: str) -> int:
    """No encoding makes more tokens of a text than it has bytes."""
    return len(text.encode("utf-8", "replace"))
