"""The frames of a page: runs of steps of one thread, each frame told by how it differs from the one before.

A run begins with a whole frame, so it can be opened by itself; it ends once its differences weigh twice as
much as that frame.  The page therefore grows with what changes, not with steps times items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

import msgspec

from ctxctl.engine.replay.frames import FrameDelta
from ctxctl.item_names import local
from ctxctl.listdiff import Splice, splices
from ctxctl.model.results import Change, Placement, Step
from ctxctl.report import jsonout
from ctxctl.report.html.contents import Texts, dumped, packed, without_empty

_FULL: Final = 96 << 10
"""Bytes of differences that a run holds at least before it ends."""
_PENDING: Final = 32 << 20
"""Bytes that all open runs may hold together."""
_TOGETHER: Final = 256
"""Rows that are joined at once."""
_PLACE: Final = frozenset({"type", "session", "thread", "turn", "step"})
"""What a step's row says already."""


class Mark(NamedTuple):
    """Since when a placement has been in the window, and what it took the place of."""

    since: int
    """Ordinal of the first step of this stay."""
    version: str | None
    """The version of the same item that the thread held last before."""
    text: int | None
    """Its text, by number; None: there was none."""


class Run:
    """The open run of a thread."""

    def __init__(self) -> None:
        self.steps: list[bytes] = []
        self.rows: list[bytes] = []
        self.places: dict[tuple[int, Mark], int] = {}
        self.held: list[Placement] = []
        """Keeps the placements alive whose identity the table goes by."""
        self.key = 0
        """Bytes of the whole frame that it begins with."""
        self.weight = 0

    def place(self, placement: Placement, mark: Mark, row: Callable[[Placement, Mark], bytes]) -> int:
        """The number of a placement in the run's table."""
        found = self.places.get((id(placement), mark))
        if found is None:
            found = self.places[id(placement), mark] = len(self.rows)
            self.rows.append(row(placement, mark))
            self.held.append(placement)
            self.weight += len(self.rows[-1])
        return found

    def packed(self, name: str) -> bytes:
        """The finished run as an element of the page."""
        rows, steps = _joined(self.rows), _joined(self.steps)
        return packed(name, chain((b'{"p":[',), rows, (b'],"s":[',), steps, (b"]}",)))


def _joined(rows: list[bytes]) -> Iterator[bytes]:
    """Rows with commas between them, some at a time."""
    for at in range(0, len(rows), _TOGETHER):
        yield (b"," if at else b"") + b",".join(rows[at : at + _TOGETHER])


class Thread:
    """What is known of a thread as of its last step."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.steps = 0
        self.begun = 0
        """Place in the thread of the open run's first step."""
        self.frame: Sequence[Placement] = ()
        self.marks: list[Mark] = []
        self.last: dict[str, tuple[str | None, int]] = {}
        """By item, version and text number that the thread held last."""
        self.run: Run | None = None


