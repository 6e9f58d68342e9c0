"""Frames of traces that are odd but possible: each case once gave a wrong number."""

from __future__ import annotations

from typing import Any

import pytest

from ctxctl.model.results import Step
from tests.unit.engine.making import (
    Json,
    add,
    assembly,
    event,
    inject,
    inspect,
    remove,
    statuses,
    steps,
    turns,
)

LONG = " ".join(["word"] * 50)
APPENDIX = "user_message_appendix"


def compact(sources: list[str], into: str | None, **ids: object) -> Json:
    return event("compaction.completed", {"source_item_refs": sources, "summary_ref": into}, **ids)


def selection(*refs: str, omitted: tuple[tuple[str, str], ...] = (), **ids: object) -> Json:
    left = [{"item_ref": ref, "reason": reason} for ref, reason in omitted]
    return event("selection.completed", {"selected_item_refs": list(refs), "omitted_item_refs": left}, **ids)


def frame(events: list[Json], ordinal: int = -1, **options: object) -> list[str]:
    inspector = inspect(events, **options)  # type: ignore[arg-type]
    rows = inspector.outline().rows
    placements = inspector.frame(rows[ordinal].ordinal).placements
    return [f"{p.item}{'~' if p.stale else ''}" for p in placements]


def last(events: list[Json]) -> Step:
    return steps(events)[-1]


@pytest.mark.parametrize("known", [True, False])
def test_a_block_of_several_items_counts_its_own_text_once(known: bool) -> None:
    items = [add("a", "alpha"), add("b", "beta")] if known else []
    block = {"block_id": "x", "item_refs": ["a", "b"], "content": LONG}
    alone = last([assembly("1", {"block_id": "x", "content": LONG})])
    assert last([*items, assembly("1", block)]).window.used == alone.window.used


def test_a_wrapper_around_several_items_counts_once() -> None:
    plain = {"block_id": "x", "item_refs": ["a", "b"]}
    wrapped = {**plain, "wrapper": {"before": LONG, "after": "end"}}
    items = [add("a", "alpha"), add("b", "beta")]
    used = [last([*items, assembly("1", block)]).window.used for block in (plain, wrapped)]
    assert 50 <= used[1] - used[0] <= 55


def test_blocks_without_id_or_ref_are_told_apart_by_their_text() -> None:
    step = last([assembly("1", {"content": "first"}, {"content": "second"})])
    assert step.counts.added == 2
    assert step.ledger.stale == 0


def test_a_compaction_takes_only_the_version_that_it_names() -> None:
    events = [
        add("a", "one", metadata={"version": "1"}, turn="1"),
        inject("1", APPENDIX, turn="1"),
        add("a", "two", metadata={"version": "2"}, turn="2"),
        inject("2", APPENDIX, turn="2"),
        add("sum", "short", turn="3"),
        compact(["a@1"], "sum", turn="3"),
        inject("3", APPENDIX, turn="3"),
    ]
    assert frame(events) == ["sum", "a"]


@pytest.mark.parametrize("point", [APPENDIX, "message_history"])
def test_compactions_of_one_step_apply_one_after_another(point: str) -> None:
    events = [
        add("a", "one", turn="1"),
        inject("1", point, turn="1"),
        compact(["a"], "sum1", turn="2"),
        compact(["sum1"], "sum2", turn="2"),
        inject("2", point, turn="2"),
    ]
    assert frame(events) == ["sum2"]


def test_a_summary_that_is_added_and_compacted_into_stands_once() -> None:
    events = [
        add("a", "one", turn="1"),
        inject("1", APPENDIX, turn="1"),
        add("sum", "short", turn="2"),
        compact(["a"], "sum", turn="2"),
        inject("2", APPENDIX, turn="2"),
        compact(["a"], "sum", turn="3"),
        inject("3", APPENDIX, turn="3"),
    ]
    assert frame(events, 1) == ["sum"]
    assert frame(events, 2) == ["sum"]


