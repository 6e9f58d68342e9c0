"""``ctxctl sql``: a SELECT over the tables of one trace."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final

from ctxctl.cli import options as opt
from ctxctl.cli.parameters import Argument, Done, Option

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ctxctl.cli.run import Run
    from ctxctl.session import Inspector

Query = Annotated[
    str | None,
    Argument(metavar="[SELECT]", help="The query. Default: list the tables.", show_default=False),
]
AsCsv = Annotated[bool, Option("--csv", help="Print the rows as CSV.")]
_SECONDS: Final = 60
"""How long a query may take."""
_STEPS: Final = 100_000
"""Instructions of SQLite's machine between two looks at the clock."""
_HEAP: Final = 1 << 30
"""Bytes of memory that a query may take."""
_ANSWER: Final = 1 << 28
"""Bytes of memory that the rows of an answer may take: to print them takes as much again."""
_WIDE: Final = 1 << 26
"""Bytes of the longest value."""
_SELECT: Final = re.compile(r"\s*(?:select|with|values|explain)\b", re.IGNORECASE)


@opt.takes(opt.PAGED, "csv", opt.COUNTED, opt.READ)
def sql(
    options: opt.CommonOptions,
    trace: opt.NewestArg = None,
    query: Query = None,
    csv: AsCsv = False,
) -> None:
    """Run an SQL query on a trace. The tables are steps, changes, items, stays, texts and bills.

    The query reads a copy of the tables in memory, so it can change nothing.
    """
    from ctxctl.cli.run import begin, header, reported
    from ctxctl.cli.selection import whole_trace
    from ctxctl.cli.sessions import given_or_newest
    from ctxctl.errors import UsageError
    from ctxctl.report import jsonout

    if csv and options.json:
        raise UsageError("csv-and-json", "--csv and --json cannot be combined", hint="give one of them")
    run = begin(options)
    if query is None and trace is not None and _SELECT.match(trace):
        trace, query = None, trace
    if query is None:
        _list(run)
        raise Done(0)
    trace = whole_trace(given_or_newest(trace, run), "`WHERE turn = N` selects a turn")
    with reported(trace, run, "replaying") as inspector:
        columns, rows = _answer(inspector, query, run)
        if options.json:
            run.out.json(jsonout.trace(header(inspector)))
        _put(columns, rows, run, csv=csv)


def _list(run: Run) -> None:
    from ctxctl.report.database import TABLES
    from ctxctl.report.tables import labelled

    for name, table in TABLES.items():
        if run.json:
            run.out.json(
                {"type": "sql_table", "name": name, "about": table.about, "columns": list(table.columns)}
            )
        else:
            run.out.lines(labelled(name, f"{table.about}: {', '.join(table.columns)}", run.out.width))
    run.out.flush()


def _answer(inspector: Inspector, query: str, run: Run) -> tuple[list[str], list[Sequence[Any]]]:
    import sqlite3
    from contextlib import closing
    from time import monotonic

    from ctxctl.errors import UsageError
    from ctxctl.report.database import TABLES, fill

    words = set(re.findall(r"\w+", query.lower()))
    with closing(sqlite3.connect(":memory:")) as db:
        with run.out.progress("replaying") as progress:
            named = [name for name in TABLES if name in words]
            fill(db, inspector, named, run.settings.models, progress)
        until = monotonic() + _SECONDS
        db.execute(f"PRAGMA hard_heap_limit = {_HEAP}")
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _WIDE)
        db.set_authorizer(_only_reading)
        db.set_progress_handler(lambda: monotonic() > until, _STEPS)
        try:
            found = db.execute(query)
            columns = [one[0] for one in found.description or ()]
            return columns, list(_bounded(found))
        except (sqlite3.Error, sqlite3.Warning, MemoryError, OverflowError, ValueError) as error:
            why = f"it took more than {_SECONDS} seconds" if monotonic() > until else str(error)
            raise UsageError(
                "bad-sql", f"the query failed: {' '.join(why.split())}",
                hint="`ctxctl sql` lists the tables and their columns; only SELECT is possible",
            ) from None  # fmt: skip


def _bounded(rows: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """The rows of an answer; raises MemoryError where they are too many."""
    from sys import getsizeof

    held = 0
    for row in rows:
        held += getsizeof(row) + sum(map(getsizeof, row))
        if held > _ANSWER:
            raise MemoryError(f"the answer takes more than {_ANSWER >> 20} MB of memory")
        yield row


def _only_reading(action: int, *_: object) -> int:
    import sqlite3

    reading = (
        sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE,
    )  # fmt: skip
    return sqlite3.SQLITE_OK if action in reading else sqlite3.SQLITE_DENY


def _put(columns: list[str], rows: list[Sequence[Any]], run: Run, *, csv: bool) -> None:
    from ctxctl.report.database import csv_of, row_object, table_lines

    out = run.out
    if csv:
        out.write(csv_of(columns, rows))
    elif run.json:
        for row in rows:
            out.json(row_object(columns, row))
    else:
        out.lines(table_lines(columns, rows, out.width, out.paint))
