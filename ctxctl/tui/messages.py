"""What the loader tells the application of the trace, without having been asked.  Plain Python."""

from __future__ import annotations

from dataclasses import dataclass

from ctxctl.tui.outline import Growth
from ctxctl.tui.screens.turns.state import Trace
from ctxctl.tui.watching import Watching


@dataclass(frozen=True, slots=True)
class Opened:
    """The trace is open; reading begins."""

    trace: Trace


@dataclass(frozen=True, slots=True)
class Grown:
    """A part of the trace, 0 to 1, has been read, and these turns are new or have changed.

    Each speaks of its own turns, so none replaces another; the loader sends few a second.
    """

    growth: Growth
    part: float
    kept: int | None = None
    """Rows that are as they were told before; None: all of them."""


@dataclass(frozen=True, slots=True)
class Outlined:
    """All turns are known; `growth` is what was not told before."""

    growth: Growth
    trace: Trace


@dataclass(frozen=True, slots=True)
class Anew:
    """Another session is watched now, or the file was replaced: what was shown is of the past."""

    name: str
    why: str
    same: bool = False
    """The same bytes are only read otherwise."""


@dataclass(frozen=True, slots=True)
class Watched:
    """How the watch stands, and how many problems there are by now; the newest one says it all."""

    watching: Watching
    problems: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The trace cannot be shown at all."""

    message: str
    hint: str | None
    exit_code: int


@dataclass(frozen=True, slots=True)
class Fault:
    """Something inside went wrong for one view; `where` names code, never data."""

    where: str
