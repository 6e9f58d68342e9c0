"""The budget bar: the window by segment, what is free, what is reserved."""

from __future__ import annotations

from textual.strip import Strip

from ctxctl.model.results import Step
from ctxctl.tui.header import bar, legend
from ctxctl.tui.widgets.paint import Painted


class BudgetBar(Painted):
    """Two lines: the bar, and its legend with tokens."""

    def __init__(self, *, ident: str | None = None) -> None:
        super().__init__(ident=ident)
        self._step: Step | None = None

    def show(self, step: Step | None) -> None:
        """Show the window of a step; None shows an empty bar."""
        if step is not self._step:
            self._step = step
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """The bar, then the legend."""
        width = self.size.width
        if y > 1:
            return self.painted([], width)
        return self.painted((bar if y == 0 else legend)(self._step, width), width)
