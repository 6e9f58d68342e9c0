"""The questions: each file says what it answers, and answers it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxctl.dataset import questions

duck = pytest.importorskip("ctxctl.dataset.duck")
pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

from tests.unit.dataset.dataset_rows import by_chance, written  # noqa: E402


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    folder: Path = tmp_path_factory.mktemp("dataset")
    with duck.Asked(written(folder, by_chance(1))) as opened:
        yield opened


GIVEN = {
    "sentence": {"text": "content 7: the quick"},
    "overflows": {"near": 50.0},
    "unused-tools": {"called": 60.0},
}


@pytest.mark.parametrize("name", [*questions.LISTS, *questions.ORDER])
def test_answers_in_the_columns_that_it_declares(name, asked) -> None:  # type: ignore[no-untyped-def]
    answer = asked.ask(name, GIVEN.get(name, {}))
    assert answer.columns == [one.name for one in questions.question(name).columns]
    assert answer.rows
    assert answer.head.counted >= answer.head.silent > 0


def test_every_file_is_a_question() -> None:
    folder = Path(questions.__file__).parent
    assert {one.stem for one in folder.glob("*.sql")} == {
        *questions.LISTS,
        *questions.ORDER,
        "views",
        "common",
    }
    for one in questions.questions():
        assert one.asks.endswith("?")