def test_a_summary_that_only_the_user_sees_is_not_in_the_models_frame() -> None:
    events = [
        add("a", "one", turn="1"),
        inject("1", APPENDIX, turn="1"),
        add("sum", "short", visibility=["ui"], turn="2"),
        compact(["a"], "sum", turn="2"),
        inject("2", APPENDIX, turn="2"),
    ]
    assert frame(events) == []


def test_a_late_injection_seals_no_other_step() -> None:
    events = [
        add("a", "one", turn="1", step="s1"),
        inject("A1", turn="1", step="s1"),
        add("b", "two", turn="1", step="s2"),
        inject("A1", "system_prompt", turn="1", step="s1"),
        assembly("A2", "a", "b", turn="1", step="s2"),
        inject("A2", turn="1", step="s2"),
    ]
    assert statuses(steps(events)[1]) == {"b": "added"}


@pytest.mark.parametrize("target", ["model", "tool"])
def test_every_target_has_the_steps_of_the_index(target: str) -> None:
    events = [e for _ in range(4) for e in (add("a", "one"), inject())]
    inspector = inspect(events, target=target)
    count = sum(isinstance(r, Step) for r in inspector.replay())
    assert count == len(inspector.places().spans)


def test_a_splice_on_an_unknown_base_says_so_and_removes_nothing() -> None:
    events = [
        add("a", "one", turn="1"),
        assembly("A1", "a", turn="1"),
        inject("A1", turn="1"),
        add("b", "two", turn="2"),
        assembly("A2", "b", ours={"base": "nowhere", "splices": [[7, 0, 1]]}, turn="2"),
        inject("A2", turn="2"),
    ]
    inspector = inspect(events)
    step = [r for r in inspector.replay() if isinstance(r, Step)][-1]
    assert "unknown_base" in step.flags
    assert statuses(step) == {"b": "added"}
    assert [p.slug for p in inspector.problems] == ["unknown-base"]


def test_a_splice_beyond_the_end_of_its_base_is_reported() -> None:
    events = [
        add("a", "one", turn="1"),
        assembly("A1", "a", turn="1"),
        assembly("A2", "a", ours={"base": "A1", "splices": [[7, 3, 1]]}, turn="2"),
    ]
    inspector = inspect(events)
    list(inspector.replay())
    assert [p.slug for p in inspector.problems] == ["bad-splice"]


def test_what_a_splice_beyond_the_end_of_its_base_leaves_alone_is_looked_for() -> None:
    events = [
        add("a", "one", turn="1"),
        assembly("A1", "a", turn="1"),
        add("b", "two", turn="2"),
        assembly("A2", "b", ours={"base": "A1", "splices": [[7, 3, 1]]}, turn="2"),
    ]
    inspector = inspect(events)
    step = [r for r in inspector.replay() if isinstance(r, Step)][-1]
    assert statuses(step) == {"b": "added"}
    assert step.cache.possible_prefix == step.ledger.window_before == step.window.used - step.ledger.new
    assert step.cache.broken_by is None


def test_a_carried_in_item_has_one_name_one_status_and_a_life() -> None:
    skip = selection(omitted=(("old@abcdef1234", "duplicate"),), turn="1")
    events = [skip, inject("1", APPENDIX, turn="1"), event("missing.detected", {"missing_id": "m"}, turn="2")]
    inspector = inspect(events)
    first = next(r for r in inspector.replay() if isinstance(r, Step))
    assert (first.counts.skipped, first.counts.omitted, first.counts.added) == (1, 0, 0)
    assert [c.flags for c in first.changes] == [("carried-in",)]
    assert [(m.turn, m.status) for m in inspector.life("old")] == [(1, "skipped"), (2, "skipped")]


