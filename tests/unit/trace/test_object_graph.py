"""Graphs of objects written down as data: the same graph comes back, or nothing is written."""

from __future__ import annotations

import itertools
import math
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from enum import Enum
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.trace.cache_files import DamagedError
from ctxctl.trace.graph_decode import decode_graph
from ctxctl.trace.graph_encode import encode_graph
from ctxctl.trace.object_graph import GraphTable, NotKeptError


class Slotted:
    __slots__ = ("handler", "left", "name", "right")

    def __init__(self, name: str) -> None:
        self.name = name
        self.handler = lambda: name


class Loose:
    def __init__(self, **held: Any) -> None:
        self.__dict__.update(held)

    def method(self) -> int:
        return 7

    def other(self) -> int:
        return 8


class Pair(NamedTuple):
    a: object
    b: object


class Text:
    """Stands outside."""


class Record(msgspec.Struct, frozen=True, eq=False):
    name: str
    text: Text | None = None
    share: float | None = None
    more: dict[str, Any] = {}


class Node(msgspec.Struct):
    other: Any = None


class Level(Enum):
    HIGH = "high"
    LOW = "low"


def _module() -> ModuleType:
    made = ModuleType(__name__)
    made.__dict__.update(Slotted=Slotted, Loose=Loose, Pair=Pair, Record=Record, Node=Node)
    return made


TABLE = GraphTable(
    [_module()],
    {Slotted: {"handler": lambda: None}},
    plain={Loose: {"_plain": tuple[str, int]}},
    records=[Record],
    enums=[Level],
    shared=Text,
    methods=[(Loose, "method")],
)


def again(root: Any, *outside: object) -> Any:
    return decode_graph(TABLE, encode_graph(TABLE, root, outside), outside)


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(
        st.characters(exclude_categories=("Cs",))
    ) | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text("abc"), inner),
    max_leaves=30,
)  # fmt: skip


@given(plain)
def test_plain_values_come_back(value: Any) -> None:
    made = again(value)
    assert repr(made) == repr(value)


def test_what_is_alike_but_not_the_same_stays_apart() -> None:
    made = again([1, True, 1.0, 0.0, -0.0, 0, False, math.nan, "1", b"1", None])
    assert repr(made) == repr([1, True, 1.0, 0.0, -0.0, 0, False, math.nan, "1", b"1", None])


def test_what_is_shared_is_shared_and_cycles_close() -> None:
    one, two = Slotted("one"), Slotted("two")
    one.left, one.right, two.left = two, [one, two], one
    loose = Loose(a=one, pairs={Pair(1, 2): one}, row=one.right, _plain={"x": 1})
    made = again([loose, one])
    assert made[0].a is made[1]
    assert made[1].left.left is made[1]
    assert made[0].row is made[1].right
    assert made[0].pairs[Pair(1, 2)] is made[1]
    assert made[0]._plain == {"x": 1}
    assert made[1].handler is None
    assert not hasattr(made[1].left, "right")


@given(st.lists(plain, min_size=1, max_size=12), st.integers(20, 90))
def test_many_of_a_sort_come_back(values: list[Any], times: int) -> None:
    """Enough of them that they are looked at column by column."""
    many = [Loose(number=at, value=value, pair=Pair(at, value)) for at in range(times) for value in values]
    kept = {f"{at}": one for at, one in enumerate(many)}
    keys = {(one.number, at): 1 for at, one in enumerate(many)}
    made = again([many, kept, [one.pair for one in many], keys])
    assert [one.number for one in made[0]] == [one.number for one in many]
    assert [repr(one.value) for one in made[0]] == [repr(one.value) for one in many]
    assert list(made[1].values()) == made[0]
    assert list(made[1]) == list(kept)
    assert all(one.pair is pair for one, pair in zip(made[0], made[2], strict=True))
    assert made[3] == keys


