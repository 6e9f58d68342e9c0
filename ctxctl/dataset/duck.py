"""A dataset's live files as tables of an embedded DuckDB that may read these files and nothing else.

No extension is loaded or looked for, no network and no other file is reachable, and only a statement that
selects is run: SQL may come from anybody.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ctxctl.dataset import questions, schema
from ctxctl.errors import UnavailableError, UnreadableError, UsageError
from ctxctl.text import visible

if TYPE_CHECKING:
    import duckdb

_MOST_MEMORY: Final = 4 << 30
_MOST_THREADS: Final = 8
_TYPES: Final = {
    "string": "VARCHAR", "bool": "BOOLEAN", "int32": "INTEGER", "int64": "BIGINT", "uint64": "UBIGINT",
    "double": "DOUBLE", "timestamp": "TIMESTAMP", "binary": "BLOB",
    "labels": "MAP(VARCHAR, VARCHAR)", "tokens by name": "MAP(VARCHAR, BIGINT)",
}  # fmt: skip


class Head(NamedTuple):
    """What an answer is about."""

    sessions: int
    counted: int
    silent: int
    """Of `counted`, those that cannot say."""


class Answer(NamedTuple):
    """What came of a statement."""

    columns: list[str]
    rows: list[tuple[Any, ...]]
    more: bool
    """Whether there are rows beyond these."""
    head: Head | None = None
    """None of SQL that has no name."""


class Asked:
    """An open dataset, one version of it; to be used as a context manager.

    Args:
        files: The live files of each table: paths on this machine.

    Raises UnavailableError (`needs-fleet`) where DuckDB is not installed, UnreadableError
    (`dataset-unreachable`, `dataset-damaged`) where a file has a name that is no UTF-8, or cannot be read.
    """

    def __init__(self, files: Mapping[str, Sequence[str]]) -> None:
        self._files = [path for paths in files.values() for path in paths]
        self._connection = _opened(files)

    def __enter__(self) -> Asked:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the files."""
        self._connection.close()

    def ask(self, name: str, given: Mapping[str, object]) -> Answer:
        """The answer to a question; what is not `given` is as by default.

        Raises KeyError for a name that is none, and UnreadableError (`dataset-damaged`).
        """
        question = questions.question(name)
        values = {one.name: one.default for one in question.all_parameters} | dict(given)
        most = int(str(values["limit"]))
        with _reading(self._files):
            counts = self._run(questions.composed(question.head), values).fetchall()[0]
            body = self._run(questions.composed(question.body), values | {"limit": most + 1})
            columns, rows = _names(body), body.fetchall()
        return Answer(columns, rows[:most], len(rows) > most, Head(*(int(n or 0) for n in counts)))

    def select(self, sql: str, given: Mapping[str, object], most: int | None = None) -> Answer:
        """What a statement of somebody's selects, at most so many rows.

        Raises UsageError (`bad-sql`, `not-a-question`) and UnreadableError (`dataset-damaged`).
        """
        import duckdb

        try:
            parsed = self._connection.extract_statements(sql)
        except duckdb.Error as error:
            raise _refused(error) from None
        if len(parsed) != 1 or parsed[0].type != duckdb.StatementType.SELECT:
            raise UsageError(
                "not-a-question", "the SQL is not one statement that selects",
                hint="give one SELECT, or WITH … SELECT; a dataset is changed by `ctxctl fleet` alone",
            )  # fmt: skip
        try:
            values = _values(sql, given)
        except KeyError as error:
            name = str(error.args[0])
            raise UsageError(
                "no-parameter",
                f"the SQL names the parameter {name}, which is not given",
                hint=f"--param {name}=VALUE",
            ) from None
        try:
            result = self._connection.execute(parsed[0], values)
            columns = _names(result)
            rows = result.fetchall() if most is None else result.fetchmany(most + 1)
        except duckdb.Error as error:
            raise (_damaged(self._files) if _may_be_damage(error) else None) or _refused(error) from None
        kept = rows if most is None else rows[:most]
        return Answer(columns, kept, len(rows) > len(kept))

    def _run(self, sql: str, values: Mapping[str, object]) -> duckdb.DuckDBPyConnection:
        return self._connection.execute(sql, _values(sql, values))


def _values(sql: str, given: Mapping[str, object]) -> dict[str, object] | None:
    """What a statement takes; moments are UTC, as the columns are.  Raises KeyError for what is not given."""
    bound = questions.bound(given, sql)
    utc = {
        name: one.astimezone(UTC).replace(tzinfo=None)
        for name, one in bound.items()
        if isinstance(one, datetime)
    }
    return bound | utc or None


def _names(result: duckdb.DuckDBPyConnection) -> list[str]:
    return [str(one[0]) for one in result.description or ()]


