"""Requests that wait for their answers, which may come in any order, lines or files later."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Final, NamedTuple

import orjson

from ctxctl.formats.api.shapes import Shape

MAX_WAITING: Final = 64 << 20
"""Bytes of requests (and answers behind them) that wait, as JSON."""
_ODD: Final = 1 << 16
"""What a record counts for that cannot be packed."""


class Asked(NamedTuple):
    """A request, and its answer where it has come."""

    shape: Shape
    line: int
    answer_line: int = 0
    answer_file: str | None = None


class _Held:
    """An entry; what waits is kept as JSON, which takes a fraction of the room."""

    __slots__ = (
        "_answer",
        "_request",
        "answer_file",
        "answer_line",
        "answered",
        "file",
        "id",
        "line",
        "size",
    )

    def __init__(self, shape: Shape, line: int, file: str | None) -> None:
        self.line = line
        self.file = file
        self.answer_line = 0
        self.answer_file: str | None = None
        self.id = shape.id
        self.answered = False
        self._request: bytes | Shape = _packed(shape)
        self._answer: bytes | Shape | None = None
        self.size = _size(self._request)

    def shape(self) -> Shape:
        return _unpacked(self._request)

    def answer(self, shape: Shape, line: int, file: str | None) -> int:
        """Take the answer; the bytes that it adds."""
        self._answer, self.answered = _packed(shape), True
        self.answer_line, self.answer_file = line, file
        added = _size(self._answer)
        self.size += added
        return added

    def asked(self) -> Asked:
        shape = _unpacked(self._request)
        if self._answer is not None:
            answer = _unpacked(self._answer)
            status = shape.status if shape.status is not None else answer.status
            shape = shape._replace(response=answer.response, status=status, error=shape.error or answer.error)
        return Asked(shape, self.line, self.answer_line, self.answer_file)


class Waiting:
    """Requests in their order, each handed on once it is answered or given up."""

    def __init__(self) -> None:
        self._queue: OrderedDict[int, _Held] = OrderedDict()
        self._named: dict[str, deque[int]] = {}
        self._early: OrderedDict[str, _Held] = OrderedDict()
        """Answers of a batch whose requests have not come yet."""
        self._last: int | None = None
        """The request that an answer without an id is to."""
        self._next = 0
        self._size = 0
        self.dropped = 0
        """Requests that were handed on without an answer because too much waited."""

    def ask(self, shape: Shape, line: int, file: str | None = None) -> None:
        """A request; one without an id before it is given up."""
        key, held = self._put(shape, line, file)
        early = self._early.pop(shape.id or "", None)
        if early is not None:
            self._size += held.answer(early.shape(), early.line, early.file) - early.size
            return
        self._last = key
        if shape.id is not None:
            self._named.setdefault(shape.id, deque()).append(key)

    def pair(self, shape: Shape, line: int, file: str | None = None) -> None:
        """A request that has its answer already; its turn comes behind those that wait."""
        self._put(shape, line, file)[1].answered = True

    def answer(self, shape: Shape, line: int, file: str | None = None) -> bool:
        """An answer; False if no request waits for it, nor may come yet."""
        key = self._named[shape.id][0] if shape.id in self._named else self._last
        held = self._queue.get(key) if key is not None else None
        if key is not None and held is not None and (None in (held.id, shape.id) or held.id == shape.id):
            self._forget(key, held)
            self._size += held.answer(shape, line, file)
            return True
        if shape.batch is None or shape.batch in self._early or self._size > MAX_WAITING:
            return False
        early = self._early[shape.batch] = _Held(shape, line, file)
        self._size += early.size
        return True

    def _put(self, shape: Shape, line: int, file: str | None) -> tuple[int, _Held]:
        last = self._queue.get(self._last) if self._last is not None else None
        if last is not None and last.id is None:
            last.answered = True
        key, self._next = self._next, self._next + 1
        held = self._queue[key] = _Held(shape, line, file)
        self._size += held.size
        return key, held

    def alone(self) -> Iterator[tuple[Shape, int, str | None]]:
        """The answers of batches whose requests never came, with their lines and files."""
        while self._early:
            _, early = self._early.popitem(last=False)
            self._size -= early.size
            yield early.shape(), early.line, early.file

    def ready(self, *, all_of_them: bool = False) -> Iterator[tuple[Asked, str | None]]:
        """Hand on what need not wait any longer, in the order asked, with the file that each is from."""
        while self._queue:
            key, held = next(iter(self._queue.items()))
            if not held.answered and not all_of_them:
                if self._size <= MAX_WAITING:
                    return
                self.dropped += 1
            del self._queue[key]
            self._forget(key, held)
            self._size -= held.size
            yield held.asked(), held.file

    def _forget(self, key: int, held: _Held) -> None:
        """No answer is to go to this entry any more."""
        if key == self._last:
            self._last = None
        keys = self._named.get(held.id) if held.id is not None else None
        if keys is not None and held.id is not None and key in keys:
            keys.remove(key)
            if not keys:
                del self._named[held.id]


def _packed(shape: Shape) -> bytes | Shape:
    try:
        # A copy: the bytes that it gives have room for many more behind them, which is kept with them.
        return memoryview(orjson.dumps(shape._asdict())).tobytes()
    except TypeError:
        # Nested too deep, or characters that no UTF-8 has: what was salvaged of a damaged line.
        return shape


def _unpacked(held: bytes | Shape) -> Shape:
    return held if isinstance(held, Shape) else Shape(**orjson.loads(held))


def _size(held: bytes | Shape) -> int:
    return len(held) if isinstance(held, bytes) else _ODD
