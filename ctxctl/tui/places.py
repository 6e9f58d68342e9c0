"""Going to an address that was typed."""

from __future__ import annotations

from textual.message import Message

from ctxctl.tui.messages import Want


class Placed(Message, bubble=False):
    """Where an address leads, or why nowhere."""

    def __init__(self, address: str, ordinal: int | None, why: str = "") -> None:
        super().__init__()
        self.address = address
        self.ordinal = ordinal
        """The step's."""
        self.why = why


class WantPlace(Want):
    """The step that an address names.

    `session`: the one that is meant where the trace holds several and the address names none.
    """

    lane = "places"

    def __init__(self, address: str, session: str | None) -> None:
        super().__init__()
        self.address = address
        self.session = session

    def failed(self, why: str) -> Message:
        """The reason."""
        return Placed(self.address, None, why)
