"""Object graphs as data: what a pass remembers, written down so that another process can go on with it.

A graph may hold plain values, Python's own containers and objects of the classes that its `GraphTable` names,
with everything that is shared in it and every cycle.  Nothing in the data is executed: a class is a number in
a table of ours, its objects are made empty and filled, and no name is looked up but those of the table.  What
the table does not know is never left out: then nothing is written.
"""

from __future__ import annotations

import functools
import gc
import itertools
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from operator import attrgetter
from pathlib import Path
from types import MethodType, ModuleType, NoneType
from typing import Any, Final

import msgspec

from ctxctl.trace.cache_files import DamagedError

Row = list[int]


class NotKeptError(Exception):
    """A graph holds something that cannot be written down."""


(
    _LIST, _DICT, _SET, _DEQUE, _ORDERED, _COUNTER,
    _TUPLE, _FROZEN, _COUNT, _METHOD, _PARTIAL, _PATH, _CLASS,
) = range(13)  # fmt: skip
_CONTAINERS: Final[dict[type, int]] = {
    list: _LIST, dict: _DICT, set: _SET, deque: _DEQUE, OrderedDict: _ORDERED,
    tuple: _TUPLE, frozenset: _FROZEN, itertools.count: _COUNT, MethodType: _METHOD,
    functools.partial: _PARTIAL, Counter: _COUNTER, type(Path()): _PATH,
}  # fmt: skip
_EMPTY: Final[dict[int, Callable[[], Any]]] = {
    _LIST: list, _DICT: dict, _SET: set, _DEQUE: deque, _ORDERED: OrderedDict, _COUNTER: Counter
}  # fmt: skip
_UNSET: Final = object()
"""An attribute that an object does not have."""


class _Graph(msgspec.Struct, frozen=True, array_like=True):
    values: list[Any]
    rows: list[Row]
    """By object: its sort, and the numbers of what it is made of.  Below zero: -1 is the first value.
    From zero on: first what stands outside, then the objects in this order."""
    root: int


class GraphTable:
    """The classes of which a graph may have objects.

    Args:
        modules: All classes that they define.
        anew: By class, attributes that are not written, each with what makes it again.
        plain: By class, attributes that are dicts of plain values, with the type of what they hold: a key and
            a value.
        records: Those of them that are written as a whole, with nothing in them shared but objects of
            `shared`, which stand outside.
        enums: Enumerations, whose members are written by name.
        methods: Bound methods that objects may hold: the class and the name.
    """

    def __init__(
        self,
        modules: Iterable[ModuleType],
        anew: Mapping[type, Mapping[str, Callable[[], Any]]],
        *,
        plain: Mapping[type, Mapping[str, Any]] | None = None,
        records: Iterable[type] = (),
        enums: Iterable[type[Enum]] = (),
        shared: type = NoneType,
        methods: Iterable[tuple[type, str]] = (),
    ) -> None:
        self.records = list(records)
        self.enums = frozenset(enums)
        self.classes = [*(made for module in modules for made in classes_of(module)), *self.enums]
        self.number = {made: _CLASS + at for at, made in enumerate(self.classes)}
        self.anew = anew
        self.plain = {
            (made, name): msgspec.msgpack.Decoder(list[held]).decode  # type: ignore[valid-type]
            for made, named in (plain or {}).items()
            for name, held in named.items()
        }
        self.shared = shared
        self.methods = list(methods)
        self.is_unchanging = {made: issubclass(made, tuple | msgspec.Struct | Enum) for made in self.classes}
        self.slots = {made: self._slots(made) for made in self.classes}
        """The slots that are written; None where objects of the class may have any attribute."""
        self.held = {made: attrgetter(*names) for made, names in self.slots.items() if names and names[1:]}

    def _slots(self, made: type) -> tuple[str, ...] | None:
        found: list[str] = []
        for one in reversed(made.__mro__[:-1]):
            named = one.__dict__.get("__slots__")
            if named is None:
                return None
            found += (named,) if isinstance(named, str) else named
        return tuple(name for name in found if name not in self.anew.get(made, {}))

    def encode(self, root: object, outside: Sequence[object]) -> bytes:
        """A graph as bytes; `outside` are objects that whoever reads it has in the same order.

        Raises NotKeptError.
        """
        try:
            with _without_collections():
                return _Encoder(self, (_UNSET, *outside)).encode(root)
        except (LookupError, RecursionError, OverflowError, TypeError, ValueError) as error:
            raise NotKeptError(str(error)) from None

    def decode(self, data: bytes, outside: Sequence[object]) -> Any:
        """The graph again.  The bytes have to be those that were written; raises DamagedError."""
        try:
            with _without_collections():
                return _Decoder(self, (_UNSET, *outside)).decode(msgspec.msgpack.decode(data, type=_Graph))
        except (LookupError, TypeError, ValueError, AttributeError, msgspec.MsgspecError):
            raise DamagedError from None


