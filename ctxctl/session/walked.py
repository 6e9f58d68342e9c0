"""A walk through all steps of a trace, from the cached replay if there is one, else by replaying."""

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
    """What a walk needs of a cached replay."""

    def walked(self, *, frames: bool = True) -> Iterator[Walked]:
        """Yield each step in order. Raises DamagedError."""
        ...

    def has_problems(self) -> bool:
        """Return whether the trace has problems besides those of opening it."""
        ...


class Replayed(Protocol):
    """What a walk needs of an inspector; see `Inspector`."""

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
    """Yield each step in order, with its frame and its changes.

    Args:
        inspector: The inspector of the trace.
        progress: Called with the share of the trace read so far, if it is replayed.
        skipped: Whether changes include the skipped items. This always needs a replay.
        settle: Whether the complete walk sets the inspector's `problems` and `summary`.
        whole: Whether the walk will be completed. If not, it reports the problems that it meets, so a trace
            with problems is replayed.
        frames: Whether frames, deltas and texts are used; otherwise they may be empty.
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
