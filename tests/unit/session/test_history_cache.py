"""The walk that is kept between runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxctl.model.whatif import Limits
from ctxctl.session import Inspector, cache_key

TRACE = Path(__file__).parents[3] / "traces" / "notes-assistant.jsonl"


def made_under(limits: Limits) -> str | None:
    with Inspector.open(TRACE, limits=limits) as inspector:
        return cache_key.made_under(inspector.params, inspector.strategy, inspector.edits)


def test_limits_that_say_nothing_are_the_recorded_ones() -> None:
    with Inspector.open(TRACE) as inspector:
        assert made_under(Limits()) == cache_key.made_under(
            inspector.params, inspector.strategy, inspector.edits
        )


@pytest.mark.parametrize("limits", [Limits(window=20_000), Limits(reserve=0), Limits(max_input=9)], ids=str)
def test_limits_that_are_supposed_are_told_apart(limits: Limits) -> None:
    assert made_under(limits) != made_under(Limits())
