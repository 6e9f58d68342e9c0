"""The request of the assembled text's screen; an `Assembled` answers it."""

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
        """The answer that says why there is no text."""
        return Assembled(self.ordinal, None, error=why)
