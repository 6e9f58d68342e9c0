"""What is measured of sessions whose steps are written down by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from ctxctl.budget.derive import derived_plan
from ctxctl.budget.observe import Observed, PartGroup, answers_of, groups_of, talk_of
from ctxctl.budget.plan import parse
from ctxctl.errors import UnreadableError
from ctxctl.model.results import Placement, Step
from ctxctl.model.vocab import rank_of, segment_of


def placed(name: str, kind: str, tokens: int, version: int = 0, source: str | None = None) -> Placement:
    segment = segment_of(kind)
    return Placement(
        item=name, version=None, kind=kind, title=None, source=source, segment=segment, tokens=tokens,
        method="counted", content=None, digest=None, key=hash((name, version)), line=0, rank=rank_of(segment),
    )  # fmt: skip


def step(
    turn: int, model: str | None = "m", cap: int | None = None, used: int = 0, beside: int | None = None
) -> Step:
    window: Any = SimpleNamespace(
        limit=cap, reserved=None, cap=cap, used=used, unrecorded=beside,
        threshold=None, threshold_source=None,
        limit_source="recorded" if cap else None, limit_note=None, over=used > cap if cap else None,
    )  # fmt: skip
    return cast("Step", SimpleNamespace(turn=turn, model=model, usage=None, window=window, changes=()))


TOOLS = placed("t", "tool_definition", 50, source="gh")
SYSTEM = placed("s", "system_prompt", 30)
U1, A1 = placed("u1", "user_message", 5), placed("a1", "assistant_message", 9)
C1, R1 = placed("c1", "tool_call", 3), placed("r1", "tool_result", 70)
C2, R2 = placed("c2", "tool_call", 4), placed("r2", "tool_result", 80)
U2 = placed("u2", "user_message", 6)


def status(version: int, tokens: int) -> Placement:
    return placed("status", "runtime_state", tokens, version)


def seen() -> Observed:
    """Two turns: the first has two calls at once and an answer, the second has another status."""
    found = Observed()
    found.add(step(1), [TOOLS, SYSTEM, status(1, 10), U1])
    found.add(step(1), [TOOLS, SYSTEM, status(1, 10), U1, C1, C2, R1, R2])
    found.add(step(2, cap=1000), [TOOLS, SYSTEM, U1, C1, C2, R1, R2, A1, status(2, 20), U2])
    return found


def test_talk_is_put_down_to_the_turn_it_came_in() -> None:
    first, second = talk_of([seen()])
    assert first == (5, 9, (3, 4), (70, 80), (2,))
    assert second == (6, 0, (), (), ())
    assert answers_of([seen()]) == [9]  # what came after the last request is not known


def test_what_speaks_as_the_system_among_the_messages_is_no_context() -> None:
    prompt = msgspec.structs.replace(SYSTEM, rank=2, source="rules.md")
    spoken = msgspec.structs.replace(U1, segment="system", rank=2)
    found = Observed()
    found.add(step(1), [TOOLS, prompt, spoken, U2])
    assert [(group.segment, group.kind) for group in groups_of([found])] == [
        ("tools", "tool_definition"), ("system", "system_prompt"), ("system", "user_message")
    ]  # fmt: skip
    assert [talk.user for talk in talk_of([found])] == [6]


def test_parts_and_how_often_they_change() -> None:
    found = groups_of([seen()])
    assert [group.segment for group in found] == ["tools", "system", "context"]
    assert found[PartGroup("tools", "tool_definition", "gh")] == ((50, 50), 0, 1, False)
    assert found[PartGroup("context", "runtime_state", None)] == ((10, 20), 1, 1, False)


def test_a_context_whose_versions_stay_is_one_that_stays() -> None:
    found = Observed()
    found.add(step(1), [status(1, 10), U1])
    found.add(step(2), [status(1, 10), U1, A1, status(2, 20), U2])
    assert groups_of([found])[PartGroup("context", "runtime_state", None)] == ((10, 20), 1, 1, True)


def test_what_was_there_before_the_recording_is_a_part_of_its_own() -> None:
    found = Observed()
    found.add(step(1), [U1, A1, U2])
    assert (found.earlier, talk_of([found])[0].user) == (14, 6)
    plan = parse(derived_plan([found], ["x"], "o200k_base").replace('"m"', '"m"\nwindow = 10'), "x")
    assert [(part.name, part.where) for part in plan.part] == [("earlier messages", "history")]


def test_a_message_that_comes_back_is_not_counted_again() -> None:
    found = Observed()
    found.add(step(1), [U1])
    found.add(step(2), [placed("sum", "thread_summary", 8), U2])
    found.add(step(2), [U1, A1, U2])
    assert [turn.user for turn in talk_of([found])] == [5, 6]


def test_the_plan_of_it() -> None:
    text = derived_plan([seen()], ["run\n.jsonl"], "o200k_base")
    plan = parse(text, "derived")
    assert (plan.model.name, plan.model.window, plan.conversation.turns) == ("m", 1000, 2)
    assert [(part.name, part.where, part.server, part.rate) for part in plan.part] == [
        ("tools: gh", "tools", "gh", 0.0),
        ("system prompt", "system", None, 0.0),
        ("runtime state", "context", None, 1.0),
    ]
    talk = plan.conversation
    assert (talk.user.at(0), talk.user.at(1), talk.answer.at(1)) == (5, 6, 9)
    assert (talk.calls.at(0), talk.calls.at(1), talk.parallel.at(0.5)) == (0, 2, 2)
    assert (talk.call.at(1), talk.result.at(0)) == (4, 70)
    assert "Sessions: 1, turns: 2, requests: 3." in text


def test_names_that_would_break_a_plan() -> None:
    found = Observed()
    evil = placed("t", "tool_definition", 1, source='a"]\n[model]\nname = "x\u202e\x7f')
    other = placed("t2", "tool_definition", 1, source='a"]\n[model]\nname = "x\u202e\x7f' + "y" * 400)
    found.add(step(1, model='m"\n\x1b'), [evil, other, U1])
    plan = parse(derived_plan([found], ['"\n[x]'], "o200k_base") + "", "derived")
    assert plan.model.name == 'm"␊␛'
    assert len(plan.part) == 2


def test_nothing_to_derive_from() -> None:
    with pytest.raises(UnreadableError, match="no step"):
        derived_plan([], [], "o200k_base")


def billed(*besides: int, cap: int | None = None) -> Observed:
    """A session of one call in each turn: 100 tokens of system prompt, and 20 of talk with each request."""
    found, placements, recorded = Observed(), [placed("s", "system_prompt", 100)], 100
    for turn, beside in enumerate(besides, 1):
        placements += [placed(f"u{turn}", "user_message", 15), placed(f"r{turn}", "tool_result", 5)]
        recorded += 20
        found.add(step(turn, cap=cap, used=recorded + beside, beside=beside), list(placements))
    return found


def test_what_is_not_recorded_is_a_part_as_large_as_it_was_at_the_first_bill() -> None:
    told = derived_plan([billed(40, 40), billed(60, 60)], ["x"], "o200k_base", "tool definitions")
    part = parse(told, "x").part[0]
    assert (part.name, part.where, part.rate) == ("not recorded: tool definitions", "system", 0.0)
    assert part.tokens is not None
    assert (part.tokens.at(0), part.tokens.at(0.5), part.tokens.at(1)) == (40, 50, 60)
    assert "at the first request, 2 of 2." in told


def test_a_bill_below_the_count_makes_no_negative_part_and_the_plan_says_so() -> None:
    told = derived_plan([billed(-30, -30), billed(60, 60)], ["x"], "o200k_base")
    tokens = parse(told, "x").part[0].tokens
    assert tokens is not None
    assert (tokens.at(0), tokens.at(1)) == (0, 60)
    assert "In 1 of them fewer were billed than counted: 0 here." in told


def test_where_nothing_was_billed_there_is_no_such_part() -> None:
    told = derived_plan([seen()], ["x"], "o200k_base")
    assert "not recorded" not in told
    assert "# Nothing was billed, so sizes are those of the record alone: 1 of these sessions.\n" in told
    assert "Nothing was billed" not in derived_plan([billed(40, 40)], ["x"], "o200k_base")


def test_what_bills_grew_beside_the_record_is_in_what_arrives() -> None:
    first, second, third = (turn.user for turn in talk_of([billed(40, 60, 60)]))
    assert (first, second, third) == (15, 30, 15)
    assert [turn.results for turn in talk_of([billed(40, 60, 60)])] == [(10,), (5,), ()]
    # Nothing recorded is new, and the bill grew all the same: the model said something that is not kept.
    found = Observed()
    found.add(step(1, used=45, beside=40), [U1])
    found.add(step(1, used=60, beside=55), [U1])
    assert talk_of([found])[0].answer == 15


def test_what_is_not_recorded_and_leaps_is_no_growth() -> None:
    assert [turn.user for turn in talk_of([billed(40, 9_000, 9_000)])] == [15, 15, 15]
    # What a bill was too small by is taken off what follows.
    assert [turn.user for turn in talk_of([billed(40, 10, 10)])] == [15, 0, 7]


def test_of_a_session_that_overflowed_the_plan_says_so() -> None:
    told = derived_plan([billed(40, 40, 40, cap=190)], ["x"], "o200k_base")
    assert "# Over the cap of their time: 1 requests, in 1 of 1 sessions." in told
    assert "# Limits: recorded" in told
    assert parse(told, "x").limits.overflow_turn == 4


def test_what_sessions_differ_by_is_in_the_plan() -> None:
    assert "drift" not in derived_plan([billed(40, 40)], ["x"], "o200k_base")
    alike = parse(derived_plan([billed(40, 40), billed(40, 40)], ["x"], "o200k_base"), "x")
    assert alike.conversation.drift == 0
    other = parse(derived_plan([billed(40, 40), billed(40, 240, 440)], ["x"], "o200k_base"), "x")
    assert other.conversation.drift == 1  # that is the most


def test_of_sessions_of_one_prompt_requests_are_counted() -> None:
    found = Observed()
    frame = [placed("s", "system_prompt", 100), placed("u", "user_message", 30)]
    found.add(step(1, used=150, beside=20), list(frame))
    for number in range(11):
        frame.append(placed(f"r{number}", "tool_result", 10))
        change = SimpleNamespace(status="added", item=f"r{number}", kind="tool_result", new=10, freed=0)
        made = step(1, used=160 + 15 * number, beside=20 + 5 * number)
        cast("Any", made).changes = (change,)
        found.add(made, list(frame))
    plan = parse(derived_plan([found], ["x"], "o200k_base").replace('"m"', '"m"\nwindow = 300'), "x")
    talk = plan.conversation
    assert (talk.unit, talk.turns, plan.limits.overflow_turn) == ("request", 12, 13)
    assert talk.seen == (((0, 0, 0, 10),), *[((0, 0, 0, 15),)] * 10)
