"""The whole session on one screen: totals, the window by turn or by step, and all threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from textual import on
from textual.app import ComposeResult

from ctxctl.tui import keys
from ctxctl.tui.export import VisibleText
from ctxctl.tui.layout import Parts, Piece, spread
from ctxctl.tui.screens.overview import lines as overview
from ctxctl.tui.screens.overview.chart import chart, chart_room
from ctxctl.tui.screens.overview.lines import View
from ctxctl.tui.screens.turns.view import State
from ctxctl.tui.widgets.canvas import Board
from ctxctl.tui.widgets.keyline import KeyLine
from ctxctl.tui.widgets.paint import Banner
from ctxctl.tui.widgets.rows import Rows

_AGAIN: Final = 0.25
"""Seconds between two looks for more turns, while the trace is read or written."""


class Overview(Board[int]):
    """Reads the state of the main screen; ends with the ordinal of a step to go to."""

    BINDINGS = keys.bindings("overview")

    def __init__(self, state: Callable[[], State]) -> None:
        super().__init__(id="overview")
        self._state = state
        self.view = overview.opened(state())
        self._seen: object = None

    def compose(self) -> ComposeResult:
        """Lay out the totals, the chart, the turn in front and the threads."""
        yield Banner(lambda width: overview.total_lines(self._state(), self.view, width), ident="totals")
        yield Banner(self._chart, ident="chart")
        yield Banner(self._here, ident="here")
        yield Banner(self._columns, ident="columns", classes="columns")
        yield Rows(self._thread, "threads")
        yield KeyLine(self._keys)

    def on_mount(self) -> None:
        """Show what is known, and look for more now and then."""
        self.query_one("#threads", Rows).focus()
        self._seen = self._known()
        self._repaint(rows=True)
        self.set_interval(_AGAIN, self._look)

    def on_resize(self) -> None:
        """Paint anew: the chart's height follows the screen's."""
        self.call_after_refresh(self._repaint)

    def seen(self) -> VisibleText | None:
        """The whole screen as text."""
        width = self.size.width
        shown = [
            *overview.total_lines(self._state(), self.view, width),
            *self._chart(width),
            *self._here(width),
            overview.table_heading(self.view, self._state(), width),
            *(self._thread(n, width) for n in range(len(self.view.threads))),
        ]
        text = "\n".join("".join(part for part, _ in parts).rstrip() for parts in shown)
        return VisibleText("overview", text)

    # Painting

    def _known(self) -> object:
        state = self._state()
        turns = state.list.turns
        last = id(turns.entries[-1]) if turns.entries else 0
        return id(turns), len(turns.entries), last, state.progress, state.priced

    def _look(self) -> None:
        known = self._known()
        if known != self._seen:
            self._seen = known
            self.view = overview.grown(self.view, self._state().list.turns)
            self._repaint(rows=True)

    def show(self, view: View) -> None:
        """Show another turn, or another thread."""
        moved, self.view = view.line != self.view.line, view
        if moved:
            self.query_one("#threads", Rows).place(view.line)
        self._repaint()

    def _repaint(self, *, rows: bool = False) -> None:
        for name in ("totals", "chart", "here", "columns"):
            self.query_one(f"#{name}", Banner).update()
        if rows:
            self.query_one("#threads", Rows).styles.max_height = max(len(self.view.threads), 1)
            self.query_one("#threads", Rows).show(len(self.view.threads), self.view.line)

    def _chart(self, width: int) -> Sequence[Parts]:
        height = self.query_one("#chart", Banner).size.height
        if self.view.thread is None:
            return []
        axis = overview.axis_of(self.view, self._state().list.turns, chart_room(width))
        return chart(axis, width, height)

    def _columns(self, width: int) -> Sequence[Parts]:
        return [[(" ", ""), *overview.table_heading(self.view, self._state(), width - 1)]]

    def _thread(self, line: int, width: int) -> Parts:
        return overview.thread_line(self.view, line, width, self._state())

    def _room(self) -> int:
        """Cells for the bars of the chart as it is now."""
        return chart_room(self.query_one("#chart", Banner).size.width)

    def _here(self, width: int) -> Sequence[Parts]:
        return [overview.turn_in_front(self._state(), self.view, width, self._room())]

    def _keys(self, width: int) -> Sequence[Parts]:
        shown = [Piece(word, "hint", rank, key) for key, word, rank in keys.hints(("overview", "list"))]
        return [spread(shown, [], width)]

    # Moving

    @on(Rows.Moved, "#threads")
    def thread_moved(self, event: Rows.Moved) -> None:
        """Show the chart of another thread."""
        self.view = overview.to_thread(self.view, event.line)
        self._repaint()

    @on(Rows.Chosen, "#threads")
    def thread_chosen(self) -> None:
        """Open the thread that was clicked twice."""
        self.action_open()

    def action_column(self, by: int) -> None:
        """Go a column on, or back."""
        self.show(overview.to_column(self.view, self._state().list.turns, by, self._room()))

    def action_turn(self, by: int) -> None:
        """Go a turn on, or back."""
        self.show(overview.to_turn(self.view, by))

    def action_end(self, last: bool) -> None:
        """Go to the first turn, or the last."""
        self.show(overview.to_edge(self.view, last))

    def action_open(self) -> None:
        """Go to the turn, or the step, on the main screen."""
        thread = self.view.thread
        if thread is None or not thread.turns:
            return
        last = self._state().list.turns.entries[thread.turns[self.view.at]].last
        self.dismiss(last if self.view.ordinal is None else self.view.ordinal)

    def action_close(self) -> None:
        """Go back to where the user was."""
        self.dismiss(None)
