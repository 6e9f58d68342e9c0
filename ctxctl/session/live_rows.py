"""What a live replay knows at one moment: steps that are over, and steps that are still being written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, overload

import msgspec

from ctxctl.engine.replay.cursor import StepAt
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.model.outline import Row
from ctxctl.model.results import Summary, Turn
from ctxctl.session.survey import Survey, row_of

TurnKey = tuple[ThreadKey, int]


class LiveRows(Sequence[Row]):
    """The rows of one moment; it never changes, whatever happens to the trace later."""

    __slots__ = ("_over", "_provisional", "_titles", "settled")

    def __init__(
        self, over: Sequence[Row], settled: int, provisional: tuple[Row, ...], titles: dict[int, str]
    ) -> None:
        self._over = over
        self.settled = settled
        """Rows of steps that are over; those behind may be others at the next moment."""
        self._provisional = provisional
        self._titles = titles
        """Titles of turns that are not over, by the ordinal of their first step."""

    def __len__(self) -> int:
        return self.settled + len(self._provisional)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        if isinstance(index, slice):
            return [self[n] for n in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(index)
        if index >= self.settled:
            return self._provisional[index - self.settled]
        row = self._over[index]
        title = self._titles.get(index)
        return row if title is None or row.title is not None else _titled(row, title)

    def __iter__(self) -> Iterator[Row]:
        return (self[n] for n in range(len(self)))


class LiveTail(NamedTuple):
    """What would be finished if nothing more came: values of their own, not to be found by replaying."""

    first: int
    """Ordinal of the first step in it."""
    ats: tuple[StepAt, ...]
    rows: tuple[Row, ...]
    before: tuple[int | None, ...]
    turns: dict[TurnKey, tuple[int, Turn]]
    """The turns that are open, and the ordinal of their last step."""
    titles: dict[int, str]
    summary: Summary | None


def empty_tail(first: int) -> LiveTail:
    """Nothing is open, or nobody has looked."""
    return LiveTail(first, (), (), (), {}, {}, None)


def tail_of(survey: Survey, ats: Iterable[StepAt], summary: Summary) -> LiveTail:
    """The tail of a survey, which stays as it is."""
    first = len(survey.rows)
    found: list[StepAt] = []
    rows: list[Row] = []
    before: list[int | None] = []
    turns: dict[TurnKey, tuple[int, Turn]] = {}
    titles: dict[int, str] = {}
    last: dict[ThreadKey, int] = {}
    began: dict[ThreadKey, int] = {}
    for at in ats:
        step, ordinal = at.step, first + len(rows)
        key = ThreadKey(step.session, step.thread)
        if step.step == 1:
            began[key] = ordinal
        before.append(last.get(key, survey.last(key)))
        last[key] = ordinal
        found.append(at)
        rows.append(row_of(ordinal, step))
        if at.turn is None:
            continue
        turns[key, at.turn.turn] = (ordinal, at.turn)
        start = began.get(key, survey.first_of_turn(key))
        if at.turn.title is not None and start is not None:
            if start < first:
                titles[start] = at.turn.title
            else:
                rows[start - first] = _titled(rows[start - first], at.turn.title)
    return LiveTail(first, tuple(found), tuple(rows), tuple(before), turns, titles, summary)


def _titled(row: Row, title: str) -> Row:
    return msgspec.structs.replace(row, title=title)
