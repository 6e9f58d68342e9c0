"""The stored form of an object graph: objects of one kind together, attribute by attribute.

Hundreds of thousands of objects are encoded and decoded with hardly any Python code for each.
"""

from __future__ import annotations

import gc
import itertools
from array import array
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import MethodType, NoneType
from typing import Any, Final

import msgspec

from ctxctl.trace.object_graph import GraphTable
from ctxctl.typed_decoding import from_msgpack

(
    LIST, DICT, SET, DEQUE, ORDERED, COUNTER,
    TUPLE, FROZEN, COUNT, METHOD, PARTIAL, PATH, CLASS,
) = range(13)  # fmt: skip
CONTAINERS: Final[dict[type, int]] = {
    list: LIST, dict: DICT, set: SET, deque: DEQUE, OrderedDict: ORDERED,
    tuple: TUPLE, frozenset: FROZEN, itertools.count: COUNT, MethodType: METHOD,
    partial: PARTIAL, Counter: COUNTER, type(Path()): PATH,
}  # fmt: skip
MAPPINGS: Final = (DICT, ORDERED, COUNTER)
UNSET: Final = object()
"""Marks an attribute that an object lacks."""

REFS, HOLES, SAME, INTS, PLAIN, CHOICE, WHOLE = range(7)
"""What a column holds: numbers; numbers of which some say that there is nothing; one number for all;
integers; plain values; a few of them again and again; objects as a whole."""
_WORDS: Final = frozenset((str, NoneType))
_MIN_REPEATS: Final = 4
"""Average repeats of words from which each word is written once."""
_SAMPLE_SIZE: Final = 256
"""Number of words that are sampled first."""
WIDEST: Final = 16
"""Most parts of tuples that are grouped by length."""


class Rows(msgspec.Struct, frozen=True, array_like=True):
    """Objects of one kind, in sequence."""

    sort: int
    count: int
    names: tuple[str, ...]
    """Their attributes, if their class does not define them."""
    widths: memoryview | None
    """Number of parts of each, if it is not one per column."""
    columns: tuple[tuple[int, memoryview], ...]


class Graph(msgspec.Struct, frozen=True, array_like=True):
    """A whole graph as stored."""

    order: str
    """Byte order of the numbers."""
    texts: list[str]
    values: list[Any]
    rows: list[Rows]
    """Immutable objects come after their parts."""
    root: int
    """Numbers refer to outside objects, then texts, values, and the objects in this order."""


def changes(table: GraphTable, sort: int) -> bool:
    """Return whether objects of a kind are created empty and filled when all exist."""
    return sort < TUPLE if sort < CLASS else not table.is_unchanging[table.classes[sort - CLASS]]


@contextmanager
def without_collections() -> Iterator[None]:
    """Disable garbage collection, which takes a third of the time with so many permanent objects."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def packed(column: list[Any], kinds: set[type]) -> tuple[int, bytes]:
    """Return a column of plain values."""
    if kinds == {int}:
        with suppress(OverflowError):
            return INTS, array("q", column).tobytes()
    if kinds <= _WORDS and len(set(column[:_SAMPLE_SIZE])) * _MIN_REPEATS <= min(len(column), _SAMPLE_SIZE):
        each = {one: number for number, one in enumerate(dict.fromkeys(column))}
        if len(each) * _MIN_REPEATS <= len(column):
            numbers = array("I", map(each.__getitem__, column)) if len(each) > 1 else array("I")
            return CHOICE, msgspec.msgpack.encode((list(each), numbers.tobytes()))
    return PLAIN, msgspec.msgpack.encode(column)


def unpacked(kind: int, data: memoryview, count: int) -> list[Any]:
    """Return a column of plain values again."""
    if kind == PLAIN:
        return from_msgpack(data, list[Any])
    each, packed = from_msgpack(data, tuple[list[str | None], bytes])
    numbers = array("I")
    numbers.frombytes(packed)
    return list(map(each.__getitem__, numbers)) if packed else each * count
