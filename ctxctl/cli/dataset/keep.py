"""``ctxctl fleet status|files|compact|vacuum|forget``: a dataset's files, kept in order."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Annotated, Final

from ctxctl.cli import options as opt
from ctxctl.cli.dataset import place as places
from ctxctl.cli.parameters import Argument, Done, Option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxctl.cli.run import Run
    from ctxctl.dataset.log import Snapshot
    from ctxctl.dataset.upkeep import Selected

_KEY: Final = re.compile(r"[0-9a-f]{16}")

Table = Annotated[
    str,
    Argument(metavar="TABLE", help="sources, sessions, steps, stays, misses, compactions or contents.",
             show_default=False),
]  # fmt: skip
Version = Annotated[
    int | None, Option("--version", metavar="N", help="As of this commit. Default: the newest.", min=0)
]
Grace = Annotated[
    str,
    Option("--grace", metavar="TIME", help="Keep files that were in use until this long ago; 0s keeps none."),
]
Session = Annotated[
    list[str] | None,
    Option("--session", metavar="ID", help="Id of a session, or its key in the dataset. Repeatable."),
]
Source = Annotated[
    list[str] | None,
    Option("--source", metavar="PATH", help="Path of a capture, or its key in the dataset. Repeatable.",
           autocompletion=opt.complete_files),
]  # fmt: skip
Before = Annotated[
    str | None,
    Option(
        "--before",
        metavar="WHEN",
        help="All sessions that ended before this: a date, or 90d for 90 days ago.",
    ),
]
Where = Annotated[
    str | None,
    Option("--where", metavar="SQL", help="All sessions that match this SQL condition on their columns."),
]


@opt.takes("dataset", opt.PRINTED)
def status(options: opt.CommonOptions, dataset: places.Dataset = None) -> None:
    """Show the version of a dataset, and the rows, files and bytes of each table."""
    from ctxctl.cli.run import begin
    from ctxctl.dataset.log import sizes
    from ctxctl.dataset.schema import TABLES
    from ctxctl.report.tables import Column, table
    from ctxctl.wording import number

    run = begin(options)
    found = _live(dataset, run)
    rows = [(one.name, len(found.of(one.name)), *sizes(found.of(one.name))) for one in TABLES]
    if run.json:
        run.out.json({
            "type": "fleet_status", "dataset": found.store.place, "id": found.head.id,
            "version": found.version, "schema": found.head.schema, "texts": found.head.texts,
            "paths": found.head.paths,
            "tables": {
                name: {"files": files, "rows": count, "bytes": size} for name, files, count, size in rows
            },
        })  # fmt: skip
    else:
        kept = "with texts" if found.head.texts else "without texts"
        run.out.lines([f"version {found.version}, {kept}, {_bytes(sum(row[3] for row in rows))}", ""])
        columns = [Column("table"), Column("rows", True), Column("files", True), Column("size", True)]
        lines = [[name, number(count), number(files), _bytes(size)] for name, files, count, size in rows]
        listed = table(columns, lines, run.out.width)
        run.out.lines([*listed.head, *(line for row in listed.rows for line in row)])
    run.out.flush()
    raise Done(0)


@opt.takes("dataset", opt.PRINTED)
def files(
    options: opt.CommonOptions, name: Table, version: Version = None, dataset: places.Dataset = None
) -> None:
    """Print the files that hold a table, one per line: for DuckDB, ClickHouse, Spark or Polars."""
    from ctxctl.cli.run import begin
    from ctxctl.dataset.schema import TABLES
    from ctxctl.errors import UsageError

    names = [one.name for one in TABLES]
    if name not in names:
        raise UsageError(
            "unknown-table", f"there is no table {name[:40]!r}", hint=f"one of {', '.join(names)}"
        )
    run = begin(options)
    found = _live(dataset, run, version)
    for one in found.of(name):
        url = found.store.url(one.path)
        if run.json:
            run.out.json({
                "type": "fleet_file", "table": one.table, "url": url, "month": one.month,
                "format": one.format,
                "rows": one.rows, "bytes": one.bytes, "sha256": one.sha256,
            })  # fmt: skip
        else:
            run.out.lines([url])
    run.out.flush()
    raise Done(0)


@opt.takes("dataset", opt.PRINTED)
def compact(options: opt.CommonOptions, dataset: places.Dataset = None) -> None:
    """Join small files of a dataset into larger ones; its rows do not change."""
    from ctxctl.cli.run import begin
    from ctxctl.dataset import upkeep

    run = begin(options)
    found = _live(dataset, run)
    with run.out.progress("joining small files"):
        made = upkeep.compact(found, progress=run.out.progressed)
    if run.json:
        run.out.json({
            "type": "fleet_compacted", "version": made.snapshot.version, "before": made.before,
            "after": made.after,
        })  # fmt: skip
    else:
        run.out.lines([f"{made.before:,} files are now {made.after:,}; version {made.snapshot.version}"])
    run.out.flush()
    raise Done(0)


@opt.takes("dataset", opt.PRINTED)
def vacuum(options: opt.CommonOptions, grace: Grace = "1h", dataset: places.Dataset = None) -> None:
    """Remove files that the dataset no longer uses: replaced ones, and those left by an interrupted command.

    Programs that still read an older version need these files, so those in use within the last hour stay.
    """
    from datetime import UTC, datetime, timedelta

    from ctxctl.cli.run import begin
    from ctxctl.dataset import upkeep
    from ctxctl.wording import plural

    run = begin(options)
    found = _live(dataset, run)
    with run.out.progress("looking for unused files"):
        done = upkeep.vacuum(found, datetime.now(UTC), timedelta(seconds=_seconds(grace)))
    if run.json:
        run.out.json({
            "type": "fleet_vacuumed", "files": done.files, "bytes": done.bytes, "left": done.young,
        })  # fmt: skip
    else:
        left = f"; {plural(done.young, 'file')} left for now" if done.young else ""
        run.out.lines([f"{plural(done.files, 'file')} removed, {_bytes(done.bytes)}{left}"])
    run.out.flush()
    raise Done(0)


@opt.takes("dataset", opt.PRINTED)
def forget(
    options: opt.CommonOptions,
    session: Session = None,
    source: Source = None,
    before: Before = None,
    where: Where = None,
    dataset: places.Dataset = None,
) -> None:
    """Remove sessions from a dataset, and every file that held them, immediately.

    Sessions removed by --session, --source or --where are never read again. Those removed by --before are
    read again only if their capture changes.
    """
    from ctxctl.cli.run import begin
    from ctxctl.dataset import upkeep
    from ctxctl.wording import plural

    run = begin(options)
    found = _live(dataset, run)
    with run.out.progress("removing sessions"):
        done = upkeep.forget(found, _selected(found, session, source, before, where))
    if run.json:
        run.out.json({
            "type": "fleet_forgotten", "version": done.snapshot.version, "sessions": done.sessions,
            "rows": done.rows, "files": done.files,
        })  # fmt: skip
    else:
        what = f"{plural(done.sessions, 'session')}, {plural(done.rows, 'row')} removed"
        run.out.lines([f"{what}; version {done.snapshot.version}"])
    run.out.flush()
    raise Done(0)


def _selected(
    found: Snapshot, session: Sequence[str] | None, source: Sequence[str] | None, before: str | None,
    where: str | None,
) -> Selected:  # fmt: skip
    """What is meant by the options: one kind of them."""
    import time
    from datetime import UTC, datetime

    from ctxctl.cli.ls import moment_since
    from ctxctl.dataset import upkeep
    from ctxctl.errors import UsageError

    if sum([bool(session or source), before is not None, where is not None]) != 1:
        raise UsageError(
            "nothing-selected", "what is to be forgotten?",
            hint="--session and --source, or --before, or --where: one of these",
        )  # fmt: skip
    if before is not None:
        moment = datetime.fromtimestamp(moment_since(before, time.time(), "--before"), UTC)
        return upkeep.outdated(found, moment)
    if where is not None:
        return upkeep.erased(found, _sessions_where(found, where))
    return upkeep.erased(
        found, _named(found, "sessions", session or ()), _named(found, "sources", source or ())
    )


def _named(found: Snapshot, table: str, names: Sequence[str]) -> set[int]:
    """Keys of sessions, or captures, that are called so.  Raises UsageError("no-such-session")."""
    from ctxctl.dataset.known import read_file
    from ctxctl.errors import UsageError

    key, called = ("session", "name") if table == "sessions" else ("source", "path")
    rows = [row for one in found.of(table) for row in read_file(found, one, (key, called)).to_pylist()]
    meant: set[int] = set()
    for name in names:
        words = {name} if table == "sessions" else {name, os.path.realpath(name)}
        keys = {row[key] for row in rows if row[called] in words}
        if _KEY.fullmatch(name):
            keys |= {row[key] for row in rows if f"{row[key]:016x}" == name}
        if not keys:
            raise UsageError("no-such-session", f"the dataset has no {key} {name[:80]!r}")
        meant |= keys
    return meant


def _sessions_where(found: Snapshot, where: str) -> set[int]:
    """Keys of the sessions for which a condition holds."""
    from ctxctl.dataset.duck import Asked
    from ctxctl.dataset.opening import opened

    with Asked(opened(found.store.place, version=found.version).files) as asked:
        answer = asked.select(f"SELECT session FROM sessions WHERE ({where}\n)", {})
    return {row[0] for row in answer.rows}


def _live(dataset: str | None, run: Run, version: int | None = None) -> Snapshot:
    from ctxctl.dataset.log import live

    return live(places.place_of(dataset, run), version)


def _seconds(text: str) -> float:
    """A length of time as it is typed: `1h`, `30m`, `0s`.  Raises UsageError("bad-time")."""
    import time

    from ctxctl.cli.ls import moment_since

    now = time.time()
    return max(0.0, now - moment_since(text, now, "--grace"))


def _bytes(size: int) -> str:
    """Bytes in words."""
    for unit, least in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= least:
            return f"{size / least:.1f} {unit}"
    return f"{size} bytes"
