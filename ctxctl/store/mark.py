"""Where a kept replay can be gone on with, once its trace has grown (`engine_state`)."""

from __future__ import annotations

import msgspec

from ctxctl.model.problem import Problem
from ctxctl.trace.contents import StoredContent


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """Where a replay stood, and all that it knew by then."""

    offset: int
    """Bytes of the trace that it had taken in: whole lines."""
    line: int
    """Number of the last of them."""
    beginning: bytes
    """Digest of these bytes."""
    given: str
    """What the trace's head and its importer said that the replay rests on."""
    ends: bytes
    """Digest of where the steps end that were over by then; empty where no step had to know."""
    seed: int
    seen: bytes
    """Keys of the events, eight bytes each, made with that seed."""
    problems: tuple[Problem, ...]
    problem_count: int
    found: tuple[Problem, ...]
    found_count: int
    late: int
    contents: list[StoredContent]
    placements: bytes
    """Numbers of the placements that are taken from the kept replay, four bytes each."""
    graph: bytes
    """The engine and what belongs to it; rows of their own."""
