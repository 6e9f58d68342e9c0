"""Stale copies are marked as the plain definition has it, whatever came and left before."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.engine.replay import stale_copies
from ctxctl.engine.replay.frames import delta_of
from ctxctl.engine.replay.item_table import ItemTable
from ctxctl.engine.replay.stale_copies import StaleCopies
from ctxctl.listdiff import place_of
from ctxctl.model.records import Item
from ctxctl.model.results import Placement
from tests.unit.engine.making import placement


class _Placer:
    """Gives one stale twin for each placement, as the real one does."""

    def __init__(self) -> None:
        self.twins: dict[Placement, Placement] = {}

    def stale(self, one: Placement) -> Placement:
        return self.twins.setdefault(one, msgspec.structs.replace(one, stale=True))


COPIES = [
    msgspec.structs.replace(placement(item, 10 * n + key), version=f"v{n}")
    for item in "ab"
    for n in range(3)
    for key in range(2)
]
windows = st.lists(st.tuples(st.lists(st.sampled_from(COPIES), max_size=8), st.sampled_from(["", "a", "b"])))


def _plain(raw: list[Placement], book: ItemTable) -> list[bool]:
    """Which copies are stale: those that are not of the newest version, where their item has several."""
    stale = []
    for one in raw:
        copies = [other.version for other in raw if other.item == one.item]
        latest = book.latest.get(one.item)
        wanted = latest.version if latest is not None else None
        newest = wanted if wanted in copies else copies[-1]
        stale.append(len(copies) > 1 and one.version != newest)
    return stale


@given(windows)
def test_every_window_is_marked_as_the_plain_definition_has_it(course: list[Any]) -> None:
    book, placer, held = ItemTable("model"), _Placer(), StaleCopies()
    before: list[Placement] = []
    for step, (raw, renewed) in enumerate(course):
        if renewed:
            book.enter(Item(renewed, metadata={}, version=f"v{step % 4}"), step)
        shown = held.mark(raw, delta_of(before, raw), book, placer)  # type: ignore[arg-type]
        assert [one.stale for one in shown] == _plain(raw, book)
        assert [one.key for one in shown] == [one.key for one in raw]
        before = raw
        if step == 2:
            held = held.copy()


def test_versions_that_take_turns_are_given_up_once_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stale_copies, "_MAX_MARK_CHANGES", 500)
    monkeypatch.setattr(stale_copies, "_MIN_COUNTED", 8)
    book, placer, held = ItemTable("model"), _Placer(), StaleCopies()
    raw: list[Placement] = []
    told: list[int] = []
    for step in range(100):
        version = f"v{step % 3}"
        book.enter(Item("a", metadata={}, version=version), step)
        once = msgspec.structs.replace(placement("a", step), version=version)
        before, raw = raw, [*raw, once, placement("b", 1000 + step)]
        shown = held.mark(raw, delta_of(before, raw), book, placer)  # type: ignore[arg-type]
        if held.given_up:
            assert held.given_up == ["a"]
            told.append(step)
            held.given_up = []
        # What is marked is marked right, up to the step that is told of, and nothing from there on.
        wanted = [False] * len(raw) if told else _plain(raw, book)
        assert [one.stale for one in shown if one.item == "a"] == wanted[::2]
        held = held.copy() if step % 7 == 3 else held
    assert len(told) == 1
    assert sum(one.item == "a" for one in placer.twins) < 80


@given(st.integers(0, 300), st.integers(0, 300))
def test_a_copy_is_found_from_either_end(size: int, at: int) -> None:
    frame = [placement("x", n) for n in range(size)]
    sought = frame[at] if at < size else placement("x", -1)
    assert place_of(sought, frame) == (at if at < size else None)
