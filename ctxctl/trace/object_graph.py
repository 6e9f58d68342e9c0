"""The classes whose objects a stored object graph may contain (`graph_encode`).

Stored data executes nothing. A class is a number in our own table, its objects are created empty and filled,
and only names in the table are resolved. If a graph holds anything else, nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from types import ModuleType, NoneType
from typing import Any

import msgspec


class NotKeptError(Exception):
    """A graph holds something that cannot be stored."""


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
        self.records = frozenset(records)
        self.enums = frozenset(enums)
        self.classes = [*(made for module in modules for made in classes_of(module)), *self.enums]
        self.number = {made: at for at, made in enumerate(self.classes)}
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
        """Slots to store; None if objects of the class may have any attribute."""

    def _slots(self, made: type) -> tuple[str, ...] | None:
        found: list[str] = []
        for one in reversed(made.__mro__[:-1]):
            named = one.__dict__.get("__slots__")
            if named is None:
                return None
            found += (named,) if isinstance(named, str) else named
        return tuple(name for name in found if name not in self.anew.get(made, {}))


def classes_of(module: ModuleType) -> list[type]:
    """Return the classes that a module defines."""
    return [
        made
        for made in vars(module).values()
        if isinstance(made, type) and made.__module__ == module.__name__ and not issubclass(made, Enum)
    ]
