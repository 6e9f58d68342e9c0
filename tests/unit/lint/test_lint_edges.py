"""Where a rule must hold its tongue, and the ways of one mistake that its fixture does not show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lint_help import PROSE, TIME, Made, found

Steps = Made


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "t.jsonl").turn(1)


def codes(made: Made, *select: str) -> list[str]:
    return [finding.code for finding in found(made.save(), *select).findings]


def selection(made: Made, selected: list[str], **more: Any) -> Made:
    return made.event(
        "context.selection.completed", selection_id="s", surface_id="x", created_at=TIME,
        selected_item_refs=selected, **more,
    )  # fmt: skip


def budget(made: Made, **more: Any) -> Made:
    return made.event("context.budget.applied", budget_id="b", target="model", created_at=TIME, **more)


def dropped(item: str, **more: Any) -> dict[str, Any]:
    return {"truncation_records": [{"item_ref": item, "action": "dropped", **more}]}


def test_what_the_budget_dropped_was_selected_and_is_excused(made: Made) -> None:
    made.item("a", "x").item("b", "y")
    budget(selection(made, ["a", "b"]), **dropped("b", reason="budget_limit")).sent(["a"])
    assert codes(made) == []


def test_what_was_skipped_as_unchanged_is_no_contradiction(made: Made) -> None:
    made.item("a", "x").item("b", "y")
    selection(made, ["a"], omitted_item_refs=[{"item_ref": "b", "omission_reason": "duplicate"}])
    assert codes(made.sent(["a", "b"])) == []


def test_a_drop_without_a_reason_and_a_lost_candidate_are_told(made: Made) -> None:
    made.item("a", "x").item("b", "y").item("c", "z")
    budget(selection(made, ["a"], candidate_item_refs=["a", "b", "c"]), **dropped("b")).sent(["a"])
    messages = [f.message for f in found(made.save(), "CTX014").findings]
    assert sorted(messages) == [
        "c: a candidate that was neither selected nor omitted",
        "the budget drops b and gives no reason",
    ]


def test_a_budget_that_drops_what_is_there(made: Made) -> None:
    budget(made.item("a", PROSE), **dropped("a", reason="budget_limit")).sent(["a"])
    assert codes(made) == ["CTX015"]


def test_a_reserve_as_large_as_the_window(made: Made) -> None:
    budget(made.item("a", "x"), max_tokens=1000, reserved_tokens=1000).sent(["a"])
    assert codes(made, "CTX015") == ["CTX015"]


def test_segments_within_the_slack_of_separators_add_up(made: Made) -> None:
    segments = [{"segment_id": "all", "actual_tokens": 990}]
    budget(made.item("a", "x"), max_tokens=9000, actual_tokens=1000, window_segments=segments).sent(["a"])
    assert codes(made) == []


def test_over_in_items_is_still_over(made: Made) -> None:
    made.item("a", "x").item("b", "y").item("c", "z")
    budget(
        selection(made, ["a", "b", "c"]), max_items=1, actual_items=2, **dropped("c", reason="budget_limit")
    )
    (finding,) = found(made.sent(["a", "b"]).save()).findings
    assert (finding.code, finding.message) == ("CTX016", "still over budget after it was cut: items by 1")


def test_a_removed_item_may_be_added_again(made: Made) -> None:
    made.item("a", "x").sent(["a"]).turn(2).event("context.item.removed", item_id="a")
    made.sent([]).turn(3).item("a", "x").sent(["a"])
    assert codes(made) == []


def test_a_removal_after_the_assembly_is_for_the_next_one(made: Made) -> None:
    made.item("a", "x").sent(["a"]).event("context.item.removed", item_id="a").turn(2).sent([])
    assert codes(made) == []


def test_a_removed_item_that_is_selected_is_cited(made: Made) -> None:
    made.item("a", "x").item("b", "y").sent(["a", "b"]).turn(2).event("context.item.removed", item_id="a")
    assert codes(selection(made, ["a", "b"]).sent(["b"]), "CTX019") == ["CTX019"]


@pytest.mark.parametrize("quiet", [{"scope": "turn"}, {"severity": "info"}, {"status": "declined"}])
def test_a_gap_that_nobody_has_to_close(made: Made, quiet: dict[str, str]) -> None:
    gap = {"missing_id": "g", "scope": "task", "question": "?", "severity": "high", "status": "open"}
    made.event("context.missing.detected", created_at=TIME, **gap | quiet).item("a", "x").sent(["a"])
    assert codes(made.turn(2).sent(["a"])) == []


def test_a_gap_of_the_last_step_may_still_be_closed(made: Made) -> None:
    gap = {"missing_id": "g", "scope": "task", "question": "?", "severity": "high", "status": "open"}
    made.item("a", "x").event("context.missing.detected", created_at=TIME, **gap).sent(["a"])
    assert codes(made) == []


def test_a_provider_that_became_empty(made: Made) -> None:
    made.item("editor", "Open note: the harbour", title="Editor").sent(["editor"])
    made.turn(2).item("editor", "null", how="updated", title="Editor").sent(["editor"])
    assert codes(made) == ["CTX025"]


def test_calls_of_a_tool_that_never_has_results_are_not_missed(made: Made) -> None:
    made.item("c1", '{"name": "search_web", "arguments": {}}', "tool_call").item(
        "m1", "Found it.", "assistant_message"
    )
    made.sent(["c1", "m1"]).turn(2).item("c2", '{"name": "read", "arguments": {}}', "tool_call")
    made.item("c2/result", "text", "tool_result").item("m2", "Read it.", "assistant_message")
    assert codes(made.sent(["c1", "m1", "c2", "c2/result", "m2"])) == []


def test_results_in_another_order_belong_to_their_calls(made: Made) -> None:
    for n in (1, 2, 3):
        made.item(f"c{n}", f'{{"name": "read", "arguments": {{"n": {n}}}}}', "tool_call")
    for n in (3, 1, 2):
        made.item(f"c{n}/result/0", f"text {n}", "tool_result")
    made.item("m", "Done.", "assistant_message")
    made.sent(["c1", "c2", "c3", "c3/result/0", "c1/result/0", "c2/result/0", "m"])
    assert codes(made) == []


def test_a_tool_counts_as_called_by_its_last_name(tmp_path: Path) -> None:
    made = (
        Made(tmp_path / "t.jsonl")
        .turn(1)
        .item("tool:files__read", PROSE * 5, "tool_definition", title="files__read")
    )
    names = ["tool:files__read"]
    for turn in range(1, 14):
        made.turn(turn).item(f"c{turn}", f'read {{"n": {turn}}}', "tool_call").item(
            f"c{turn}/result", "x", "tool_result"
        )
        names += [f"c{turn}", f"c{turn}/result"]
        made.sent(names)
    assert codes(made) == []


@pytest.mark.parametrize("last", [True, False])
def test_a_call_of_the_very_last_answer_counts(tmp_path: Path, last: bool) -> None:
    made = Made(tmp_path / "t.jsonl").turn(1)
    made.item("tool:read", PROSE * 5, "tool_definition", title="mcp__files__read")
    names = ["tool:read"]
    for turn in range(1, 14):
        made.turn(turn).item(f"c{turn}", f'write {{"n": {turn}}}', "tool_call")
        names += [f"c{turn}"]
        made.sent(names)
    if last:
        made.item("c14", 'mcp__files__read {"n": 1}', "tool_call")
    assert codes(made) == ([] if last else ["CTX008"])


def bills(made: Made, second: int, **more: Any) -> Made:
    made.item("a", PROSE * 20, "user_message").sent(["a"]).billed(20_000).turn(2).sent(["a"])
    return made.event("ctxctl.usage.reported", model="m", provider="p", input_tokens=second, **more)


def test_a_bill_that_fell_by_little_or_was_worked_out_says_nothing(tmp_path: Path) -> None:
    assert codes(bills(Made(tmp_path / "a.jsonl").turn(1), 17_000)) == []
    derived = {"metadata": {"ctxctl": {"derived": True}}}
    assert codes(bills(Made(tmp_path / "b.jsonl").turn(1), 6_000, **derived)) == []


def clock(made: Made, cached: int | None) -> Made:
    for turn in (1, 2):
        made.turn(turn).item("clock", f"It is 08:0{turn}.", how="added" if turn == 1 else "updated")
        made.item("manual", PROSE * 4, "system_prompt") if turn == 1 else None
        made.sent(["clock", "manual"])
        made.event(
            "ctxctl.usage.reported", model="m", provider="p", input_tokens=3000, cached_tokens=cached or 0
        )
    return made


def test_a_clock_breaks_the_prefix_unless_the_provider_read_on(tmp_path: Path) -> None:
    assert (
        codes(clock(Made(tmp_path / "a.jsonl"), 0), "CTX007") == []
    )  # what stands behind the system prompt breaks nothing
    made = Made(tmp_path / "b.jsonl")
    for turn in (1, 2):
        made.turn(turn).item(
            "clock", f"It is 08:0{turn}.", "system_prompt", how="added" if turn == 1 else "updated"
        )
        if turn == 1:
            made.item("manual", PROSE * 4, "system_prompt")
        made.sent(["clock", "manual"])
    assert codes(made, "CTX007") == ["CTX007"]
    made.event("ctxctl.usage.reported", model="m", provider="p", input_tokens=3000, cached_tokens=2900)
    assert codes(made, "CTX007") == []


def test_a_hidden_prompt_in_the_cache_hides_no_break(tmp_path: Path) -> None:
    made = Made(tmp_path / "c.jsonl")
    for turn in (1, 2):
        made.turn(turn).item(
            "clock", f"It is 08:0{turn}.", "system_prompt", how="added" if turn == 1 else "updated"
        )
        if turn == 1:
            made.item("manual", PROSE * 4, "system_prompt")
        made.sent(["clock", "manual"])
    made.event("ctxctl.usage.reported", model="m", provider="p", input_tokens=40_000, cached_tokens=30_000)
    assert codes(made, "CTX007") == ["CTX007"]


def test_words_that_change_are_no_volatile_value(made: Made) -> None:
    for turn, word in ((1, "calm"), (2, "rough")):
        made.turn(turn).item(
            "sea", f"The sea is {word}.", "system_prompt", how="added" if turn == 1 else "updated"
        )
        if turn == 1:
            made.item("manual", PROSE * 4, "system_prompt")
        made.sent(["sea", "manual"])
    assert codes(made, "CTX007") == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2026-05-04T08:00:11Z", "2026-06-04T18:10:01.123+02:00"),
        ("Monday, May 4, 2026 at 8:00 AM", "Tuesday, June 16, 2026 at 11:30 PM"),
        ("id 550e8400-e29b-41d4-a716-446655440000", "id 6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
        ("commit 1a2b3c4d5e", "commit ffee0011aa"),
        ("tokens used: 1,204", "tokens used: 98,001,204"),
    ],
)
def test_times_ids_and_counters_are_masked(one: str, other: str) -> None:
    from ctxctl.lint.rules.cache import masked

    assert masked(one) == masked(other)
    assert masked(f"{one} and more") != masked(f"{other} and less")


@pytest.mark.parametrize(("lines", "equal"), [(100, 97), (400, 360), (200, 100)])
def test_a_sketch_estimates_the_share_of_equal_lines(lines: int, equal: int) -> None:
    from ctxctl.lint.rules.copies import likeness, sketch

    first = [f"line {n} of a text about harbours" for n in range(lines)]
    second = first[:equal] + [f"line {n} says something else now" for n in range(equal, lines)]
    a, b = sketch("\n".join(first)), sketch("\n".join(second))
    assert a is not None
    assert b is not None
    assert likeness(a, b) == pytest.approx(equal / (2 * lines - equal), abs=0.08)
    assert likeness(a, a) == 1


def test_a_finding_calls_items_without_a_title_by_their_words(made: Made) -> None:
    made.item("797cbe38-cfae", PROSE).sent(["797cbe38-cfae"])
    made.turn(2).item("f82449fa-cf02", PROSE, title="rules.md").sent(["797cbe38-cfae", "f82449fa-cf02"])
    (finding,) = found(made.save(), "CTX010").findings
    assert finding.message.startswith("rules.md has the same text as “Line 0 says that boat 0 leaves pier 0 ")
    assert "797cbe38" not in finding.message
    assert finding.subject == "f82449fa-cf02", "baselines go by the id, as before"
