"""Store object graphs as data, so that another process can continue a pass.

A graph may hold plain values, Python's own containers and objects of the classes in a `GraphTable`, with
shared parts and cycles.
"""

from __future__ import annotations

import itertools
import sys
from array import array
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, pairwise
from operator import attrgetter
from types import MethodType, NoneType
from typing import Any, Final

import msgspec

from ctxctl.trace.graph_columns import (
    CLASS,
    CONTAINERS,
    COUNT,
    DEQUE,
    HOLES,
    MAPPINGS,
    METHOD,
    PARTIAL,
    PATH,
    REFS,
    SAME,
    TUPLE,
    UNSET,
    WHOLE,
    WIDEST,
    Graph,
    Rows,
    changes,
    packed,
    without_collections,
)
from ctxctl.trace.object_graph import GraphTable, NotKeptError

_Key = tuple[int, object]
"""Objects stored together: a kind, and the length of tuples or the names of attributes."""
_VALUES: Final = frozenset((int, float, bool, bytes, NoneType))
_PLAIN_ONES: Final = _VALUES | {str}
_MIN_ALONE: Final = 64
"""Parts of a container that is stored alone, because its values are mostly of one kind."""


def encode_graph(table: GraphTable, root: object, outside: Sequence[object]) -> bytes:
    """Return a graph as bytes; the reader must have the objects `outside` in the same order.

    Raises NotKeptError.
    """
    try:
        with without_collections():
            return _Encoder(table, (UNSET, *outside)).encode(root)
    except (LookupError, RecursionError, OverflowError, TypeError, ValueError) as error:
        raise NotKeptError(str(error)) from None


def _keyed(table: GraphTable, made: type, ones: list[Any]) -> Iterator[tuple[_Key, list[Any]]]:
    """Yield objects of one type, grouped by what is stored together. Raises NotKeptError."""
    sort = CONTAINERS.get(made)
    if sort == TUPLE:
        widths = list(map(len, ones))
        if max(widths) > WIDEST:
            widths = [min(width, WIDEST + 1) for width in widths]
        for width in dict.fromkeys(widths):
            alike = [one for one, of in zip(ones, widths, strict=True) if of == width]
            yield (TUPLE, width), alike
    elif sort is not None and sort < TUPLE:
        if sort == DEQUE and any(one.maxlen is not None for one in ones):
            raise NotKeptError("a deque with a limit")
        yield (sort, ()), [one for one in ones if len(one) <= _MIN_ALONE]
        yield from (((sort, id(one)), [one]) for one in ones if len(one) > _MIN_ALONE)
    elif sort is not None:
        yield (sort, ()), ones
    elif made not in table.number:
        raise NotKeptError(f"{made.__module__}.{made.__qualname__}")
    elif table.slots[made] is None and not table.is_unchanging[made]:
        anew = table.anew.get(made, {})
        for one in ones:
            yield (
                (CLASS + table.number[made], tuple([name for name in vars(one) if name not in anew])),
                [one],
            )
    else:
        yield (CLASS + table.number[made], ()), ones


class _Gathered:
    """Objects of one kind and their parts, while a graph is read."""

    __slots__ = ("columns", "key", "kinds", "ones", "widths")

    def __init__(self, key: _Key) -> None:
        self.key = key
        self.ones: list[Any] = []
        self.widths: list[int] | None = None
        self.columns: list[list[Any]] = []
        self.kinds: list[set[type]] = []
        """Types of values in each column."""

    def take(self, ones: list[Any], widths: list[int] | None, columns: list[list[Any]]) -> list[set[type]]:
        """Add objects. Return the types of their parts."""
        kinds = [set(map(type, column)) for column in columns]
        if not self.ones:
            self.ones, self.widths, self.columns, self.kinds = ones, widths, columns, kinds
            return kinds
        self.ones += ones
        if self.widths is not None and widths is not None:
            self.widths += widths
        for held, more in zip(self.columns, columns, strict=True):
            held += more
        self.kinds = [known | found for known, found in zip(self.kinds, kinds, strict=True)]
        return kinds

    def parts(self) -> Iterator[Sequence[Any]]:
        """Yield the parts of each object."""
        if self.widths is None:
            return zip(*self.columns, strict=True)
        ends = itertools.accumulate(self.widths, initial=0)
        return (self.columns[0][start:end] for start, end in pairwise(ends))

    def chosen(self, rows: Sequence[int], parts: Sequence[Sequence[Any]]) -> _Gathered:
        """Return some of the objects, with all their parts."""
        made = _Gathered(self.key)
        of = [parts[row] for row in rows]
        columns = _turned(of) if self.widths is None else [list(chain.from_iterable(of))]
        widths = None if self.widths is None else list(map(len, of))
        made.take([self.ones[row] for row in rows], widths, columns)
        return made