def _refused(error: Exception) -> UsageError:
    hint = "tables and columns: docs/fleet.md"
    return UsageError("bad-sql", f"the SQL cannot be run: {_first_line(error)}", hint=hint)


def _opened(files: Mapping[str, Sequence[str]]) -> duckdb.DuckDBPyConnection:
    try:
        import duckdb
    except ImportError:
        raise UnavailableError(
            "needs-fleet", "asking a dataset needs DuckDB", hint="pip install 'ctxctl[fleet]'"
        ) from None
    config: dict[str, Any] = {
        "autoinstall_known_extensions": False, "autoload_known_extensions": False,
        "allow_community_extensions": False, "threads": max(1, min(os.cpu_count() or 1, _MOST_THREADS)),
        "memory_limit": f"{_memory() >> 20}MiB",
    }  # fmt: skip
    every = [path for paths in files.values() for path in paths]
    _check_names(every)
    connection = duckdb.connect(":memory:", config=config)
    try:
        _prepare(connection, files, every)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(
    connection: duckdb.DuckDBPyConnection, files: Mapping[str, Sequence[str]], every: Sequence[str]
) -> None:
    """Name the tables and views, and shut everything else."""
    import duckdb

    connection.execute("SET TimeZone = 'UTC'")
    with _reading(every):
        for table in schema.TABLES:
            connection.execute(f"CREATE VIEW {table.name} AS {_source(table, files.get(table.name, ()))}")
        for view in questions.views():  # copies are few, and every question asks for them
            connection.execute(view.replace("CREATE VIEW copies", "CREATE TABLE copies"))
    connection.execute(f"SET allowed_paths = [{', '.join(map(_quoted, every))}]")
    for name in ("python_enable_replacements", "python_scan_all_frames"):
        with suppress(duckdb.Error):  # a version that has none
            connection.execute(f"SET {name} = false")
    connection.execute("SET temp_directory = ''")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


@contextmanager
def _reading(paths: Sequence[str]) -> Iterator[None]:
    """Tell which file it was where one cannot be read: what is asked in here is ours, and sound."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        damaged = _damaged(paths) if _may_be_damage(error) else None
        if damaged is None:
            raise
        raise damaged from None


def _may_be_damage(error: Exception) -> bool:
    """Whether an error may come of a file, and not of the SQL: a damaged file has errors of no kind, too."""
    import duckdb

    of_files = (duckdb.IOException, duckdb.InvalidInputException, duckdb.SerializationException)
    return type(error) is duckdb.Error or isinstance(error, of_files)


def _damaged(paths: Sequence[str]) -> UnreadableError | None:
    """The first of some files that cannot be read to its end, as an error; None where all can."""
    import duckdb

    with duckdb.connect(":memory:") as connection:
        for path in paths:
            try:
                connection.execute(
                    f"SELECT max(hash(t)) FROM read_parquet([{_quoted(path)}]) AS t"
                ).fetchall()
            except duckdb.Error as error:
                why = "it is not there" if not os.path.exists(path) else _first_line(error)
                return UnreadableError("dataset-damaged", f"{visible(path)}: {why}")
    return None


def _first_line(error: Exception) -> str:
    return visible(str(error).strip().partition("\n")[0][:300])


def _check_names(paths: Sequence[str]) -> None:
    """Refuse files that cannot be named in SQL: a folder's name may be bytes that are no text."""
    for path in paths:
        try:
            path.encode()
        except UnicodeEncodeError:
            raise UnreadableError(
                "dataset-unreachable",
                f"{visible(path)} is asked by a name that is UTF-8, and this is none",
                hint="rename the folder, or link to it from another",
            ) from None


def _source(table: schema.Table, paths: Sequence[str]) -> str:
    """What selects the rows of a table; of no file, none."""
    if paths:
        named = ", ".join(map(_quoted, paths))
        times = [one.name for one in table.columns if one.type == "timestamp"]
        # Without a time zone: what one is asked for takes a package to be fetched.
        plain = ", ".join(f"timezone('UTC', {name}) AS {name}" for name in times)
        every = f"* REPLACE ({plain})" if times else "*"
        return f"SELECT {every} FROM read_parquet([{named}], union_by_name = true, hive_partitioning = false)"
    columns = ", ".join(f'CAST(NULL AS {_TYPES[one.type]}) AS "{one.name}"' for one in table.columns)
    return f"SELECT {columns} WHERE false"


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "''") + "'"


def _memory() -> int:
    """Bytes that DuckDB may take: half of what the machine has, and not more than `_MOST_MEMORY`."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return _MOST_MEMORY
    return max(256 << 20, min(_MOST_MEMORY, whole // 2))


def values_of(rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Rows with plain values: text, numbers, truth, null; anything else as text."""
    for row in rows:
        yield tuple(map(_plain, row))


def _plain(value: Any) -> Any:
    from decimal import Decimal

    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return str(value)
