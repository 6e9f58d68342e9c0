"""The sessions of a dataset with their figures, in groups: the same sums as the questions give."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from ctxctl.dataset.duck import Asked
from ctxctl.dataset.opening import OpenDataset, opened
from ctxctl.dataset.session_filter import chosen
from ctxctl.dataset.session_groups import grouped, key_of, summed
from ctxctl.dataset.session_rows import session_rows, session_tables
from ctxctl.dataset.session_values import SessionRow

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

from tests.unit.dataset.dataset_rows import Rows, by_chance, dataset

SEEDS = (1, 2, 3)


@pytest.fixture(scope="module", params=SEEDS)
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Rows, OpenDataset]:
    rows = by_chance(request.param)
    return rows, opened(str(dataset(tmp_path_factory.mktemp("fleet") / "ds", rows)))


def held(opened_dataset: OpenDataset) -> tuple[SessionRow, ...]:
    return session_rows(opened_dataset).rows


def test_a_session_has_its_own_requests_sizes_prices_and_places(made: tuple[Rows, OpenDataset]) -> None:
    rows, dataset_opened = made
    steps: dict[tuple[int, int], list[Any]] = defaultdict(list)
    for step in rows["steps"]:
        if step["target"] == "model":
            steps[step["session"], step["source"]].append(step)
    assert len(held(dataset_opened)) == len(rows["sessions"])
    for row in held(dataset_opened):
        mine = steps[int(row.key, 16), int(row.source, 16)]
        assert row.own.requests == len(mine)
        assert row.own.sent == sum(one["sent"] for one in mine)
        assert row.own.unbilled == sum(one["sent_method"] != "reported" for one in mine)
        assert row.own.unlimited == sum(one["limit"] is None for one in mine)
        priced = [one["usd"] for one in mine if one["usd"] is not None]
        assert row.own.usd == (pytest.approx(sum(priced)) if priced else None)
        assert row.own.unpriced == len(mine) - len(priced)
        filled = [one["sent"] / one["limit"] for one in mine if one["limit"]]
        assert row.own.filled == (pytest.approx(max(filled)) if filled else None)
        if mine:
            largest = max(mine, key=lambda one: (one["sent"], -one["ordinal"]))
            thread = "explorer:" if largest["sub_agent"] else ""
            assert row.places.largest == f"{thread}{largest['turn']}.{largest['step']}"


def test_sessions_come_newest_first_and_those_without_a_time_last(made: tuple[Rows, OpenDataset]) -> None:
    times = [row.started for row in held(made[1])]
    known = [one for one in times if one is not None]
    assert known == sorted(known, reverse=True)
    assert times == known + [None] * (len(times) - len(known))
    assert 0 < len(known) < len(times)


@pytest.mark.parametrize("by", ["project", "client", "week"])
def test_groups_have_the_sums_of_the_overview_question(made: tuple[Rows, OpenDataset], by: Any) -> None:
    with Asked(made[1].files) as asked:
        answer = asked.ask("overview", {"by": by, "limit": 1000})
    named = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    groups = {one.key: one for one in grouped(held(made[1]), by)}
    assert {one["name"] for one in named} == set(groups)
    assert sum(one.copies for one in groups.values()) > 0  # a request in two captures is among them
    for one in named:
        found = groups[one["name"]]
        assert (found.sessions, found.figures.requests) == (one["sessions"], one["requests"])
        assert found.figures.compactions == one["compactions"]
        assert (found.figures.misses or 0) == one["misses"]
        assert found.figures.unpriced + found.figures.least == one["unpriced"]
        assert found.figures.counted == one["expected"]
        assert found.figures.usd == (None if one["usd"] is None else pytest.approx(one["usd"]))


def test_the_read_share_is_of_requests_whose_bills_say_it(made: tuple[Rows, OpenDataset]) -> None:
    dataset_opened = made[1]
    with Asked(dataset_opened.files) as asked:
        whole = asked.select("SELECT sum(read), sum(sent) FROM requests WHERE read IS NOT NULL", {}).rows[0]
    figures = summed(None, held(dataset_opened)).figures
    assert (figures.read, figures.read_of) == tuple(map(int, whole))


def test_only_the_newest_are_held_and_that_is_told(made: tuple[Rows, OpenDataset]) -> None:
    found = session_rows(made[1], 7)
    assert (len(found.rows), found.more, found.total) == (7, True, len(made[0]["sessions"]))
    assert found.rows == held(made[1])[:7]
    assert not session_rows(made[1]).more


def test_filters_of_questions_leave_the_same_sessions(made: tuple[Rows, OpenDataset]) -> None:
    from datetime import UTC, datetime

    for given in (
        {"project": "shop"}, {"client": "codex"}, {"label": "team=a"},
        {"since": datetime(2026, 2, 1, tzinfo=UTC)},
        {"until": datetime(2026, 2, 1, tzinfo=UTC), "project": "ünï"}, {},
    ):  # fmt: skip
        with Asked(made[1].files) as asked:
            answer = asked.ask("sessions", {**given, "limit": 1000})
        keys = [f"{row[0]:016x}" for row in answer.rows]
        assert [row.key for row in chosen(held(made[1]), given)] == keys
        assert keys


def test_what_no_session_says_is_none_and_not_zero(tmp_path: Path) -> None:
    where = {"session": 1, "source": 2, "month": "unknown", "format": "native"}
    fact = {**where, "number": 0, "host": "h", "turns": 1, "requests": 1, "sent": 5}
    step = {**where, "thread": "main", "ordinal": 0, "turn": 1, "step": 1, "target": "model", "sent": 5,
            "sent_method": "recorded"}  # fmt: skip
    path = dataset(tmp_path / "ds", {"sessions": [fact], "steps": [step]})
    (row,) = session_rows(opened(str(path), session_tables())).rows
    assert (row.own.usd, row.own.filled, row.own.read, row.own.misses) == (None, None, None, None)
    assert (row.own.unpriced, row.own.unlimited, row.own.unread, row.own.unbilled) == (1, 1, 1, 1)
    group = summed(None, [row])
    assert (group.figures.usd, group.figures.filled, group.figures.read, group.figures.misses) == (None,) * 4
    assert key_of(row, "project") is key_of(row, "client") is key_of(row, "week") is None


def test_a_session_of_a_capture_of_several_is_named_in_its_address(tmp_path: Path) -> None:
    where = {"source": 2, "month": "unknown", "format": "native"}
    steps = [{**where, "session": n, "thread": "main" if n == 1 else "a:b", "turn": 3, "step": 2,
              "target": "model", "sent": 5, "sent_method": "reported"} for n in (1, 2)]  # fmt: skip
    facts = [
        {**where, "session": n, "number": n - 1, "name": name, "host": "h"}
        for n, name in ((1, "x/y"), (2, None))
    ]
    sources = [{**where, "path": "/logs/a", "host": "h", "sessions": 2}]
    path = dataset(tmp_path / "ds", {"sessions": facts, "steps": steps, "sources": sources})
    one, two = session_rows(opened(str(path))).rows
    assert (one.places.largest, one.address(one.places.largest)) == ("3.2", "x//y/3.2")
    assert (two.places.largest, two.address(two.places.largest)) == ("a::b:3.2", None)
