"""A book that was parked has, in a copy, the tables that it had."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.engine.replay.item_table import ItemTable, ItemVersion
from ctxctl.engine.replay.run import Engine
from ctxctl.model.problem import Problem
from ctxctl.model.records import Item
from tests.unit.engine.making import add, event, inject, inspect

DID = st.tuples(st.sampled_from(["enter", "enter", "learn", "leave"]), st.integers(0, 4), st.integers(0, 3))


def tables(book: ItemTable) -> list[list[tuple[object, ItemVersion]]]:
    """Versions are the same only where they are one object; the live items have an order."""
    unordered = (book.latest, book.newest, book.versions)
    return [sorted(t.items(), key=lambda row: str(row[0])) for t in unordered] + [list(book.live.items())]


def do(book: ItemTable, did: list[tuple[str, int, int]], line: int = 0) -> None:
    for n, (what, item, version) in enumerate(did, line):
        if what == "leave":
            book.leave(f"i{item}")
            continue
        record = Item(
            f"i{item}", "custom", version=f"v{version}", title=None if version < 3 else f"title {n}"
        )
        (book.enter if what == "enter" else book.learn)(record, n)


@settings(max_examples=150, deadline=None)
@given(st.lists(DID, max_size=40), st.lists(DID, max_size=10))
def test_a_copy_of_a_parked_book_is_the_book(did: list, then: list) -> None:
    book = ItemTable("model")
    do(book, did)
    before = tables(book)
    twin = book.copy()
    twin.park()
    assert not twin.live
    assert not twin.versions
    again = twin.copy()
    assert tables(again) == before
    do(book, then, 100)
    do(again, then, 100)
    do(other := twin.copy(), then, 100)
    said = [[(key, v.version, v.line) for key, v in table] for table in tables(book)]
    for one in (again, other):
        assert [[(key, v.version, v.line) for key, v in table] for table in tables(one)] == said


def test_a_parked_engine_lets_go_of_what_no_other_engine_holds() -> None:
    """A thread that has ended is one and the same in an engine and its snapshots."""
    problems: list[Problem] = []
    events = [
        add("a", "text a", thread="over", turn="t1"),
        inject(thread="over", turn="t1"),
        {**event("x", thread="over"), "event_type": "ctxctl.session.ended"},
        add("b", "text b", turn="t2"),
        inject(turn="t2"),
    ]
    inspector = inspect(events)
    engine = Engine(inspector.rules(), problems.append)
    for one in inspector.trace.events():
        for _ in engine.feed(one) or ():
            pass
    snapshot = engine.copy(problems.append)
    snapshot.park()
    there = {key.thread: list(thread.book.live) for key, thread in engine.threads.items()}
    assert there == {"over": ["a"], "main": ["b"]}
    held = {key.thread: list(thread.book.live) for key, thread in snapshot.threads.items()}
    assert held == {"over": ["a"], "main": []}
    again = snapshot.copy(problems.append)
    assert {key.thread: list(thread.book.live) for key, thread in again.threads.items()} == there
