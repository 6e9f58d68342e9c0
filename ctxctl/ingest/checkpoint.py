"""An import that can be gone on with: what it knew when it had read the last whole line of a log.

A reader of lines, the importer and what measures its events each hand in what they remember, at one and the
same place; a later import of the longer log is given that back, and begins behind that line.  `at_checkpoint`
says that an import is to be kept so; whoever has nothing to hand in notices nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from ctxctl.trace.object_graph import GraphTable
    from ctxctl.trace.source import Source


class Checkpoint:
    """One import of one file.

    Args:
        source: The file that is opened, and no other one that is read beside it.
        stop: Bytes of its whole lines.
        offset: Where it is to be read from, the beginning of a line.
        number: Lines before that.
        state: What the earlier import handed in, by name; empty for one that begins at the first line.
        reached: Takes what was handed in at `stop`, and the number of lines before it.
    """

    def __init__(
        self,
        source: Source,
        stop: int,
        reached: Callable[[dict[str, Any], int], None],
        offset: int = 0,
        number: int = 0,
        state: dict[str, Any] | None = None,
    ) -> None:
        self.source = source
        self.stop = stop
        self.offset = offset
        self.number = number
        self.state = state or {}
        self._reached = reached
        self._parts: dict[str, Callable[[], Any]] = {}
        self._passed = False

    def hand_in(self, name: str, part: Callable[[], Any]) -> None:
        """Say what gives a part of the state."""
        self._parts[name] = part

    def pass_over(self) -> None:
        """A record was looked for beyond the last whole line: what is known by then may not hold later."""
        self._passed = True

    def reach(self, number: int) -> None:
        """All whole lines are taken in."""
        if not self._passed:
            self._reached({name: part() for name, part in self._parts.items()}, number)


_CURRENT: Final[ContextVar[Checkpoint | None]] = ContextVar("checkpoint", default=None)


@contextmanager
def at_checkpoint(checkpoint: Checkpoint | None) -> Iterator[None]:
    """What is imported in here by this thread is to be kept, or gone on with."""
    token = _CURRENT.set(checkpoint)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def checkpoint_of(source: object) -> Checkpoint | None:
    """The checkpoint of the import that reads a file; None where there is none, and of other files."""
    found = _CURRENT.get()
    return found if found is not None and found.source is source else None


class GoingOn(NamedTuple):
    """How a format's imports are kept and gone on with; what it names is imported when one is."""

    table: GraphTable
    """The classes of which the state of an import is made."""
    still: Callable[[dict[str, Any], Source], bool]
    """Whether what an import found out of the whole file would still be found of the longer one."""
    brought: Callable[[dict[str, Any]], None]
    """Give a state what does not stand in it."""
