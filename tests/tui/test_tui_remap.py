"""Keys chosen in the settings: names, mistakes, and that everything which names keys follows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fake import FakeInspector, notes_agent
from helpers import running

from ctxctl.config import Settings
from ctxctl.errors import UsageError
from ctxctl.tui import keymap, keys
from ctxctl.tui.app import CtxApp


@pytest.fixture(autouse=True)
def _own_keys() -> Iterator[None]:
    yield
    keys.use({})


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("n", "n"),
        ("G", "G"),
        ("?", "question_mark"),
        ("[", "left_square_bracket"),
        ("/", "slash"),
        ("+", "plus"),
        ("-", "minus"),
        (" ", "space"),
        ("é", "é"),
        ("Space", "space"),
        ("Esc", "escape"),
        ("PgDn", "pagedown"),
        ("F5", "f5"),
        ("question_mark", "question_mark"),
        ("Ctrl+D", "ctrl+d"),
        ("control+up", "ctrl+up"),
        ("shift+tab", "shift+tab"),
        ("shift+n", "N"),
        ("ctrl++", "ctrl+plus"),
        ("shift+ctrl+left", "ctrl+shift+left"),
    ],
)
def test_keys_are_written_as_people_do(written: str, name: str) -> None:
    assert keymap.key_name(written) == name


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("pagedwn", "is it pagedown"),
        ("hyper+x", "no modifier 'hyper'"),
        ("ctrl+i", "to a terminal it is Tab"),
        ("ctrl+m", "to a terminal it is Enter"),
        ("ctrl+[", "to a terminal it is Escape"),
        ("shift+5", "character that Shift makes"),
        ("\x1b", "it is no key"),
        ("", "no key"),
    ],
)
def test_what_no_terminal_sends_is_refused_in_words(written: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        keymap.key_name(written)


def test_built_in_keys_have_the_names_that_textual_gives_them() -> None:
    for action in keys.ACTIONS:
        for key in action.keys:
            assert keymap.key_name(key) == key


def test_without_a_table_nothing_changes() -> None:
    found = keymap.resolve({})
    assert found == {action.id: action.keys for action in keys.ACTIONS}
    assert keymap.keymap(found) == {}


def test_an_unknown_action_names_near_ones() -> None:
    with pytest.raises(UsageError, match=r"nothing is called 'turn\.nxt'") as caught:
        keymap.resolve({"turn.nxt": ["n"]}, where="ctxctl.toml")
    assert caught.value.slug == "unknown-action"
    assert "turn.next" in str(caught.value.hint)
    assert str(caught.value).startswith("ctxctl.toml: ")


def test_an_unknown_key_says_which_and_why() -> None:
    why = "about: 'pgdwn' cannot be used: there is no key of that name"
    with pytest.raises(UsageError, match=why) as caught:
        keymap.resolve({"about": ["pgdwn"]})
    assert caught.value.slug == "unknown-key"


@pytest.mark.parametrize(
    ("ident", "key", "other"),
    [
        ("stages", "p", "problems"),  # same screen
        ("about", "j", "list.down"),  # the list has it first
        ("list.down", "s", "stages"),  # the list would take it away
        ("theme", "s", "stages"),  # the main screen has it first
        ("line.erase_all", "ctrl+k", "line.erase_rest"),
    ],
)
def test_two_actions_cannot_have_one_key(ident: str, key: str, other: str) -> None:
    with pytest.raises(UsageError, match=f"{ident} and {other}") as caught:
        keymap.resolve({ident: [key]})
    assert caught.value.slug == "same-key"


def test_keys_can_be_exchanged_and_taken_away() -> None:
    found = keymap.resolve({"stages": ["p"], "problems": ["s"], "about": []})
    assert (found["stages"], found["problems"], found["about"]) == (("p",), ("s",), ())
    assert keymap.keymap(found) == {"stages": "p", "problems": "s", "about": keymap.NONE}


def test_a_line_of_input_has_keys_of_its_own() -> None:
    assert keymap.resolve({"stages": ["ctrl+w"]})["stages"] == ("ctrl+w",)


def made(**chosen: tuple[str, ...]) -> CtxApp:
    settings = Settings(keys={name.replace("__", "."): value for name, value in chosen.items()})
    inspector = FakeInspector(notes_agent())
    return CtxApp(lambda: inspector, inspector.name, settings=settings)  # type: ignore[arg-type,return-value]


async def test_chosen_keys_work_and_the_built_in_ones_do_not() -> None:
    async with running(made(turn__next=("f6", "ctrl+t"), list__down=("J",), about=())) as session:
        state = lambda: session.app.turns.state  # noqa: E731
        await session.press("right_square_bracket", "i")
        assert state().entry.turn == 1  # type: ignore[union-attr]
        assert len(session.app.screen_stack) == 2
        await session.press("f6")
        assert state().entry.turn == 2  # type: ignore[union-attr]
        await session.press("ctrl+t")
        assert state().entry.turn == 3  # type: ignore[union-attr]
        await session.press("g", "j")
        assert state().cursor == 0
        await session.press("J")
        assert state().cursor == 1


async def test_exchanged_keys_work() -> None:
    async with running(made(list__down=("k",), list__up=("j",))) as session:
        await session.press("k", "k")
        assert session.app.turns.state.cursor == 2
        await session.press("j")
        assert session.app.turns.state.cursor == 1


async def test_hints_help_and_palette_show_the_keys_in_force() -> None:
    async with running(made(turn__next=("f6",), help=("f1",), about=())) as session:
        assert "[ F6 turn" in session.text
        assert "F1 help" in session.text
        await session.press("f1")
        assert "  F6               next turn" in session.text
        text = "\n".join(line for _, line in keys.help_lines())
        assert "(no key)" in text
        await session.press("escape", "colon", *"next turn")
        assert "F6  next turn" in session.text


async def test_a_wrong_table_is_told_before_the_terminal_is_touched() -> None:
    with pytest.raises(UsageError):
        made(nothing=("x",))
