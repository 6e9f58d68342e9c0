"""Windows that change in any way are rebuilt from their stays."""

from __future__ import annotations

import random
import sqlite3
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.engine.replay.frames import delta_of
from ctxctl.model.results import Placement
from ctxctl.store import frames
from ctxctl.store.frames import OpenStays, Stay
from ctxctl.store.writer import SCHEMA

COPIES = [
    Placement(f"i{n}", None, "k", None, None, "s", n, "counted", None, None, n, 1, stale=bool(n % 3 == 0))
    for n in range(12)
]
EDIT = st.tuples(st.sampled_from(["insert", "remove", "move"]), st.integers(0, 40), st.integers(0, 40))
EDITS = st.lists(st.lists(EDIT, max_size=40), max_size=30)


def edited(window: list[Placement], edits: list[tuple[str, int, int]]) -> list[Placement]:
    now = list(window)
    for kind, one, other in edits:
        if kind == "insert":
            now.insert(one % (len(now) + 1), COPIES[other % len(COPIES)])
        elif now and kind == "remove":
            now.pop(one % len(now))
        elif now:
            now.insert(other % len(now), now.pop(one % len(now)))
    return now


class Table:
    """The stays that have ended, as the writer keeps them."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []
        self.anew = 0

    def step(self, thread: OpenStays, window: list[Placement]) -> None:
        move = thread.move_to(window, delta_of(thread.placements, window), lambda one: one.key)
        anew = thread.place(move.head, move.tail)
        self.anew += bool(anew)
        for stay in (*move.ended, *anew):
            self.end(stay, thread.nth - 1)

    def end(self, stay: Stay, last: float) -> None:
        assert stay.pos is not None
        self.rows.append([stay.first, last, stay.pos, stay.number])

    def window(self, nth: int) -> list[int]:
        there = [(pos, key) for first, last, pos, key in self.rows if first <= nth <= last]
        assert len({pos for pos, _ in there}) == len(there)
        return [key for _, key in sorted(there)]


@pytest.mark.parametrize(("gap", "near"), [(frames.GAP, 1 << 16), (256, 2), (256, 1)])
@given(steps=EDITS)
@settings(deadline=None)
def test_every_window_is_that_of_its_stays(gap: int, near: int, steps: list[Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames, "GAP", gap)
        patch.setattr(frames, "_NEAR", near)
        thread, table, windows = OpenStays(1), Table(), []
        for edits in steps:
            windows.append(edited(thread.placements, edits))
            table.step(thread, windows[-1])
            held: dict[str, int] = {}
            for one in windows[-1]:
                held[one.item] = held.get(one.item, 0) + one.tokens
            assert {item: copies.tokens for item, copies in thread.copies.items()} == held
        for stay in thread.stays:
            table.end(stay, float("inf"))
    for nth, window in enumerate(windows, 1):
        assert table.window(nth) == [one.key for one in window]


@pytest.mark.parametrize("where", ["end", "before the last", "after the first"])
def test_a_window_that_grows_as_clients_let_it_needs_no_new_positions(where: str) -> None:
    thread, table = OpenStays(1), Table()
    window = COPIES[:2]
    table.step(thread, list(window))
    for n in range(3_000):
        one = Placement(f"x{n}", None, "k", None, None, "s", 1, "counted", None, None, 100 + n, 1)
        at = {"end": len(window), "before the last": len(window) - 1, "after the first": 1}[where]
        window.insert(at, one)
        table.step(thread, list(window))
    assert table.anew == 0


def test_a_window_that_is_shuffled_again_and_again_has_no_more_rows_than_places_that_change() -> None:
    rng, thread, table = random.Random(1), OpenStays(1), Table()
    window = [
        Placement(f"x{n}", None, "k", None, None, "s", 1, "counted", None, None, n, 1) for n in range(200)
    ]
    for _ in range(60):
        rng.shuffle(window)
        table.step(thread, list(window))
    assert table.anew > 0
    assert len(table.rows) <= 200 * 60


def test_the_schema_opens_in_any_sqlite() -> None:
    db = sqlite3.connect(":memory:")
    db.executescript(SCHEMA.read_text())
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables >= {"steps", "stays", "placements", "items", "changes", "texts", "turns", "threads"}