class Frames:
    """Writes the frames of a page.

    Args:
        emit: Takes each finished run.
        directory: Where the session ran; titles tell paths below it from there.
    """

    def __init__(self, texts: Texts, emit: Callable[[bytes], None], directory: str | None = None) -> None:
        self._directory = directory
        self._texts = texts
        self._emit = emit
        self._pending = 0
        self._threads: dict[tuple[str | None, str], Thread] = {}
        self.runs: list[tuple[int, int, int]] = []
        """Thread, place in it of the first step, number of steps; in the order of the blocks."""

    def thread(self, step: Step) -> Thread:
        """The thread of a step."""
        key = (step.session, step.thread)
        found = self._threads.get(key)
        if found is None:
            found = self._threads[key] = Thread(len(self._threads))
        return found

    def add(self, ordinal: int, step: Step, frame: Sequence[Placement], delta: FrameDelta) -> Thread:
        """Take in the next step of the trace, and how its frame differs from the one before; its thread."""
        thread = self.thread(step)
        run = thread.run
        known = delta.before is thread.frame and delta.after is frame
        found = splices(thread.frame, frame, head=delta.prefix if known else 0)
        marks = self._marked(thread, ordinal, frame, found)
        before, begins = (0, True) if run is None else (run.weight, False)
        if run is None:
            run = thread.run = Run()
            thread.begun = thread.steps
            edits: list[Any] = [
                [0, 0, [run.place(p, m, self._row) for p, m in zip(frame, marks, strict=True)]]
            ]
        else:
            edits, shift = [], 0
            for at, removed, inserted in found:
                start = at + shift
                edits.append(
                    [at, removed, [run.place(p, marks[start + n], self._row) for n, p in enumerate(inserted)]]
                )
                shift += len(inserted) - removed
        thread.frame, thread.marks = frame, marks
        run.steps.append(dumped({"e": edits, **self._step_row(thread, step)}))
        run.weight += len(run.steps[-1])
        if begins:
            run.key = run.weight
        thread.steps += 1
        self._pending += run.weight - before
        if run.weight - run.key >= max(_FULL, 2 * run.key):
            self._close(thread)
        elif self._pending > _PENDING:
            self._close(max(self._threads.values(), key=lambda t: t.run.weight if t.run else 0))
        return thread

    def flush(self) -> None:
        """Close all open runs, in the order of their threads."""
        for thread in self._threads.values():
            self._close(thread)

    def _close(self, thread: Thread) -> None:
        run = thread.run
        if run is None:
            return
        self._emit(run.packed(f"s{len(self.runs)}"))
        self.runs.append((thread.number, thread.begun, len(run.steps)))
        self._pending -= run.weight
        thread.run = None

    def _marked(
        self, thread: Thread, ordinal: int, frame: Sequence[Placement], found: list[Splice[Placement]]
    ) -> list[Mark]:
        """The marks of the new frame: what only moved keeps its own."""
        if not found:
            return thread.marks
        moved = {thread.frame[n].key: thread.marks[n] for s in found for n in range(s.at, s.at + s.removed)}
        marks = list(thread.marks)
        for splice in reversed(found):
            fresh = []
            for p in splice.inserted:
                mark = moved.get(p.key)
                fresh.append(self._new(thread, ordinal, p) if mark is None else mark)
            marks[splice.at : splice.at + splice.removed] = fresh
        return marks

    def _new(self, thread: Thread, ordinal: int, placement: Placement) -> Mark:
        number = self._texts.number(placement, ordinal)
        before = thread.last.get(placement.item)
        thread.last[placement.item] = (placement.version, number)
        if before is None or before[1] == number:
            return Mark(ordinal, None, None)
        return Mark(ordinal, before[0], before[1])

    def _row(self, p: Placement, mark: Mark) -> bytes:
        number = self._texts.number(p, mark.since)
        flags = p.stale | p.derived << 1 | p.simulated << 2 | p.truncated << 3 | p.carried << 4 | p.own << 5
        row = [
            p.item, p.version, p.kind, self._title(p.title), p.source, p.segment, p.role, p.tokens, p.method,
            number, flags, p.redaction, p.opens, p.closes, p.line, p.digest, *mark,
            None if p.title is not None else self._texts.head(number),
        ]  # fmt: skip
        return dumped(row)

    def _title(self, title: str | None) -> str | None:
        return None if title is None else local(title, self._directory)

    def _head(self, thread: Thread, change: Change) -> str | None:
        """What an item without a title was called that is no longer in the frame, or not yet: first words."""
        held = None
        if change.title is None and change.status in ("removed", "omitted"):
            held = thread.last.get(change.item)
        return None if held is None else self._texts.head(held[1])

    def _step_row(self, thread: Thread, step: Step) -> dict[str, Any]:
        row = jsonout.step(step)
        row["changes"] = [
            {
                **msgspec.structs.asdict(change),
                "line": value.line,
                "head": self._head(thread, value),
                "title": self._title(value.title),
            }
            for change, value in zip(
                row["changes"], (c for c in step.changes if c.status != "skipped"), strict=True
            )
        ]
        return {name: without_empty(value) for name, value in row.items() if name not in _PLACE}
