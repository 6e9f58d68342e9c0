"""The search screen, driven by keys."""

from __future__ import annotations

from threading import Event
from typing import Any

import pytest
from fake import FakeInspector, Request, Thing, long_session, notes_agent
from helpers import LARGE, SMALL, Session, check_golden, made, running, settle, strips
from test_tui_hostile import faults, hostile

from ctxctl.errors import UnreadableError
from ctxctl.tui.screens.search.screen import SearchScreen


@pytest.fixture(autouse=True)
def _dark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLORFGBG", raising=False)


def notes(**settings: Any) -> FakeInspector:
    return FakeInspector(notes_agent(), **settings)


async def typing(session: Session, text: str) -> None:
    for char in text:
        await session.app._press_keys([{" ": "space"}.get(char, char)])
    await settle(session.app, session.pilot)


async def search(session: Session, query: str) -> None:
    """Open the search, type a query, and go to its hits."""
    await session.press("slash")
    await typing(session, query)
    await session.press("enter")


def screen_of(session: Session) -> SearchScreen:
    screen = session.app.screen
    assert isinstance(screen, SearchScreen)
    return screen


def listed(session: Session) -> list[tuple[int, str | None, str | None]]:
    finds = screen_of(session).state.finds
    assert finds is not None
    return [(hit.ordinal, hit.status, hit.item) for hit in finds.hits]


SCREENS = {
    "help": "",
    "hits": "pull",
    "steps": "window>20%",
    "none": "Xyzzy",
    "error": "kind:user tokens>lots",
}


