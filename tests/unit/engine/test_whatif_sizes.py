"""Sizes of what a policy or an edit makes of a trace, worked by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxctl.model.results import Step
from ctxctl.model.whatif import Limits
from tests.oracle import build, real
from tests.oracle.build import Event, assembly, at, item, usage


def steps_of(where: Path, events: list[Event], **how: Any) -> list[Step]:
    with real.opened(where / "trace.jsonl", events, **how) as inspector:
        return [result for result in inspector.replay() if isinstance(result, Step)]


BILLED = [
    *at("t1", "s1", item("A", build.ABC), item("B", build.WALK), assembly("a1", ["A", "B"]), usage(113)),
    *at("t2", "s2", item("C", build.RED), assembly("a2", ["A", "B", "C"]), usage(117)),
    *at("t3", "s3", item("D", build.CAT), assembly("a3", ["B", "C", "D"]), usage(120)),
]
"""A has 5 tokens, B 8, C 4 and D 8; 100 are sent beside what is recorded."""
SMALL = {"policy": "fifo:protect_recent=0", "limits": Limits(window=112)}


@pytest.mark.parametrize(
    ("how", "frames"),
    [
        ({}, [13, 17, 20]),
        # Only from the first bill on it is known that 100 of the 112 are not there for content.
        (SMALL, [13, 12, 12]),
        ({"drop": ["item:B"]}, [5, 9, 12]),
        ({**SMALL, "drop": ["item:B"]}, [5, 9, 12]),
    ],
)
def test_as_much_is_sent_beside_the_content_whatever_is_left_out(
    tmp_path: Path, how: dict[str, Any], frames: list[int]
) -> None:
    found = steps_of(tmp_path, BILLED, **how)
    assert [step.window.recorded for step in found] == frames
    assert [step.window.unrecorded for step in found] == [100, 100, 100]
    assert [step.window.used for step in found] == [tokens + 100 for tokens in frames]


def test_an_edit_of_a_request_that_was_not_all_sent_takes_the_tokens_off_its_bill(tmp_path: Path) -> None:
    # 60 of 240 are billed: at least a part of the record was not sent, and nobody knows which.
    long = " ".join([build.CAT] * 29)
    events = at("t1", "s1", item("A", build.ABC), item("B", long), assembly("a1", ["A", "B"]), usage(60))
    (step,) = steps_of(tmp_path, events)
    assert (step.window.used, step.window.recorded) == (60, 237)
    assert step.cut is not None
    (step,) = steps_of(tmp_path, events, drop=["item:B"])
    assert (step.window.used, step.window.recorded) == (0, 5)


def test_a_window_that_grows_at_its_front_is_fitted_like_any_other(tmp_path: Path) -> None:
    # One token each: no step may hold more than ten, and fifo leaves out only as many as that takes.
    events: list[Event] = []
    names: list[str] = []
    for number in range(60):
        names.insert(0, f"N{number}")
        events += at(f"t{number}", None, item(names[0], build.ALPHA), assembly(f"a{number}", list(names)))
    found = steps_of(tmp_path, events, policy="fifo", limits=Limits(window=10))
    assert [step.window.recorded for step in found] == [min(number, 10) for number in range(1, 61)]
    assert [step.stages["budget"].facts["simulated"]["dropped"] for step in found] == [
        max(0, number - 10) for number in range(1, 61)
    ]


def test_the_budget_says_how_much_of_what_was_left_out_is_there_again(tmp_path: Path) -> None:
    compaction = build.event(
        "context.compaction.completed",
        {
            "schema_version": build.VERSION, "compaction_id": "c", "source_item_refs": ["A", "B"],
            "summary_ref": "S", "status": "completed",
        },
    )  # fmt: skip
    events = [
        *at("t1", "s1", item("A", build.ABC), item("B", build.WALK), assembly("a1", ["A", "B"])),
        *at("t2", "s2", item("S", build.HELLO, kind="thread_summary"), compaction, assembly("a2", ["S"])),
    ]
    found = steps_of(tmp_path, events, policy="fifo", limits=Limits(window=100))
    simulated = [step.stages["budget"].facts["simulated"] for step in found]
    # A and B are back, and their summary is hidden for it.
    assert [one.get("restored") for one in simulated] == [None, 3]
    assert [step.window.recorded for step in found] == [13, 13]


@pytest.mark.parametrize(
    ("limits", "verdict", "dropped"),
    [
        (Limits(window=20), "fits", 0),
        (Limits(window=12), "fitted", 1),
        (Limits(window=7), "still_over", 1),
        # No limit and no model that has one: that all is there does not mean that it fits.
        (Limits(), "unknown", 0),
    ],
)
def test_the_budget_says_whether_it_fits_where_there_is_a_limit(
    tmp_path: Path, limits: Limits, verdict: str, dropped: int
) -> None:
    asked = item("B", build.WALK, kind="user_message")
    events = at("t1", "s1", item("A", build.ABC), asked, assembly("a1", ["A", "B"]))
    (step,) = steps_of(tmp_path, events, policy="fifo", limits=limits)
    told = step.stages["budget"].facts["simulated"]
    assert (told["verdict"], told["dropped"]) == (verdict, dropped)


def test_a_reference_in_the_place_of_a_text_is_marked_as_simulated(tmp_path: Path) -> None:
    events = at(
        "t1",
        "s1",
        item("A", build.ABC),
        item("F", " ".join([build.CAT] * 20), kind="file"),
        item("Q", build.ALPHA, kind="user_message"),
        assembly("a1", ["A", "F", "Q"]),
    )
    how: dict[str, Any] = {"policy": "defer_to_retrieval", "limits": Limits(window=80)}
    with real.opened(tmp_path / "trace.jsonl", events, **how) as inspector:
        frame = {p.item: p for p in inspector.at(0).placements}
        text = inspector.assembled(0)
    assert "[deferred: F; fetch it again if needed]" in text
    assert build.CAT not in text
    cut, whole = frame["F"], frame["A"]
    assert (cut.truncated, cut.simulated, cut.own) == (True, True, True)
    assert (whole.truncated, whole.simulated, whole.own) == (False, False, False)


def test_the_budget_stage_says_what_was_done_to_which_item(tmp_path: Path) -> None:
    records = [
        {"item_ref": "A", "reason": "budget_limit", "action": "dropped"},
        {"item_ref": "B", "tokens_before": 8, "tokens_after": 3},
    ]
    budget = build.event(
        "context.budget.applied",
        {"schema_version": build.VERSION, "budget_id": "b", "target": "model", "max_tokens": 50,
         "truncation_records": records},
    )  # fmt: skip
    events = at("t1", "s1", item("A", build.ABC), item("B", build.WALK), budget, assembly("a1", ["B"]))
    (step,) = steps_of(tmp_path, events)
    facts = step.stages["budget"].facts
    assert (facts["dropped"], facts["truncated"]) == (1, 1)
    assert facts["truncations"] == [
        {"item": "A", "action": "dropped", "reason": "budget_limit"},
        {"item": "B", "action": "cut", "tokens_left": 3},
    ]


def limited(tokens: int) -> Event:
    return build.event(
        "context.budget.applied",
        {"schema_version": build.VERSION, "budget_id": "b", "target": "model", "max_tokens": tokens},
    )


def test_a_step_without_a_limit_has_all_back_and_what_was_left_out_before_is_forgotten(
    tmp_path: Path,
) -> None:
    events = [
        *at("t1", "s1", item("A", build.CAT), item("B", build.RED), limited(10), assembly("a1", ["A", "B"])),
        *at("t2", "s2", assembly("a2", ["A", "B"])),
        *at("t3", "s3", item("Z", build.ABC), limited(12), assembly("a3", ["Z", "A", "B"])),
        *at("t4", "s4", limited(12), assembly("a4", ["Z", "A", "B"])),
    ]
    frames = []
    with real.opened(tmp_path / "trace.jsonl", events, policy="fifo:protect_recent=0") as inspector:
        for number in range(4):
            frames.append("".join(p.item for p in inspector.at(number).placements))
    # 8 and 4 tokens; then 5 more in front of them, which are the oldest.
    assert frames == ["B", "AB", "AB", "AB"]


def test_a_text_that_is_set_stands_wherever_its_item_alone_does(tmp_path: Path) -> None:
    joint = {"block_id": "j", "item_refs": ["A", "B"], "content": "of both"}
    wrapped = build.block("A", wrapper={"prefix": "<", "suffix": ">"})
    events = at(
        "t1", "s1", item("A", build.ABC), item("B", build.WALK), assembly("a1", [wrapped, "B", joint])
    )
    with real.opened(tmp_path / "trace.jsonl", events, set={"A": build.HELLO}) as inspector:
        text = inspector.assembled(0)
    assert build.HELLO in text
    assert build.ABC not in text
    assert build.WALK in text
    assert "of both" in text


@pytest.mark.parametrize(
    ("budget", "flagged"),
    [
        ({"max_tokens": 50}, False),
        ({"max_tokens": 7}, True),
        ({"max_tokens": 7, "actual_tokens": 6}, False),
        ({"max_tokens": 50, "actual_tokens": 51}, True),
        ({"max_items": 5, "actual_items": 5}, False),
        ({"max_items": 5, "actual_items": 6}, True),
        ({"max_tokens": 50, "max_bytes": 10}, True),
    ],
)
def test_a_budget_that_acted_and_is_exceeded_all_the_same_says_so(
    tmp_path: Path, budget: dict[str, int], flagged: bool
) -> None:
    for records in ([{"item_ref": "A", "action": "dropped"}], []):
        told = {"schema_version": build.VERSION, "budget_id": "b", "target": "model", **budget}
        acted = build.event("context.budget.applied", {**told, "truncation_records": records})
        events = at("t1", "s1", item("A", build.ABC), item("B", build.WALK), acted, assembly("a1", ["B"]))
        (step,) = steps_of(tmp_path, events)
        assert ("still_over_budget" in step.flags) == (flagged and bool(records))


def test_any_step_under_a_policy_can_be_reached_in_any_order(tmp_path: Path) -> None:
    events: list[Event] = []
    names: list[str] = []
    for number in range(40):
        names.append(f"N{number}")
        events += at(f"t{number}", None, item(names[-1], build.ALPHA), assembly(f"a{number}", list(names)))
    how: dict[str, Any] = {"policy": "fifo", "limits": Limits(window=10)}
    with real.opened(tmp_path / "trace.jsonl", events, **how) as inspector:
        found = [result for result in inspector.replay() if isinstance(result, Step)]
        inspector.outline()
        for number in (39, 3, 38, 20, 0, 36):
            reached = inspector.at(number)
            assert reached.step == found[number]
            assert [p.item for p in reached.placements] == names[max(0, number - 9) : number + 1]