def test_among_many_some_lack_an_attribute_and_words_come_again_and_again() -> None:
    many = [Slotted(f"word {at % 3}") for at in range(500)]
    for at, one in enumerate(many):
        one.left = None if at % 5 else one
        if at % 7:
            one.right = at << 54 if at % 2 else at
    made = again(many)
    assert [one.name for one in made] == [one.name for one in many]
    assert [hasattr(one, "right") for one in made] == [hasattr(one, "right") for one in many]
    assert [getattr(one, "right", None) for one in made] == [getattr(one, "right", None) for one in many]
    assert [one.left is one for one in made] == [one.left is one for one in many]


def test_what_never_changes_may_be_made_of_its_own_sort() -> None:
    chain: Any = None
    for at in range(2000):
        chain = Pair(at, (chain, (at,), tuple(range(at % 40)), frozenset({(at, (at, at))})))
    made = again([chain, chain.b[0]])
    assert made[0].b[0] is made[1]
    at = 1999
    one = made[0]
    while one is not None:
        assert (one.a, one.b[1:]) == (at, ((at,), tuple(range(at % 40)), frozenset({(at, (at, at))})))
        one, at = one.b[0], at - 1
    assert at == -1


def test_a_circle_of_what_never_changes_is_not_written() -> None:
    one, two = Node(), Node()
    one.other, two.other = two, one
    with pytest.raises(NotKeptError, match="circle"):
        encode_graph(TABLE, [one], [])
    two.other = None
    assert again(one).other.other is None


def test_numbers_too_large_for_a_column_of_them_come_back() -> None:
    many = [Loose(number=(1 << 64) - 1 - at) for at in range(100)]
    assert [one.number for one in again(many)] == [one.number for one in many]


def test_containers_keep_their_kind_and_order() -> None:
    held = [
        OrderedDict(b=1, a=2),
        Counter(b=3, a=0),
        deque([1, 2]),
        {3, 4},
        frozenset({5}),
        Path("/a/b"),
        Level.LOW,
    ]
    made = again(held)
    assert made == held
    assert [type(one) for one in made] == [type(one) for one in held]
    made[0].move_to_end("b")
    assert list(made[0]) == ["a", "b"]
    count = itertools.count(5)
    next(count)
    assert next(again(count)) == 6


def test_what_stands_outside_is_that_of_whoever_reads() -> None:
    text, other = Text(), Text()
    loose, count = Loose(n=1), Loose(n=2)
    root = [text, Record("r", text, 0.5, {"k": [1]}), loose.method, partial(count.method, x=3)]
    data = encode_graph(TABLE, root, [text, count.method])
    made = decode_graph(TABLE, data, [other, len])
    assert made[0] is other
    assert made[1].text is other
    assert (made[1].name, made[1].share, made[1].more) == ("r", 0.5, {"k": [1]})
    assert (made[2].__self__.n, made[2]()) == (1, 7)
    assert (made[3].func, made[3].keywords) == (len, {"x": 3})


def _itself() -> Any:
    made: list[Any] = []
    made.append((made, lambda: None))
    return made


@pytest.mark.parametrize(
    "make",
    [
        lambda: len, lambda: lambda: 1, _itself, lambda: Text(), lambda: object(),
        lambda: Record("r", Text()), lambda: Loose().other, lambda: partial(Loose().method),
        lambda: 1 << 70, lambda: "\ud800",
        lambda: deque([1], 3), lambda: open, lambda: Loose, lambda: memoryview(b""), lambda: iter([1]),
    ],
)  # fmt: skip
def test_what_is_not_known_is_never_left_out(make: Callable[[], Any]) -> None:
    with pytest.raises(NotKeptError):
        encode_graph(TABLE, {"held": [make()]}, [])


def test_what_is_no_graph_is_noticed() -> None:
    data = encode_graph(TABLE, [1, Pair(2, [3])], [])
    for made in (data[:-1], b"", b"\x93\x90\x90", msgspec.msgpack.encode([[], [[99]], 1])):
        with pytest.raises(DamagedError):
            decode_graph(TABLE, made, [])
