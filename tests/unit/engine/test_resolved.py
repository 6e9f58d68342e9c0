"""Assemblies that were folded give the placements that they had, and hold no more than twice as many."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.engine.replay.item_table import ItemTable
from ctxctl.engine.replay.step_facts import StepFacts
from ctxctl.engine.replay.window_mode import _MAX_CHAIN, Piece, Resolved, WindowResolver
from ctxctl.model.records import Assembly, Item
from ctxctl.model.results import Placement
from tests.unit.engine.making import Json, add, assembly, inspect, placement, steps

POOL = [placement(f"i{n}", n) for n in range(60)]


@st.composite
def chains(draw: st.DrawFn) -> list[tuple[Resolved, list[Placement]]]:
    """Each spliced from one before it, and the list that it was made with."""
    first = POOL[: draw(st.integers(0, 60))]
    made = [(Resolved(list(first), None), list(first))]
    for _ in range(draw(st.integers(1, 90))):
        base, old = made[draw(st.integers(max(0, len(made) - 4), len(made) - 1))]
        cut = sorted(draw(st.tuples(*[st.integers(0, len(old))] * 2)))
        own = draw(st.lists(st.sampled_from(POOL), max_size=4))
        pieces: list[Piece] = [(0, cut[0]), own, (cut[1], len(old))]
        new = old[: cut[0]] + own + old[cut[1] :]
        made.append((Resolved(list(new), None, base, pieces), new))
    return made


def held(one: Resolved) -> int:
    """Entries of all that an assembly is made of, once it is folded."""
    if one._list is not None:
        return len(one._list)
    assert one._base is not None
    return held(one._base) + sum(len(piece) for piece in one._pieces if isinstance(piece, list))


@settings(max_examples=60, deadline=None)
@given(chains(), st.randoms(use_true_random=False))
def test_a_folded_assembly_is_the_one_that_it_was(
    made: list[tuple[Resolved, list[Placement]]], random
) -> None:
    for one, _ in random.sample(made, len(made)):
        one.fold()
    for one, new in made:
        assert one.placements == new
        assert one.size == len(new)
        assert one._depth <= _MAX_CHAIN
        assert held(one) <= max(2 * one.size, 0)


def test_what_a_long_chain_of_small_splices_holds_is_mostly_shared() -> None:
    one = Resolved(list(POOL), None)
    lists = 0
    for n in range(400):
        old = one.placements
        pieces: list[Piece] = [(1, len(old)), [POOL[n % 60]]]
        one = Resolved([*old[1:], POOL[n % 60]], None, one, pieces)
        one.fold()
        lists += one._list is not None
    assert lists <= 400 // _MAX_CHAIN + 1


def items_of(*assemblies: Json) -> list[list[str]]:
    """The items of each step's frame; there are six of them."""
    events = [add(name, f"text {name}", turn="1") for name in "abcdef"]
    for number, one in enumerate(assemblies, 1):
        events.append({**one, "turn_id": str(number)})
    inspector = inspect(events)
    return [[p.item for p in inspector.at(n).placements] for n in range(len(assemblies))]


def block(*refs: str) -> Json:
    return {"block_id": refs[0], "item_refs": list(refs)}


def spliced(name: str, base: str, splices: list[list[int]], *blocks: Json) -> Json:
    return assembly(name, *blocks, ours={"base": base, "splices": splices})


@pytest.mark.parametrize(
    ("blocks", "splices", "expected"),
    [
        # Splices count blocks, of which one may hold several items.
        ([["a", "b"], ["c"], ["d"]], [[1, 1, 1]], "abed"),
        ([["a"], ["b", "c"], ["d"]], [[2, 1, 1]], "abce"),
        ([["a"], ["b", "c"], ["d"]], [[0, 1, 0], [2, 1, 1]], "bce"),
        ([["a", "b"], ["c", "d"]], [[1, 1, 1]], "abe"),
        ([["a", "b"], ["c"], ["d"]], [[0, 1, 1]], "ecd"),
        ([["a"], ["b"], ["c", "d"]], [[1, 1, 1]], "aecd"),
    ],
)
def test_splices_count_blocks_and_not_items(
    blocks: list[list[str]], splices: list[list[int]], expected: str
) -> None:
    first = assembly("one", *(block(*refs) for refs in blocks))
    new = [block("e")] if any(inserted for _, _, inserted in splices) else []
    frames = items_of(
        first, spliced("two", "one", splices, *new), spliced("three", "two", [[0, 0, 1]], block("f"))
    )
    assert ["".join(frame) for frame in frames] == [
        "".join(item for refs in blocks for item in refs), expected, f"f{expected}"
    ]  # fmt: skip


