"""The lives of items: what became of each one at each step.  `why` asks for them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.model.content import Content
from ctxctl.model.results import Step
from ctxctl.store.rows import step_of

_HELD_BACK: Final = 1 << 20
"""What is added to the number of a row that is no change: it comes after the changes of its step."""


class LifeMoment(NamedTuple):
    """One change of one item, or a run of steps that left it out for the same reason."""

    number: int
    """Moments are in the order of their numbers."""
    item: int
    """The item's entry."""
    status: str
    """`added`, `updated`, `removed`, `skipped` or `omitted`; `gone`: stale copies of an item that is not
    current have left."""
    cause: str | None
    flags: tuple[str, ...]
    simulated: bool
    first: int
    """Ordinal of the step."""
    last: int
    """Of a run of omissions, the ordinal of its last step; else the same."""
    steps: int
    """How many steps the run has."""
    tokens: int
    held: int
    """Tokens that all copies of the item hold after the change."""
    line: int
    """Line of the item's record; 0: no record describes it."""


class Entry(NamedTuple):
    """An item of one thread."""

    number: int
    item: str
    title: str | None
    source: str | None
    kind: str
    thread: int
    line: int
    """Line of its first record; 0: no record describes it."""
    newest: int
    """Line of its last record that says something new."""
    visible: bool
    """The target can see it, by its last record."""


class Lives:
    """The lives of all items of a session store."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.threads = {
            number: ThreadKey(session, name)
            for number, session, name in db.execute("SELECT id, session, name FROM threads")
        }
        """By row."""
        ((self._steps,),) = db.execute("SELECT count(*) FROM steps")

    def __len__(self) -> int:
        """How many steps there are."""
        return int(self._steps)

    def thread_of(self, ordinal: int) -> int:
        """The row of the thread that a step is of."""
        return int(self._one("SELECT thread FROM steps WHERE id = ?", ordinal)[0])

    def step(self, ordinal: int) -> Step:
        """A step, without its changes."""
        return step_of(self._one("SELECT body FROM steps WHERE id = ?", ordinal)[0], ())

    def lacking(self, thread: int, until: int) -> list[int]:
        """A thread's steps up to one that tell of missing context."""
        query = "SELECT id FROM steps WHERE thread = ? AND id <= ? AND lacks ORDER BY id"
        return [ordinal for (ordinal,) in self._db.execute(query, (thread, until))]

    def surfaces(self, thread: int, until: int) -> Iterator[int]:
        """A thread's steps up to one that record their surface, the last one first."""
        query = "SELECT id FROM steps WHERE thread = ? AND id <= ? AND surface ORDER BY id DESC"
        return (ordinal for (ordinal,) in self._db.execute(query, (thread, until)).fetchall())

    def find(self, thread: int, item: str) -> Entry | None:
        """The item of a thread that has exactly this id."""
        try:
            return self._entry("thread = ? AND item = ?", thread, item)
        except (LookupError, UnicodeEncodeError):  # no id has half a character
            return None

    def entry(self, number: int) -> Entry:
        """An item by its number."""
        return self._entry("id = ?", number)

    def entries(self) -> Iterator[Entry]:
        """All items."""
        for (number,) in self._db.execute("SELECT id FROM entries ORDER BY id").fetchall():
            yield self.entry(number)

    def fitting(self, thread: int, fits: Callable[[str], bool]) -> list[Entry]:
        """A thread's items whose id fits."""
        rows = self._db.execute("SELECT id, item FROM entries WHERE thread = ? ORDER BY id", (thread,))
        return [self.entry(number) for number, item in rows.fetchall() if fits(item)]

    def life(self, item: int, until: int | None = None) -> list[LifeMoment]:
        """The moments of an item that begin at a step or before it, the first one first."""
        entry = self.entry(item)
        return _moments(item, self._rows(entry.thread, until, entry.item))

    def frame(self, ordinal: int) -> dict[int, LifeMoment]:
        """The items that are current at a step with their last moments; what entered first comes first."""
        thread = self.thread_of(ordinal)
        numbers = dict(self._db.execute("SELECT item, id FROM entries WHERE thread = ?", (thread,)))
        rows: dict[str, list[tuple[Any, ...]]] = {}
        for row in self._rows(thread, ordinal, None):
            rows.setdefault(row[0], []).append(row)
        last = {numbers[item]: _moments(numbers[item], of_item)[-1] for item, of_item in rows.items()}
        return {n: one for n, one in last.items() if one.status not in ("removed", "omitted", "gone")}

    def _rows(self, thread: int, until: int | None, item: str | None) -> list[tuple[Any, ...]]:
        """What happened to an item of a thread, or to all of them, up to a step."""
        named = "" if item is None else "WHERE item = :item"
        rows = self._db.execute(
            "SELECT i.item, s.id, s.nth, c.n AS n, c.status, c.cause, c.flags, c.provenance = 'simulated',"
            " c.tokens, c.in_window, c.line"
            f" FROM (SELECT * FROM items {named}) i JOIN changes c ON c.item = i.id"
            " JOIN steps s ON s.id = c.step WHERE s.thread = :thread AND s.id <= :until"
            " UNION ALL"
            f" SELECT c.item, s.id, s.nth, c.n + {_HELD_BACK}, c.status, NULL,"
            " CASE WHEN c.stale THEN 'stale' WHEN c.stale IS NULL THEN NULL ELSE '' END, NULL, c.tokens,"
            f" c.in_window, c.line FROM (SELECT * FROM copies {named}) c JOIN steps s ON s.id = c.step"
            " WHERE s.thread = :thread AND s.id <= :until ORDER BY 2, 4",
            {"thread": thread, "until": len(self) if until is None else until, "item": item},
        )
        return rows.fetchall()

    def _entry(self, which: str, *values: Any) -> Entry:
        columns = "id, item, title, source, kind, thread, line, newest, visible"
        row = self._one(f"SELECT {columns} FROM entries WHERE {which}", *values)
        return Entry._make((*row[:-1], bool(row[-1])))

    def _one(self, query: str, *values: Any) -> tuple[Any, ...]:
        row = self._db.execute(query, values).fetchone()
        if row is None:
            raise LookupError(f"no row: {query} {values}")
        return tuple(row)


class OpenRows(NamedTuple):
    """A database with the tables of `schema.sql`."""

    db: sqlite3.Connection
    text: Callable[[int], Content]
    """Gives the text of a row of `texts`."""
    lives: Lives


def _moments(item: int, rows: list[tuple[Any, ...]]) -> list[LifeMoment]:
    """The moments of one item from its rows in order."""
    found: list[LifeMoment] = []
    last_nth = 0
    for _, step, nth, n, status, cause, flags, simulated, tokens, held, line in rows:
        before = found[-1] if found else None
        if n >= _HELD_BACK:  # what no change says is as the moment before has it
            if flags is None and before is not None:
                flags, simulated = ",".join(before.flags), before.simulated
            if tokens is None:
                tokens, line = (before.tokens, before.line) if before is not None else (0, 0)
        told = tuple(flags.split(",")) if flags else ()
        one = LifeMoment(
            step << 21 | n, item, status or "skipped", cause, told, bool(simulated), step, step, 1, tokens,
            held, line,
        )  # fmt: skip
        if before is not None and _runs_on(before, one) and last_nth == nth - 1:
            found[-1] = before._replace(last=step, steps=before.steps + 1)
        else:
            found.append(one)
        last_nth = nth
    return found


def _runs_on(before: LifeMoment, one: LifeMoment) -> bool:
    same = (before.flags, before.simulated) == (one.flags, one.simulated)
    return before.status == one.status == "omitted" and same
