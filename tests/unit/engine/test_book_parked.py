"""A book that was parked has, in a copy, the tables that it had."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.engine.replay.item_table import ItemTable, ItemVersion
from ctxctl.model.records import Item

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
