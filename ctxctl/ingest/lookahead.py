"""JSON values over several lines, in a file of JSON lines: where the value that a line begins ends.

Each line is looked at once, however many lines before it begin a value that may end on it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar

import orjson

from ctxctl.trace.salvage import nesting_balance

if TYPE_CHECKING:
    from ctxctl.ingest.checkpoint import Checkpoint

MAX_JOINED = 4 * 1024 * 1024
"""Bytes of one record over several lines, where the file is not one document."""
_MAX_LINES: Final = 1 << 18
"""Lines of one such record."""
_IN_VAIN: Final = 16 * 1024 * 1024
"""Bytes that may be joined to no value, whatever the size of the file."""
_TIMES_IN_VAIN: Final = 16
"""How many times the file, so far, may be joined to no value: as deep as a damaged record is nested."""
_GOES_ON: Final = (b"{", b"[", b",", b":")


class _Line(Protocol):
    """A line of the file, or one without data where the last whole one of it ends (`lines.Line`)."""

    @property
    def offset(self) -> int: ...

    @property
    def data(self) -> bytes: ...


_SomeLine = TypeVar("_SomeLine", bound=_Line)


class _Start(NamedTuple):
    """A line that may begin a value, of which no line so far is the last one."""

    number: int
    """Its place among the lines that were read ahead."""
    offset: int
    depth: int
    """How many arrays and objects were open before it."""


class LookAhead(Generic[_SomeLine]):
    """Lines that were read ahead of the one at hand."""

    def __init__(self, lines: Iterator[_SomeLine], checkpoint: Checkpoint | None) -> None:
        self._checkpoint = checkpoint
        self.waiting: deque[_SomeLine] = deque()
        """Those that are still to be handed on, before the rest of the lines."""
        self._lines = lines
        self._read = 0
        """How many lines were read since last none was waiting, with the one that was at hand then."""
        self._depth = 0
        """How many arrays and objects these begin and do not end."""
        self._starts: deque[_Start] = deque()
        self._ends: dict[int, int] = {}
        """By offset of a line, which of those read is the last one of the value that it begins."""
        self._in_vain = 0

    def join(self, line: _SomeLine) -> Any:
        """Take the array or object that a line begins and later lines end; None, and nothing taken, where
        they do not.

        No line of such a value ends within a string.  Looks no further than `MAX_JOINED` bytes, or a whole
        record.
        """
        if line.data[-1:] not in _GOES_ON:
            return None
        if not self.waiting:
            self._begin(line)
        following = self._following(line)
        if following is None:
            return None
        last = self.waiting[following - 1]
        size = last.offset + len(last.data) - line.offset
        if self._in_vain + size > _IN_VAIN + _TIMES_IN_VAIN * line.offset:
            return None
        parts = [line.data, *(more.data for more in islice(self.waiting, following))]
        try:
            value = orjson.loads(b"\n".join(parts))
        except orjson.JSONDecodeError:
            self._in_vain += size
            return None
        for _ in range(following):
            self._ends.pop(self.waiting.popleft().offset, None)
        return value

    def _begin(self, line: _SomeLine) -> None:
        self._read, self._depth = 0, 0
        self._starts.clear()
        self._ends.clear()
        self._take(line)

    def _following(self, line: _SomeLine) -> int | None:
        """How many of the lines that wait belong to the value that a line begins; None if it begins none."""
        here = self._read - len(self.waiting) - 1
        starts = self._starts
        while starts and starts[0].number < here:
            starts.popleft()
        while starts and starts[0].number == here:
            last = self.waiting[-1].offset if self.waiting else line.offset
            if last - line.offset > MAX_JOINED or len(self.waiting) > _MAX_LINES or not self._read_on():
                return None
        end = self._ends.pop(line.offset, None)
        return None if end is None else end - here

    def _read_on(self) -> bool:
        """Read one more line ahead; whether there was one."""
        more = next(self._lines, None)
        if more is not None and not more.data and self._checkpoint is not None:
            self._checkpoint.pass_over()
            more = next(self._lines, None)
        if more is None:
            return False
        self.waiting.append(more)
        self._take(more)
        return True

    def _take(self, line: _SomeLine) -> None:
        """See which values end on a line, and whether it may begin one."""
        starts, data = self._starts, line.data
        number, before = self._read, self._depth
        self._read += 1
        change = nesting_balance(data)
        if change is None or (change == 0 and data[:2] == b'{"' and _is_record(data)):
            starts.clear()
            return
        depth = self._depth = before + change
        while starts and starts[-1].depth >= depth:
            start = starts.pop()
            if start.depth == depth:
                self._ends[start.offset] = number
        if change > 0 and data[-1:] in _GOES_ON and data.lstrip()[:1] in (b"{", b"["):
            starts.append(_Start(number, line.offset, before))


def _is_record(data: bytes) -> bool:
    try:
        return isinstance(orjson.loads(data), dict)
    except orjson.JSONDecodeError:
        return False
