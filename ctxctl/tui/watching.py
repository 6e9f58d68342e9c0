"""What is known of a session that is being written.  Plain Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ctxctl.wording import number, plural, short

_WORDS: Final = {
    "waiting": "waiting for it to be written",
    "reading": "catching up",
    "following": "live",
    "gone": "the file is gone; waiting for it to come back",
    "refused": "the file may not be read; trying again",
    "over": "no longer watched",
}

LOST: Final = ("gone", "refused")
"""States in which nothing more comes unless somebody does something."""


@dataclass(frozen=True, slots=True)
class Watching:
    """How the watch stands."""

    state: str
    """As `ctxctl.session.live.State`."""
    behind: int = 0
    """Bytes that are written and not read yet."""
    rate: float = 0.0
    """Events a second, of late."""
    events: int = 0
    settled: int = 0
    """Steps that are over; those after them are still being written."""
    why: str = ""
    """Why the view began afresh, if it did."""

    @property
    def steady(self) -> bool:
        """Whether what there is is shown."""
        return self.state == "following"


def watching_phrase(watching: Watching) -> str:
    """The watch in a phrase: whether it is up to date, how fast events come, how far it is behind."""
    said = [_WORDS.get(watching.state, watching.state)]
    if watching.rate >= 0.5:
        said.append(f"{number(round(watching.rate))} events/s")
    elif watching.steady:
        said.append(plural(watching.events, "event"))
    if watching.behind:
        said.append(f"{short(watching.behind)}B behind")
    return " · ".join(said)
