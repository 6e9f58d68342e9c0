"""What responses were given and said, for requests that name one of them and send only what is new."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

_ALL: Final = 128 << 20
"""Bytes of all of them."""
_NAME: Final = 200
"""Bytes that an id is counted with."""

Key = tuple[Hashable, str]
"""Where an id holds (a connection, a server), and the id."""


class _Line:
    """One conversation, which responses have gone on with."""

    __slots__ = ("items", "names", "size")

    def __init__(self, items: list[bytes]) -> None:
        self.items = items
        self.names: list[Key] = []
        self.size = sum(map(len, items))


class _Place(NamedTuple):
    line: _Line
    length: int
    """Items of the line that were there when the response was over."""


class Histories:
    """Remembers input items by the id of the response that they led to.

    Memory: 128 MB; the conversation that was not heard of for longest goes first.  A conversation that goes
    on costs what is new in it, one that goes on from its middle costs all that came before.
    """

    def __init__(self) -> None:
        self._places: dict[Key, _Place] = {}
        self._lines: OrderedDict[int, _Line] = OrderedDict()
        self._size = 0
        self._connections = 0

    def connection(self) -> int:
        """A number for one more connection."""
        self._connections += 1
        return self._connections

    def find(self, keys: Sequence[Key]) -> list[bytes] | None:
        """The items, each as JSON, that stand before what is new, by the first of the keys that is known."""
        place = self._place(keys)
        if place is None:
            return None
        self._lines.move_to_end(id(place.line))
        return place.line.items[: place.length]

    def keep(self, keys: Sequence[Key], before: Sequence[Key], new: Sequence[bytes]) -> None:
        """Remember a response.

        Args:
            keys: What it is known by from now on.
            before: Of the response that its request named; none, or none that is known: `new` is all of it.
            new: The request's own items and those that were answered, each as JSON.
        """
        place = self._place(before)
        if place is None:
            line = self._begin(list(new))
        else:
            line = place.line
            if place.length < len(line.items):
                line = self._begin(line.items[: place.length])
            line.items += new
            line.size += sum(map(len, new))
            self._size += sum(map(len, new))
        for key in keys:
            self._places[key] = _Place(line, len(line.items))
            line.names.append(key)
            line.size += _NAME
            self._size += _NAME
        self._lines.move_to_end(id(line))
        while self._size > _ALL and self._lines:
            self._drop(self._lines.popitem(last=False)[1])

    def _place(self, keys: Sequence[Key]) -> _Place | None:
        return next((place for key in keys if (place := self._places.get(key)) is not None), None)

    def _begin(self, items: list[bytes]) -> _Line:
        line = _Line(items)
        self._lines[id(line)] = line
        self._size += line.size
        return line

    def _drop(self, line: _Line) -> None:
        self._size -= line.size
        for key in line.names:
            place = self._places.get(key)
            if place is not None and place.line is line:
                del self._places[key]
