"""The log of what entered and left, read backwards."""

from __future__ import annotations

from typing import Any

import msgspec

from ctxctl.engine.replay.entry_log import EntryLog, PresentSince
from ctxctl.engine.replay.frames import delta_of
from ctxctl.model.results import Placement


def placement(item: str, key: int, **more: Any) -> Placement:
    return Placement(
        item=item, version=None, kind="custom", title=None, source=None, segment="context", tokens=1,
        method="counted", content=None, digest=None, key=key, line=1, **more,
    )  # fmt: skip


A, B, C = placement("a", 1), placement("b", 2), placement("c", 3)
NEWER = placement("a", 4)
STALE = msgspec.structs.replace(A, stale=True)


def logged(*frames: list[Placement]) -> EntryLog:
    log = EntryLog()
    before: list[Placement] = []
    for ordinal, frame in enumerate(frames):
        log.note(ordinal, delta_of(before, frame))
        before = frame
    return log


def test_a_copy_is_there_since_it_came_last() -> None:
    frames = [[A, B], [B], [A, B], [A, B]]
    assert logged(*frames).since(3, frames[3]) == [PresentSince(2, 2), PresentSince(0, 0)]


def test_the_second_copy_is_there_since_there_were_two() -> None:
    frames = [[A], [A, B], [A, B, A], [A, B, A]]
    assert logged(*frames).since(3, frames[3]) == [PresentSince(0, 0), PresentSince(1, 1), PresentSince(2, 0)]


def test_another_version_is_another_copy_of_the_same_item() -> None:
    frames = [[A], [NEWER], [NEWER, C]]
    assert logged(*frames).since(2, frames[2]) == [PresentSince(1, 0), PresentSince(2, 2)]


def test_becoming_stale_and_moving_are_no_gap() -> None:
    frames = [[A, B], [STALE, B, NEWER], [B, STALE, NEWER]]
    assert logged(*frames).since(2, frames[2]) == [PresentSince(0, 0), PresentSince(0, 0), PresentSince(1, 0)]


def test_an_earlier_step_is_explained_by_what_was_before_it() -> None:
    frames = [[A], [B], [A]]
    log = logged(*frames)
    assert [log.since(n, frame) for n, frame in enumerate(frames)] == [
        [PresentSince(0, 0)], [PresentSince(1, 1)], [PresentSince(2, 2)],
    ]  # fmt: skip


def test_steps_that_are_not_in_the_log_are_given_beside_it() -> None:
    frames = [[A], [A, B], [A, C], [A, C, B]]
    log = logged(*frames[:2])
    later = [(3, delta_of(frames[2], frames[3])), (2, delta_of(frames[1], frames[2]))]
    assert log.since(3, frames[3], later) == logged(*frames).since(3, frames[3])


def test_a_cut_log_says_what_it_said_then() -> None:
    frames = [[A], [A, B], [B]]
    log = logged(*frames)
    short = log.cut(2)
    assert short.steps == 2
    assert short.since(1, frames[1]) == log.since(1, frames[1]) == [PresentSince(0, 0), PresentSince(1, 1)]
    short.note(2, delta_of(frames[1], [A, B, C]))
    assert short.since(2, [A, B, C])[-1] == PresentSince(2, 2)
    assert log.since(2, frames[2]) == [PresentSince(1, 1)]
