"""What the assembled text's screen asks for; it is told an `Assembled`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ctxctl.tui.requests import Request
from ctxctl.tui.screens.assembled.values import Assembled


@dataclass(frozen=True, slots=True)
class AssembledRequest(Request):
    """The assembled text of a step."""

    worker: ClassVar[str] = "assembled"

    ordinal: int

    def failed(self, why: str) -> Assembled:
        """Tell why there is none."""
        return Assembled(self.ordinal, None, error=why)
