"""What a what-if leaves of a frame is the frame less what it drops, whatever changed and where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ctxctl.engine.replay.edits import ThreadEdits
from ctxctl.engine.replay.frames import delta_of
from ctxctl.model.results import Placement
from tests.unit.engine.making import placement

POOL = [placement("dropped" if n % 3 == 0 else f"i{n}", n) for n in range(40)]
NO_TEXTS: Any = {}


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 4), st.lists(st.sampled_from(POOL), max_size=5)),
        max_size=12,
    )
)
def test_each_frame_is_the_recorded_one_less_what_is_dropped(course: list[Any]) -> None:
    edits = ThreadEdits(frozenset({"dropped"}), NO_TEXTS)
    before: list[Placement] = []
    for at, removed, inserted in course:
        after = [*before[:at], *inserted, *before[at + removed :]]
        shown = [p for p in after if p.item != "dropped"]
        made = edits.frame(delta_of(before, after))
        assert made.after == shown
        before = after


def test_a_change_near_the_one_before_is_not_counted_from_either_end() -> None:
    seen: list[str] = []

    class Noted(frozenset[str]):
        def __contains__(self, item: object) -> bool:
            seen.append(str(item))
            return super().__contains__(item)

    frame = [*POOL] * 25
    edits = ThreadEdits(Noted({"dropped"}), NO_TEXTS)
    edits.frame(delta_of([], frame))

    def looked_at() -> Iterator[int]:
        nonlocal frame
        for n in range(4):
            seen.clear()
            changed = [*frame[: 500 + n], placement(f"new{n}", 100 + n), *frame[500 + n :]]
            edits.frame(delta_of(frame, changed))
            frame = changed
            yield len(seen)

    first, *others = looked_at()
    assert first > 400
    assert max(others) < 10
