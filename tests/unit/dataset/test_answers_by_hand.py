"""Answers worked out by hand: what is counted once, what is null, and what a share is of."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ctxctl.dataset.duck import Asked

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

from tests.unit.dataset.dataset_rows import written

A = {"session": 1, "source": 11, "month": "2026-01", "format": "native"}
B = {"session": 2, "source": 12, "month": "2026-02", "format": "codex"}
MODEL: dict[str, Any] = {"thread": "main", "target": "model", "turn": 1, "step": 1, "sent_method": "reported"}


def at(day: int, month: int = 1) -> datetime:
    return datetime(2026, month, day, tzinfo=UTC)


def stay(where: dict[str, Any], number: int, **more: Any) -> dict[str, Any]:
    return {
        "thread": "main",
        "item": number,
        "kind": "tool_result",
        "first": 0,
        "last": 0,
        "requests": 1,
        **where,
        "number": number,
        **more,
    }


def step(where: dict[str, Any], ordinal: int, **more: Any) -> dict[str, Any]:
    return {**MODEL, **where, "ordinal": ordinal, **more}


ROWS = {
    "sources": [{"source": 11, "path": "/a.jsonl"}, {"source": 12, "path": None}],
    "sessions": [
        {**A, "project": "shop", "client": "c", "client_version": "1", "started": at(5), "labels": [("team", "x")]},
        {**B, "project": None, "client": "c", "client_version": "2", "started": at(3, 2)},
    ],
    "steps": [
        step(A, 0, time=at(5), request=100, sent=50, read=40, usd=1.0, limit=100, over=0),
        step(A, 1, time=at(6), request=101, sent=150, read=None, usd=None, limit=100, over=50, step=2),
        step(A, 2, time=at(6), target="ui", request=102, sent=999),
        # B is resumed from A: it holds request 100 too, later.
        step(B, 0, time=at(7), request=100, sent=50, read=40, usd=1.0, limit=100, over=0),
        step(B, 1, time=at(3, 2), request=103, sent=200, read=50, usd=4.0, sub_agent=True, thread="explorer"),
    ],
    "stays": [
        stay(A, 0, tool="Read", path="a.py", content=7, tokens=10, token_steps=20, stale_token_steps=5, usd=0.1),
        stay(A, 1, tool="Read", path="a.py", content=7, tokens=10, token_steps=10, stale_token_steps=0, usd=0.2, first=1, last=1),
        stay(A, 2, tool="Read", path="a.py", content=8, tokens=30, token_steps=30, stale_token_steps=0, first=1, last=1),
        stay(A, 3, tool="mcp__git__log", server="git", content=None, tokens=None, kind="tool_definition"),
        stay(B, 0, tool="Read", path="a.py", content=7, tokens=10, token_steps=10, stale_token_steps=0),  # the copy's
        stay(B, 1, tool="Bash", content=8, tokens=30, token_steps=60, stale_token_steps=60, usd=0.5, first=1, last=1, thread="explorer"),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    folder: Path = tmp_path_factory.mktemp("by-hand")
    with Asked(written(folder, ROWS)) as opened:
        yield opened


def rows(asked: Asked, name: str, **given: Any) -> list[dict[str, Any]]:
    answer = asked.ask(name, given)
    return [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]


def test_a_request_counts_once_and_what_has_no_price_is_no_zero(asked: Asked) -> None:
    found = rows(asked, "cost")
    assert [(one["project"], one["week"], one["requests"], one["usd"], one["unpriced"]) for one in found] == [
        (None, "2026-02-02", 1, 4.0, 0), ("shop", "2026-01-05", 2, 1.0, 1),
    ]  # fmt: skip
    head = asked.ask("cost", {}).head
    assert head == (2, 3, 1)


def test_the_cache_rate_is_of_what_bills_say(asked: Asked) -> None:
    found = rows(asked, "cache-rate")
    assert [(one["client_version"], one["requests"], one["sent"], one["rate"]) for one in found] == [
        ("1", 1, 50, 0.8), ("2", 1, 200, 0.25),
    ]  # fmt: skip
    assert asked.ask("cache-rate", {}).head == (2, 3, 1)


def test_an_output_that_comes_again_is_counted_beyond_the_first(asked: Asked) -> None:
    (found,) = rows(asked, "repeats")
    assert (found["tool"], found["outputs"], found["again"], found["entered"], found["carried"]) == (
        "Read",
        3,
        1,
        10,
        10,
    )
    assert found["usd"] == 0.2
    (read,) = rows(asked, "rereads")
    assert (read["path"], read["reads"], read["again"], read["share"]) == ("a.py", 3, 1, 1 / 3)
    (across,) = rows(asked, "repeats-across")
    assert (across["content"], across["sessions"], across["again"]) == (8, 2, 30)


def test_what_fills_windows_and_what_is_stale_of_it(asked: Asked) -> None:
    found = {one["tool"]: one for one in rows(asked, "tools-fill")}
    assert [(name, one["carried"], one["share"]) for name, one in found.items()] == [
        ("Bash", 60, 0.5), ("Read", 60, 0.5), ("mcp__git__log", None, None),
    ]  # fmt: skip
    stale = {one["tool"]: one for one in rows(asked, "stale")}
    assert {name: (one["old"], one["share"]) for name, one in stale.items()} == {
        "Bash": (60, 1.0),
        "Read": (5, 5 / 60),
    }


def test_who_overflows_and_where_to_look(asked: Asked) -> None:
    (found,) = rows(asked, "overflows")
    assert (found["session"], found["over"], found["filled"], found["path"], found["at"]) == (
        1,
        1,
        1.5,
        "/a.jsonl",
        "1.2",
    )
    assert asked.ask("overflows", {}).head == (2, 3, 1)


def test_a_definition_that_nobody_calls(asked: Asked) -> None:
    (found,) = rows(asked, "unused-tools")
    assert (found["tool"], found["server"], found["sessions"], found["called"], found["tokens"]) == (
        "mcp__git__log",
        "git",
        1,
        0,
        None,
    )
    assert asked.ask("unused-tools", {}).head == (2, 2, 1)


def test_sub_agents_part(asked: Asked) -> None:
    found = {one["project"]: one for one in rows(asked, "sub-agents")}
    assert (found[None]["of_requests"], found[None]["of_usd"]) == (1.0, 1.0)
    assert (found["shop"]["of_requests"], found["shop"]["of_usd"]) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("given", "requests"),
    [
        ({"project": "shop"}, 2), ({"format": "codex"}, 1), ({"label": "team=x"}, 2), ({"label": "team=y"}, 0),
        ({"since": at(1, 2)}, 1), ({"until": at(1, 2)}, 2), ({"client_version": "2"}, 1), ({"project": "none"}, 0),
    ],
)  # fmt: skip
def test_filters_leave_sessions(given: dict[str, Any], requests: int, asked: Asked) -> None:
    head = asked.ask("cost", given).head
    assert head is not None
    assert head.counted == requests
