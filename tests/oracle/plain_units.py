"""These functions find in one whole window what stays or goes together, and what never goes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ctxctl.model.fitting import Candidate, Drop
from ctxctl.policies.fitting.protection import HEAD_SEGMENTS, PROMPTS, Protection


def protected_indexes(candidates: Sequence[Candidate], rules: Protection) -> set[int]:
    """Indexes of what stays, the other halves of its tool pairs included."""
    kept = {
        at
        for at, c in enumerate(candidates)
        if (rules.protect_head and c.segment in HEAD_SEGMENTS) or c.kind in rules.protect_kinds
    }
    if rules.protect_recent > 0:
        prompts = [at for at, c in enumerate(candidates) if c.kind in PROMPTS]
        if prompts:
            kept.update(range(prompts[-rules.protect_recent :][0], len(candidates)))
    return _with_pairs(candidates, kept)


def _with_pairs(candidates: Sequence[Candidate], kept: set[int]) -> set[int]:
    """These, and all that shares a pair with one of them, or with one that does."""
    pairs = {pair for at in kept for pair in candidates[at].pairs}
    paired = [(at, c.pairs) for at, c in enumerate(candidates) if c.pairs and at not in kept]
    growing = bool(pairs)
    while growing:
        drawn = [(at, own) for at, own in paired if not pairs.isdisjoint(own)]
        growing = any(len(own) > 1 for _, own in drawn)
        kept.update(at for at, _ in drawn)
        pairs.update(pair for _, own in drawn for pair in own)
        paired = [(at, own) for at, own in paired if at not in kept]
    return kept


def units_of(candidates: Sequence[Candidate]) -> list[tuple[int, ...]]:
    """Candidates that stay or go together, in the order of their first: tool calls with their results.

    Calls and results that are linked through others are one unit.  Linear in the candidates.
    """
    if any(len(c.pairs) > 1 for c in candidates):
        return _linked(candidates)
    found: list[list[int]] = []
    groups: dict[str, list[int]] = {}
    for at, candidate in enumerate(candidates):
        group = groups.get(candidate.pairs[0]) if candidate.pairs else None
        if group is not None:
            group.append(at)
            continue
        group = [at]
        found.append(group)
        if candidate.pairs:
            groups[candidate.pairs[0]] = group
    return [tuple(group) for group in found]


def _linked(candidates: Sequence[Candidate]) -> list[tuple[int, ...]]:
    """Units as indexes, where one candidate may link several others."""
    parent = list(range(len(candidates)))

    def root(at: int) -> int:
        while parent[at] != at:
            parent[at] = parent[parent[at]]
            at = parent[at]
        return at

    first: dict[str, int] = {}
    for at, candidate in enumerate(candidates):
        for pair in candidate.pairs:
            one, other = root(first.setdefault(pair, at)), root(at)
            parent[max(one, other)] = min(one, other)
    grouped: dict[int, list[int]] = {}
    for at in range(len(candidates)):
        grouped.setdefault(root(at), []).append(at)
    return [tuple(grouped[at]) for at in sorted(grouped)]


def tokens_of(candidates: Sequence[Candidate], which: Iterable[int] | None = None) -> int:
    """Tokens of all candidates, or of some."""
    if which is None:
        return sum(c.tokens for c in candidates)
    return sum(candidates[at].tokens for at in which)


def removable_units(candidates: Sequence[Candidate], kept: Collection[int]) -> list[tuple[int, ...]]:
    """The units that may go, oldest first."""
    return [unit for unit in units_of(candidates) if unit[0] not in kept]


def drops_in_order(gone: Iterable[int], reason: str) -> tuple[Drop, ...]:
    """In the order of the window."""
    return tuple(Drop(at, reason) for at in sorted(gone))