@contextmanager
def _without_collections() -> Iterator[None]:
    """Hundreds of thousands of objects are made and all of them stay: looking for garbage takes a third."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def classes_of(module: ModuleType) -> list[type]:
    """The classes that a module defines."""
    return [
        made
        for made in vars(module).values()
        if isinstance(made, type) and made.__module__ == module.__name__ and not issubclass(made, Enum)
    ]


class _Encoder:
    def __init__(self, table: GraphTable, outside: Sequence[object]) -> None:
        self._table = table
        self._known = {id(one): at for at, one in enumerate(outside) if one is not None}
        self._bound = {
            (id(one.__self__), one.__func__): at
            for at, one in enumerate(outside)
            if isinstance(one, MethodType)
        }
        self._first = len(outside)
        self._rows: list[Row] = []
        self._values: list[Any] = []
        self._strings: dict[str, int] = {}
        self._numbers: dict[tuple[type, Any], int] = {}
        self._waiting: deque[tuple[Row, object, int]] = deque()
        self._record = msgspec.msgpack.Encoder(enc_hook=self._shared).encode
        self._records = frozenset(table.records)

    def encode(self, root: object) -> bytes:
        always: tuple[object, ...] = (None, True, False)
        for one in always:
            self._known[id(one)] = self._value((type(one), one), one)
        number = self._ref(root)
        while self._waiting:
            self._fill(*self._waiting.popleft())
        return msgspec.msgpack.encode(_Graph(self._values, self._rows, number))

    def _shared(self, one: object) -> int:
        if not isinstance(one, self._table.shared):
            raise NotImplementedError(type(one).__qualname__)
        return self._known[id(one)]

    def _ref(self, one: object) -> int:
        made = type(one)
        if made is str:
            at = self._strings.get(one)  # type: ignore[call-overload]
            if at is None:
                self._values.append(one)
                at = self._strings[one] = -len(self._values)  # type: ignore[index]
            return at  # type: ignore[no-any-return]
        known = self._known.get(id(one))
        if known is not None:
            return known
        if made is int or made is bytes:
            return self._value((made, one), one)
        if made is float:
            return self._value((made, repr(one)), one)  # 0.0 equals -0.0, and NaN not itself
        sort = _CONTAINERS.get(made)
        if sort is None:
            sort = self._table.number.get(made)
            if sort is None:
                raise NotKeptError(f"{made.__module__}.{made.__qualname__}")
            if self._table.is_unchanging[made]:
                return self._unchanging(one, sort)
        elif sort >= _TUPLE:
            return self._unchanging(one, sort)
        row = [sort]
        self._waiting.append((row, one, sort))
        return self._add(one, row)

    def _value(self, key: tuple[type, Any], one: object) -> int:
        at = self._numbers.get(key)
        if at is None:
            at = self._numbers[key] = len(self._values)
            self._values.append(one)
        return ~at

    def _add(self, one: object, row: Row) -> int:
        number = self._known[id(one)] = self._first + len(self._rows)
        self._rows.append(row)
        return number

    def _outside_number(self, one: Any) -> int | None:
        """The number of a function that stands outside; a bound method is another object each time."""
        if isinstance(one, MethodType):
            return self._bound.get((id(one.__self__), one.__func__))
        return self._known.get(id(one))

    def _unchanging(self, one: Any, sort: int) -> int:
        """What has to be made at once, of parts that are there."""
        if sort == _METHOD and (number := self._outside_number(one)) is not None:
            return number
        if type(one) in self._records:
            self._values.append(self._record(one))
            return self._add(one, [sort, -len(self._values)])
        known, ref = self._known.get, self._ref
        parts = one if sort == _TUPLE else self._parts(one, sort)
        return self._add(one, [sort, *[known(id(part)) or ref(part) for part in parts]])

    def _parts(self, one: Any, sort: int) -> Iterable[object]:
        if sort == _PATH:
            return (str(one),)
        if sort >= _CLASS and type(one) in self._table.enums:
            return (one.name,)
        if sort == _COUNT:
            return (int(repr(one)[len("count(") : -1]),)  # nothing else tells
        if sort == _METHOD:
            for at, (owner, name) in enumerate(self._table.methods):
                if isinstance(one.__self__, owner) and getattr(owner, name) is one.__func__:
                    return (one.__self__, at)
            raise NotKeptError(f"method {one.__func__.__qualname__}")
        if sort == _PARTIAL:
            if one.args or self._outside_number(one.func) is None:
                raise NotKeptError("a partial function")
            return (one.func, *itertools.chain.from_iterable(one.keywords.items()))
        if isinstance(one, msgspec.Struct):
            return msgspec.structs.astuple(one)
        return one  # type: ignore[no-any-return]

    def _fill(self, row: Row, one: Any, sort: int) -> None:
        if sort >= _CLASS:
            self._fill_object(row, one)
            return
        if sort == _DEQUE and one.maxlen is not None:
            raise NotKeptError("a deque with a limit")
        known, ref = self._known.get, self._ref
        parts = one
        if sort in (_DICT, _ORDERED, _COUNTER):
            parts = itertools.chain.from_iterable(one.items())
        row += [known(id(part)) or ref(part) for part in parts]

    def _fill_object(self, row: Row, one: Any) -> None:
        made, ref = type(one), self._ref
        slots = self._table.slots[made]
        if slots is not None:
            held: Iterable[object]
            try:
                held = self._table.held[made](one)
            except (KeyError, AttributeError):  # one that is not set yet
                held = [getattr(one, name, _UNSET) for name in slots]
            known = self._known.get
            row += [known(id(value)) or ref(value) for value in held]
            return
        anew = self._table.anew.get(made, {})
        for name, value in vars(one).items():
            if (made, name) in self._table.plain:
                row += (ref(name), ref(msgspec.msgpack.encode(list(value.items()))))
            elif name not in anew:
                row += (ref(name), ref(value))


class _Decoder:
    def __init__(self, table: GraphTable, outside: Sequence[object]) -> None:
        self._table = table
        self._outside = outside
        self._records: dict[int, Callable[[bytes], Any]] = {
            self._table.number[made]: msgspec.msgpack.Decoder(made, dec_hook=self._shared).decode
            for made in table.records
        }

    def _shared(self, _made: type, number: Any) -> object:
        return self._outside[number]

    def decode(self, graph: _Graph) -> Any:
        rows, first = graph.rows, len(self._outside)
        objects: list[Any] = [*self._outside, *([None] * len(rows)), *reversed(graph.values)]
        for at, row in enumerate(rows, first):
            objects[at] = self._begun(row[0], [objects[part] for part in row[1:]] if row[0] >= _TUPLE else [])
        for at, row in enumerate(rows, first):
            if row[0] < _TUPLE or row[0] >= _CLASS:
                self._fill(objects[at], row[0], [objects[part] for part in row[1:]])
        return objects[graph.root]

    def _begun(self, sort: int, parts: list[Any]) -> Any:
        """An object that never changes; of any other, the empty one."""
        if sort >= _CLASS:
            made = self._table.classes[sort - _CLASS]
            if sort in self._records:
                return self._records[sort](parts[0])
            if issubclass(made, tuple):
                return tuple.__new__(made, parts)
            if issubclass(made, msgspec.Struct):
                return made(*parts)
            return made[parts[0]] if issubclass(made, Enum) else made.__new__(made)
        if sort == _TUPLE:
            return tuple(parts)
        if sort == _FROZEN:
            return frozenset(parts)
        if sort == _PATH:
            return Path(parts[0])
        if sort == _COUNT:
            return itertools.count(parts[0])
        if sort == _METHOD:
            return getattr(parts[0], self._table.methods[parts[1]][1])
        if sort == _PARTIAL:
            return functools.partial(parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True)))
        return _EMPTY[sort]()

    def _fill(self, one: Any, sort: int, parts: list[Any]) -> None:
        if sort in (_LIST, _DEQUE):
            one.extend(parts)
        elif sort == _SET:
            one.update(parts)
        elif sort == _COUNTER:
            dict.update(one, zip(parts[::2], parts[1::2], strict=True))  # its own would count
        elif sort in (_DICT, _ORDERED):
            one.update(zip(parts[::2], parts[1::2], strict=True))
        elif not self._table.is_unchanging[type(one)]:
            self._fill_object(one, parts)

    def _fill_object(self, one: Any, parts: list[Any]) -> None:
        slots = self._table.slots[type(one)]
        pairs = zip(parts[::2], parts[1::2], strict=True) if slots is None else zip(slots, parts, strict=True)
        plain = self._table.plain
        for name, value in pairs:
            if value is not _UNSET:
                held = plain.get((type(one), name))
                setattr(one, name, value if held is None else dict(held(value)))
        for name, made in self._table.anew.get(type(one), {}).items():
            setattr(one, name, made())
