from __future__ import annotations

import pytest

from ctxctl.ingest import build
from ctxctl.ingest.build import Block, Maker, Place, Window
from ctxctl.listdiff import Splice, joined, trimmed
from ctxctl.model.known_text import KnownText
from ctxctl.trace.validate import validate_event


def blocks(names: str) -> list[Block]:
    return [Block(name, name, "user") for name in names]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("2026-03-02T09:00:00Z", "2026-03-02T09:00:00Z"),
        ("2026-03-02T09:00:00.123456+02:00", "2026-03-02T09:00:00.123456+02:00"),
        ("2026-03-02 09:00:00", "2026-03-02T09:00:00Z"),
        ("2026-03-02T09:00:00+0200", "2026-03-02T09:00:00+02:00"),
        ("2026-13-02T09:00:00Z", None),
        ("[trimmed]", None),
        (1_772_000_000, None),
    ],
)
def test_timestamps(value: object, wanted: str | None) -> None:
    assert build.timestamp(value) == wanted


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("abc", "abc", None),
        ("abc", "abcd", (3, 0, "d")),
        ("abc", "xabc", (0, 0, "x")),
        ("abc", "abx", (2, 1, "x")),
        ("aa", "a", (1, 1, "")),
        ("", "ab", (0, 0, "ab")),
        ("abcd", "axd", (1, 2, "x")),
    ],
)
def test_the_smallest_edit_at_its_place(old: str, new: str, wanted: tuple[int, int, str] | None) -> None:
    edit = trimmed(10, blocks(old), blocks(new))
    if wanted is None:
        assert edit is None
    else:
        assert edit == Splice(10 + wanted[0], wanted[1], blocks(wanted[2]))


def test_edits_that_touch_become_one() -> None:
    edits = [Splice(0, 1, blocks("a")), Splice(3, 2, blocks("b")), Splice(5, 0, blocks("c"))]
    assert joined(edits) == [edits[0], Splice(3, 2, blocks("bc"))]


def test_windows_list_only_what_is_new() -> None:
    make, window = Maker("x", "x-"), Window()
    make.at("2026-03-02T09:00:00Z")
    first = window.assemble(make, "one", [Splice(0, 0, blocks("abc"))], model="m")
    second = window.assemble(make, "two", [Splice(2, 1, blocks("xd"))], cause=None)
    third = window.assemble(make, "three", [])
    assert first["metadata"] == {"ctxctl": {"mode": "window", "model": "m"}}
    own = {"mode": "window", "base": "one", "splices": [[2, 1, 2]]}
    assert second["metadata"] == {"ctxctl": own}
    assert [b["block_id"] for b in second["ordered_blocks"]] == ["x", "d"]
    assert third["ordered_blocks"] == third["metadata"]["ctxctl"]["splices"] == []
    event = make.event("context.assembly.created", second, Place("s", "main", "t", "1"), 7)
    assert validate_event(event) == []
    assert event["metadata"] == {"ctxctl": {"source_line": 7}}


def test_events_without_any_time_say_so() -> None:
    make = Maker("x", "x-")
    event = make.event("context.item.added", build.text_item("i", "user_message", "hi"), Place())
    assert event["time"] == build.EPOCH
    assert event["metadata"] == {"ctxctl": {"time": "unknown"}}
    assert validate_event(event) == []
    make.at("2026-03-02T09:00:00Z")
    make.at("nonsense")
    assert make.event("x", {}, Place())["time"] == "2026-03-02T09:00:00Z"


def test_digests_are_those_of_the_text_with_lone_surrogates_replaced() -> None:
    assert build.digest_of("a\ud800b") == build.digest_of("a\N{REPLACEMENT CHARACTER}b")
    assert build.canonical({"b": 1, "a": [2]}) == '{"a":[2],"b":1}'


@pytest.mark.parametrize("text", ["", "ebb", "Flut ä", "\ud800 lone"])
def test_a_text_that_is_known_has_the_digest_of_any_other(text: str) -> None:
    assert build.digest_of(KnownText(text)) == build.digest_of(text)
    assert build.digest_of(KnownText(text)) == build.digest_of(text)
