"""A trace as tables of SQLite: `ctxctl sql` asks them, `ctxctl export --format sqlite` writes them."""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ctxctl.report.tables import Column, table
from ctxctl.report.tabular import CHANGES, STEPS, csv_cell, rows
from ctxctl.text import visible
from ctxctl.wording import NOT_KNOWN, plural

if TYPE_CHECKING:
    from ctxctl.report.paint import Paint
    from ctxctl.session import Inspector

Progress = Callable[[float], None]


class SqlTable(NamedTuple):
    """A table."""

    about: str
    """What a row is."""
    columns: Sequence[str]
    rows: Callable[[Inspector, Mapping[str, Any], Progress], Iterable[Sequence[Any]]]
    """Gives the rows; takes the user's own prices too."""


_WORDS: Final = 8
"""Cells that a column of words keeps, however narrow the line is."""
_REQUEST: Final = ("ordinal", "session", "thread", "turn", "step", "time", "model")
_STAYS: Final = """
SELECT t.session, t.name, i.item, p.version, i.kind, i.title, i.source, p.segment, p.tokens, p.method,
  p.stale, f.id, l.id,
  coalesce(s.last, (SELECT max(nth) FROM steps WHERE thread = s.thread)) - s.first + 1, p.text
FROM stays s JOIN threads t ON t.id = s.thread JOIN placements p ON p.id = s.placement
  JOIN items i ON i.id = p.item JOIN steps f ON f.thread = s.thread AND f.nth = s.first
  LEFT JOIN steps l ON l.thread = s.thread AND l.nth = s.last
ORDER BY f.id, s.pos
"""
_ITEMS: Final = """
SELECT t.session, t.name, e.item, e.kind, e.title, e.source, nullif(e.line, 0)
FROM entries e JOIN threads t ON t.id = e.thread ORDER BY e.id
"""


def _of_steps(inspector: Inspector, _: Mapping[str, Any], progress: Progress) -> Iterable[Sequence[Any]]:
    return rows(inspector, "steps", progress)


def _of_changes(inspector: Inspector, _: Mapping[str, Any], progress: Progress) -> Iterable[Sequence[Any]]:
    return rows(inspector, "changes", progress)


def _selected(query: str) -> Callable[[Inspector, Mapping[str, Any], Progress], Iterable[Sequence[Any]]]:
    def found(inspector: Inspector, _: Mapping[str, Any], progress: Progress) -> Iterable[Sequence[Any]]:
        from ctxctl.session.store_rows import rows_of

        return rows_of(inspector, progress).db.execute(query)

    return found


def _of_texts(
    inspector: Inspector, _: Mapping[str, Any], progress: Progress
) -> Iterator[tuple[int, str, int, int | None, str]]:
    from ctxctl.session.store_rows import rows_of

    opened = rows_of(inspector, progress)
    for number, digest, size, tokens in opened.db.execute(
        "SELECT id, digest, size, tokens FROM texts ORDER BY id"
    ):
        yield number, digest, size, tokens, inspector.text(opened.text(number))


def _of_bills(
    inspector: Inspector, models: Mapping[str, Any], progress: Progress
) -> Iterator[tuple[Any, ...]]:
    from ctxctl.analysis.costs import Costs, step_costs
    from ctxctl.model.cost_sums import NO_OUTPUT
    from ctxctl.tokens.catalogue.rates import RateBook

    costs = Costs(RateBook(dict(models)))
    for ordinal, cost in enumerate(step_costs(inspector, costs, progress)):
        step, usage, cache = cost.step, cost.step.usage, cost.step.cache
        if usage is None:
            continue
        money = cost.believed or cost.billed
        yield (
            ordinal, step.session, step.thread, step.turn, step.step, step.time, step.model, usage.provider,
            usage.reported_input, usage.reported_cached, cache.reported_cache_write,
            cache.reported_cache_write_1h, usage.reported_output, usage.reported_reasoning,
            None if money is None else float(money.total),
            int(step.has_partial_output or bool(cost.not_priced) or NO_OUTPUT in cost.assumed),
            cost.priced.source or None,
        )  # fmt: skip


