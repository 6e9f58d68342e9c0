"""The budget bar: the window by segment, what is free, what is reserved."""

from __future__ import annotations

from ctxctl.model.results import Step
from ctxctl.report.unrecorded import NOT_RECORDED
from ctxctl.tui.header import bar, legend
from ctxctl.tui.lines import Parts
from ctxctl.tui.view import Detail
from ctxctl.tui.widgets.paint import Banner


class BudgetBar(Banner):
    """Two lines: the bar, and its legend with tokens."""

    def __init__(self, *, ident: str | None = None) -> None:
        super().__init__(lambda width: [self._bar(width), self._legend(width)], ident=ident)
        self._detail: Detail | None = None
        self._unrecorded = NOT_RECORDED

    def show(self, detail: Detail | None, unrecorded: str = NOT_RECORDED) -> None:
        """Show the window of a frame; None shows an empty bar.  `unrecorded`: what is not in the trace."""
        if detail is not self._detail or unrecorded != self._unrecorded:
            self._detail, self._unrecorded = detail, unrecorded
            self.update()

    @property
    def _step(self) -> Step | None:
        return None if self._detail is None else self._detail.step

    def _bar(self, width: int) -> Parts:
        stale = None if self._detail is None else self._detail.stale
        return bar(self._step, width, stale, self._unrecorded)

    def _legend(self, width: int) -> Parts:
        return legend(self._step, width, self._unrecorded)
