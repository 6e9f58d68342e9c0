"""``ctxctl sql`` and ``ctxctl export --format sqlite``."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxctl.analysis.costs import Costs, step_costs
from ctxctl.cli.main import run
from ctxctl.report.database import TABLES
from ctxctl.session import Inspector, import_cache, kept_replays
from ctxctl.tokens.catalogue.rates import RateBook
from ctxctl.trace import inputs
from tests.unit.engine.making import add, assembly

ROOT = Path(__file__).parents[3]
TRACE = ROOT / "traces" / "coding-agent.jsonl"
CAPTURES = (
    TRACE, ROOT / "fixtures" / "claude_code" / "compaction.jsonl", ROOT / "traces" / "retrieval-agent.jsonl",
)  # fmt: skip


Asked = Callable[[Path, str], list[dict[str, Any]]]


@pytest.fixture
def asked(capsys: pytest.CaptureFixture[str]) -> Asked:
    """The rows of a query."""

    def rows(path: Path, query: str) -> list[dict[str, Any]]:
        assert run(["sql", str(path), query, "--json"]) == 0, capsys.readouterr().err
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert lines[0]["type"] == "trace"
        return [line["values"] for line in lines[1:]]

    return rows


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_stays_say_what_each_window_holds(path: Path, asked: Asked) -> None:
    stays = asked(path, "SELECT * FROM stays")
    places = {row["ordinal"]: row for row in asked(path, "SELECT ordinal, thread, recorded FROM steps")}
    with Inspector.open(path, calibration=None) as inspector:
        for ordinal, place in places.items():
            there = [
                (row["item"], row["version"], row["tokens"])
                for row in stays
                if row["thread"] == place["thread"] and row["first_ordinal"] <= ordinal
                and (row["last_ordinal"] is None or row["last_ordinal"] >= ordinal)
            ]  # fmt: skip
            frame = [(one.item, one.version, one.tokens) for one in inspector.frame(ordinal).placements]
            assert sorted(there, key=repr) == sorted(frame, key=repr)
            assert sum(tokens for *_, tokens in there) == place["recorded"]


def test_a_stay_counts_the_requests_that_carried_it(asked: Asked) -> None:
    rows = asked(
        TRACE,
        "SELECT s.requests, (SELECT count(*) FROM steps t WHERE t.thread = s.thread AND t.ordinal >="
        " s.first_ordinal AND t.ordinal <= coalesce(s.last_ordinal, t.ordinal)) AS counted FROM stays s",
    )
    assert rows
    assert all(row["requests"] == row["counted"] for row in rows)


def test_bills_are_priced_as_cost_prices_them(asked: Asked) -> None:
    rows = asked(TRACE, "SELECT ordinal, usd FROM bills")
    with Inspector.open(TRACE, calibration=None) as inspector:
        costs = Costs(RateBook({}))
        known = [float(one.billed.total) for one in step_costs(inspector, costs) if one.billed is not None]
    assert [row["usd"] for row in rows] == known


@pytest.mark.parametrize("name", TABLES)
def test_rows_of_a_kept_store_are_those_of_a_replay(
    name: str, tmp_path: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where texts are made around others that are in no window."""
    for module in (import_cache, kept_replays):
        monkeypatch.setattr(module, "LEAST", 0)
    monkeypatch.setattr(inputs, "YOUNG", -1e9)
    path = tmp_path / "bodies.jsonl"
    shutil.copy(ROOT / "fixtures" / "amplifier" / "bodies-openai-compaction.jsonl", path)
    query = f"SELECT * FROM {name}"
    monkeypatch.setenv("CTXCTL_CACHE", "off")
    plain = asked(path, query)
    monkeypatch.delenv("CTXCTL_CACHE")
    assert asked(path, query) == plain
    assert asked(path, query) == plain


def test_a_price_names_its_source_and_a_lower_bound_is_marked(asked: Asked, tmp_path: Path) -> None:
    rows = asked(TRACE, "SELECT usd, prices, at_least FROM bills")
    assert {(row["prices"], row["at_least"]) for row in rows} == {("genai-prices", 0)}
    path = tmp_path / "no-output.jsonl"
    lines = [json.loads(line) for line in TRACE.read_text().splitlines()]
    for line in lines:
        if line["event_type"] == "ctxctl.usage.reported":
            line["data"].pop("output_tokens", None)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert {row["at_least"] for row in asked(path, "SELECT at_least FROM bills")} == {1}


