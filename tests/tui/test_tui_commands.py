"""The line of commands: what a typed line can mean."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.tui import commands, keys, themes
from ctxctl.tui.lineedit import LONGEST, History, Line

IDS = [action.id for action in keys.ACTIONS if action.scope in ("turns", "app", "list")]


def first(line: str) -> tuple[str, str] | None:
    found = commands.choices_for(line, IDS, themes.NAMES).chosen
    return None if found is None else (found.kind, found.argument)


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("7", ("goto", "7")),
        (":7", ("goto", "7")),
        ("@7.2", ("goto", "7.2")),
        ("-1", ("goto", "-1")),
        ("explorer:2", ("goto", "explorer:2")),
        ("s1/explorer:2.1", ("goto", "s1/explorer:2.1")),
        ("ctx:abc", ("goto", "ctx:abc")),
        ("q", ("action", "quit")),
        ("quit", ("action", "quit")),
        ("stages", ("action", "stages")),
        ("asmb", ("action", "assembled")),
        ("next turn", ("action", "turn.next")),
        ("turn.next", ("action", "turn.next")),
        ("TURN NEXT", ("action", "turn.next")),
        ("theme light", ("theme", "light")),
        ("theme con l", ("theme", "contrast-light")),
        ("theme", ("theme", "dark")),
        ("xyzzy", None),
        ("theme pink", None),
    ],
)
def test_what_a_line_means(line: str, meant: tuple[str, str] | None) -> None:
    assert first(line) == meant


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("7", "go to turn 7"),
        ("7.2", "go to step 7.2"),
        ("-1", "go to the last turn"),
        ("-3", "go to 2 turns before the last one"),
        ("explorer:2", "go to turn 2 of explorer"),
    ],
)
def test_addresses_are_told_in_words(line: str, title: str) -> None:
    found = commands.choices_for(line, IDS, ()).chosen
    assert found is not None
    assert found.title == title


def test_every_action_is_found_by_its_id_and_by_its_words() -> None:
    for ident in IDS:
        if ident in ("palette", "theme"):
            continue  # the words of the one end in an address, and the other lists the themes first
        assert first(ident) == ("action", ident)
        found = commands.choices_for(keys.BY_ID[ident].help, IDS, ())
        assert ident in [command.argument for command in found.commands]


def test_an_empty_line_offers_everything_in_its_order() -> None:
    found = commands.choices_for("", IDS, themes.NAMES)
    assert [command.argument for command in found.commands] == IDS


def test_the_choice_stays_within_the_list() -> None:
    found = commands.choices_for("", IDS, ())
    assert found.moved(-1).at == 0
    assert found.moved(10_000).at == len(IDS) - 1
    assert commands.choices_for("xyzzy", IDS, ()).moved(1).chosen is None


def test_what_was_typed_is_marked() -> None:
    found = commands.choices_for("next", IDS, ()).chosen
    assert found is not None
    assert "".join(found.title[n] for n in found.marked) == "next"


# Matching


def test_beginnings_of_words_come_before_middles_and_scattered_letters() -> None:
    texts = ["turn next", "the next", "annexted", "n e x t"]
    costs = [commands.match("next", text) for text in texts]
    assert all(match is not None for match in costs)
    ranked = sorted(texts, key=lambda text: commands.match("next", text).cost)  # type: ignore[union-attr]
    assert ranked == ["turn next", "the next", "annexted", "n e x t"] or ranked[2:] == ["annexted", "n e x t"]
    assert commands.match("next", "nxet") is None


@pytest.mark.slow
@given(st.text(max_size=30), st.text(max_size=60))
def test_what_matches_is_there_in_order(query: str, text: str) -> None:
    found = commands.match(query, text)
    if found is not None:
        assert all(0 <= n < len(text) for n in found.places)
        assert list(found.places) == sorted(set(found.places))


@given(st.text(max_size=200))
def test_any_line_means_something_or_nothing(line: str) -> None:
    commands.choices_for(line, IDS, themes.NAMES)


def test_a_long_line_costs_little() -> None:
    started = time.process_time()
    commands.choices_for("e" * LONGEST, IDS, themes.NAMES)
    commands.choices_for("a b " * 250, IDS, themes.NAMES)
    assert time.process_time() - started < 5


# Typing


def test_typing_moving_and_deleting() -> None:
    line = Line.of("one two")
    assert line.word(-1).at == 4
    assert line.word(-1).word(-1).at == 0
    assert line.delete(line.word(-1)) == Line("one ", 4)
    assert line.edge(False).insert("x\ny") == Line("x yone two", 3)
    assert line.edge(False).delete(line.edge(False).word(1)) == Line(" two", 0)
    assert Line("abc", 1).delete(Line("abc", 1).move(1)) == Line("ac", 1)
    assert Line().move(-1) == Line()


def test_the_cursor_never_stands_inside_a_joined_character() -> None:
    family = "👩\u200d👩\u200d👧"
    line = Line.of(f"a{family}")
    assert line.move(-1).at == 1
    assert Line(f"a{family}", 1).move(1).at == 1 + len(family)
    assert Line.of("ae\u0301").move(-1).at == 1


@given(st.text(max_size=80), st.integers(0, 80), st.integers(1, 40))
def test_what_is_painted_fits_and_hides_nothing_dangerous(text: str, at: int, width: int) -> None:
    from ctxctl.text import cells

    line = Line(text, min(at, len(text)))
    before, under, after = line.painted(width)
    assert under
    assert cells(before) + cells(after) <= width
    assert not any(char < " " or "\x7f" <= char < "\xa0" for char in before + under + after)


def test_the_line_has_an_end() -> None:
    assert len(Line.of("x" * 5000).text) == LONGEST
    assert len(Line.of("x" * LONGEST).insert("more").text) == LONGEST


def test_history_goes_back_and_returns_to_what_was_typed() -> None:
    history = History()
    for entry in ("one", "two", "one", ""):
        history.add(entry)
    assert history.entries == ["two", "one"]
    assert [history.older("typ"), history.older("one"), history.older("two")] == ["one", "two", None]
    assert [history.newer(), history.newer(), history.newer()] == ["one", "typ", None]
