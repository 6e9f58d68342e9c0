"""Decode object graphs stored by `graph_encode`."""

from __future__ import annotations

import gc
import itertools
import sys
from array import array
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise, repeat
from pathlib import Path
from typing import Any, Final

import msgspec

from ctxctl.trace.cache_files import DamagedError
from ctxctl.trace.graph_columns import (
    CHOICE,
    CLASS,
    COUNT,
    COUNTER,
    DEQUE,
    DICT,
    HOLES,
    INTS,
    LIST,
    MAPPINGS,
    METHOD,
    ORDERED,
    PARTIAL,
    PATH,
    PLAIN,
    SAME,
    SET,
    TUPLE,
    UNSET,
    WHOLE,
    Graph,
    Rows,
    changes,
    unpacked,
    without_collections,
)
from ctxctl.trace.object_graph import GraphTable
from ctxctl.typed_decoding import from_msgpack

_EMPTY: Final[dict[int, Callable[[], Any]]] = {
    LIST: list, DICT: dict, SET: set, DEQUE: deque, ORDERED: OrderedDict, COUNTER: Counter
}  # fmt: skip
_MAX_BYTES: Final = 1 << 26
"""Most objects of a graph that is read."""


def decode_graph(table: GraphTable, data: bytes | memoryview, outside: Sequence[object]) -> Any:
    """Return the graph. The bytes must be unchanged. Raises DamagedError."""
    try:
        with without_collections():
            made = _Decoder(table, (UNSET, *outside)).decode(from_msgpack(data, Graph))
            if not gc.get_freeze_count():
                gc.freeze()  # treat new objects as old,
                gc.unfreeze()  # so that the next collection skips them
            return made
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, msgspec.MsgspecError):
        raise DamagedError from None


