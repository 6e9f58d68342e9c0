"""The window that a fitting policy leaves, step by step: how it differs is what comparing the frames says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ctxctl.engine.replay.frames import FrameDelta, delta_of
from ctxctl.engine.simulate import incremental
from ctxctl.engine.simulate.incremental import IncrementalWindow
from ctxctl.errors import CtxctlError
from ctxctl.model.fitting import Candidate, Room
from ctxctl.model.results import Placement
from ctxctl.policies.registry import policy_by_name
from tests.unit.engine.making import placement

POOL = [placement(name, key, tokens=10) for key, name in enumerate("abcdef")]


def candidate_of(p: Placement) -> Candidate:
    return Candidate(p.item, p.item, p.kind, p.segment, None, p.tokens)


def walked(*given: tuple[list[Placement], Room | None]) -> list[tuple[list[Placement], FrameDelta | None]]:
    """The frame of each window, and how it differs from the one before."""
    policy: Any = policy_by_name("fifo:sticky=false,protect_recent=0")
    kept = IncrementalWindow(policy, None, frozenset())
    unused: Any = None
    done = [kept.step(window, (), candidate_of, room, unused, unused) for window, room in given]
    return [(step.frame, step.delta) for step in done]


A, B, C, D, *_ = POOL


@example([([A, B, C], None), ([C, B, C, D], None)])
@example([([C, B, C, D], None), ([B, C], None)])
@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(POOL), max_size=8),
            st.one_of(st.none(), st.integers(0, 8).map(lambda n: Room(10 * n))),
        ),
        min_size=2,
        max_size=6,
    )
)
def test_the_difference_is_that_of_the_frames(given: list[tuple[list[Placement], Room | None]]) -> None:
    """Of an item that is there twice either copy may be the one that came or left."""
    before: list[Placement] = []
    for number, (frame, delta) in enumerate(walked(*given)):
        if number and delta is not None:
            assert delta == delta_of(before, frame)
        before = frame


def test_what_comes_and_goes_again_and_again_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    flipping = [([*POOL], Room(10 if at % 2 else 60)) for at in range(40)]
    assert len(walked(*flipping)) == 40
    monkeypatch.setattr(incremental, "_SEATS_FREE", 100)
    monkeypatch.setattr(incremental, "_SEATS_EACH", 2)
    with pytest.raises(CtxctlError) as raised:
        walked(*flipping)
    assert raised.value.slug == "what-if-too-large"
    assert len(walked(*[([*POOL], Room(10))] * 40)) == 40, "what stays out costs nothing"
