"""Fitting policies worked by hand."""

from __future__ import annotations

from ctxctl.model.fitting import Cut, Drop, Room
from ctxctl.policies.fitting.eviction import Fifo, Priority
from ctxctl.policies.fitting.overflow import (
    DeferToRetrieval,
    Reject,
    SummarizeOldest,
    TruncateMiddle,
    TruncateTail,
)
from tests.oracle.plain_units import units_of
from tests.unit.policies.fitting_help import candidate

WINDOW = [
    candidate("system", 10, "system_prompt"),  # 0
    candidate("ask", 20, "user_message"),  # 1
    candidate("call", 5, "tool_call", pairs=("c",)),  # 2
    candidate("result", 200, "tool_result", pairs=("c",), priority=5.0),  # 3
    candidate("answer", 40, priority=1.0),  # 4
    candidate("file", 100, "file", priority=-1.0, title="notes.md"),  # 5
    candidate("now", 10, "user_message"),  # 6
]
TOTAL = 385


def test_units_hold_calls_with_their_results() -> None:
    assert units_of(WINDOW) == [(0,), (1,), (2, 3), (4,), (5,), (6,)]


def test_fifo_takes_the_oldest_whole_and_stops() -> None:
    fit = Fifo().fit(WINDOW, Room(300), None)
    assert fit.verdict == "fitted"
    assert fit.drops == tuple(Drop(at, "budget_limit") for at in (1, 2, 3))


def test_fifo_says_when_what_is_protected_is_too_much() -> None:
    fit = Fifo().fit(WINDOW, Room(15), None)
    assert fit.verdict == "still_over"
    assert [drop.at for drop in fit.drops] == [1, 2, 3, 4, 5]


def test_priority_takes_the_lowest() -> None:
    assert [d.at for d in Priority().fit(WINDOW, Room(300), None).drops] == [5]
    # 5 has -1; 1 has none, so 0; then 4 with 1.
    assert [d.at for d in Priority().fit(WINDOW, Room(230), None).drops] == [1, 4, 5]


def test_reject_sends_nothing() -> None:
    assert Reject().fit(WINDOW, Room(TOTAL), None).verdict == "fits"
    assert Reject().fit(WINDOW, Room(TOTAL - 1), None).verdict == "rejected"


def test_truncate_tail_cuts_the_end_of_what_may_go() -> None:
    # 20 of 300 for what stays; the loose ones have 280: 1 (20), 2+3 (205), 4 (40) and 15 of 5.
    fit = TruncateTail().fit(WINDOW, Room(300), None)
    assert (fit.verdict, fit.drops, fit.cuts) == ("fitted", (), (Cut(5, 15),))


def test_truncate_middle_keeps_both_ends() -> None:
    # 20 of 200 stay.  Before the middle 90: 1 (20), then 2 and 3 do not go in.  Behind it 90: a part of 5.
    fit = TruncateMiddle().fit(WINDOW, Room(200), None)
    assert fit.verdict == "fitted"
    assert [d.at for d in fit.drops] == [2, 3, 4]
    assert fit.cuts == (Cut(5, 90, "tail"),)


def test_a_summary_stands_where_what_it_replaces_began() -> None:
    fit = SummarizeOldest(summary_tokens=50).fit(WINDOW, Room(300), None)
    assert [d.at for d in fit.drops] == [1, 2, 3]
    (note,) = fit.notes
    assert (note.before, note.text, note.tokens, note.sources) == (1, None, 50, (1, 2, 3))


def test_the_next_summary_takes_the_earlier_one_in() -> None:
    first = SummarizeOldest(summary_tokens=50).fit(WINDOW, Room(300), None)
    grown = [*WINDOW, candidate("more", 200), candidate("next", 5, "user_message")]
    again = SummarizeOldest(summary_tokens=50).fit(grown, Room(300), first.state)
    assert {d.at for d in first.drops} < {d.at for d in again.drops}
    assert len(again.notes) == 1


def test_a_summary_may_fill_the_room_to_the_last_token() -> None:
    # 385 less 1 (20) and 2+3 (205), and the summary's 50.
    fit = SummarizeOldest(summary_tokens=50, target=1.0).fit(WINDOW, Room(210), None)
    assert (fit.verdict, [d.at for d in fit.drops]) == ("fitted", [1, 2, 3])


def test_what_was_summarized_before_takes_no_room() -> None:
    # 590 less 225 with 50 for the summary are 415: 4 (40) and 5 (100) make it 275, and the next 200 stay.
    policy = SummarizeOldest(summary_tokens=50, target=1.0)
    first = policy.fit(WINDOW, Room(300), None)
    grown = [*WINDOW, candidate("more", 200), candidate("next", 5, "user_message")]
    again = policy.fit(grown, Room(300), first.state)
    assert (again.verdict, [d.at for d in again.drops]) == ("fitted", [1, 2, 3, 4, 5])


def test_what_fills_the_room_to_the_last_token_is_not_over() -> None:
    # 390 less 225 with 50 for the summary are 215: there is no need to go down to half of that.
    policy = SummarizeOldest(summary_tokens=50, target=0.5)
    first = SummarizeOldest(summary_tokens=50, target=1.0).fit(WINDOW, Room(210), None)
    grown = [*WINDOW, candidate("next", 5, "user_message")]
    again = policy.fit(grown, Room(215), first.state)
    assert (again.verdict, [d.at for d in again.drops]) == ("fitted", [1, 2, 3])
    more = policy.fit(grown, Room(214), first.state)
    assert (more.verdict, [d.at for d in more.drops]) == ("fitted", [1, 2, 3, 4, 5])


def test_what_can_be_fetched_again_is_referred_to() -> None:
    fit = DeferToRetrieval(kinds=("file",)).fit(WINDOW, Room(380), None)
    (swap,) = fit.swaps
    assert swap.at == 5
    assert swap.text == "[deferred: notes.md; fetch it again if needed]"
    assert fit.verdict == "fitted"