TABLES: Final = {
    "steps": SqlTable("one request", [column.name for column in STEPS], _of_steps),
    "changes": SqlTable(
        "what happened to one item in one request", [column.name for column in CHANGES], _of_changes
    ),
    "items": SqlTable(
        "one item of a thread, as its last record describes it",
        ("session", "thread", "item", "kind", "title", "source", "line"), _selected(_ITEMS),
    ),
    "stays": SqlTable(
        "an item in a window, from request first_ordinal to last_ordinal (null: it is still there)",
        ("session", "thread", "item", "version", "kind", "title", "source", "segment", "tokens", "method",
         "stale", "first_ordinal", "last_ordinal", "requests", "text_id"), _selected(_STAYS),
    ),
    "texts": SqlTable("one text", ("id", "digest", "size", "tokens", "text"), _of_texts),
    "bills": SqlTable(
        "what a provider billed for one request; usd is a lower bound where at_least is 1",
        (*_REQUEST, "provider", "input", "cached", "cache_write", "cache_write_1h", "output", "reasoning",
         "usd", "at_least", "prices"), _of_bills,
    ),
}  # fmt: skip
"""By name."""


def fill(
    db: sqlite3.Connection, inspector: Inspector, tables: Iterable[str], models: Mapping[str, Any],
    progress: Progress,
) -> None:  # fmt: skip
    """Make some of the tables in a database, with their rows."""
    for name in tables:
        made = TABLES[name]
        columns = ", ".join(f'"{column}"' for column in made.columns)
        db.execute(f"CREATE TABLE {name} ({columns})")
        values = ", ".join("?" * len(made.columns))
        found = made.rows(inspector, models, progress)
        db.executemany(f"INSERT INTO {name} VALUES ({values})", (list(map(_storable, row)) for row in found))


def _storable(value: Any) -> Any:
    """A value as SQLite takes it: no lone surrogates, and integers that are too large as text."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return str(value)
    return value


def table_lines(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], width: int, paint: Paint
) -> Iterator[str]:
    """Rows as a table; null is `-`."""
    numbers = [all(isinstance(row[n], int | float | None) for row in rows) for n in range(len(columns))]
    made = [
        Column(visible(name), right, least=0 if right else _WORDS)
        for name, right in zip(columns, numbers, strict=True)
    ]
    shown = table(made, [[_cell(value) for value in row] for row in rows], width)
    yield from (paint("head", line) for line in shown.head)
    for lines in shown.rows:
        yield from lines
    yield plural(len(rows), "row")


def _cell(value: Any) -> str:
    if value is None:
        return NOT_KNOWN
    if isinstance(value, bytes):
        return value.hex()
    return f"{value:g}" if isinstance(value, float) else visible(str(value))


def row_object(columns: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    """A row as JSON; of two columns of one name the second has its number."""
    values: dict[str, Any] = {}
    for number, (name, value) in enumerate(zip(columns, row, strict=True), 1):
        values[f"{name}:{number}" if name in values else name] = (
            value.hex() if isinstance(value, bytes) else value
        )
    return {"type": "row", "values": values}


def csv_of(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """Rows as CSV."""
    made = StringIO(newline="")
    writer = csv.writer(made)
    writer.writerow(map(csv_cell, columns))
    writer.writerows([csv_cell(value) for value in row] for row in rows)
    return made.getvalue().encode("utf-8", "replace")


def database_pieces(
    inspector: Inspector, models: Mapping[str, Any], texts: bool, progress: Progress
) -> Iterator[bytes]:
    """The file, piece by piece; `texts`: whether it has the texts."""
    import os
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.sqlite")
        db = sqlite3.connect(path)
        try:
            db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
            fill(db, inspector, [name for name in TABLES if texts or name != "texts"], models, progress)
            db.commit()
        finally:
            db.close()
        with open(path, "rb") as file:
            while piece := file.read(1 << 20):
                yield piece
