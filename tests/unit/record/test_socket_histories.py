"""What stands before the input of a request that names an earlier response."""

from __future__ import annotations

import pytest

from ctxctl.record.proxy import websocket
from ctxctl.record.proxy.websocket import Histories


def test_a_history_grows_and_forks() -> None:
    held = Histories()
    held.keep([(1, "a")], [], [b"1", b"2"])
    held.keep([(1, "b")], [(1, "a")], [b"3"])
    held.keep([(1, "c")], [(1, "a")], [b"4", b"5"])
    assert held.find([(1, "a")]) == [b"1", b"2"]
    assert held.find([(1, "b")]) == [b"1", b"2", b"3"]
    assert held.find([(1, "c")]) == [b"1", b"2", b"4", b"5"]
    assert held.find([(1, "d")]) is None
    assert held.find([]) is None


def test_the_first_name_that_is_known_counts_and_the_last_meaning_of_it() -> None:
    held = Histories()
    held.keep([(1, "a"), ("server", "a")], [], [b"1"])
    held.keep([(2, "a"), ("server", "a")], [], [b"2"])
    assert held.find([(1, "a"), ("server", "a")]) == [b"1"]
    assert held.find([(3, "a"), ("server", "a")]) == [b"2"]


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "_REMEMBERED", 100_000)
    held = Histories()
    for number in range(50):
        held.keep([(number, "a")], [], [b"x" * 4_000])
        held.keep([(number, "b")], [(number, "a")], [b"y" * 1_000])
        held.find([(0, "a")])
    known = [number for number in range(50) if held.find([(number, "b")]) is not None]
    assert known == [0, *range(50 - len(known) + 1, 50)]
    assert 10 < len(known) < 20
    held.keep([(99, "a")], [], [b"z" * 200_000])
    assert held.find([(99, "a")]) is None
    assert (held._size, held._places) == (0, {})
