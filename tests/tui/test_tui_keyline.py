"""The line of keys can be clicked."""

from __future__ import annotations

import pytest
from fake import FakeInspector, notes_agent
from helpers import LARGE, Session, made, running, settle

from ctxctl.tui import keys
from ctxctl.tui.screens.overview.screen import Overview
from ctxctl.tui.widgets.keyline import KeyLine


async def click(session: Session, words: str, at: int = 0) -> None:
    """Click on a cell of what the last line says."""
    column = session.lines[-1].index(words) + at
    await session.pilot.click(KeyLine, offset=(column, 0))
    await settle(session.app, session.pilot)


async def test_a_click_does_what_the_key_does() -> None:
    async with running(made(FakeInspector(notes_agent())), LARGE) as session:
        await click(session, "v overview", 4)
        assert isinstance(session.app.screen, Overview)
        await click(session, "Esc back")
        assert session.app.screen is session.app.turns
        await click(session, "⏎ open")
        assert session.app.turns.state.pane == "changes"


async def test_of_two_keys_each_can_be_clicked() -> None:
    async with running(made(FakeInspector(notes_agent())), LARGE) as session:
        state = session.app.turns.state
        assert state.cursor == 0
        await click(session, "[ ] turn", 2)
        await click(session, "[ ] turn", 5)
        assert session.app.turns.state.cursor == 2
        await click(session, "[ ] turn")
        assert session.app.turns.state.cursor == 1


async def test_what_is_no_key_does_nothing() -> None:
    async with running(made(FakeInspector(notes_agent())), LARGE) as session:
        line = session.lines[-1]
        gap = line.index("q quit") + len("q quit") + 3
        await session.pilot.click(KeyLine, offset=(gap, 0))
        await settle(session.app, session.pilot)
        assert session.app.is_running
        assert session.app.return_code is None
        keyline = session.app.screen.query_one(KeyLine)
        assert [keyline.key_at(x) for x in (0, gap)] == [None, None]


def test_every_hint_leads_to_its_key() -> None:
    scopes = {action.scope for action in keys.ACTIONS}
    hinted = {label for scope in scopes for label, _, _ in keys.hints((scope,))}
    assert len(hinted) > 10
    for label in hinted:
        found = keys.clicked(label, len(label) + 1)
        assert found is not None
        assert keys.name(found) in label
    assert keys.clicked("no such key", 0) is None


@pytest.mark.parametrize(("at", "key"), [(0, "h"), (2, "l"), (4, "l")])
def test_a_pair_is_told_apart_by_where_it_was_clicked(at: int, key: str) -> None:
    assert keys.clicked("h/l", at) == key