class _Encoder:
    def __init__(self, table: GraphTable, outside: Sequence[object]) -> None:
        self._table = table
        self._first = len(outside)
        self._number = dict(zip(map(id, outside), itertools.count()))
        self._number.pop(id(None), None)
        """By identity, of all that was come upon; of an object once all are."""
        self._bound = {
            (id(one.__self__), one.__func__): at for at, one in enumerate(outside) if type(one) is MethodType
        }
        self._texts: dict[str, int] = {}
        self._values: list[Any] = []
        self._places: dict[type, dict[Any, int]] = {}
        """Numbers of values, by type."""
        self._place_of: dict[int, int] = {}
        """Numbers of objects, by identity."""
        self._new: dict[_Key, list[Any]] = {}
        """Objects whose parts were not read yet."""
        self._rows: dict[_Key, _Gathered] = {}
        self._records = frozenset(CLASS + table.number[made] for made in table.records)
        self._whole = msgspec.msgpack.Encoder(enc_hook=self._shared).encode

    def encode(self, root: object) -> bytes:
        self._note((None, True, False, root))
        while self._new:
            new, self._new = self._new, {}
            for key, ones in new.items():
                if ones:
                    self._take(key, ones)
        ordered = self._in_order()
        plain = [self._plain(rows) for rows in ordered]
        number, first = self._number, self._first + len(self._texts)
        number.update({at: first + place for at, place in self._place_of.items()})
        first += len(self._values)
        for rows in ordered:
            number.update(zip(map(id, rows.ones), itertools.count(first)))
            first += len(rows.ones)
        self._rows.clear()
        made = [self._written(ordered.pop(0), plain.pop(0)) for _ in range(len(ordered))]
        at = number[id(root)]
        number.clear()  # before all is copied once more: it has an entry for each object
        return msgspec.msgpack.encode(Graph(sys.byteorder, list(self._texts), self._values, made, at))

    def _shared(self, one: object) -> int:
        if not isinstance(one, self._table.shared):
            raise NotImplementedError(type(one).__qualname__)
        return self._number[id(one)]

    def _note(self, parts: Sequence[Any]) -> None:
        """Add some parts, which the caller must keep alive until all is written."""
        number = self._number
        found = dict(zip(map(id, parts), parts, strict=True))
        new = [one for at, one in found.items() if at not in number]
        kinds = dict.fromkeys(map(type, new))
        for made in kinds:
            ones: list[Any] = new if len(kinds) == 1 else [one for one in new if type(one) is made]
            if made is str:
                texts = self._texts
                fresh: dict[str, None] = dict.fromkeys([one for one in ones if one not in texts])
                texts.update(zip(fresh, itertools.count(self._first + len(texts))))
                number.update(zip(map(id, ones), map(texts.__getitem__, ones), strict=True))
            elif made in _VALUES:
                self._note_values(made, ones)
            else:
                self._note_objects(made, ones)

    def _note_values(self, made: type, ones: list[Any]) -> None:
        known, keys = self._places.setdefault(made, {}), ones
        if made is float:
            keys = list(map(repr, ones))  # 0.0 equals -0.0, and NaN not itself
        fresh = {key: one for key, one in zip(keys, ones, strict=True) if key not in known}
        known.update(zip(fresh, itertools.count(len(self._values))))
        self._values += fresh.values()
        self._place_of.update(zip(map(id, ones), map(known.__getitem__, keys), strict=True))
        self._number.update(dict.fromkeys(map(id, ones), -1))

    def _note_objects(self, made: type, ones: list[Any]) -> None:
        """Add objects of one type."""
        number = self._number
        if made is MethodType:
            known = {id(one): at for one in ones if (at := self._outside_number(one)) is not None}
            number.update(known)
            ones = [one for one in ones if id(one) not in known]
        number.update(dict.fromkeys(map(id, ones), -1))
        for key, alike in _keyed(self._table, made, ones):
            self._new.setdefault(key, []).extend(alike)

    def _outside_number(self, one: Any) -> int | None:
        """Return the number of an outside function. A bound method is a new object each time."""
        if isinstance(one, MethodType):
            return self._bound.get((id(one.__self__), one.__func__))
        return self._number.get(id(one))

    def _take(self, key: _Key, ones: list[Any]) -> None:
        """Read the parts of objects of one kind."""
        widths, columns = self._parts(key, ones)
        rows = self._rows.get(key)
        if rows is None:
            rows = self._rows[key] = _Gathered(key)
        kinds = rows.take(ones, widths, columns)
        if key[0] in self._records:
            return
        for column, of in zip(columns, kinds, strict=True):
            if not of <= _PLAIN_ONES:
                self._note(column)

    def _parts(self, key: _Key, ones: list[Any]) -> tuple[list[int] | None, list[list[Any]]]:
        """Return the parts of objects of one kind: their number if it varies, and columns."""
        sort, shape = key
        made = type(ones[0])
        if sort >= CLASS:
            return None, self._held(made, shape, ones)
        if sort in MAPPINGS:
            values = [value for one in ones for value in one.values()]
            return list(map(len, ones)), [list(chain.from_iterable(ones)), values]
        if sort == TUPLE and shape != WIDEST + 1:
            return None, _turned(ones)
        if sort == PATH:
            return None, [list(map(str, ones))]
        if sort == COUNT:
            return None, [[int(repr(one)[len("count(") : -1]) for one in ones]]  # nothing else tells
        if sort == METHOD:
            return None, [[one.__self__ for one in ones], list(map(self._method, ones))]
        if sort == PARTIAL:
            ones = list(map(self._called, ones))
        return list(map(len, ones)), [list(chain.from_iterable(ones))]

    def _held(self, made: type, shape: object, ones: list[Any]) -> list[list[Any]]:
        """Return the attributes of objects of a class, each a column."""
        table = self._table
        if made in table.enums:
            return [[one.name for one in ones]]
        if issubclass(made, tuple):
            return _turned(ones)
        if issubclass(made, msgspec.Struct):
            return _turned(list(map(msgspec.structs.astuple, ones)))
        slots = table.slots[made]
        if slots is not None:
            return [_attribute(ones, name) for name in slots]
        held = list(map(vars, ones))
        encode = msgspec.msgpack.encode
        return [
            [encode(list(_plain_dict(one[name]).items())) for one in held]
            if (made, name) in table.plain
            else [one[name] for one in held]
            for name in shape  # type: ignore[attr-defined]
        ]

    def _method(self, one: MethodType) -> int:
        for at, (owner, name) in enumerate(self._table.methods):
            if isinstance(one.__self__, owner) and getattr(owner, name) is one.__func__:
                return at
        raise NotKeptError(f"method {one.__func__.__qualname__}")

    def _called(self, one: partial[Any]) -> tuple[object, ...]:
        if one.args or self._outside_number(one.func) is None:
            raise NotKeptError("a partial function")
        return (one.func, *chain.from_iterable(one.keywords.items()))

    def _in_order(self) -> list[_Gathered]:
        """Return all objects, with immutable ones after their parts."""
        left = {key: rows for key, rows in self._rows.items() if not changes(self._table, key[0])}
        done = [rows for key, rows in self._rows.items() if key not in left]
        needed = {key: set() if key[0] in self._records else self._needed(rows) for key, rows in left.items()}
        while ready := [key for key in left if left.keys().isdisjoint(needed[key])]:
            done += [left.pop(key) for key in ready]
        return done + _in_waves(left) if left else done

    def _needed(self, rows: _Gathered) -> set[_Key]:
        """Return the kinds of the parts of some objects."""
        found: set[_Key] = set()
        for column, kinds in zip(rows.columns, rows.kinds, strict=True):
            for made in kinds:
                if made is tuple:
                    ones = column if len(kinds) == 1 else [one for one in column if type(one) is tuple]
                    found |= {(TUPLE, min(width, WIDEST + 1)) for width in set(map(len, ones))}
                else:
                    number = self._table.number.get(made)
                    found.add((CONTAINERS.get(made, -1) if number is None else CLASS + number, ()))
        return found

    def _plain(self, rows: _Gathered) -> list[tuple[int, bytes] | None]:
        """Return the encoded columns of plain values; the other columns hold numbers."""
        made: list[tuple[int, bytes] | None] = []
        for at, (column, kinds) in enumerate(zip(rows.columns, rows.kinds, strict=True)):
            if kinds <= _PLAIN_ONES:
                made.append(packed(column, kinds))
                rows.columns[at] = []
            elif rows.key[0] in self._records:
                apart = all(kind is NoneType or issubclass(kind, self._table.shared) for kind in kinds)
                made.append(None if apart else (WHOLE, self._whole(column)))
            else:
                made.append(None)
                if not kinds.isdisjoint(_PLAIN_ONES):
                    self._note(column)
        return made

    def _written(self, rows: _Gathered, plain: list[tuple[int, bytes] | None]) -> Rows:
        sort, shape = rows.key
        columns = [
            packed if packed is not None else self._numbered(column, object in kinds)
            for packed, column, kinds in zip(plain, rows.columns, rows.kinds, strict=True)
        ]
        names = shape if sort >= CLASS and isinstance(shape, tuple) else ()
        widths = None if rows.widths is None else memoryview(array("I", rows.widths).tobytes())
        made = tuple([(kind, memoryview(data)) for kind, data in columns])
        return Rows(sort, len(rows.ones), names, widths, made)

    def _numbered(self, column: list[Any], holes: bool) -> tuple[int, bytes]:
        made = array("I", map(self._number.__getitem__, map(id, column)))
        data, one = made.tobytes(), made[:1].tobytes()
        if data and data == one * len(made):
            return SAME, one
        return HOLES if holes else REFS, data


