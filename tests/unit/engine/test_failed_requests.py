"""A request that nothing answered makes its step a failed one, and no other."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.engine.making import Json, add, event, inject, steps, usage

ONE: dict[str, Any] = {"turn": "t1", "step": "s1"}
TWO: dict[str, Any] = {"turn": "t1", "step": "s2"}


def told(kind: str, data: Json, ids: dict[str, Any]) -> Json:
    return {**event("x", data, **ids), "event_type": f"ctxctl.step.{kind}"}


FAILED = told("failed", {"error": "overloaded_error", "status": 529}, ONE)
ANSWERED = told("answered", {"attempts": 2}, ONE)


@pytest.mark.parametrize(
    ("came", "failed"),
    [
        ([], False),
        ([FAILED], True),
        ([FAILED, FAILED], True),
        # It was sent again.
        ([FAILED, ANSWERED], False),
        # What is billed was answered; an answer that was cut is billed before it is told to have failed.
        ([FAILED, usage(50, **ONE)], False),
        ([usage(50, **ONE), FAILED], True),
    ],
)
def test_a_step_is_marked_as_failed_where_no_answer_followed(came: list[Json], failed: bool) -> None:
    begun = [add("a", "text a", **ONE), inject(**ONE)]
    first, second = steps([*begun, *came, add("b", "text b", **TWO), inject(**TWO)])
    assert ("failed" in first.flags) is failed
    assert "failed" not in second.flags
