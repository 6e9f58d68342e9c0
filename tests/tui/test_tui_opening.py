"""How the list of turns opens."""

from __future__ import annotations

import pytest
from fake import FakeInspector, Request, Thing
from helpers import made, running

ASK = Thing("ask", "word " * 9)


def session_of(*steps: int) -> FakeInspector:
    """Turns of so many steps each."""
    return FakeInspector([Request(n + 1, (ASK,)) for n, count in enumerate(steps) for _ in range(count)])


@pytest.mark.parametrize(
    ("steps", "lines"),
    [((5,), 6), ((5, 1, 2), 3 + 5 + 2), ((3, 3), 2), ((5, 5, 5, 5), 4), ((1, 1, 1), 3)],
)
async def test_steps_are_listed_where_turns_are_few_and_one_has_many(
    steps: tuple[int, ...], lines: int
) -> None:
    async with running(made(session_of(*steps))) as session:
        assert session.app.turns.state.list.count == lines
        assert session.app.turns.state.place == (0, None), "the cursor is on the turn"


async def test_what_is_folded_again_stays() -> None:
    async with running(made(session_of(5))) as session:
        await session.press("h")
        assert session.app.turns.state.list.count == 1
        await session.press("v", "escape", "l")
        assert session.app.turns.state.list.count == 6
