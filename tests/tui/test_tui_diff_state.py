"""The view state of the diff screen, without an event loop."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.model.vocab import STATUSES, Status
from ctxctl.text import cells
from ctxctl.tui.screens.diff import lines
from ctxctl.tui.screens.diff import state as moves
from ctxctl.tui.screens.diff.sheet import make
from ctxctl.tui.screens.diff.state import DiffState
from ctxctl.tui.screens.diff.values import (
    Entry,
    FrameDiff,
    FrameName,
    ItemDiff,
    Listing,
    Pair,
    SideHead,
    TextKey,
)
from ctxctl.wording import MINUS

PAIR = Pair(FrameName(3), FrameName(7))


def entry(item: str, status: Status = "skipped", before: int = 10, after: int = 10, **other: Any) -> Entry:
    return Entry(
        status, item, "user_message", None, before, after,
        new=max(after - before, 0), freed=max(before - after, 0), **other,
    )  # fmt: skip


def side(**other: Any) -> SideHead:
    facts: dict[str, Any] = {
        "trace": "run.jsonl", "address": "2.1", "layer": "injected", "basis": "assembly", "target": "model",
        "model": "gpt-4o", "limit": 4096, "cap": 3584, "used": 60, "uncounted": 0,
        "counting": "exact:o200k_base", "segments": {"user": 60},
    }  # fmt: skip
    made = {"method": "reported", **facts, **other}
    return SideHead(**{"recorded": made["used"], **made})


def diff(*entries: Entry, a: SideHead | None = None, b: SideHead | None = None) -> FrameDiff:
    counts = {status: sum(e.status == status for e in entries) for status in STATUSES}
    new, freed = sum(e.new for e in entries), sum(e.freed for e in entries)
    a = a or side(used=sum(e.before for e in entries))
    b = b or side(used=sum(e.after for e in entries), address="3.1")
    return FrameDiff.of(a, b, entries, (new, freed), counts)


ITEMS = (
    entry("system"),
    entry("tool", flags=("moved",), places=(2, 5)),
    entry("notes", "removed", 30, 0, cause="omitted", reason="budget_limit"),
    entry("history"),
    entry("question", "added", 0, 12),
    entry("editor", "updated", 10, 14),
)


def opened(*entries: Entry) -> DiffState:
    return moves.compared(DiffState(), PAIR, diff(*(entries or ITEMS)))


def test_only_what_changed_is_listed_and_the_cursor_is_on_the_first() -> None:
    state = opened()
    assert [state.listing.at(n).item for n in range(state.listing.count)] == [  # type: ignore[union-attr]
        "tool", "notes", "question", "editor",
    ]  # fmt: skip
    assert state.entry is not None
    assert state.entry.item == "tool"


def test_unchanged_items_come_and_go_around_the_cursor() -> None:
    state = moves.next_change(opened(), 1)
    shown = moves.toggle_unchanged(state)
    assert (shown.listing.count, shown.row, shown.item) == (6, 2, "notes")
    assert moves.toggle_unchanged(shown).row == state.row


def test_from_an_unchanged_item_the_next_change_is_found() -> None:
    state = moves.to_row(moves.toggle_unchanged(opened()), 3)
    assert state.item == "history"
    assert moves.next_change(state, 1).item == "question"
    assert moves.next_change(state, -1).item == "notes"
    # Where the unchanged ones go, the cursor stays as near as it can.
    assert moves.toggle_unchanged(state).item == "question"


def test_at_the_last_change_there_is_no_next_one() -> None:
    state = moves.to_row(opened(), 3)
    assert moves.next_change(state, 1) is state
    assert moves.next_change(replace(state, row=0), -1).row == 0


def test_text_is_wanted_where_it_is_seen() -> None:
    state = opened()
    assert state.wanted is None
    assert moves.enter(state).wanted == TextKey(PAIR, "tool", False, False)
    wide = moves.arranged(state, 200, 122)
    assert wide.wanted == TextKey(PAIR, "tool", True, False)
    assert moves.toggle_unified(wide).wanted == TextKey(PAIR, "tool", False, False)
    assert moves.arranged(state, 110, 99).split is False


def test_a_late_text_is_ignored() -> None:
    state = moves.enter(opened())
    late = ItemDiff(TextKey(PAIR, "editor", False, False), None, "no")
    assert moves.texted(state, late) is state
    found = ItemDiff(TextKey(PAIR, "tool", False, False), make((), split=False))
    assert moves.texted(state, found).shown is found
    assert moves.toggle_unchanged(moves.texted(state, found)).shown is None


def test_swapped_sides_keep_the_item() -> None:
    state = moves.to_row(opened(), 2)
    back = moves.swapped(state)
    assert back.pair == Pair(FrameName(7), FrameName(3))
    assert back.swapped
    # The answer of the old pair comes late.
    assert moves.compared(back, PAIR, diff(*ITEMS)) is back
    now = moves.compared(
        back, PAIR.swapped(), diff(entry("question", "removed", 12, 0), entry("x", "added", 0, 1))
    )
    assert now.item == "question"
    assert moves.swapped(moves.swapped(state)).pair == PAIR


def test_all_texts_together_and_back() -> None:
    state = moves.toggle_together(opened())
    assert state.wanted == TextKey(PAIR, None, False, False)
    assert moves.back(state) == replace(state, level="items", together=False)
    assert moves.toggle_together(state).level == "items"
    assert moves.back(opened()) is None


def test_an_item_lists_its_own_unchanged_lines() -> None:
    state = moves.toggle_unchanged(moves.enter(opened()))
    assert state.whole
    assert state.listing.everything is False


def test_frames_that_are_the_same() -> None:
    state = opened(entry("system"), entry("history"))
    assert state.listing.count == 0
    assert state.entry is None
    assert moves.enter(state) is state
    assert moves.next_change(state, 1) is state
    assert moves.toggle_unchanged(state).listing.count == 2
    assert moves.compared(DiffState(), PAIR, diff()).listing.count == 0


def test_stale_copies_and_scores_are_changes() -> None:
    assert entry("x", after=4).changed
    assert entry("x", flags=("rescored",)).changed
    assert not entry("x", flags=("stale",)).changed


@given(
    st.lists(st.sampled_from(["j", "k", "n", "N", "c", "u", "a", "x", "enter", "esc", "wide"]), max_size=40)
)
def test_no_keys_lead_out_of_the_table(pressed: list[str]) -> None:
    state = opened()
    for key in pressed:
        step = {
            "j": lambda s: moves.to_row(s, s.row + 1),
            "k": lambda s: moves.to_row(s, s.row - 1),
            "n": lambda s: moves.next_change(s, 1),
            "N": lambda s: moves.next_change(s, -1),
            "c": moves.toggle_unchanged,
            "u": moves.toggle_unified,
            "a": moves.toggle_together,
            "x": moves.swapped,
            "enter": moves.enter,
            "esc": lambda s: moves.back(s) or s,
            "wide": lambda s: moves.arranged(s, 200, 120),
        }[key]
        state = step(state)
        assert state.entry is not None
        assert state.entry.item == state.item
        assert (state.wanted is None) == (state.level == "items" and not state.beside)


# Lines ------------------------------------------------------------------------------------------------------


def text(parts: lines.Parts) -> str:
    return "".join(part for part, _ in parts)


def test_the_summary_is_always_whole_at_80_columns() -> None:
    found = [text(parts) for parts in lines.head(opened(), 80)]
    assert "run.jsonl@2.1" in found[0]
    assert "injected" in found[0]
    assert "run.jsonl@3.1" in found[1]
    assert f"70 before  +16 new  {MINUS}30 freed  = 56 after  ({MINUS}14)" in found[2]
    assert f"+1  ~1  {MINUS}1  =3" in found[2]
    assert "user 60" in found[3]


def test_columns_in_which_nothing_stands_are_left_out() -> None:
    came = diff(entry("question", "added", 0, 12), entry("system"))
    listing = Listing(came)
    assert text(lines.table_heading(listing, 80)).split() == ["kind", "item", "after", "new"]
    everything = Listing(came, everything=True)
    assert text(lines.table_heading(everything, 80)).split() == ["kind", "item", "before", "after", "new"]
    every = ["kind", "item", "before", "after", "new", "freed", "why"]
    assert text(lines.table_heading(Listing(diff(*ITEMS)), 80)).split() == every
    assert text(lines.table_heading(Listing(), 80)).split() == every


def test_what_nobody_counted_is_not_nothing() -> None:
    unknown = [side(used=0, uncounted=2, method="recorded", segments={}) for _ in range(2)]
    sealed = entry("sealed", "added", 0, 0, uncounted=(False, True))
    found = diff(sealed, a=unknown[0], b=unknown[1])
    state = moves.compared(DiffState(), PAIR, found)
    head = [text(parts) for parts in lines.head(state, 80)]
    assert all("what was sent is not known" in line for line in head[:2])
    assert "0" not in head[2].replace("~0", "").replace(f"{MINUS}0", "").replace("=0", "").replace("∅0", "")
    row = text(lines.table_line(state.listing, found, sealed, 80)).split()
    assert row[-1] == "-"
    assert lines.tokens(sealed) == "size not known"


@pytest.mark.parametrize("width", [1, 7, 20, 40, 59, 80, 100, 130, 200])
def test_lines_fill_their_width(width: int) -> None:
    state = opened()
    for parts in lines.head(state, width):
        assert cells(text(parts)) == width or width < 3
    assert cells(text(lines.table_heading(Listing(diff(*ITEMS)), width))) == width
    for item in ITEMS:
        assert cells(text(lines.table_line(Listing(diff(*ITEMS)), diff(*ITEMS), item, width))) == width


def test_what_differs_between_the_sides_is_said() -> None:
    a = side(layer="view", target="tool", counting="estimate:chars", policy="sanqian", used=5)
    found = diff(entry("x"), a=a, b=side(used=10))
    assert found.remarks == (
        "different layers: view and injected",
        "different targets: tool and model",
        "different policies: sanqian and recorded",
        "counted differently: estimate:chars and exact:o200k_base",
    )
    state = moves.compared(DiffState(), PAIR, found)
    assert "! different layers: view and injected" in text(lines.remark_line(state, 80))
    head = "\n".join(text(parts) for parts in lines.head(state, 130))
    assert "for tool" in head
    assert "policy sanqian" in head
    # 5 + 0 - 0 is not 10: the same text counts otherwise in the other trace.
    assert "+5 counted differently" in head


def sums(a: SideHead, b: SideHead, width: int = 140) -> str:
    found = moves.compared(DiffState(), PAIR, diff(entry("x", "added", 0, 1_000), a=a, b=b))
    return "\n".join(text(parts) for parts in lines.head(found, width))


def billed(used: int, recorded: int, **other: Any) -> SideHead:
    held = {"unrecorded": used - recorded, "user": recorded}
    return side(used=used, recorded=recorded, segments=held, **{"limit": 200_000, "cap": 200_000, **other})


def test_what_was_sent_is_explained_to_the_token() -> None:
    told = sums(billed(60_000, 15_000), billed(61_250, 16_000))
    assert "60,000 of 200,000 sent" in told
    assert "60,000 before  +1,000 new  \u22120 freed  +250 not recorded  = 61,250 after  (+1,250)" in told
    assert "▒ not recorded 45,250 (+250)  ■ user 16,000 (+1,000)" in told
    assert "not recorded  =" not in sums(billed(60_000, 15_000), billed(61_000, 16_000))


def test_what_is_expected_has_its_sign_and_error() -> None:
    told = sums(billed(60_000, 15_000), billed(61_250, 16_000, method="expected", error=900))
    assert "≈61,250 ±900 of 200,000 sent" in told
    assert "= ≈61,250 after" in told


def test_with_a_frame_that_nobody_billed_what_is_recorded_is_compared() -> None:
    content = side(used=16_000, method="recorded", segments={"user": 16_000}, limit=None, cap=None)
    told = sums(billed(60_000, 15_000), content)
    assert "recorded: 15,000 before  +1,000 new  \u22120 freed  = 16,000 after  (+1,000)" in told
    assert "60,000 of 200,000 sent" in told
    assert "16,000 recorded  limit unknown" in told
    assert "▒" not in told
    found = diff(entry("x"), a=content, b=billed(60_000, 15_000))
    assert found.remarks == ("no bill was read before: its size is that of the recorded content",)


def test_why_an_item_left_or_moved() -> None:
    assert lines.why(ITEMS[2]) == "omitted: budget_limit"
    assert lines.why(ITEMS[2], brief=True) == "budget_limit"
    assert lines.why(ITEMS[1]) == "moved 2→5"
    compacted = entry("old", "removed", 9, 0, cause="compacted", into="summary-1")
    assert lines.why(compacted) == "compacted into summary-1"


def test_names_are_one_line_of_visible_text() -> None:
    hostile = replace(ITEMS[4], title="a\x1b[31m\nb\u202e[/]", cause="\x07bell", status="removed")
    shown = text(lines.table_line(Listing(diff(hostile)), diff(hostile), hostile, 80))
    assert "\x1b" not in shown
    assert "\n" not in shown
    assert "\u202e" not in shown
    assert "␛[31m" in shown
