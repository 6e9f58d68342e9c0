"""The rows of a replay as they come, readable from other threads while it runs."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ctxctl.engine.track import ThreadKey
from ctxctl.model.outline import Row
from ctxctl.model.results import Step, Turn


class Survey:
    """Rows in the order of the steps; one thread writes, any number read."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.before: list[int | None] = []
        """By ordinal, the ordinal of the step before in the same thread."""
        self._last: dict[ThreadKey, int] = {}
        self._first_of_turn: dict[ThreadKey, int] = {}
        self._turn_ends: dict[tuple[ThreadKey, int], int] = {}

    def note(self, done: Iterable[Step | Turn]) -> None:
        """Take in what an event, or the end of the trace, has finished."""
        for result in done:
            key = ThreadKey(result.session, result.thread)
            if isinstance(result, Step):
                ordinal = len(self.rows)
                if result.step == 1:
                    self._first_of_turn[key] = ordinal
                self.before.append(self._last.get(key))
                self.rows.append(row_of(ordinal, result))
                self._last[key] = ordinal
            else:
                self._turn_ends[key, result.turn] = self._last[key]
                first = self._first_of_turn[key]
                if result.title is not None:
                    self.rows[first] = msgspec.structs.replace(self.rows[first], title=result.title)

    def turn_end(self, ordinal: int) -> int | None:
        """The ordinal of the last step of the turn that holds a step; None if that is not known yet."""
        if ordinal >= len(self.rows):
            return None
        row = self.rows[ordinal]
        return self._turn_ends.get((ThreadKey(row.session, row.thread), row.turn))

    def last(self, key: ThreadKey) -> int | None:
        """The ordinal of a thread's last step."""
        return self._last.get(key)

    def first_of_turn(self, key: ThreadKey) -> int | None:
        """The ordinal of the first step of a thread's last turn."""
        return self._first_of_turn.get(key)

    def cut(self, count: int) -> Survey:
        """The survey as it was with its first `count` rows; this one stays for those who hold it."""
        twin = Survey()
        twin._turn_ends = {key: end for key, end in self._turn_ends.items() if end < count}
        for row, before in zip(self.rows[:count], self.before, strict=False):
            key = ThreadKey(row.session, row.thread)
            if row.step == 1:
                twin._first_of_turn[key] = row.ordinal
            if row.title is not None and (key, row.turn) not in twin._turn_ends:
                row = msgspec.structs.replace(row, title=None)
            twin.rows.append(row)
            twin.before.append(before)
            twin._last[key] = row.ordinal
        return twin


def row_of(ordinal: int, step: Step) -> Row:
    """The row of a step."""
    window, ledger = step.window, step.ledger
    return Row(
        ordinal=ordinal,
        session=step.session,
        thread=step.thread,
        turn=step.turn,
        step=step.step,
        turn_id=step.turn_id,
        step_id=step.step_id,
        time=step.time,
        used=window.used,
        new=ledger.new,
        freed=ledger.freed,
        cap=window.cap,
        limit=window.limit,
        stale=ledger.stale,
        saved=ledger.saved,
        uncounted=window.uncounted,
        counts=step.counts,
        compacted="compacted" in step.flags,
        flags=step.flags,
        title=None,
        model=step.model,
        reported=step.usage.reported_input if step.usage is not None else None,
        first_line=step.first_line,
        offset=step.first_byte,
        broken=_breaks(step),
        cached=step.usage.reported_cached if step.usage is not None else None,
        answered=step.usage.reported_output if step.usage is not None else None,
        origin=step.told.origin,
    )


def _breaks(step: Step) -> bool:
    """Whether less than nine tenths of the request before could come from a prompt cache.

    Nearly every request changes something at its end, such as a state that is stated anew; that costs a cache
    little and is no break.
    """
    prefix = step.cache.possible_prefix
    return (
        step.cache.broken_by is not None
        and prefix is not None
        and prefix * 10 < step.ledger.window_before * 9
    )
