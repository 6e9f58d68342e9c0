"""What requests are spent on, followed by what changes, is what a pass over each whole frame says."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.analysis import spending
from ctxctl.analysis.spending import NamedFrame
from ctxctl.analysis.spent import NOT_RECORDED, PARTS, Spent
from ctxctl.engine.replay.frames import delta_of
from ctxctl.engine.sizes.prefix import provider_order
from ctxctl.model.money import Rates, Tokens
from ctxctl.model.results import Placement

KINDS = ("tool", "system", "message", NOT_RECORDED)


def placement(kind: str, tokens: int, rank: int, key: int) -> Placement:
    return Placement(
        item=f"i{key}", version=None, kind=kind, title=None, source=None, segment=kind, tokens=tokens,
        method="counted", content=None, digest=None, key=key, line=0, rank=rank,
    )  # fmt: skip


def plain(frame: list[Placement], billed: Tokens, beside: int) -> dict[str, list[Fraction]]:
    """By the definition: token by token, from the beginning of the request.  Of fewer tokens than are counted
    each is spread over as many of those as it is its share of.
    """
    ordered = provider_order(frame, sum(p.rank < 2 for p in frame))
    named = [(NOT_RECORDED, beside)] * bool(beside) + [(p.kind, p.tokens) for p in ordered]
    parts = [part for part, name in enumerate(PARTS) for _ in range(getattr(billed, name))]
    found = {name: [Fraction(0)] * (len(PARTS) + 1) for name, _ in named}
    owners = [name for name, tokens in named for _ in range(tokens)]
    for name in owners:
        found[name][-1] += 1
    each = Fraction(len(owners), len(parts)) if len(owners) > len(parts) > 0 else Fraction(1)
    for place, part in enumerate(parts):  # it lies over the counted tokens from `at` up to `end`
        at, end = place * each, (place + 1) * each
        for own in range(floor(at), min(ceil(end), len(owners))):
            low, high = max(at, Fraction(own)), min(end, Fraction(own + 1))
            found[owners[own]][part] += (high - low) / each
    return found


def same(rows: dict[str, list[int]], told: dict[str, list[Fraction]], billed: Tokens) -> None:
    """The rows are what is told: exactly.  Where fewer tokens are billed than counted, exactly in the sums,
    and in each row but for what rounding takes (a token for each boundary and one for the share).
    """
    assert rows.keys() == told.keys()
    counted, context = sum(row[-1] for row in rows.values()), sum(getattr(billed, name) for name in PARTS)
    if counted <= context or not context:
        assert rows == told
        return
    assert {name: row[-1] for name, row in rows.items()} == {name: row[-1] for name, row in told.items()}
    for part, name in enumerate(PARTS):
        assert sum(row[part] for row in rows.values()) == getattr(billed, name)
    for name, row in rows.items():
        assert all(got >= 0 and abs(got - want) < 3 for got, want in zip(row, told[name], strict=True))


placements = st.lists(
    st.builds(
        placement,
        st.sampled_from(KINDS),
        st.sampled_from((0, 1, 2, 5, 9)),
        st.integers(0, 2),
        st.integers(1, 1000),
    ),
    max_size=12,
)
bills = st.builds(Tokens, **{name: st.sampled_from((0, 0, 1, 3, 8, 20)) for name in PARTS})


@pytest.mark.parametrize(("walked", "each"), [(256, 64), (0, 1), (0, 3), (1, 2)])
@given(
    pool=placements,
    steps=st.lists(
        st.tuples(
            st.lists(st.integers(0, 11), max_size=10, unique=True),
            bills,
            st.sampled_from((0, 0, 4)),
            st.sampled_from((True, True, False)),
        ),
        min_size=1,
        max_size=6,
    ),
)
def test_what_changes_tells_what_whole_frames_tell(
    walked: int, each: int, pool: list[Placement], steps: list[tuple[list[int], Tokens, int, bool]]
) -> None:
    """Whether what is outside of the largest part is gone through, or told by sums that are kept."""
    named, before = NamedFrame(lambda p: p.kind, set(), Spent()), list[Placement]()
    with mock.patch.multiple(spending, _MAX_VISITED=walked, _SUM_INTERVAL=each):
        for chosen, billed, beside, told in steps:
            frame = [pool[n] for n in chosen if n < len(pool)]
            delta = delta_of(before, frame)
            named.move_to(frame, delta if told else None)
            same(named.parts(billed, beside), plain(frame, billed, beside), billed)
            before = frame


RATES = Rates(*(Decimal(n + 1) for n in range(len(Rates._fields))))
steps_of_many = st.lists(
    st.tuples(
        st.lists(st.integers(0, 11), max_size=10, unique=True),
        bills,
        st.sampled_from((0, 0, 4)),
        st.sampled_from((True, True, False)),
        st.sampled_from((False, False, True)),
    ),
    min_size=1,
    max_size=6,
)


@given(
    pool=placements, steps=steps_of_many, few=st.lists(st.sampled_from((-1, 1000)), min_size=6, max_size=6)
)
def test_what_stands_is_put_down_as_if_it_were_gone_through(
    pool: list[Placement], steps: list[tuple[list[int], Tokens, int, bool, bool]], few: list[int]
) -> None:
    """However the requests are told: where all that is counted was billed, exactly; else within rounding, and
    exactly in the sum of each part.
    """
    spents = Spent(), Spent()
    lazy, plainly = (NamedFrame(lambda p: p.item, set(), spent) for spent in spents)
    before, stretched = list[Placement](), 0
    for (chosen, billed, beside, told, unpriced), least in zip(steps, few, strict=False):
        frame = [pool[n] for n in chosen if n < len(pool)]
        delta = delta_of(before, frame) if told else None
        counted = sum(p.tokens for p in frame) + beside
        stretched += counted > sum(getattr(billed, name) for name in PARTS) > 0
        for named, size in ((lazy, least), (plainly, 1000)):
            with mock.patch.object(spending, "_MAX_VISITED_NAMES", size):
                named.move_to(frame, delta)
                named.spend(billed, beside, RATES, unpriced=unpriced)
        before = frame
    lazy.settle()
    found, wanted = (
        {one.name: (one.steps, one.tokens, one.unpriced) for one in spent.found(())} for spent in spents
    )
    assert found == wanted
    (made, exact) = (spent.parts().get(RATES, {}) for spent in spents)
    none = [0] * len(PARTS)
    for part in range(len(PARTS)):
        assert sum(row[part] for row in made.values()) == sum(row[part] for row in exact.values())
    for name in made.keys() | exact.keys():
        for got, want in zip(made.get(name, none), exact.get(name, none), strict=True):
            assert got >= 0
            assert abs(got - want) <= 3 * stretched


@given(placements, bills)
def test_changes_of_another_frame_are_not_taken(pool: list[Placement], billed: Tokens) -> None:
    """A frame that was weighed anew is counted anew."""
    named = NamedFrame(lambda p: p.kind, set(), Spent())
    named.move_to(pool, delta_of([], pool))
    again = [placement(p.kind, p.tokens * 2 + 1, p.rank, p.key) for p in pool]
    named.move_to(again[1:], delta_of(again, again[1:]))
    same(named.parts(billed, 0), plain(again[1:], billed, 0), billed)