def _plain_dict(held: Any) -> dict[Any, Any]:
    if type(held) is not dict:
        raise NotKeptError("a dict of another kind")
    return held


def _turned(ones: list[Any]) -> list[list[Any]]:
    return list(map(list, zip(*ones, strict=True)))


def _attribute(ones: list[Any], name: str) -> list[Any]:
    held = attrgetter(name)
    try:
        return list(map(held, ones))
    except AttributeError:  # an attribute that is not set
        return [getattr(one, name, UNSET) for one in ones]


def _in_waves(left: dict[_Key, _Gathered]) -> list[_Gathered]:
    """Return objects with parts of their own kind, each after its parts."""
    parts = {key: list(rows.parts()) for key, rows in left.items()}
    at = {id(one): (key, row) for key, rows in left.items() for row, one in enumerate(rows.ones)}
    waiting = dict.fromkeys(at, 0)
    users: dict[int, list[int]] = {}
    for one, (key, row) in at.items():
        for part in map(id, parts[key][row]):
            if part in at:
                waiting[one] += 1
                users.setdefault(part, []).append(one)
    made: list[_Gathered] = []
    ready = [one for one, count in waiting.items() if not count]
    while ready:
        wave: dict[_Key, list[int]] = {}
        after: list[int] = []
        for one in ready:
            key, row = at[one]
            wave.setdefault(key, []).append(row)
            for user in users.get(one, ()):
                waiting[user] -= 1
                if not waiting[user]:
                    after.append(user)
        made += [left[key].chosen(rows, parts[key]) for key, rows in wave.items()]
        ready = after
    if any(waiting.values()):
        raise NotKeptError("a circle of what never changes")
    return made
