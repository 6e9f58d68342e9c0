"""SQL over a dataset: its own files, one statement that selects, and nothing else of the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ctxctl.dataset.duck import Asked
from ctxctl.dataset.log import HEAD
from ctxctl.dataset.opening import opened
from ctxctl.dataset.schema import SCHEMA_VERSION
from ctxctl.errors import UnreadableError, UsageError

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

from tests.unit.dataset.dataset_rows import by_chance, dataset, written


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("duck")


@pytest.fixture(scope="module")
def asked(folder: Path) -> Iterator[Asked]:
    (folder / "private.csv").write_text("a\n1\n")
    with Asked(written(folder, by_chance(4, 30))) as made:
        yield made


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{}/private.csv')", "SELECT * FROM '{}/private.csv'", "SELECT * FROM glob('{}/*')",
        "SELECT * FROM read_text('/etc/hostname')", "SELECT * FROM read_blob('{}/private.csv')",
        "SELECT * FROM parquet_scan('https://127.0.0.1:9/x.parquet')", "SELECT * FROM read_parquet('{}/*.parquet')",
    ],
)  # fmt: skip
def test_nothing_else_is_read(sql: str, asked: Asked, folder: Path) -> None:
    with pytest.raises(UsageError) as raised:
        asked.select(sql.replace("{}", str(folder)), {})
    assert raised.value.slug == "bad-sql"


@pytest.mark.parametrize(
    "sql",
    [
        "COPY sessions TO '{}/out.csv'", "COPY sessions TO '{}/sessions.parquet' (USE_TMP_FILE false)", "ATTACH '{}/x.db'",
        "INSTALL httpfs", "LOAD httpfs", "SET threads = 1", "SET enable_external_access = true", "PRAGMA database_list",
        "CREATE TABLE t AS SELECT 1", "SELECT 1; SELECT 2", "EXPORT DATABASE '{}/all'", "CALL pragma_version()", "",
    ],
)  # fmt: skip
def test_nothing_but_a_selection_is_run(sql: str, asked: Asked, folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(UsageError) as raised:
        asked.select(sql.replace("{}", str(folder)), {})
    assert raised.value.slug == "not-a-question"
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_parameters_are_values(asked: Asked) -> None:
    sql = "SELECT count(*) FROM sessions WHERE project = $project AND started >= $since"
    some = asked.select(sql, {"project": "shop", "since": datetime(2026, 1, 1, tzinfo=UTC)}).rows[0][0]
    assert some > 0
    assert asked.select(
        sql, {"project": "shop' OR 1 = 1 --", "since": datetime(2026, 1, 1, tzinfo=UTC)}
    ).rows == [(0,)]
    assert asked.select(sql, {"project": "shop", "since": datetime(2027, 1, 1, tzinfo=UTC)}).rows == [(0,)]
    with pytest.raises(UsageError) as raised:
        asked.select(sql, {"project": "shop"})
    assert raised.value.slug == "no-parameter"


def test_at_most_so_many_rows_and_whether_there_are_more(asked: Asked) -> None:
    answer = asked.select("SELECT session FROM sessions", {}, 5)
    assert (len(answer.rows), answer.more) == (5, True)
    answer = asked.select("SELECT session FROM sessions", {}, 30)
    assert (len(answer.rows), answer.more) == (30, False)


def test_a_table_without_files_has_no_rows() -> None:
    with Asked({}) as empty:
        answer = empty.ask("cost", {})
        assert answer.rows == []
        assert answer.head is not None
        assert answer.head.sessions == 0


def test_a_question_leaves_nothing_to_say_behind(tmp_path: Path) -> None:
    """DuckDB's bindings tell on standard error of what is still there when the process ends."""
    place = dataset(tmp_path / "d", by_chance(1))
    command = [sys.executable, "-m", "ctxctl", "fleet", "ask", "cost", "--dataset", str(place)]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "CTXCTL_CONFIG": "off"})
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout


@pytest.mark.parametrize(
    ("schema", "slug"), [(SCHEMA_VERSION - 1, "older-dataset"), (SCHEMA_VERSION + 1, "newer-dataset")]
)
def test_a_dataset_of_another_ctxctl_is_told_and_not_read(tmp_path: Path, schema: int, slug: str) -> None:
    place = dataset(tmp_path / "d", by_chance(1))
    head = place / HEAD
    head.write_text(
        head.read_text("utf-8").replace(f'"schema": {SCHEMA_VERSION}', f'"schema": {schema}'), "utf-8"
    )
    with pytest.raises(UnreadableError) as told:
        opened(str(place))
    assert told.value.slug == slug


@pytest.mark.parametrize("harm", ["cut", "empty", "gone", "rows", "foot"])
def test_a_damaged_file_is_named(harm: str, tmp_path: Path) -> None:
    files = written(tmp_path, by_chance(4, 30))
    path = Path(files["steps"][0])
    data = path.read_bytes()
    harmed = {
        "cut": data[:1000],
        "empty": b"",
        "gone": None,
        "rows": data[:200] + b"\xa5" * 400 + data[600:],
        "foot": data[:-400] + b"\xa5" * 380 + data[-20:],
    }[harm]
    path.unlink() if harmed is None else path.write_bytes(harmed)

    def ask_all() -> None:
        with Asked(files) as made:
            made.ask("overview", {})
            made.select("SELECT * FROM steps", {})

    with pytest.raises(UnreadableError) as raised:
        ask_all()
    assert raised.value.slug == "dataset-damaged"
    assert raised.value.message.startswith(f"{path}: ")


def test_sql_that_fails_is_not_damage(asked: Asked) -> None:
    with pytest.raises(UsageError) as raised:
        asked.select("SELECT CAST('no' AS INTEGER) FROM steps", {})
    assert raised.value.slug == "bad-sql"