@pytest.mark.slow
@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x50"])
@pytest.mark.parametrize("name", SCREENS)
async def test_the_screen_looks_as_it_did(
    name: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a slow machine would look for between two keys is not what is asked for.
    monkeypatch.setattr("ctxctl.tui.screens.search.screen._WAIT", 600.0)
    async with running(made(notes()), size) as session:
        await search(session, SCREENS[name])
        check_golden(f"search-{name}-{size[0]}x{size[1]}", session.text)


async def test_hits_come_in_the_order_of_the_steps() -> None:
    async with running(made(notes())) as session:
        await search(session, "pull")
        assert listed(session) == [
            (0, "added", "editor-state"),
            (0, "added", "m1"),
            (1, "added", "n1"),
            (3, "removed", "n1"),
        ]


async def test_enter_goes_to_the_turn_and_back_keeps_the_hits_and_the_cursor() -> None:
    async with running(made(notes())) as session:
        await search(session, "pull")
        await session.press("G", "enter")
        target = session.app.turns.state.target
        assert target is not None
        assert target.ordinal == 3
        assert "hit 4 of 4" in session.text
        calls = session.app.loader._inspector.calls.count("walk")  # type: ignore[union-attr]
        await session.press("slash")
        assert screen_of(session).state.cursor == 3
        assert screen_of(session).focused is screen_of(session).query_one("#hits")
        assert session.app.loader._inspector.calls.count("walk") == calls  # type: ignore[union-attr]


async def test_escape_leads_back_to_where_one_was() -> None:
    async with running(made(notes())) as session:
        await session.press("right_square_bracket", "enter", "j")
        before = session.app.turns.state
        await search(session, "pull")
        await session.press("j", "escape")
        assert session.app.turns.state == before
        assert session.app.screen is session.app.turns


async def test_n_goes_from_hit_to_hit_and_stops_at_the_ends() -> None:
    async with running(made(notes())) as session:
        await session.press("n")
        assert "nothing was searched for yet" in session.text
        await search(session, "pull")
        await session.press("escape", "n")
        assert "hit 2 of 4" in session.text
        await session.press("n", "n", "n")
        assert "no hit after this one" in session.text
        await session.press("N")
        assert "hit 3 of 4" in session.text
        await session.press("right_square_bracket", "right_square_bracket")
        assert "hit" not in session.lines[-1]
        await session.press("N")
        assert "hit 3 of 4" in session.text, "seen from turn 3, where hit 4 is"


async def test_what_is_wrong_is_said_under_its_place_while_typing() -> None:
    async with running(made(notes())) as session:
        await session.press("slash")
        await typing(session, "note kind:")
        line = session.lines[1]
        assert line.index("^") == session.lines[0].index("kind:") + len("kind:")
        assert "needs a value" in line
        await typing(session, "retrieval")
        assert "^" not in session.lines[1]
        await session.press("enter")
        assert [item for _, _, item in listed(session)] == ["n1", "n1", "n2"]


async def test_a_word_that_means_something_else_is_said() -> None:
    async with running(made(notes())) as session:
        await search(session, "compacted")
        assert "read as: is:compacted" in session.text
        assert "nothing found" in session.text


async def test_the_help_is_there_while_nothing_is_typed() -> None:
    async with running(made(notes())) as session:
        await session.press("slash")
        assert "status:added" in session.text
        await typing(session, "x")
        assert "status:added" not in session.text
        await session.press("backspace")
        assert "status:added" in session.text


async def test_a_typed_letter_replaces_the_query_that_one_comes_back_to() -> None:
    async with running(made(notes())) as session:
        await search(session, "pull")
        await session.press("slash")
        await typing(session, "ed")
        assert screen_of(session).prompt.value == "ed"
        await session.press("escape")
        assert screen_of(session).prompt.value == "pull"
        assert len(listed(session)) == 4
        await session.press("slash", "end")
        await typing(session, "ed")
        assert screen_of(session).prompt.value == "pulled"


@pytest.mark.slow
async def test_older_queries_come_back() -> None:
    async with running(made(notes())) as session:
        await search(session, "pull")
        await session.press("slash")
        await typing(session, "shorter")
        await session.press("enter", "slash", "up", "up")
        assert screen_of(session).prompt.value == "pull"
        await session.press("down", "down", "down")
        assert screen_of(session).focused is screen_of(session).query_one("#hits")


@pytest.mark.slow
async def test_items_without_a_text_are_told() -> None:
    things = (Thing("a", None), Thing("b", None, title="has a needle in its title"), Thing("c", "a needle"))
    async with running(made(FakeInspector([Request(1, things)]))) as session:
        await search(session, "needle")
        assert [item for _, _, item in listed(session)] == ["b", "c"]
        assert "1 item has no text recorded: not searched" in session.text
        await session.press("slash")
        await typing(session, "-needle")
        await session.press("enter")
        assert listed(session) == []
        assert "1 item has no text recorded" in session.text


class Waiting(FakeInspector):
    """Its walks but the first, which is for what steps cost, wait after a step until they may go on."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.go = Event()

    def walk(self, progress: Any = None, *, skipped: bool = False, settle: bool = False) -> Any:
        waits = "walk" in self.calls
        for n, found in enumerate(super().walk(progress, skipped=skipped, settle=settle)):
            while waits and n == 1 and not self.go.wait(0.005):
                if progress is not None:
                    progress(0.5)
            yield found


async def test_hits_are_there_while_the_search_goes_on_and_can_be_gone_to() -> None:
    inspector = Waiting(long_session(30, 10))
    async with running(made(inspector)) as session:
        await session.pilot.press("slash", *"result")
        await session.pilot.press("enter")
        for _ in range(400):
            await session.pilot.pause(0.01)
            if screen_of(session).state.finds is not None:
                break
        assert "still searching…" in session.text
        assert "10 hits" in session.text
        await session.pilot.press("j", "enter")
        await session.pilot.pause(0.05)
        assert session.app.screen is session.app.turns
        inspector.go.set()
        await settle(session.app, session.pilot)
        await session.press("slash")
        assert screen_of(session).state.cursor == 1
        assert "still searching" not in session.text
        assert f"{10 + 2 * 29} hits" in session.text


@pytest.mark.slow
async def test_another_query_ends_the_search_before_it() -> None:
    inspector = Waiting(long_session(30, 10))
    async with running(made(inspector)) as session:
        await session.pilot.press("slash", *"result", "enter")
        await session.pilot.pause(0.1)
        await session.pilot.press("slash", *"changed", "enter")
        inspector.go.set()
        await settle(session.app, session.pilot)
        finds = screen_of(session).state.finds
        assert finds is not None
        assert (str(finds.query), finds.phase) == ("changed", "done")
        assert {hit.status for hit in finds.hits} == {"added", "updated"}


async def test_a_search_that_fails_says_why() -> None:
    failing = {"walk": UnreadableError("read-failed", "the file went away")}
    async with running(made(notes(failing=failing))) as session:
        await search(session, "pull")
        assert session.text.count("the file went away") == 1, "in the room for hits, whole"
        await session.press("escape")
    assert not session.app.fault


@pytest.mark.slow
async def test_hostile_content_and_queries_do_nothing_to_the_terminal() -> None:
    async with running(made(hostile()), LARGE) as session:
        for query in (
            "evil",
            "reason:e or cause:e",
            "status:removed",
            "\x1b[31m\u202e",
            "[/] \\[",
            "(((",
            '"\x07',
        ):
            await session.press("slash")
            prompt = screen_of(session).prompt
            prompt.value = query
            await session.press("enter")
            assert not list(faults(strips(session.app))), query
            await session.press("escape")
            if session.app.screen is not session.app.turns:
                await session.press("escape")
        assert session.app.screen is session.app.turns
    assert not session.app.fault


@pytest.mark.slow
@pytest.mark.parametrize("size", [(40, 10), (20, 5), (1, 1), (300, 100)])
async def test_every_key_works_at_any_size(size: tuple[int, int]) -> None:
    async with running(made(notes()), size) as session:
        await search(session, "a")
        keys = "j j G g r slash x enter slash escape enter n N slash slash"
        await session.pilot.press(*keys.split(), "left_parenthesis", "enter", "escape", "escape")
        await settle(session.app, session.pilot)
    assert not session.app.fault


async def test_the_hits_can_be_taken_elsewhere() -> None:
    async with running(made(notes())) as session:
        await session.press("slash")
        assert screen_of(session).seen() is None
        await typing(session, "pull")
        await session.press("enter")
        seen = screen_of(session).seen()
        assert seen is not None
        assert len(seen.text.splitlines()) == 4
        assert "A long note about pull requests." in seen.text


async def test_hits_of_another_trace_mean_nothing_any_more() -> None:
    async with running(made(notes())) as session:
        turns = session.app.turns
        await search(session, "pull")
        await session.press("escape")
        turns.anew("another.jsonl", "")
        turns.opened(turns.state.trace)
        await session.press("slash")
        state = screen_of(session).state
        assert (state.typed, state.finds, state.running) == ("pull", None, False)
        await session.press("escape", "n")
        assert "hit" not in session.lines[-1]


# The filter of the changes ----------------------------------------------------------------------------------


async def only(session: Session, query: str) -> None:
    await session.press("f")
    await typing(session, query)
    await session.press("enter")


def shown_items(session: Session) -> list[str]:
    table = session.app.turns.state.table
    return [change.item for group in table.groups for change in group.changes]


@pytest.mark.slow
async def test_only_changes_that_fit_are_listed_until_escape() -> None:
    async with running(made(notes())) as session:
        await session.press("tab")
        everything = shown_items(session)
        await only(session, "pull -kind:user")
        assert shown_items(session) == ["editor-state", "n1"]
        assert "only pull -kind:use" in session.text
        assert str(session.app.turns.state.only) == "pull -kind:user_message"
        await session.press("right_square_bracket")
        assert shown_items(session) == []
        assert "fits: Esc lists all" in session.text
        await session.press("left_square_bracket", "escape")
        assert shown_items(session) == everything
        assert session.app.turns.state.pane == "changes"
        await session.press("escape")
        assert session.app.turns.state.pane == "turns"


@pytest.mark.slow
async def test_what_left_and_what_was_omitted_is_looked_into() -> None:
    async with running(made(notes())) as session:
        await session.press("G")
        await only(session, "long note or recorded")
        assert shown_items(session) == ["n1", "n2"]
        await only(session, "status:omitted")
        assert shown_items(session) == ["n2"]
        await session.press("f", "backspace", "enter")
        assert shown_items(session) == ["m4", "n1", "n2"]


async def test_skipped_items_can_be_listed_and_filtered() -> None:
    async with running(made(notes())) as session:
        await session.press("G")
        await only(session, "kind:user")
        assert "skipped" not in session.text
        await session.press("a")
        assert "= skipped 2" in session.text
        assert {"m1", "m3", "m4"} == set(shown_items(session))


async def test_a_mistake_in_the_filter_is_said_and_changes_nothing() -> None:
    async with running(made(notes())) as session:
        everything = shown_items(session)
        await only(session, "tokens>x")
        assert "compared with a number" in session.lines[-1]
        await session.press("escape")
        assert shown_items(session) == everything
        assert session.app.turns.state.only is None
        assert session.app.screen.focused is session.app.turns.query_one("#turns")


async def test_a_value_that_ctxctl_does_not_know_is_said_while_it_is_typed() -> None:
    async with running(made(notes())) as session:
        await session.press("f")
        await typing(session, "kind:zzz")
        assert "ctxctl knows no kind 'zzz'; this trace may" in session.lines[-1]
        await typing(session, ",user")
        assert "ctxctl knows no kind 'zzz'; this trace may" in session.lines[-1]


async def test_a_search_for_a_value_that_nobody_knows_says_so() -> None:
    async with running(made(notes())) as session:
        await search(session, "kind:zzz")
        assert "no kind is called 'zzz'" in session.text


@pytest.mark.slow
async def test_a_hit_is_listed_whatever_the_filter() -> None:
    async with running(made(notes())) as session:
        await only(session, "kind:system")
        await search(session, "pull")
        await session.press("G", "enter")
        assert session.app.turns.state.only is None
        selected = session.app.turns.state.selected
        assert selected is not None
        assert (selected.item, selected.status) == ("n1", "removed")
