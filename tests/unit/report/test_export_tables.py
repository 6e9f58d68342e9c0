"""CSV and Parquet: the numbers of the replay, as a tool that is not ours reads them."""

from __future__ import annotations

import csv
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ctxctl.errors import UnavailableError, UsageError
from ctxctl.model.results import Step
from ctxctl.report.tabular import STEPS, At
from tests.unit.report.exports_help import TRACES, exported, steps_of
from tests.unit.testing.sessions_help import events, item, written_trace

SUMS = (
    "count(*)::int, sum(new)::int, sum(freed)::int, sum(window_used)::int, max(window_cap)::int,"
    " sum(reported_input)::int"
)


def read(folder: Path, data: bytes, form: str, what: str) -> list[tuple[Any, ...]]:
    """Return what DuckDB finds in an exported file."""
    path = folder / f"table.{form}"
    path.write_bytes(data)
    return duckdb.sql(f"select {what} from read_{form}('{path}')").fetchall()


def sums(steps: list[Step]) -> tuple[int | None, ...]:
    """Return what `SUMS` ought to be."""
    billed = [
        s.usage.reported_input for s in steps if s.usage is not None and s.usage.reported_input is not None
    ]
    return (
        len(steps),
        sum(s.ledger.new for s in steps),
        sum(s.ledger.freed for s in steps),
        sum(s.window.used for s in steps),
        max((s.window.cap for s in steps if s.window.cap is not None), default=None),
        sum(billed) if billed else None,
    )


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_steps_are_those_of_the_replay(tmp_path: Path, path: Path, form: str) -> None:
    data = exported(path, form)
    assert read(tmp_path, data, form, SUMS) == [sums(steps_of(path))]
    assert exported(path, form) == data


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_changes_add_up_to_the_steps(tmp_path: Path, path: Path, form: str) -> None:
    found = read(
        tmp_path, exported(path, form, table="changes"), form, "sum(new)::int, sum(freed)::int, count(*)::int"
    )
    steps = steps_of(path)
    listed = [c for step in steps for c in step.changes if c.status != "skipped"]
    assert found == [(sum(c.new for c in listed), sum(c.freed for c in listed), len(listed))]


def test_segments_add_up_to_the_window() -> None:
    names = [column.name for column in STEPS]
    for ordinal, step in enumerate(steps_of(TRACES[0])):
        row = dict(zip(names, [column.of(At(ordinal, step)) for column in STEPS], strict=True))
        assert sum(v for name, v in row.items() if name.startswith("segment_")) == row["window_used"]


@pytest.mark.parametrize(
    ("title", "cell"),
    [("=1+1", "'=1+1"), ("@SUM(A1)", "'@SUM(A1)"), ("-2", "'-2"), ('a,b\n"c"', None), ("\x1b[31mred", None)],
)
def test_no_cell_is_a_formula_or_a_control(tmp_path: Path, title: str, cell: str | None) -> None:
    path = written_trace(tmp_path, events([item("a", "hello", title=title)]))
    data = exported(path, "csv", table="changes").decode()
    found = next(csv.DictReader(StringIO(data, newline="")))["title"]
    assert "\x1b" not in data
    assert not found.startswith(("=", "+", "-", "@"))
    if cell is not None:
        assert found == cell


def test_an_unknown_table() -> None:
    with pytest.raises(UsageError, match="there is no table"):
        exported(TRACES[0], "csv", table="rows")


def test_parquet_without_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UnavailableError) as caught:
        exported(TRACES[0], "parquet")
    assert caught.value.slug == "needs-parquet"