class _Decoder:
    def __init__(self, table: GraphTable, outside: Sequence[object]) -> None:
        self._table = table
        self._outside = outside
        self._objects: list[Any] = []

    def decode(self, graph: Graph) -> Any:
        if graph.order != sys.byteorder or sum(rows.count for rows in graph.rows) > _MAX_BYTES:
            raise DamagedError
        objects = self._objects
        objects += self._outside
        objects += graph.texts
        objects += graph.values
        empty: list[tuple[Rows, list[Any]]] = []
        for rows in graph.rows:
            made = list(self._begun(rows))
            if len(made) != rows.count:
                raise DamagedError
            if changes(self._table, rows.sort):
                empty.append((rows, made))
            objects += made
        # Values in a container are complete by then, as far as they are hashed.
        for rows, made in sorted(empty, key=lambda one: one[0].sort < CLASS):
            if rows.sort < CLASS:
                self._fill(rows, made)
            else:
                self._fill_objects(rows, made)
        return objects[graph.root]

    def _shared(self, _made: type, number: Any) -> object:
        return self._outside[number]

    def _column(self, rows: Rows, number: int, count: int | None = None) -> list[Any]:
        """Return a column's values; their number must be `count`."""
        count = rows.count if count is None else count
        kind, data = rows.columns[number]
        if kind in (PLAIN, CHOICE):
            found = unpacked(kind, data, count)
        else:
            held = array("q" if kind == INTS else "I")
            held.frombytes(data)
            if kind == SAME:
                return [self._objects[held[0]]] * count
            found = held.tolist() if kind == INTS else list(map(self._objects.__getitem__, held))
        if len(found) != count:
            raise DamagedError
        return found

    def _field(self, rows: Rows, number: int, held: Any) -> list[Any]:
        """Return a column of records, one attribute of which may be stored whole."""
        kind, data = rows.columns[number]
        if kind != WHOLE:
            return self._column(rows, number)
        found: list[Any] = msgspec.msgpack.decode(data, type=list[held], dec_hook=self._shared)
        if len(found) != rows.count:
            raise DamagedError
        return found

    def _columns(self, rows: Rows) -> list[list[Any]]:
        return [self._column(rows, number) for number in range(len(rows.columns))]

    def _slices(self, rows: Rows) -> tuple[int, Iterable[tuple[int, int]]]:
        """Return the number of parts, and where those of each object begin and end."""
        widths = array("I")
        widths.frombytes(rows.widths or b"")
        if len(widths) != rows.count:
            raise DamagedError
        ends = list(itertools.accumulate(widths, initial=0))
        return ends[-1], pairwise(ends)

    def _begun(self, rows: Rows) -> Iterable[Any]:
        """Return immutable objects, and empty ones of all other kinds."""
        sort = rows.sort
        if sort in _EMPTY:
            make = _EMPTY[sort]
            return [make() for _ in range(rows.count)]
        if sort >= CLASS:
            return self._begun_objects(rows, self._table.classes[sort - CLASS])
        if rows.widths is not None:
            count, slices = self._slices(rows)
            parts = self._column(rows, 0, count)
            each = [parts[start:end] for start, end in slices]
            if sort == PARTIAL:
                return [partial(one[0], **dict(zip(one[1::2], one[2::2], strict=True))) for one in each]
            return map(tuple if sort == TUPLE else frozenset, each)
        columns = self._columns(rows)
        if sort == TUPLE:
            return zip(*columns, strict=True) if columns else repeat((), rows.count)
        if sort == PATH:
            return map(Path, columns[0])
        if sort == COUNT:
            return map(itertools.count, columns[0])
        if sort == METHOD:
            methods = self._table.methods
            return [getattr(one, methods[at][1]) for one, at in zip(*columns, strict=True)]
        raise DamagedError

    def _begun_objects(self, rows: Rows, made: Any) -> Iterable[Any]:
        if made in self._table.records:
            fields = msgspec.structs.fields(made)
            columns = [self._field(rows, at, field.type) for at, field in enumerate(fields)]
            return map(made, *columns)
        if changes(self._table, rows.sort):
            return map(made.__new__, repeat(made, rows.count))
        columns = self._columns(rows)
        if made in self._table.enums:
            return [made[name] for name in columns[0]]
        if issubclass(made, tuple):
            each = zip(*columns, strict=True) if columns else repeat((), rows.count)
            return map(tuple.__new__, repeat(made), each)
        return map(made, *columns) if columns else [made() for _ in range(rows.count)]

    def _fill(self, rows: Rows, ones: list[Any]) -> None:
        """Fill containers."""
        count, slices = self._slices(rows)
        parts = self._column(rows, 0, count)
        if rows.sort in MAPPINGS:
            values = self._column(rows, 1, count)
            for one, (start, end) in zip(ones, slices, strict=True):
                if start < end:
                    update = (
                        one.update if rows.sort != COUNTER else partial(dict.update, one)
                    )  # its own counts
                    update(zip(parts[start:end], values[start:end], strict=True))
            return
        for one, (start, end) in zip(ones, slices, strict=True):
            if start < end:
                (one.update if rows.sort == SET else one.extend)(parts[start:end])

    def _fill_objects(self, rows: Rows, ones: list[Any]) -> None:
        made = self._table.classes[rows.sort - CLASS]
        slots, plain = self._table.slots[made], self._table.plain
        names = rows.names if slots is None else slots
        for number, (name, (kind, _)) in enumerate(zip(names, rows.columns, strict=True)):
            values = self._column(rows, number)
            if (held := plain.get((made, name))) is not None:
                values = [dict(held(value)) for value in values]
            if kind == HOLES:
                for one, value in zip(ones, values, strict=True):
                    if value is not UNSET:
                        setattr(one, name, value)
            elif kind != SAME or (values and values[0] is not UNSET):
                deque(map(setattr, ones, repeat(name), values), maxlen=0)
        for name, anew in self._table.anew.get(made, {}).items():
            for one in ones:
                setattr(one, name, anew())
