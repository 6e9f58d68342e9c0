"""Writes the session store while a trace is replayed."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ctxctl.engine.replay.frames import FrameDelta, delta_of
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.model.content import Content
from ctxctl.model.results import Change, Placement, Step
from ctxctl.store.frames import NO_COPIES, Move, OpenStays, Stay
from ctxctl.store.rows import (
    CHANGE_INSERT,
    PLACEMENT_FIELDS,
    STEP_INSERT,
    TEXT_COLUMNS,
    ToldDelta,
    change_row,
    step_row,
    text_row,
    turn_body,
)
from ctxctl.trace.contents import StoredContent

if TYPE_CHECKING:
    from ctxctl.engine.replay.run import Engine
    from ctxctl.engine.replay.walked import Walked
    from ctxctl.trace.contents import Contents

SCHEMA: Final = Path(__file__).with_name("schema.sql")
_KNOWN: Final = 1 << 16
"""Placements that the writer knows again; one that is forgotten gets a second row."""
_HELD: Final = 1024
"""Rows that are held back until they are written together."""
_INSERTS: Final = {
    "texts": f"INSERT INTO texts (id, {', '.join(TEXT_COLUMNS)}) VALUES (?{', ?' * len(TEXT_COLUMNS)})",
    "items": "INSERT INTO items VALUES (?, ?, ?, ?, ?)",
    "placements": (
        f"INSERT INTO placements (id, item, text, {', '.join(PLACEMENT_FIELDS)})"
        f" VALUES (?, ?, ?{', ?' * len(PLACEMENT_FIELDS)})"
    ),
    "stays": "INSERT INTO stays (thread, first, last, pos, placement) VALUES (?, ?, ?, ?, ?)",
    "steps": STEP_INSERT,
    "changes": CHANGE_INSERT,
    "copies": "INSERT INTO copies VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    "entries": (
        "INSERT INTO entries (thread, item, kind, title, source, line, newest, visible)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    ),
    "turns": "INSERT INTO turns VALUES (?, ?, ?, ?)",
}


class WriterState(NamedTuple):
    """What a writer knows of its rows, beside what they say."""

    steps: int
    placements: int
    known: list[tuple[Placement, int]]
    """Placements that it would know again, with their rows."""
    texts: dict[Content, int]
    """The row of each text."""
    windows: dict[ThreadKey, list[Placement]]
    """The window of each thread."""


class RowWriter:
    """Writes the rows of a store into a database.  Raises sqlite3.Error, ValueError or OverflowError for what
    cannot be a row; what is written is then of no use."""

    def __init__(
        self, connection: sqlite3.Connection, contents: Contents, texts: list[Content] | None = None
    ) -> None:
        """`texts` takes the text of each row, so that rows need not say where a text is."""
        self._connection = connection
        self._contents = contents
        self._threads: dict[ThreadKey, OpenStays] = {}
        self._items: dict[tuple[Any, ...], int] = {}
        self._numbers: dict[int, tuple[Placement, int]] = {}
        self._placements = 0
        self._texts: dict[Content, int] = {}
        self._held_texts = texts
        self._rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in _INSERTS}
        self._held = 0
        self.steps = 0
        """How many were written."""

    @classmethod
    def new(
        cls, connection: sqlite3.Connection, contents: Contents, texts: list[Content] | None = None
    ) -> RowWriter:
        """A writer of an empty database."""
        connection.executescript(SCHEMA.read_text(encoding="utf-8"))
        return cls(connection, contents, texts)

    @classmethod
    def going_on(cls, connection: sqlite3.Connection, contents: Contents, state: WriterState) -> RowWriter:
        """A writer that goes on where another one was; what that one wrote afterwards is removed."""
        made = cls(connection, contents)
        made.steps, made._placements, made._texts = state.steps, state.placements, state.texts
        made._numbers = {id(placement): (placement, number) for placement, number in state.known}
        made._take_back(state)
        return made

    def state(self) -> WriterState:
        """What `going_on` needs; all rows so far are in the database afterwards."""
        self.flush()
        windows = {key: thread.placements for key, thread in self._threads.items()}
        known = list(self._numbers.values())
        return WriterState(self.steps, self._placements, known, self._texts, windows)

    def _take_back(self, state: WriterState) -> None:
        execute = self._connection.execute
        for table, column, least in (
            ("steps", "id", state.steps), ("turns", "step", state.steps), ("changes", "step", state.steps),
            ("copies", "step", state.steps), ("placements", "id", state.placements),
            ("texts", "id", len(state.texts)), ("entries", "id", 0),
        ):  # fmt: skip
            execute(f"DELETE FROM {table} WHERE {column} >= ?", (least,))
        for number, *described in execute("SELECT id, item, kind, title, source FROM items"):
            self._items[tuple(described)] = number
        for number, session, name in execute("SELECT id, session, name FROM threads").fetchall():
            key = ThreadKey(session, name)
            nth = execute("SELECT count(*) FROM steps WHERE thread = ?", (number,)).fetchone()[0]
            execute("DELETE FROM stays WHERE thread = ? AND first > ?", (number, nth))
            if not nth:
                execute("DELETE FROM threads WHERE id = ?", (number,))
                continue
            thread = self._threads[key] = OpenStays(number)
            still = "thread = ? AND (last IS NULL OR last >= ?)"
            rows = execute(
                f"SELECT first, pos, placement FROM stays WHERE {still} ORDER BY pos", (number, nth)
            ).fetchall()
            window = zip(rows, state.windows[key], strict=True)
            thread.restore(nth, [Stay(one, row, first, pos) for (first, pos, row), one in window])
            execute(f"DELETE FROM stays WHERE {still}", (number, nth))

    def add(self, one: Walked) -> None:
        """Take the next step, with its frame as it is now."""
        step, turn = one.at.step, one.at.turn
        thread = self._thread(one.key)
        told = self._told(thread.placements, one.delta)
        move = thread.move_to(one.at.placements, one.delta, self._number)
        for stay in (*move.ended, *thread.place(move.head, move.tail)):
            self._end(thread, stay, thread.nth - 1)
        self._put("steps", self.steps, thread.thread, thread.nth, *step_row(step, told))
        for n, change in enumerate(step.changes):
            text = one.omitted.get((change.item, change.version)) if change.status == "omitted" else None
            row = None if text is None else self._text(text)
            self._put("changes", self.steps, n, change.status, self._item(change), *change_row(change), row)
        self._copies(step, thread, move, reweighed=told is not None and told.against is not None)
        if turn is not None:
            self._put("turns", self.steps, turn.turn, turn.title, turn_body(turn))
        self.steps += 1

    def _copies(self, step: Step, thread: OpenStays, move: Move, *, reweighed: bool) -> None:
        """Tell of items that have no change and whose copies are others than before.

        `reweighed`: the frame before was weighed again, which its sum need not tell.
        """
        if not reweighed and step.mode != "append":
            return
        changed = {change.item for change in step.changes}
        rows: dict[str, tuple[Any, ...]] = {}
        if reweighed:
            for placement in thread.placements:
                if not placement.stale and placement.item not in changed:
                    held = thread.copies[placement.item].tokens
                    rows[placement.item] = None, placement.tokens, held, placement.line, None
        if step.mode == "append":
            for item, before in move.before.items():
                now = thread.copies.get(item, NO_COPIES)
                if before.stale != now.stale and item not in changed and item not in rows:
                    status = "skipped" if now.current else "gone"
                    rows[item] = status, None, now.tokens, None, bool(now.stale)
        for n, (item, (status, *rest)) in enumerate(rows.items()):
            self._put("copies", self.steps, n, item, status, *rest)

    def finish(self, engine: Engine) -> None:
        """Write the stays that have not ended, and the items that the engine knows."""
        for thread in self._threads.values():
            for stay in thread.stays:
                self._end(thread, stay, None)
        for key, state in engine.threads.items():
            known = self._threads.get(key)
            for name, version in state.book.newest.items() if known is not None else ():
                assert known is not None
                oldest = version
                while oldest.older is not None:
                    oldest = oldest.older
                now, first = version.record, oldest.record
                self._put(
                    "entries", known.thread, name, now.context_kind or first.context_kind or "custom",
                    now.title or first.title, now.source or first.source, oldest.line, version.line,
                    version.visible,
                )  # fmt: skip
        self.flush()
        # An item that only changes name has no record: the first of them describes it.
        self._connection.execute(
            "INSERT OR IGNORE INTO entries (thread, item, kind, title, source, line, newest, visible)"
            " SELECT s.thread, i.item, i.kind, i.title, i.source, 0, 0, 1 FROM changes c"
            " JOIN items i ON i.id = c.item JOIN steps s ON s.id = c.step ORDER BY c.step, c.n"
        )

    def flush(self) -> None:
        """Write the rows that were held back."""
        for table, rows in self._rows.items():
            if rows:
                self._connection.executemany(_INSERTS[table], rows)
                rows.clear()
        self._held = 0

    def _put(self, table: str, *values: Any) -> None:
        self._rows[table].append(values)
        self._held += 1
        if self._held >= _HELD:
            self.flush()

    def _thread(self, key: ThreadKey) -> OpenStays:
        thread = self._threads.get(key)
        if thread is None:
            thread = self._threads[key] = OpenStays(len(self._threads) + 1)
            self._connection.execute(
                "INSERT INTO threads VALUES (?, ?, ?)", (thread.thread, key.session, key.thread)
            )
        return thread

    def _end(self, thread: OpenStays, stay: Stay, last: int | None) -> None:
        self._put("stays", thread.thread, stay.first, last, stay.pos, stay.number)

    def _told(self, before: list[Placement], delta: FrameDelta) -> ToldDelta | None:
        """How the frame differs as the replay says, where that does not follow from the two frames."""
        against = None
        if delta.before is not before and delta.before != before:  # placements are equal by identity
            against = self._numbered(delta.before)
        base = before if against is None else delta.before
        own = delta.before is before
        known = (delta.prefix, delta.suffix) if own else (0, 0)
        prefix, suffix, removed, inserted, reordered, _, _ = delta
        if against is None and delta_of(base, delta.after, *known)[:5] == delta[:5]:
            return None
        return ToldDelta(
            against, prefix, suffix, self._numbered(removed), self._numbered(inserted), reordered
        )

    def _numbered(self, placements: Iterable[Placement]) -> bytes:
        return array("I", map(self._number, placements)).tobytes()

    def _number(self, placement: Placement) -> int:
        """The row of a placement."""
        known = self._numbers.get(id(placement))
        if known is None:
            if len(self._numbers) >= _KNOWN:
                self._numbers.clear()
            known = self._numbers[id(placement)] = placement, self._placements
            self._placements += 1
            content = placement.content
            text = None if content is None else self._text(content)
            values = (getattr(placement, name) for name in PLACEMENT_FIELDS)
            self._put("placements", known[1], self._item(placement), text, *values)
        return known[1]

    def _item(self, described: Placement | Change) -> int:
        """The row of an item as a placement or a change describes it."""
        values = described.item, described.kind, described.title, described.source
        number = self._items.get(values)
        if number is None:
            number = self._items[values] = len(self._items)
            self._put("items", number, *values)
        return number

    def _text(self, content: Content) -> int:
        """The row of a text; raises ValueError where it is in no file that stays."""
        number = self._texts.get(content)
        if number is None:
            base = self._contents.inside(content)
            around = None if base is None else self._text(base)
            if self._held_texts is None:
                stored = self._contents.stored(content, around)
            else:
                stored = StoredContent(content.digest, content.size, content.form, content.count)
                self._held_texts.append(content)
            if stored is None:
                raise ValueError("its text is not in the trace")
            number = self._texts[content] = len(self._texts)
            self._put("texts", number, *text_row(stored))
        return number
