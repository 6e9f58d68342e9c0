"""What the assembled text's screen asks for, and what it is told."""

from __future__ import annotations

from textual.message import Message

from ctxctl.tui.assembled.values import Assembled
from ctxctl.tui.messages import Want


class AssembledText(Message, bubble=False):
    """The text is there, or why it is not."""

    def __init__(self, shown: Assembled) -> None:
        super().__init__()
        self.shown = shown


class WantAssembledText(Want):
    """The assembled text of a step."""

    lane = "assembled"

    def __init__(self, ordinal: int) -> None:
        super().__init__()
        self.ordinal = ordinal

    def failed(self, why: str) -> Message:
        """Why there is none."""
        return AssembledText(Assembled(self.ordinal, None, error=why))