def test_a_window_that_is_its_base_is_not_counted_twice() -> None:
    """Also with copies in it; the step after it goes on from there."""
    events = [add(name, f"text {name}", turn="1") for name in "ab"]
    same: list[list[int]] = []
    for number, one in enumerate(
        (
            assembly("one", "a", "b", "a", "b"),
            spliced("two", "one", same),
            spliced("three", "two", same),
            spliced("four", "three", [[4, 0, 1]], block("a")),
        ),
        1,
    ):
        events.append({**one, "turn_id": str(number)})
    inspector = inspect(events)
    frames = [inspector.at(n) for n in range(4)]
    assert [[p.item for p in frame.placements] for frame in frames] == [list("abab")] * 3 + [list("ababa")]
    used = [frame.step.window.used for frame in frames]
    assert used[0] == used[1] == used[2] == sum(p.tokens for p in frames[0].placements)
    assert used[3] == sum(p.tokens for p in frames[3].placements)
    assert [(step.ledger.new, step.ledger.freed) for step in steps(events)[1:3]] == [(0, 0), (0, 0)]


def test_windows_that_are_copied_too_often_are_told_and_not_worked_out(monkeypatch: Any) -> None:
    monkeypatch.setattr("ctxctl.engine.replay.window_mode._CELLS_FREE", 8)
    monkeypatch.setattr("ctxctl.engine.replay.window_mode._CELLS_EACH", 2)
    events = [add(name, f"text {name}", turn="1") for name in "abcdef"]
    events += [{**assembly("0", "a", "b", "c", "d"), "turn_id": "1"}]
    for number in range(1, 7):
        events.append(
            {**spliced(str(number), str(number - 1), [[0, 0, 1]], block("f")), "turn_id": str(number + 1)}
        )
    inspector = inspect(events)
    frames = ["".join(p.item for p in inspector.at(n).placements) for n in range(7)]
    # The first two copy four and five of eight, and two more for each; the third would have to copy six.
    assert frames == ["abcd", "fabcd", "ffabcd", "f", "f", "f", "f"]
    assert ["unknown_base" in step.flags for step in steps(events)] == [False] * 3 + [True] * 4
    assert list(inspector.replay())
    (told,) = inspector.problems
    assert (told.slug, told.line) == ("windows-too-large", 10)
    assert "assembly 3 " in told.message


def test_a_fresh_block_of_several_items_is_one_block() -> None:
    frames = items_of(
        assembly("one", "a", "b"),
        spliced("two", "one", [[1, 0, 1]], block("c", "d")),
        spliced("three", "two", [[1, 1, 1]], block("e")),
        spliced("four", "two", [[2, 1, 1]], block("f")),
    )
    assert ["".join(frame) for frame in frames] == ["ab", "acdb", "aeb", "acdf"]


def test_a_thread_of_assemblies_does_not_remember_what_entered() -> None:
    book = ItemTable("model")
    thread: Any = SimpleNamespace(book=book, assembled=[])
    resolver, facts, reading = WindowResolver(placer=None), StepFacts(), None  # type: ignore[arg-type]
    facts.assembly = Assembly("a")
    for line in range(5):
        book.enter(Item(f"i{line}"), line)
        assert resolver.frame(thread, facts, reading) == ("assembly", [])  # type: ignore[arg-type]
        assert book.appeared == []


def test_once_its_older_copy_has_left_an_item_costs_no_more_than_others() -> None:
    """A step's difference is then what its splice changed, and nothing is compared for it."""
    old, new, other = placement("a", 1), placement("a", 2), placement("b", 3)
    thread: Any = SimpleNamespace(book=ItemTable("model"), assembled=[])
    placer: Any = SimpleNamespace(stale=lambda p: msgspec.structs.replace(p, stale=True))
    resolver, facts, reading = WindowResolver(placer), StepFacts(), None
    facts.assembly = Assembly("a")

    def frame(*window: Placement) -> list[Placement]:
        thread.assembled = list(window)
        return resolver.frame(thread, facts, reading)[1]  # type: ignore[arg-type]

    assert [p.stale for p in frame(old, new)] == [True, False]
    before = frame(new)
    after = frame(new, other)
    known = resolver.delta(before, after)
    assert known is not None
    assert (known.prefix, known.removed, known.inserted) == (1, [], [other])
    assert [p.stale for p in frame(old, new, other)] == [True, False, False]
