"""The overflow strategies of the Agent Context standard (`overflow_strategy` of its budget record, 0.1.1).

The standard names them and says no more; what each does here is written at each.  What it calls a summary is
one that a model would write: its text is not known, and it is given the size `summary_tokens`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from msgspec import Meta

from ctxctl.model.fitting import Candidate, Keeper
from ctxctl.policies.fitting.grouping import Unit
from ctxctl.policies.fitting.incremental_eviction import IncrementalDeferral, IncrementalEviction, SendsAll
from ctxctl.policies.fitting.protection import Protection
from ctxctl.policies.fitting.stepwise import StepwisePolicy
from ctxctl.policies.fitting.truncating import Truncator


class Reject(Protection, StepwisePolicy, frozen=True, kw_only=True):
    """A request that does not fit is not sent."""

    name = "reject"

    def keeper(self) -> Keeper:
        """Make a keeper that takes nothing out."""
        return SendsAll("rejected")


class AskForChoice(Protection, StepwisePolicy, frozen=True, kw_only=True):
    """Somebody is asked what to leave out; until then nothing is sent."""

    name = "ask_for_choice"

    def keeper(self) -> Keeper:
        """Make a keeper that takes nothing out."""
        return SendsAll("asks")


class PolicyBlock(Protection, StepwisePolicy, frozen=True, kw_only=True):
    """A policy forbids to cut; the request is blocked."""

    name = "policy_block"

    def keeper(self) -> Keeper:
        """Make a keeper that takes nothing out."""
        return SendsAll("blocked")


class TruncateTail(Protection, StepwisePolicy, frozen=True, kw_only=True):
    """The end of what may go is cut off: whole units from the last on, and of the next one its end.

    A unit of several candidates (a tool call with its results) is not cut into, it goes whole.
    """

    name = "truncate_tail"

    def keeper(self) -> Keeper:
        """Make a keeper that cuts at the end."""
        return Truncator(self, middle=False)


class TruncateMiddle(Protection, StepwisePolicy, frozen=True, kw_only=True):
    """The middle of what may go is cut out: half of the room is for what is before it, half for the rest.

    Units are taken whole from either end as far as they go into their half; of the next one, if it is a
    single candidate, as much as still goes into it.
    """

    name = "truncate_middle"

    def keeper(self) -> Keeper:
        """Make a keeper that cuts in the middle."""
        return Truncator(self, middle=True)


class Summarizing(Protection, frozen=True, kw_only=True):
    """Parameters of both summaries."""

    summary_tokens: Annotated[int, Meta(description="size that a summary is given", ge=0)] = 500
    target: Annotated[
        float, Meta(description="share of the cap to go down to once it is exceeded", gt=0, le=1)
    ] = 1.0


class SummarizeOldest(Summarizing, StepwisePolicy, frozen=True, kw_only=True):
    """The oldest units are replaced by one summary that stands where they began.

    What was summarized stays so: the next summary takes the earlier one in.
    """

    name = "summarize_oldest"

    def keeper(self) -> Keeper:
        """Make a keeper that summarizes units by their place."""
        return _summarizer(self, lambda unit: (unit.first,))


class SummarizeLowPriority(Summarizing, StepwisePolicy, frozen=True, kw_only=True):
    """The units of the lowest priority are replaced by one summary; among equals the oldest go first."""

    name = "summarize_low_priority"

    def keeper(self) -> Keeper:
        """Make a keeper that summarizes units by their priority; no recorded one is a priority of 0."""
        return _summarizer(
            self, lambda unit: (max(seat.candidate.priority or 0.0 for seat in unit.seats), unit.first)
        )


def _summarizer(rules: Summarizing, rank: Callable[[Unit], tuple[float, ...]]) -> Keeper:
    return IncrementalEviction(
        rules, rank, "superseded_by_summary", target=rules.target, sticky=True, summary=rules.summary_tokens
    )


class DeferToRetrieval(Protection, StepwisePolicy, frozen=True, kw_only=True):
    """What can be fetched again leaves, the largest first, and a reference stands for it.

    Fetchable are the kinds in `kinds`.  A reference says what it stands for; one that is as large as that is
    no gain, and the candidate stays.
    """

    name = "defer_to_retrieval"
    kinds: Annotated[
        tuple[str, ...], Meta(description="context kinds that can be fetched again, joined by +")
    ] = ("retrieval_result", "file", "document", "memory", "resource", "tool_result")

    def keeper(self) -> Keeper:
        """Make a keeper that swaps the largest first."""
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
