"""The rows of a running replay, readable from other threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from ctxctl.engine.replay.entry_log import EntryLog
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.engine.sizes.bills import believed_output
from ctxctl.engine.sizes.prefix import breaks_cache
from ctxctl.model.outline import Row
from ctxctl.model.results import Step, Turn

if TYPE_CHECKING:
    from ctxctl.engine.replay.frames import FrameDelta
    from ctxctl.engine.replay.walked import Walked

_TELL_EVERY: Final = 256
"""Number of steps between two reports of progress."""


class Survey:
    """Rows in the order of the steps. One thread writes, any number read."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.before: list[int | None] = []
        """Ordinal of the thread's previous step, by ordinal."""
        self.entries: dict[ThreadKey, EntryLog] = {}
        """What entered and left each thread's frames, if its steps were noted with their deltas."""
        self._last: dict[ThreadKey, int] = {}
        self._first_of_turn: dict[ThreadKey, int] = {}
        self._turn_ends: dict[tuple[ThreadKey, int], int] = {}

    def note(self, done: Iterable[Step | Turn], delta: Callable[[], FrameDelta] | None = None) -> None:
        """Add what an event, or the end of the trace, has finished.

        `delta` is how the frame of the last step differs from the previous one of its thread.
        """
        for result in done:
            key = ThreadKey(result.session, result.thread)
            if isinstance(result, Step):
                ordinal = len(self.rows)
                if result.step == 1:
                    self._first_of_turn[key] = ordinal
                self.before.append(self._last.get(key))
                self.rows.append(row_of(ordinal, result))
                self._last[key] = ordinal
                if delta is not None:
                    self._enter(key, ordinal, delta())
            else:
                self._turn_ends[key, result.turn] = self._last[key]
                first = self._first_of_turn[key]
                if result.title is not None:
                    self.rows[first] = msgspec.structs.replace(self.rows[first], title=result.title)

    def note_all(
        self, walk: Iterable[Walked], steps: int, progress: Callable[[float], None] | None = None
    ) -> None:
        """Add a whole walk of `steps` steps."""
        for number, one in enumerate(walk):
            if progress is not None and not number % _TELL_EVERY:
                progress(number / steps)
            self.note(one.at.done, partial(_given, one.delta))

    def reword(self, words: Callable[[str], str]) -> int | None:
        """Rename titles. Return the first ordinal whose title changes."""
        first = None
        for ordinal, row in enumerate(self.rows):
            if row.title is not None and (title := words(row.title)) != row.title:
                self.rows[ordinal] = msgspec.structs.replace(row, title=title)
                first = ordinal if first is None else first
        return first

    def _enter(self, key: ThreadKey, ordinal: int, delta: FrameDelta) -> None:
        """Note what a step added to its thread's frame and removed from it."""
        log = self.entries.get(key)
        if log is None:
            log = self.entries[key] = EntryLog()
        log.note(ordinal, delta)

    def turn_end(self, ordinal: int) -> int | None:
        """Return the ordinal of the last step of a step's turn; None if not known yet."""
        if ordinal >= len(self.rows):
            return None
        row = self.rows[ordinal]
        return self._turn_ends.get((ThreadKey(row.session, row.thread), row.turn))

    def last(self, key: ThreadKey) -> int | None:
        """Return the ordinal of a thread's last step."""
        return self._last.get(key)

    def first_of_turn(self, key: ThreadKey) -> int | None:
        """Return the ordinal of the first step of a thread's last turn."""
        return self._first_of_turn.get(key)

    def cut(self, count: int) -> Survey:
        """Return a survey of the first `count` rows. This one does not change for those who hold it."""
        twin = Survey()
        twin.entries = {key: log.cut(count) for key, log in self.entries.items()}
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


def _given(delta: FrameDelta) -> FrameDelta:
    return delta


def row_of(ordinal: int, step: Step) -> Row:
    """Return the outline row of a step; `ordinal` is its index in the order of the steps, from 0."""
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
        broken=breaks_cache(step),
        missed=step.cache.miss.tokens if step.cache.miss is not None else 0,
        cached=step.usage.reported_cached if step.usage is not None else None,
        answered=believed_output(step.usage),
        origin=step.annotations.origin,
        has_partial_output=step.has_partial_output,
        recorded=window.recorded,
        method=window.used_method,
        unrecorded=window.unrecorded,
        limit_source=window.limit_source,
        threshold=window.threshold,
        threshold_source=window.threshold_source,
    )
