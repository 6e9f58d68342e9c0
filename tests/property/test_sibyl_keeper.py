"""Sibyl's keeper on windows full of packs, held against the plain definition, step by step."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ctxctl.model.fitting import Candidate, Cut, Drop, Fate, Moves, Room, Seat, Swap
from ctxctl.plugins.sibyl.policy.packs import Sibyl
from tests.oracle.plain_policies import plain_fit

EXAMPLES = settings.default.max_examples if settings.default else 100
MEMORY = "durable_memory"
PIECES = (
    ("item", MEMORY), ("item", MEMORY), ("item", MEMORY), ("pack/section/a", "policy_note"),
    ("pack/section/b", "policy_note"), ("pack/header", "policy_note"), ("pack/trailer", "policy_note"),
    ("user", "user_message"),
    # Nobody writes these, and still both have to say the same of them.
    ("pack/section/a", MEMORY), ("pack/header", MEMORY), ("pack/trailer", MEMORY),
)  # fmt: skip
GAP = 1 << 40


class Edit(NamedTuple):
    at: float
    removed: int
    inserted: list[tuple[int, int]]
    """Which of the pieces, and how many words it has."""
    cap: int | None


PIECE = st.sampled_from([0, 0, 0, *range(len(PIECES))])
EDITS = st.builds(
    Edit,
    at=st.sampled_from([1.0, 1.0, 0.0, 0.0, 0.1, 0.3, 0.7]),
    removed=st.sampled_from([0, 0, 0, 1, 1, 2, 9]),
    inserted=st.lists(st.tuples(PIECE, st.sampled_from([0, 1, 4, 30, 60, 200])), max_size=4),
    cap=st.sampled_from([100] * 9 + [120, 300, 1_000, None]),
)  # fmt: skip
OVER = st.lists(st.tuples(PIECE, st.sampled_from([4, 30, 60, 60, 200])), min_size=3, max_size=12)
"""What a thread begins with: more than there is room for, mostly."""


def candidate(number: int, piece: int, words: int) -> Candidate:
    item, kind = PIECES[piece]
    text = f"- **{item}** `{number}`\n  - Memory: " + "tide " * words + "\n  - Related: none"
    known = number % 7 != 0
    return Candidate(
        name=str(number),
        item=f"{item}-{number}" if item == "item" else item,
        kind=kind,
        segment="history",
        role=None,
        tokens=len(text) // 4,
        chars=len(text) if known else 0,
        read=lambda: text if known else None,
    )


def without_place(fate: Fate | Cut) -> object:
    return None if fate is None else fate._replace(at=0)


@settings(max_examples=EXAMPLES)
# An empty heading far in front of where the markdown ends is filled; a filled one is emptied.
@example(first=[(3, 4), (8, 4), *[(0, 4)] * 8], edits=[Edit(0.1, 0, [(0, 0)], 100)])
@example(first=[(3, 4), (0, 4), (4, 4), *[(0, 4)] * 8], edits=[Edit(0.1, 1, [], 100)])
@given(first=OVER, edits=st.lists(EDITS, min_size=1, max_size=25))
def test_a_step_is_decided_as_from_nothing(first: list[tuple[int, int]], edits: list[Edit]) -> None:
    policy = Sibyl()
    keeper = policy.keeper()
    seats: list[Seat] = []
    keeper.start((), None)
    fates: dict[Seat, Fate] = {}
    number = 0
    for edit in (Edit(1.0, 0, first, 100), *edits):
        at = int(edit.at * len(seats))
        left = seats[at : at + edit.removed]
        after = seats[at + edit.removed :]
        low = seats[at - 1].place if at else 0
        step = (after[0].place - low) // (len(edit.inserted) + 1) // 4 * 4 if after else GAP
        came = []
        for piece, words in edit.inserted:
            number += 1
            came.append(Seat(candidate(number, piece, words), low + step * (len(came) + 1)))
        seats = seats[:at] + came + after
        room = Room(edit.cap) if edit.cap is not None else None
        outcome = keeper.step(Moves(seats, left, came, ()), room)
        candidates = [seat.candidate for seat in seats]
        if room is None:
            verdict, drops, swaps = "fits", (), ()
        else:
            fit = plain_fit(policy, candidates, room, None)
            verdict, drops, swaps = fit.verdict, fit.drops, fit.swaps
        expected: list[Drop | Swap | None] = [None] * len(seats)
        for fate in (*drops, *swaps):
            assert expected[fate.at] is None
            expected[fate.at] = fate
        assert [without_place(seat.fate) for seat in seats] == [without_place(fate) for fate in expected]
        assert (outcome.verdict, outcome.dropped, outcome.cut) == (verdict, len(drops), len(swaps))
        turned = {seat for seat in seats if seat.fate != fates.get(seat)}
        assert turned <= set(outcome.changed) <= set(seats)
        fates = {seat: seat.fate for seat in seats}
