"""The window that would be, had nothing been left out."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.engine.replay.changes import Cause
from ctxctl.engine.replay.frames import delta_of
from ctxctl.engine.simulate import unfitted_window
from ctxctl.engine.simulate.unfitted_window import State, UnfittedWindow, UnplacedItem
from ctxctl.errors import CtxctlError
from ctxctl.model.results import Placement


def place(name: str, tokens: int = 10, *, key: int | None = None, truncated: bool = False) -> Placement:
    return Placement(
        item=name, version=None, kind="assistant_message", title=None, source=None, segment="history",
        tokens=tokens, method="counted", content=None, digest=None, line=1, truncated=truncated,
        key=key if key is not None else hash(name),
    )  # fmt: skip


S, A, B, C, D, N = (place(name) for name in "SABCDN")
ROOM = Cause("compacted", None, "N")


def because(cause: Cause) -> Callable[[str], Cause]:
    return lambda _item: cause


def walked(*frames: list[Placement], cause: Cause = ROOM) -> UnfittedWindow:
    history = UnfittedWindow()
    before: list[Placement] = []
    for frame in frames:
        history.move_to(delta_of(before, frame), because(cause))
        before = frame
    return history


def names(history: UnfittedWindow) -> str:
    return "".join(p.item for p in history.visible())


def test_what_grows_is_as_recorded() -> None:
    history = walked([S, A], [S, A, B], [S, A, B, C])
    assert names(history) == "SABC"
    assert history.tokens == 40
    assert history.restored == history.copy().restored == 0


def test_a_compaction_is_undone_and_its_summary_hidden() -> None:
    history = walked([S, A, B, C], [S, N, C], [S, N, C, D])
    assert names(history) == "SABCD"
    assert [row.state for row in history.rows if row.placement is N] == [State.HIDDEN]
    assert history.tokens == 50
    assert history.restored == history.copy().restored == 3, "A, B, and the summary that is hidden for them"


def test_what_is_left_out_again_and_again_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = [[S, *(place(f"{part}-{k}") for k in range(5))] for part in range(40)]
    assert len(walked(*frames).visible()) == 1 + 5 * 40
    monkeypatch.setattr(unfitted_window, "_MAX_SCANNED_ROWS", 2000)
    with pytest.raises(CtxctlError) as raised:
        walked(*frames)
    assert raised.value.slug == "what-if-too-large"


def test_what_was_detached_is_gone_here_too() -> None:
    assert names(walked([S, A, B], [S, B], cause=Cause("detached"))) == "SB"
    assert names(walked([S, A, B], [S, B], cause=Cause("unrecorded"))) == "SB"


def test_an_omission_for_room_is_undone_and_another_is_not() -> None:
    assert names(walked([S, A, B], [S, B], cause=Cause("omitted", "budget_limit"))) == "SAB"
    assert names(walked([S, A, B], [S, B], cause=Cause("omitted", "low_relevance"))) == "SB"


def test_a_cut_text_stays_whole() -> None:
    cut = place("A", 2, key=7, truncated=True)
    history = walked([S, A, B], [S, cut, B], [S, cut, B, C])
    assert [p for p in history.visible() if p.item == "A"] == [A]
    assert history.tokens == 40


def test_an_update_is_an_update() -> None:
    newer = place("A", 12, key=8)
    assert walked([S, A, B], [S, newer, B]).visible() == [S, newer, B]


def test_what_comes_back_is_no_longer_a_ghost() -> None:
    history = walked([S, A, B, C], [S, N, C], [S, N, C, A])
    assert names(history) == "SBCA"


def test_a_new_root_leaves_nothing() -> None:
    assert names(walked([S, A, B], [D], cause=Cause("cleared"))) == "D"


def test_a_summary_that_goes_into_the_next_one_is_gone() -> None:
    second = place("M")
    history = walked([S, A, B], [S, N, B])
    history.move_to(delta_of([S, N, B], [S, N, B, C, D]), because(ROOM))
    history.move_to(delta_of([S, N, B, C, D], [S, second, D]), because(Cause("compacted", None, "M")))
    assert names(history) == "SABCD"


@given(st.lists(st.lists(st.sampled_from([S, A, B, C, D]), unique=True), max_size=6))
def test_everything_that_was_recorded_is_there_in_its_order(frames: list[list[Placement]]) -> None:
    history = walked(*frames, cause=Cause("omitted", "budget_limit"))
    seen = {p for frame in frames for p in frame}
    shown = history.visible()
    assert set(shown) == seen
    assert len(shown) == len(seen)
    assert history.tokens == sum(p.tokens for p in shown)
    last = frames[-1] if frames else []
    assert [p for p in shown if p in set(last)] == last


@given(st.lists(st.lists(st.sampled_from([S, A, B, C, D]), unique=True), max_size=6))
def test_without_want_of_room_it_is_the_recorded_window(frames: list[list[Placement]]) -> None:
    history = walked(*frames, cause=Cause("detached"))
    assert history.visible() == (frames[-1] if frames else [])


def test_what_was_never_sent_stands_behind_what_was_there_when_it_came() -> None:
    history = walked([S, A, B])
    history.move_to(delta_of([S, A, B], [S, B, C]), because(ROOM), UnplacedItem([D]))
    assert names(history) == "SABDC"
    history.move_to(delta_of([S, B, C], [S, C, N]), because(Cause("compacted")))
    assert names(history) == "SABDCN"


def test_what_was_cut_before_it_was_sent_is_there_whole_and_once() -> None:
    cut = place("C", 2, key=7, truncated=True)
    history = walked([S, A])
    history.move_to(delta_of([S, A], [S, A, cut, B]), because(ROOM), UnplacedItem((), {"C": C}))
    assert history.visible() == [S, A, C, B]


def test_what_is_left_of_a_message_is_not_counted_beside_it() -> None:
    stub = place("A", 2, key=7, truncated=True)
    assert names(walked([S, A, B, C], [S, B, C], [S, stub, B, C], cause=ROOM)) == "SABC"
    assert walked([S, A, B, C], [S, B, C], [S, stub, B, C], [S, A, B, C]).visible() == [S, A, B, C]


def test_what_comes_back_in_its_place_has_what_stood_behind_it_behind_it() -> None:
    history = walked([S, A, B, C, D], [S, D], [S, B, D])
    assert names(history) == "SABCD"


def test_what_comes_back_behind_what_is_left_of_another_is_in_its_place() -> None:
    """B is there in brief, behind what stood behind it; C comes back whole and leaves D where it was."""
    brief = place("B", 2, key=7, truncated=True)
    history = walked([S, A, B, C, D, N], [S, brief, N], [S, brief, C, N], cause=Cause("compacted"))
    assert names(history) == "SABCDN"
    assert (
        names(walked([S, B, C, D, N], [S, brief, N], [S, brief, D, N], cause=Cause("compacted"))) == "SBCDN"
    )


@pytest.mark.parametrize("rank", [1, 2], ids=["a field of its own", "among the messages"])
def test_a_notice_behind_the_system_prompt_stands_before_the_conversation(rank: int) -> None:
    prompt, told = (msgspec.structs.replace(place(name), segment="system", rank=rank) for name in "SN")
    history = walked([prompt, A, B], [prompt, told, B], cause=Cause("compacted"))
    assert names(history) == "SNAB"


def test_what_it_says_that_it_begins_with_is_there() -> None:
    history = UnfittedWindow()
    grown, cut = [S, A, B], [S, B]
    before: list[Placement] = []
    for frame in ([S], grown, grown, cut, [N, *cut]):
        history.move_to(delta_of(before, frame), because(Cause("detached")))
        earlier, same = history.grown
        assert earlier == before
        assert history.visible()[:same] == earlier[:same]
        before = frame
    assert history.grown == (cut, 0)
