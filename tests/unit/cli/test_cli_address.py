"""TRACE@ADDRESS: file names may hold an @, and so may sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxctl.cli.selection import selected_turns, split_frame
from ctxctl.errors import UsageError
from ctxctl.session.naming import NamedPlace


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("run.jsonl", "me@host.jsonl", "odd@3", "@weird"):
        (tmp_path / name).touch()


@pytest.mark.parametrize(
    ("argument", "place"),
    [
        ("run.jsonl", NamedPlace("run.jsonl", None)),
        ("run.jsonl@3", NamedPlace("run.jsonl", "3")),
        ("run.jsonl@-1", NamedPlace("run.jsonl", "-1")),
        ("run.jsonl@explorer:2.1", NamedPlace("run.jsonl", "explorer:2.1")),
        ("run.jsonl@me@host/main:2", NamedPlace("run.jsonl", "me@host/main:2")),
        ("me@host.jsonl", NamedPlace("me@host.jsonl", None)),
        ("me@host.jsonl@2", NamedPlace("me@host.jsonl", "2")),
        ("odd@3", NamedPlace("odd@3", None)),
        ("odd@3@3", NamedPlace("odd@3", "3")),
        ("@weird", NamedPlace("@weird", None)),
        ("-@2", NamedPlace("-", "2")),
        ("-", NamedPlace("-", None)),
        ("gone.jsonl@2", NamedPlace("gone.jsonl", "2")),
        ("gone@x.jsonl@2", NamedPlace("gone@x.jsonl", "2")),
        ("./run.jsonl@2", NamedPlace("./run.jsonl", "2")),
    ],
)
def test_split(argument: str, place: NamedPlace) -> None:
    assert split_frame(argument) == place


def test_a_bare_address_is_in_the_same_trace() -> None:
    assert split_frame("@7", same="run.jsonl") == NamedPlace("run.jsonl", "7")
    assert split_frame("@weird", same="run.jsonl") == NamedPlace("@weird", None)
    assert split_frame("me@host.jsonl@1", same="run.jsonl") == NamedPlace("me@host.jsonl", "1")


@pytest.mark.parametrize(("argument", "slug"), [("@3", "no-trace"), ("run.jsonl@", "bad-address")])
def test_wrong_addresses(argument: str, slug: str) -> None:
    with pytest.raises(UsageError) as caught:
        split_frame(argument)
    assert caught.value.slug == slug
    assert caught.value.hint


class Fake:
    """As much of a step as `Only` and `rows` look at."""

    def __init__(self, turn: int, thread: str = "main", session: str | None = None) -> None:
        self.turn, self.thread, self.session = turn, thread, session


ROWS = [Fake(turn) for turn in range(1, 6)] + [Fake(turn, "sub") for turn in range(1, 4)]


@pytest.mark.parametrize(
    ("turn", "thread", "shown"),
    [
        (None, None, ["main1", "main2", "main3", "main4", "main5", "sub1", "sub2", "sub3"]),
        ("2", None, ["main2", "sub2"]),
        ("2", "sub", ["sub2"]),
        ("-1", None, ["main5", "sub3"]),
        ("2..3", "main", ["main2", "main3"]),
        ("4..", None, ["main4", "main5"]),
        ("..2", None, ["main1", "main2", "sub1", "sub2"]),
        ("-2..-1", None, ["main4", "main5", "sub2", "sub3"]),
        ("2..-2", None, ["main2", "main3", "main4", "sub2"]),
        ("9", None, []),
    ],
)
def test_only(turn: str | None, thread: str | None, shown: list[str]) -> None:
    chosen = selected_turns(turn, thread, lambda: ROWS)  # type: ignore[arg-type,return-value]
    assert [f"{r.thread}{r.turn}" for r in ROWS if chosen(r)] == shown  # type: ignore[arg-type]


def test_only_looks_at_the_trace_for_negative_turns_alone() -> None:
    def rows() -> list[Fake]:
        raise AssertionError

    selected_turns("3..5", None, rows)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "turn", ["", "x", "0", "0..3", "..", "1.2", "1-3", "3..0", "1..2..3", "1 2", "9" * 20]
)
def test_wrong_turns(turn: str) -> None:
    with pytest.raises(UsageError, match="is not a turn"):
        selected_turns(turn, None, list)
