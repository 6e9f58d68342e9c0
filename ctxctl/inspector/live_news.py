"""What a poll of a live session tells."""

from __future__ import annotations

from typing import Literal, NamedTuple

from ctxctl.inspector.live_inspector import LiveInspector
from ctxctl.inspector.live_rows import LiveRows
from ctxctl.model.problem import Problem

State = Literal["waiting", "reading", "following", "gone", "refused", "over"]


class News(NamedTuple):
    """What is known after a poll; immutable, to be handed to any thread."""

    state: State
    """`waiting`: there is nothing yet; `reading`: there is more that could be read at once; `following`;
    `gone`: the file was deleted or renamed, and nothing has its name; `refused`: it may not be opened;
    `over`: nothing more is expected."""
    name: str
    """The file or directory that is followed now; untrusted text."""
    changed: bool
    """Whether anything but the rate differs from the poll before."""
    epoch: int
    """Grows when the view begins afresh: with another inspector, and no row of before."""
    why: Problem | None
    """Why the epoch began; None in the first."""
    inspector: LiveInspector | None
    """Of this epoch; the one before works until the next epoch begins.  None as long as there is nothing."""
    rows: LiveRows
    """Every step: those that are over (`rows.settled` of them), then those still being written."""
    kept: int
    """Leading rows that are those of the poll before; to be taken literally, for `Grouping.take`."""
    events: int
    """Read in this epoch."""
    behind: int
    """Bytes that are there and not read yet."""
    rate: float
    """Events a second, of late."""
    problems: int
