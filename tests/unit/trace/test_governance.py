"""What a context record declares that only a runtime may, field by field."""

from __future__ import annotations

from typing import Any

import pytest

from ctxctl.trace.governance import declarations


def declared(kind: str = "context.item.added", /, **data: Any) -> list[str]:
    return declarations({"event_type": kind, "data": data})


@pytest.mark.parametrize("value", [True, "true", "yes", "2026-01-01T00:00:00Z"])
def test_a_field_that_says_something_is_over_is_told(value: Any) -> None:
    assert declared(turn_completed=value) == [f"data.turn_completed is {value!r}"]


@pytest.mark.parametrize("value", [False, "", "false", "False", "no", "NO", None, 0, 1, 2.5])
def test_a_field_that_denies_it_or_says_neither_is_not(value: Any) -> None:
    assert declared(turn_completed=value) == []


@pytest.mark.parametrize("kind", ["context.compaction.completed", "context.summary.created"])
def test_a_summary_that_passes_for_an_answer_is_told(kind: str) -> None:
    assert declared(kind, summary_kind="final_answer") == ["data.summary_kind is 'final_answer'"]
    assert declared(kind, treat_as="the_final_answer_of_the_turn") == [
        "data.treat_as is 'the_final_answer_of_the_turn'"
    ]
    assert declared(kind, method="assistant_message") == ["data.method is 'assistant_message'"]


@pytest.mark.parametrize("value", ["rolling", "assistant_messages", "", None, 3, ["final_answer"]])
def test_other_words_for_a_summary_are_not(value: Any) -> None:
    assert declared("context.summary.created", summary_kind=value) == []


def test_only_what_is_a_summary_can_pass_for_an_answer() -> None:
    assert declared("context.item.added", context_kind="assistant_message") == []


def test_texts_and_foreign_events_are_not_looked_into() -> None:
    assert declared(content={"turn_completed": True}, metadata={"native": {"turn_completed": True}}) == []
    assert declarations({"event_type": "acme.turn.completed", "data": {"turn_completed": True}}) == []
    assert declarations({"event_type": "context.turn.completed"}) == [
        "its event type is context.turn.completed"
    ]
