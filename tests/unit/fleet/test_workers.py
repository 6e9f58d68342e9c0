"""Worker processes: all results, whoever dies, and no process left behind."""

from __future__ import annotations

import multiprocessing

import pytest

from ctxctl.fleet import workers
from ctxctl.fleet.workers import processes_for, work_through

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


def test_who_stops_asking_leaves_no_process() -> None:
    asked = work_through(WORK, [b"a", b"sleep", b"b"], 2)
    assert next(asked)[1] in (b"aa", b"bb")
    assert multiprocessing.active_children()
    asked.close()
    assert multiprocessing.active_children() == []


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
