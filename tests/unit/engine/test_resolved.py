"""Assemblies that were folded give the placements that they had, and hold no more than twice as many."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.engine.replay.window import _CHAIN, Piece, Resolved
from ctxctl.model.results import Placement
from tests.unit.engine.making import placement

POOL = [placement(f"i{n}", n) for n in range(60)]


@st.composite
def chains(draw: st.DrawFn) -> list[tuple[Resolved, list[Placement]]]:
    """Each spliced from one before it, and the list that it was made with."""
    first = POOL[: draw(st.integers(0, 60))]
    made = [(Resolved(list(first), None), list(first))]
    for _ in range(draw(st.integers(1, 90))):
        base, old = made[draw(st.integers(max(0, len(made) - 4), len(made) - 1))]
        cut = sorted(draw(st.tuples(*[st.integers(0, len(old))] * 2)))
        own = draw(st.lists(st.sampled_from(POOL), max_size=4))
        pieces: list[Piece] = [(0, cut[0]), own, (cut[1], len(old))]
        new = old[: cut[0]] + own + old[cut[1] :]
        made.append((Resolved(list(new), None, base, pieces), new))
    return made


def held(one: Resolved) -> int:
    """Entries of all that an assembly is made of, once it is folded."""
    if one._list is not None:
        return len(one._list)
    assert one._base is not None
    return held(one._base) + sum(len(piece) for piece in one._pieces if isinstance(piece, list))


@settings(max_examples=60, deadline=None)
@given(chains(), st.randoms(use_true_random=False))
def test_a_folded_assembly_is_the_one_that_it_was(
    made: list[tuple[Resolved, list[Placement]]], random
) -> None:
    for one, _ in random.sample(made, len(made)):
        one.fold()
    for one, new in made:
        assert one.placements == new
        assert one.size == len(new)
        assert one._depth <= _CHAIN
        assert held(one) <= max(2 * one.size, 0)


def test_what_a_long_chain_of_small_splices_holds_is_mostly_shared() -> None:
    one = Resolved(list(POOL), None)
    lists = 0
    for n in range(400):
        old = one.placements
        pieces: list[Piece] = [(1, len(old)), [POOL[n % 60]]]
        one = Resolved([*old[1:], POOL[n % 60]], None, one, pieces)
        one.fold()
        lists += one._list is not None
    assert lists <= 400 // _CHAIN + 1
