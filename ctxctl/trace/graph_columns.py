"""How an object graph is written down: objects of one sort together, attribute by attribute.

Hundreds of thousands of objects are taken apart and put together again with hardly a line of Python for each.
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
"""An attribute that an object does not have."""

REFS, HOLES, SAME, INTS, PLAIN, CHOICE, WHOLE = range(7)
"""What a column holds: numbers; numbers of which some say that there is nothing; one number for all;
integers; plain values; a few of them again and again; objects as a whole."""
_WORDS: Final = frozenset((str, NoneType))
_REPEATED: Final = 4
"""How often words are repeated where each is written once."""
_SAMPLE: Final = 256
"""Words that are looked at first."""
WIDEST: Final = 16
"""Parts of tuples that stand together by their length."""


class Rows(msgspec.Struct, frozen=True, array_like=True):
    """Objects of one sort, one behind the other."""

    sort: int
    count: int
    names: tuple[str, ...]
    """Attributes that they have, where their class does not say."""
    widths: memoryview | None
    """Of how many parts each is made, where that is not one of each column."""
    columns: tuple[tuple[int, memoryview], ...]


class Graph(msgspec.Struct, frozen=True, array_like=True):
    """All of it, as it is written."""

    order: str
    """In which order this machine writes the bytes of a number."""
    texts: list[str]
    values: list[Any]
    rows: list[Rows]
    """What never changes stands behind all that it is made of."""
    root: int
    """Numbers count what stands outside, then the texts, the values, and the objects in this order."""


def changes(table: GraphTable, sort: int) -> bool:
    """Return whether objects of a sort are made empty, and filled when all are there."""
    return sort < TUPLE if sort < CLASS else not table.is_unchanging[table.classes[sort - CLASS]]


@contextmanager
def without_collections() -> Iterator[None]:
    """Hundreds of thousands of objects are made and all of them stay: looking for garbage takes a third."""
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
    if kinds <= _WORDS and len(set(column[:_SAMPLE])) * _REPEATED <= min(len(column), _SAMPLE):
        each = {one: number for number, one in enumerate(dict.fromkeys(column))}
        if len(each) * _REPEATED <= len(column):
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