def test_the_turn_knows_the_cause_that_its_first_step_knew() -> None:
    events = [
        add("a", "one", turn="0"),
        selection("a", turn="0"),
        add("b", "two", turn="1", step="s1"),
        selection("b", omitted=(("a", "low_relevance"),), turn="1", step="s1"),
        inject("A1", turn="1", step="s1"),
        selection("b", turn="1", step="s2"),
        inject("A2", turn="1", step="s2"),
    ]
    change = next(c for c in turns(events)[1].changes if c.item == "a")
    assert (change.status, change.cause, change.reason) == ("removed", "omitted", "low_relevance")


def test_an_old_turn_can_make_another_request() -> None:
    events = [
        add("a", "one", turn="t1", step="s1"),
        inject("A1", turn="t1", step="s1"),
        add("b", "two", turn="t2", step="s2"),
        inject("A2", turn="t2", step="s2"),
        add("c", "three", turn="t1", step="s9"),
        inject("A9", turn="t1", step="s9"),
        add("late", "four", turn="t2", step="s2"),
    ]
    found = [(s.turn, s.turn_id, s.step_id, sorted(statuses(s))) for s in steps(events)]
    assert found == [(1, "t1", "s1", ["a"]), (2, "t2", "s2", ["b"]), (3, "t1", "s9", ["c"])]


def test_a_new_root_cuts_a_growing_history() -> None:
    events = [
        add("a", "one", turn="1"),
        assembly("A1", "a", ours={"mode": "append", "root": "r1"}, turn="1"),
        add("b", "two", turn="2"),
        assembly("A2", "b", ours={"mode": "append", "root": "r2"}, turn="2"),
    ]
    assert frame(events) == ["b"]
    assert [c.cause for c in last(events).changes if c.status == "removed"] == ["branched"]


def test_a_compaction_after_the_selection_is_applied_to_it() -> None:
    events = [
        add("a", "one", turn="1"),
        add("b", "two", turn="1"),
        add("sum", "short", turn="1"),
        selection("a", "b", turn="1"),
        compact(["a"], "sum", turn="1"),
        inject("A1", turn="1"),
    ]
    assert frame(events) == ["sum", "b"]


def test_something_removed_and_added_again_is_added_again() -> None:
    events = [
        add("a", "one", turn="1"),
        add("b", "two", turn="1"),
        inject("1", turn="1"),
        remove("a", "expired", turn="2"),
        inject("2", turn="2"),
        add("a", "one", turn="3"),
        inject("3", turn="3"),
    ]
    assert [statuses(s) for s in steps(events)[1:]] == [{"a": "removed"}, {"a": "added"}]
    assert steps(events)[1].changes[0].cause == "expired"
    assert frame(events) == ["b", "a"]


def test_changes_come_in_the_order_of_the_frame() -> None:
    twice = [
        {"block_id": "x", "item_refs": ["a"], "wrapper": "one: {content}"},
        {"block_id": "y", "item_refs": ["a"]},
    ]
    events = [
        add("a", "alpha", turn="1"),
        assembly("1", *twice, turn="1"),
        add("b", "beta", turn="2"),
        assembly("2", twice[0], "b", turn="2"),
    ]
    assert [c.item for c in last(events).changes] == ["a", "b"]


def test_a_turn_is_called_by_the_prompt_that_came_and_not_by_an_earlier_one_that_was_edited() -> None:
    def said(name: str, text: str, **fields: Any) -> Json:
        return add(name, text, kind="user_message", **fields)

    first: Json = {"turn": "1", "step": "1"}
    second: Json = {"turn": "2", "step": "2"}
    found = turns(
        [
            said("u1", "Dig a pond", **first), said("u2", "and a well", **first),
            assembly("a1", "u1", "u2", **first), inject("a1", **first),
            said("u2", "and a deep well", update=True, **second), said("u3", "Plant a tree", **second),
            assembly("a2", "u1", "u2", "u3", **second), inject("a2", **second),
        ]
    )  # fmt: skip
    assert [turn.title for turn in found] == ["Dig a pond", "Plant a tree"]
