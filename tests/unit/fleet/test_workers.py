"""Worker processes: all results, whoever dies, and no process left behind."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from ctxctl.fleet import workers
from ctxctl.fleet.workers import processes_for, work_through
from ctxctl.tokens.cache import CountCache

WORK = "fleet_work:doubled"


def test_one_process_does_it_here_in_order() -> None:
    assert list(work_through(WORK, [b"a", b"b"], 1)) == [(0, b"aa"), (1, b"bb")]
    assert multiprocessing.active_children() == []


def test_several_give_each_result_once() -> None:
    found = dict(work_through(WORK, [b"%d" % n for n in range(20)], 2))
    assert found == {n: b"%d%d" % (n, n) for n in range(20)}
    assert multiprocessing.active_children() == []


def test_a_process_that_dies_loses_its_piece_alone() -> None:
    found = dict(work_through(WORK, [b"a", b"die", b"b", b"die", b"c"], 2))
    assert found == {0: b"aa", 1: None, 2: b"bb", 3: None, 4: b"cc"}


def test_a_piece_whose_process_was_killed_is_tried_once_more(tmp_path: Path) -> None:
    pieces = [os.fsencode(tmp_path / name) for name in ("a", "b", "c")]
    assert dict(work_through("fleet_work:dying_once", pieces, 2)) == dict.fromkeys(range(3), b"done")


def test_what_has_ended_a_process_is_not_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    start = workers._started
    left = [1]

    def started(work: str) -> object:
        return start(work) if left and left.pop() else None

    monkeypatch.setattr(workers, "_started", started)
    assert dict(work_through(WORK, [b"die", b"a"], 2)) == {0: None, 1: b"aa"}


def test_who_stops_asking_leaves_no_process() -> None:
    asked = work_through(WORK, [b"a", b"sleep", b"b"], 2)
    assert next(asked)[1] in (b"aa", b"bb")
    assert multiprocessing.active_children()
    asked.close()
    assert multiprocessing.active_children() == []


def test_a_worker_writes_what_it_counted_before_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "counts.sqlite3"
    pieces = [b"%s\n%d" % (os.fsencode(path), number) for number in range(20)]
    assert len(list(work_through("fleet_work:counting", pieces, 2))) == 20
    with CountCache(path) as cache:
        found = cache.get_all(CountCache.key("o200k_base", b"%d" % number) for number in range(20))
    assert len(found) == 20
    assert set(found.values()) == {(7, True)}


def test_where_the_system_refuses_processes_the_work_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_self: object) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr("multiprocessing.context.SpawnProcess.start", refused)
    assert dict(work_through(WORK, [b"a", b"b"], 2)) == {0: b"aa", 1: b"bb"}


def test_little_work_and_one_core_are_no_reason_for_a_second_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "usable_cores", lambda: 8)
    assert processes_for(workers.WORTH - 1, 100) == 1
    assert processes_for(workers.WORTH, 3) == 3
    assert processes_for(workers.WORTH, 100) == 8
    monkeypatch.setattr(workers, "usable_cores", lambda: 1)
    assert processes_for(workers.WORTH, 100) == 1
