"""Which context, task, run and attempt a step belongs to, where its events name several or leave some out."""

from __future__ import annotations

from typing import Any

from ctxctl.model.annotations import Ids
from tests.unit.engine.making import Json, add, event, inject, steps

ONE: dict[str, Any] = {"turn": "t1", "step": "s1"}
TWO: dict[str, Any] = {"turn": "t1", "step": "s2"}


def named(made: Json, **ids: str) -> Json:
    return {**made, **{f"{name}_id": value for name, value in ids.items()}}


def ids_of(*events: Json) -> list[Ids]:
    return [step.annotations.ids for step in steps(events)]


def test_the_first_context_and_otherwise_the_last_id_of_a_step_count() -> None:
    assert ids_of(
        named(add("a", "text a", **ONE), context="c1", task="k1", run="r1", attempt="a1"),
        named(add("b", "text b", **ONE), context="c2", task="k2", attempt="a1"),
        add("c", "text c", **ONE),
        named(inject(**ONE), run="r2"),
    ) == [Ids("c1", "k2", "r2", "a1")]


def test_a_step_that_names_none_has_none_of_the_step_before() -> None:
    assert ids_of(
        named(add("a", "text a", **ONE), context="c1", task="k1"),
        inject(**ONE),
        add("b", "text b", **TWO),
        named(inject(**TWO), run="r2"),
    ) == [Ids("c1", "k1", None, None), Ids(None, None, "r2", None)]


def test_an_envelope_names_the_context_only_where_no_event_did() -> None:
    envelope = event("exported", {"context_id": "of the envelope", "scope": "turn", "lifecycle": "selected"})
    ids = {"turn_id": "t1", "step_id": "s1"}, {"turn_id": "t1", "step_id": "s2"}
    assert [
        found.context_id
        for found in ids_of(
            named(add("a", "text a", **ONE), context="c1"),
            {**envelope, **ids[0]},
            inject(**ONE),
            add("b", "text b", **TWO),
            {**envelope, **ids[1]},
            inject(**TWO),
        )
    ] == ["c1", "of the envelope"]
