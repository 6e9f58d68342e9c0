"""Counting methods under their public names."""

from __future__ import annotations

from ctxctl.engine.replay.finish import methods


def test_a_bounded_count_is_an_estimate_also_where_the_model_is_known() -> None:
    sums = {"counted": 5, "estimated": 7, "declared": 2}
    assert methods(sums, "o200k_base", True) == {
        "exact:o200k_base": 5,
        "estimate:o200k_base": 7,
        "declared": 2,
    }
    assert methods(sums, "o200k_base", False) == {"estimate:o200k_base": 12, "declared": 2}
