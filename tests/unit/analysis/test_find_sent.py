"""What queries ask of sizes is about what was sent, and of limits about the one in force, whoever says it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxctl.analysis.where import steps_where
from ctxctl.cli.main import run
from ctxctl.engine.query import parse_query
from tests.oracle import build
from tests.oracle.build import Event, assembly, at, budget, inject, item
from tests.oracle.real import opened
from tests.unit.engine.billed_help import NOTE, catalogue, expecting, three_steps

Out = pytest.CaptureFixture[str]


def truths(where_: Path, query: str, events: list[Event]) -> list[bool | None]:
    with opened(where_ / "t.jsonl", events) as inspector:
        return [stop.held.truth for stop in steps_where(inspector, parse_query(query))]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("window>110", [False, True, True]),
        ("sent>110", [False, True, True]),
        ("window>78%", [False, True, True]),  # of 144: 105 is 72.9 %, 115 is 79.9 %
        ("sent>78%", [False, True, True]),
        ("free<30", [False, True, True]),
        ("recorded>=13", [False, True, True]),
        ("unrecorded>100", [False, True, True]),
        ("unrecorded=100", [True, False, False]),
        ("limit=144", [True, True, True]),
        ("limit:catalogue", [True, True, True]),
        ("limit:recorded", [False, False, False]),
        ("method:reported", [True, True, False]),
        ("method:exp", [False, False, True]),
        ("over", [False, False, False]),
        ("-over", [True, True, True]),
    ],
)
def test_of_what_was_sent(
    query: str, expected: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue(monkeypatch, 144)
    expecting(monkeypatch)
    assert truths(tmp_path, query, three_steps()) == expected


def test_over_is_by_the_bill(tmp_path: Path) -> None:
    """13 of 110 are recorded; 115 were billed."""
    events = three_steps()
    steps = [event for event in events if event["turn_id"] != "t2"]
    steps[4:4] = [e for e in events if e["turn_id"] == "t2"][:1] + at("t2", "s2", budget(110))
    steps[6:6] = [e for e in events if e["turn_id"] == "t2"][1:]
    assert truths(tmp_path, "over", steps)[:2] == [None, True]
    assert truths(tmp_path, "window>100%", steps)[:2] == [None, True]


def test_what_hangs_on_an_unknown_limit_is_not_known(tmp_path: Path) -> None:
    for query in ("window>80%", "-window>80%", "free>1", "limit>1", "over", "-over"):
        assert truths(tmp_path, query, three_steps()) == [None] * 3, query
    steps = at("t1", "s1", item("A", build.ABC), assembly("asm1", ["A"]), inject("asm1"))
    for query in ("unrecorded>=0", "-unrecorded>=0"):
        assert truths(tmp_path, query, steps) == [None], query


def test_only_some_have_per_cent() -> None:
    with pytest.raises(Exception, match="'recorded' has no per cent"):
        parse_query("recorded>80%")
    with pytest.raises(Exception, match="'guess' is no method"):
        parse_query("method:guess")


@pytest.mark.parametrize(
    ("query", "asks"),
    [
        ("window>80%", True), ("-sent<3% or x", True), ("free>3", True), ("limit>3", True), ("over", True),
        ("limit:catalogue", True), ("window>80", False), ("compacted", False), ("method:expected", False),
    ],
)  # fmt: skip
def test_what_hangs_on_limits(query: str, asks: bool) -> None:
    assert parse_query(query).asks_limit is asks


def written(where_: Path) -> str:
    path = where_ / "run.jsonl"
    path.write_bytes(build.lines(three_steps()))
    return str(path)


def test_find_says_what_it_held_them_against(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue(monkeypatch, 144)
    assert run(["find", written(tmp_path), "window>78%"]) == 0
    out, err = capsys.readouterr()
    assert "sent 115 (79.9%)" in out
    assert f"limit: 144 from the model table ({NOTE.rstrip('.')}) at 3 steps" in " ".join(err.split())
    run(["find", written(tmp_path), "compacted"])
    assert "limit" not in capsys.readouterr().err
    run(["find", written(tmp_path), "window>78%", "--json"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    hit = next(line for line in lines if line["type"] == "hit")
    names = ("used", "used_method", "recorded", "unrecorded", "cap", "limit_source")
    assert [hit[name] for name in names] == [115, "reported", 13, 102, 144, "catalogue"]
    found = next(line for line in lines if line["type"] == "found")
    assert found["limits"] == [{"cap": 144, "limit_source": "catalogue", "limit_note": NOTE, "steps": 3}]


def test_bisect_answers_where_only_the_table_knows_a_limit(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["bisect", written(tmp_path), "window>78%"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "limit not known at 3 steps unknown 3 steps undecided: the trace does not say enough" in out
    catalogue(monkeypatch, 144)
    expecting(monkeypatch)
    assert run(["bisect", written(tmp_path), "window>78%"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "run.jsonl@2.1 sent 115 (79.9%)" in out
    assert "it matches 2 of 3 steps, from there to the end" in out
    assert "limit 144 from the model table" in out
