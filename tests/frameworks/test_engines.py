"""A dataset is read as it is by other engines; ClickHouse gives the rows that DuckDB gives, to every question."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

from ctxctl.dataset import opening, questions, schema
from ctxctl.dataset.duck import Asked, values_of
from tests.unit.dataset.dataset_rows import by_chance, dataset

ENVIRONMENTS = ("engines",)
GIVEN: dict[str, dict[str, Any]] = {
    "sentence": {"text": "content 7: the quick"}, "overflows": {"near": 50.0}, "unused-tools": {"called": 60.0},
}  # fmt: skip
FILTERED = {"project": "shop", "label": "team=a"}


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> opening.OpenDataset:
    return opening.opened(str(dataset(tmp_path_factory.mktemp("engines") / "fleet", by_chance(5))))


@pytest.fixture(scope="module")
def clickhouse(opened: opening.OpenDataset) -> Iterator[Any]:
    from chdb.session import Session

    session = Session()
    for table in schema.TABLES:
        paths = ",".join(opened.files[table.name])  # one here; several stand in braces
        session.query(f"CREATE VIEW {table.name} AS SELECT * FROM file('{paths}', 'Parquet')")
    for view in questions.views():
        session.query(view)
    yield session
    session.close()


def of_clickhouse(
    session: Any, sql: str, question: questions.Question, given: dict[str, Any]
) -> list[list[Any]]:
    values = {one.name: one.default for one in question.all_parameters} | given
    answered = session.query(
        questions.for_clickhouse(sql, question.all_parameters), "JSONCompactEachRow",
        params=questions.clickhouse_values(questions.bound(values, sql)),
    )  # fmt: skip
    return [json.loads(line) for line in str(answered).splitlines()]


def same(ours: Any, theirs: Any) -> bool:
    """Equal, or numbers that differ by the order in which they were added."""
    if isinstance(ours, float) or isinstance(theirs, float):
        return (
            ours is not None
            and theirs is not None
            and math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-12)
        )
    return bool(ours == theirs)


@pytest.mark.parametrize("filters", [{}, FILTERED], ids=["all", "filtered"])
@pytest.mark.parametrize("name", [*questions.LISTS, *questions.ORDER])
def test_clickhouse_gives_the_same_rows(
    name: str, filters: dict[str, str], opened: opening.OpenDataset, clickhouse: Any
) -> None:
    question, given = questions.question(name), {**GIVEN.get(name, {}), **filters, "limit": 10_000}
    with Asked(opened.files) as asked:
        answer = asked.ask(name, given)
    ours = [list(row) for row in values_of(answer.rows)]
    theirs = of_clickhouse(clickhouse, questions.composed(question.body), question, given)
    assert ours or filters
    assert len(theirs) == len(ours)
    for row, other in zip(ours, theirs, strict=True):
        assert all(map(same, row, other)), (row, other)
    head = of_clickhouse(clickhouse, questions.composed(question.head), question, given)
    assert head == [list(answer.head or ())]


def test_a_filter_takes_words_and_not_sql(opened: opening.OpenDataset, clickhouse: Any) -> None:
    question = questions.question("cost")
    given = {"project": "x' OR 1 = 1 --\\\t\n"}
    with Asked(opened.files) as asked:
        assert asked.ask("cost", given).rows == []
    assert of_clickhouse(clickhouse, questions.composed(question.body), question, given) == []


def test_polars_reads_every_table(opened: opening.OpenDataset) -> None:
    import polars

    for table in schema.TABLES:
        frame = polars.scan_parquet(list(opened.files[table.name])).collect()
        assert frame.columns == [column.name for column in table.columns]
        with Asked(opened.files) as asked:
            assert asked.select(f"SELECT count(*) FROM {table.name}", {}).rows == [(frame.height,)]