def test_the_tables_are_listed_with_their_columns(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sql", "--json"]) == 0
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["name"] for one in listed] == list(TABLES)
    for one in listed:
        (row,) = asked(TRACE, f"SELECT * FROM {one['name']} LIMIT 1")
        assert list(row) == one["columns"]


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE steps", "DELETE FROM steps", "ATTACH 'x' AS y", "PRAGMA user_version",
        "SELECT 1; SELECT 2", "CREATE TABLE x (y)", "SELECT * FROM nothing", "SELECT load_extension('x')",
        "VACUUM INTO 'x'",
        "nonsense", "SELECT zeroblob(100000000)",
    ],
)  # fmt: skip
def test_nothing_but_a_query_is_answered(
    query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["sql", str(TRACE), query]) == 2
    assert "the query failed" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_query_that_does_not_end_is_ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ctxctl.cli.sql._SECONDS", 0.2)
    endless = "WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a) SELECT count(*) FROM a"
    assert run(["sql", str(TRACE), endless]) == 2
    assert "it took more than" in capsys.readouterr().err


def test_an_answer_without_an_end_is_ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ctxctl.cli.sql._ANSWER", 1 << 20)
    endless = "WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a) SELECT n FROM a"
    assert run(["sql", str(TRACE), endless]) == 2
    assert "the answer takes more than 1 MB" in capsys.readouterr().err


@pytest.mark.parametrize("question", ["sql {} SELECT*FROM`stays`", "why {}@-1 m1", "export {} -o {}.sqlite"])
def test_sums_that_are_in_no_row_are_told(
    question: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, names = tmp_path / "sums.jsonl", [f"m{number}" for number in range(1_100)]
    events = [add(name, turn="1", content_mode="opaque", token_estimate=1 << 53) for name in names]
    events.append(assembly("a", *names, turn="1"))
    lines = [json.dumps({"event_id": f"e{number}", **one}) for number, one in enumerate(events)]
    path.write_text("\n".join(lines))
    assert run(question.replace("{}", str(path)).split()) == 3
    assert "cannot be a row" in capsys.readouterr().err


def test_names_in_a_table_are_shown_and_in_csv_are_no_formulas(capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT '=1+1' AS a, char(27) || 'x' AS b, NULL AS c, 0.5 AS d"
    assert run(["sql", str(TRACE), query]) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert run(["sql", str(TRACE), query, "--csv"]) == 0
    (head, row) = csv.reader(io.StringIO(capsys.readouterr().out))
    assert head == ["a", "b", "c", "d"]
    assert row[0] == "'=1+1"
    assert "\x1b" not in row[1]


@pytest.mark.parametrize("texts", [False, True])
def test_the_file_has_the_same_tables(texts: bool, tmp_path: Path, asked: Asked) -> None:
    path = tmp_path / "run.sqlite"
    assert run(["export", str(TRACE), "-o", str(path), *(["--texts"] if texts else [])]) == 0
    db = sqlite3.connect(path)
    names = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
    assert names == set(TABLES) - (set() if texts else {"texts"})
    assert list(db.execute("SELECT count(*) FROM stays")) == [
        tuple(asked(TRACE, "SELECT count(*) AS n FROM stays")[0].values())
    ]
    if texts:
        (found,) = db.execute("SELECT text FROM texts WHERE text LIKE '%tidewatch%' LIMIT 1")
        assert found


def test_duckdb_reads_the_file(tmp_path: Path, asked: Asked) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "run.sqlite"
    assert run(["export", str(TRACE), "-o", str(path)]) == 0
    db = duckdb.connect()
    try:
        db.execute("LOAD sqlite")
    except duckdb.Error:
        pytest.skip("DuckDB's extension for SQLite is not installed")
    (counted,) = db.execute("SELECT count(*) FROM sqlite_scan(?, 'steps')", [str(path)]).fetchall()
    assert counted[0] == asked(TRACE, "SELECT count(*) AS n FROM steps")[0]["n"]
