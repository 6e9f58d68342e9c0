"""Bisecting and comparing sessions as a person reads it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxctl.analysis.bisect import bisect, first_parting
from ctxctl.analysis.sessions import compare_sessions
from ctxctl.cli.main import run
from ctxctl.engine.query import parse_query
from ctxctl.item_names import NAMELESS, ItemNames
from ctxctl.report.bisect import parted_lines, turned_lines
from ctxctl.report.heading import told_apart
from ctxctl.report.paint import plain
from ctxctl.report.sessions import head_lines, stat_lines, turn_lines
from ctxctl.session import Inspector
from tests.unit.engine.making import Json, add, assembly, inject, inspect

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures" / "claude_code"
EVIL = "\x1b]0;x\x07\u202e[red]"


def turn(number: int, prompt: str, *others: str) -> Iterator[Json]:
    """A turn with one request that holds its prompt and some other texts, all named by their text."""
    place = {"turn": str(number)}
    yield {**add(f"p{number}", prompt, kind="user_message", **place)}
    for text in others:
        yield add(text, text, **place)
    yield assembly(f"A{number}", *others, f"p{number}", **place)
    yield inject(f"A{number}", **place)


def session(*turns: tuple[str, ...]) -> Inspector:
    events = [event for number, said in enumerate(turns, 1) for event in turn(number, *said)]
    return inspect(events)


def nameless(_pair: object) -> tuple[ItemNames, ItemNames]:
    return NAMELESS, NAMELESS


def text_of(lines: Iterator[str]) -> str:
    return " ".join(" ".join(lines).split())


def test_a_query_that_turns_back_is_told_with_every_turn() -> None:
    with session(("a",), ("b", "x"), ("c",), ("d", "x")) as inspector:
        (found,) = bisect(inspector, parse_query("has:=x"))
        assert [(flip.at.turn, flip.truth) for flip in found.flips] == [(2, True), (3, False), (4, True)]
        assert (found.held, found.steps, found.monotone) == (2, 4, False)
        said = text_of(turned_lines(found, "run", several=False, width=80, paint=plain, names=NAMELESS))
        assert "run@2.1" in said
        assert "it changes 2 more times after that changes 2.1 yes, 3.1 no, 4.1 yes" in said
        assert "2 more times" in said


def test_one_that_holds_from_the_start_has_nothing_before() -> None:
    with session(("a", "x"), ("b", "x")) as inspector:
        (found,) = bisect(inspector, parse_query("has:=x"))
        assert found.before is None
        assert found.monotone
        said = text_of(turned_lines(found, "run", several=False, width=80, paint=plain, names=NAMELESS))
        assert "it matches from the thread's first step on" in said
        (never,) = bisect(inspector, parse_query("has:=y"))
        assert never.first is None
        assert "none" in text_of(
            turned_lines(never, "run", several=False, width=80, paint=plain, names=NAMELESS)
        )


def test_two_sessions_part_where_one_window_lacks_something() -> None:
    with (
        session(("a", "x"), ("b", "x", "y"), ("c", "x")) as one,
        session(("a", "x"), ("b", "x"), ("c",)) as two,
    ):
        (found,) = first_parting(one, two)
        assert found.parting is not None
        assert (found.parting.why, found.parting.ordinal_a, found.parting.ordinal_b) == ("window", 1, 1)
        assert [(item.what, item.item) for item in found.parting.items] == [("only_a", "y")]
        (asked,) = first_parting(one, two, parse_query("has:=x"))
        assert asked.parting is not None
        assert (asked.parting.why, asked.parting.ordinal_a, asked.parting.holds) == ("query", 2, True)
        names, several = ("one", "two"), (False, False)
        said = text_of(parted_lines(asked, names, several, "has:=x", 80, plain))
        assert "has:=x matches in a only" in said
        (same,) = first_parting(one, two, parse_query("has:=z"))
        assert same.parting is None


def test_a_turn_that_one_side_has_more_is_where_they_part() -> None:
    with session(("a",), ("b",), ("c",)) as one, session(("a",), ("c",)) as two:
        (found,) = first_parting(one, two)
        assert found.parting is not None
        assert (found.parting.why, found.parting.ordinal_a, found.parting.b) == ("turn", 1, None)


def test_what_stays_different_is_listed_once() -> None:
    with (
        session(("a", "x"), ("b", "x"), ("c", "x", "z"), ("d",)) as one,
        session(("a", "x"), ("b",), ("c",), ("d",)) as two,
    ):
        found = compare_sessions(one, two)
        pairs = found.threads[0].turns
        assert [pair.by for pair in pairs] == ["prompt"] * 4
        assert [[item.item for item in pair.items] for pair in pairs] == [[], ["x"], ["z"], []]
        assert [pair.standing for pair in pairs] == [0, 0, 1, 0]
        assert [pair.only_b for pair in pairs] == [0, 0, 0, 0]
        assert pairs[2].only_a > pairs[1].only_a > pairs[0].only_a == pairs[3].only_a == 0
        said = text_of(turn_lines(found, 80, plain, nameless))
        assert "turn 2: b" in said
        assert "turn 4" not in said
        assert "1 differ since before" in said


def test_an_item_of_one_id_that_says_something_else_is_one_difference() -> None:
    def run(text: str) -> Inspector:
        return inspect([
            add("notes", text, turn="1"), add("p", "go", kind="user_message", turn="1"),
            assembly("A", "notes", "p", turn="1"), inject("A", turn="1"),
        ])  # fmt: skip

    with run("one") as one, run("two words") as two:
        (item,) = compare_sessions(one, two).threads[0].turns[0].items
        assert (item.what, item.item) == ("differs", "notes")
        assert item.tokens_a < item.tokens_b


@pytest.mark.parametrize("width", [40, 80, 140])
def test_names_in_the_traces_do_nothing_to_the_terminal(width: int) -> None:
    with session((EVIL, EVIL + "x"), ("b", EVIL)) as one, session(("b", EVIL + "y")) as two:
        found = compare_sessions(one, two)
        (parted,) = first_parting(one, two)
        (turned,) = bisect(one, parse_query("new>0"))
        lines = [
            *head_lines(found, (EVIL, EVIL), "under", width),
            *stat_lines(found, width, plain),
            *turn_lines(found, width, plain, nameless, everything=True),
            *parted_lines(parted, (EVIL, EVIL), (True, True), EVIL, width, plain),
            *turned_lines(turned, EVIL, several=True, width=width, paint=plain, names=NAMELESS),
        ]
        assert not any(char in line for line in lines for char in "\x1b\x07\u202e\r\n")


def test_items_of_two_sessions_are_called_by_their_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder, source in zip(folders, ("requests", "session"), strict=True):
        folder.mkdir()
        shutil.copy(FIXTURES / f"{source}.jsonl", folder / "full.jsonl")
    pair = [str(folder / "full.jsonl") for folder in folders]
    assert run(["diff", "--sessions", *pair]) == 0
    said = capsys.readouterr().out
    assert re.findall(r"^[ab] +(\S+)$", said, re.MULTILINE) == ["one/full.jsonl", "two/full.jsonl"]
    assert "user_message       “Count the bees." in said
    assert not re.search(r"[0-9a-f]{8}-[0-9a-f]{4}|toolu_", said)
    assert run(["bisect", *pair]) == 0
    assert "user_message       “Count the bees." in capsys.readouterr().out


def test_traces_of_one_name_are_told_apart() -> None:
    assert told_apart(["a/x.jsonl", "b/y.jsonl"]) == ["x.jsonl", "y.jsonl"]
    assert told_apart(["a/0/x.jsonl", "b/0/x.jsonl"]) == ["a/0/x.jsonl", "b/0/x.jsonl"]
    assert told_apart(["a/x.jsonl", "a/x.jsonl"]) == ["x.jsonl", "x.jsonl"]
    assert told_apart(["x.jsonl", "a/x.jsonl"]) == ["x.jsonl", "a/x.jsonl"]
