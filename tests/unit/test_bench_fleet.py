"""The model of larger fleets is worked out from what is measured, and the docs say what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("duckdb", reason="needs the extra `fleet`")
pytest.importorskip("pyarrow", reason="needs the extra `fleet`")

from ctxctl.dataset.duck import Asked
from tests.unit.dataset.dataset_rows import by_chance, written
from tools.bench_fleet import model, sizes

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_line_through_points_of_a_line_is_that_line() -> None:
    points = [(float(n), 0.5 + 0.002 * n) for n in (1000, 4000, 16_000, 64_000)]
    found = model.fitted(points)
    assert found.fixed == pytest.approx(0.5)
    assert found.each == pytest.approx(0.002)
    assert model.missed_by(points) == pytest.approx(0)


def test_what_grows_faster_than_its_line_is_told_with_the_error() -> None:
    points = [(1000.0, 1.0), (2000.0, 2.0), (4000.0, 8.0)]
    assert model.missed_by(points) == pytest.approx(-0.5)
    assert model.fitted([(10.0, 1.0), (20.0, 4.0)]).fixed == 0.0  # nothing takes less than no time


def test_the_docs_say_what_follows_from_the_measurements() -> None:
    measured = (DOCS / "benchmarks-fleet.md").read_text("utf-8")
    assert model.block(measured) in (DOCS / "fleet.md").read_text("utf-8")


def test_smaller_and_larger_datasets_hold_the_same_captures_fewer_or_more_times(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    files = written(tmp_path / "whole", by_chance(3))
    part = sizes.sampled(files, tmp_path / "part", 2)
    more = sizes.repeated(files, tmp_path / "more", 3)
    for name in ("sources", "sessions", "stays", "contents"):
        whole, some, many = (_sources(each, name) for each in (files, part, more))
        assert some < whole
        assert len(many) == 3 * len(whole)
        assert whole < many


def _sources(files: dict[str, list[str]], name: str) -> set[int]:
    with Asked(files) as asked:
        return {row[0] for row in asked.select(f"SELECT DISTINCT source FROM {name}", {}).rows}
