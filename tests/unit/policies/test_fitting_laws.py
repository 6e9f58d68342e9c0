"""Laws of every fitting policy (DESIGN section 4): over made-up windows and limits."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.model.fitting import Candidate, Room
from ctxctl.policies.fitting.eviction import Fifo, Priority
from ctxctl.policies.fitting.overflow import (
    AskForChoice,
    DeferToRetrieval,
    PolicyBlock,
    Reject,
    SummarizeLowPriority,
    SummarizeOldest,
    TruncateMiddle,
    TruncateTail,
)
from ctxctl.policies.fitting.protection import Protection
from tests.oracle.plain_units import protected_indexes, tokens_of, units_of
from tests.unit.policies.fitting_help import candidate, carried_out, windows

POLICIES: list[Any] = [
    Fifo(), Fifo(target=0.5), Priority(), Priority(sticky=False), Reject(), AskForChoice(), PolicyBlock(),
    TruncateTail(), TruncateMiddle(), SummarizeOldest(summary_tokens=20),
    SummarizeLowPriority(summary_tokens=20), DeferToRetrieval(), Fifo(protect_recent=0, protect_head=False),
]  # fmt: skip
POLICY = st.sampled_from(POLICIES)
CAPS = st.integers(0, 700)


@settings(max_examples=150)
@given(policy=POLICY, window=windows(), cap=CAPS)
def test_the_same_again(policy: Any, window: list[Candidate], cap: int) -> None:
    assert policy.fit(window, Room(cap), None) == policy.fit(list(window), Room(cap), None)


@settings(max_examples=150)
@given(policy=POLICY, window=windows(), cap=CAPS)
def test_never_over_the_cap_unless_it_says_so(policy: Any, window: list[Candidate], cap: int) -> None:
    fit = policy.fit(window, Room(cap), None)
    after = tokens_of(carried_out(window, fit))
    assert (fit.verdict == "fits") == (tokens_of(window) <= cap)
    if fit.verdict in ("fits", "fitted"):
        assert after <= cap
    if fit.verdict in ("rejected", "asks", "blocked"):
        assert carried_out(window, fit) == window
    if fit.verdict == "still_over":
        assert tokens_of(window) > cap


@settings(max_examples=150)
@given(policy=POLICY, window=windows(), cap=CAPS)
def test_what_it_gives_needs_nothing_more(policy: Any, window: list[Candidate], cap: int) -> None:
    first = policy.fit(window, Room(cap), None)
    if first.verdict == "fitted":
        after = carried_out(window, first)
        assert policy.fit(after, Room(cap), None).verdict == "fits"


@settings(max_examples=150)
@given(policy=POLICY, window=windows(), cap=CAPS)
def test_protected_stays_and_pairs_stay_together(policy: Any, window: list[Candidate], cap: int) -> None:
    fit = policy.fit(window, Room(cap), None)
    touched = {d.at for d in fit.drops} | {c.at for c in fit.cuts} | {s.at for s in fit.swaps}
    assert touched.isdisjoint(protected_indexes(window, policy))
    gone = {d.at for d in fit.drops}
    for unit in units_of(window):
        assert gone.isdisjoint(unit) or gone.issuperset(unit)


@settings(max_examples=150)
@given(policy=POLICY, window=windows(), cap=CAPS)
def test_each_candidate_is_kept_or_named_once(policy: Any, window: list[Candidate], cap: int) -> None:
    fit = policy.fit(window, Room(cap), None)
    named = [d.at for d in fit.drops] + [c.at for c in fit.cuts] + [s.at for s in fit.swaps]
    assert len(named) == len(set(named))
    assert all(0 <= at < len(window) for at in named)
    assert all(drop.reason for drop in fit.drops)
    kept = [c for c in carried_out(window, fit) if not c.name.startswith("note")]
    assert len(kept) + len(fit.drops) == len(window)


@given(
    policy=st.sampled_from([Fifo(), Priority(), TruncateTail()]),
    window=windows(),
    cap=CAPS,
    more=st.integers(0, 300),
)
def test_a_larger_limit_keeps_no_less(policy: Any, window: list[Candidate], cap: int, more: int) -> None:
    small = {d.at for d in policy.fit(window, Room(cap), None).drops}
    large = {d.at for d in policy.fit(window, Room(cap + more), None).drops}
    assert large <= small


@given(
    policy=st.sampled_from([Fifo(), Priority(), SummarizeOldest(summary_tokens=20)]),
    window=windows(),
    cap=CAPS,
    grown=st.integers(0, 14),
)
def test_what_left_stays_away(policy: Any, window: list[Candidate], cap: int, grown: int) -> None:
    """As the conversation grows, nothing comes back while it would not fit."""
    early = policy.fit(window[:grown], Room(cap), None)
    late = policy.fit(window, Room(cap), early.state)
    if tokens_of(window) > cap:
        gone = {window[d.at].name for d in early.drops}
        free = {window[at].name for at in range(len(window)) if at not in protected_indexes(window, policy)}
        assert gone & free <= {window[d.at].name for d in late.drops}


@settings(max_examples=300)
@given(
    links=st.lists(st.lists(st.sampled_from("abcde"), max_size=3, unique=True), max_size=9),
    kept=st.sets(st.integers(0, 8)),
)
def test_units_are_what_is_linked_at_all(links: list[list[str]], kept: set[int]) -> None:
    """Against the plain definition: walk from candidate to candidate over shared pairs."""
    window = [candidate(f"m{n}", 1, pairs=tuple(pairs)) for n, pairs in enumerate(links)]
    plain = set()
    for start in range(len(window)):
        unit, waiting = {start}, [start]
        while waiting:
            pairs = set(window[waiting.pop()].pairs)
            near = {n for n in range(len(window)) if pairs & set(window[n].pairs)} - unit
            unit |= near
            waiting += near
        plain.add(tuple(sorted(unit)))
    assert units_of(window) == sorted(plain)
    asked = {n for n in kept if n < len(window)}
    named = [c._replace(kind="plan") if n in asked else c for n, c in enumerate(window)]
    rules = Protection(protect_head=False, protect_recent=0, protect_kinds=("plan",))
    assert protected_indexes(named, rules) == {n for unit in plain if asked & set(unit) for n in unit}
