"""A walk through all steps of a trace: from the kept replay where there is one, else by replaying it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from ctxctl.engine.replay.cursor import StepAt
from ctxctl.engine.replay.walked import Walked, walked_by
from ctxctl.trace.cache_files import DamagedError

if TYPE_CHECKING:
    from ctxctl.engine.replay.run import Engine
    from ctxctl.trace.reader import Trace

Progress = Callable[[float], None]


class KeptWalk(Protocol):
    """What a walk needs of a kept replay."""

    def walked(self, *, frames: bool = True) -> Iterator[Walked]:
        """Each step in order; raises DamagedError."""
        ...

    def has_problems(self) -> bool:
        """Whether something is wrong with the trace, beside what opening it told."""
        ...


class Replayed(Protocol):
    """What a walk needs of an inspector: see there."""

    @property
    def trace(self) -> Trace: ...  # noqa: D102
    def kept_replay(self) -> KeptWalk | None: ...  # noqa: D102
    def forget_replay(self) -> None: ...  # noqa: D102
    def take_over(self, kept: Any, *, settle: bool) -> None: ...  # noqa: D102
    def walk(  # noqa: D102
        self, progress: Progress | None = None, *, skipped: bool = False, settle: bool = False
    ) -> Iterator[tuple[StepAt, Engine]]: ...


def walked(
    inspector: Replayed,
    progress: Progress | None = None,
    *,
    skipped: bool = False,
    settle: bool = False,
    whole: bool = True,
    frames: bool = True,
) -> Iterator[Walked]:
    """Each step in order, with its frame and what changed in it.

    Args:
        inspector: On the trace.
        progress: Told the share of the trace read so far, where it is replayed.
        skipped: Changes list the skipped items too; always by a replay.
        settle: The inspector's `problems` and `summary` are those of this walk once it has come to its end.
        whole: It will come to its end.  One that may not tells of the problems that it came by, so a trace
            that has some is replayed.
        frames: Somebody looks at frames, at what changed in them or at texts; else these may be empty.
    """
    kept = None if skipped else inspector.kept_replay()
    if kept is not None and not whole and kept.has_problems():
        kept = None
    told = 0
    if kept is not None:
        try:
            for one in kept.walked(frames=frames):
                told += 1
                yield one
        except DamagedError:
            inspector.forget_replay()
        else:
            inspector.take_over(kept, settle=settle)
            return
    walk = inspector.walk(progress, skipped=skipped, settle=settle)
    yield from islice((walked_by(engine, at) for at, engine in walk), told, None)
