"""The part of the main screen that leads to why, blame and findings, and goes where their lines lead."""

from __future__ import annotations

from ctxctl.model.addresses import prefix
from ctxctl.tui import state as moves
from ctxctl.tui.pointers import wants
from ctxctl.tui.pointers.values import Goal
from ctxctl.tui.screens.frames import FramesScreen
from ctxctl.tui.screens.pointer import PointerScreen, blame_of, why_at
from ctxctl.tui.widgets.rows import Rows


class Pointing(FramesScreen):
    """A screen with a frame and perhaps an item in front."""

    def jump(self, ordinal: int, item: str | None = None) -> None:
        """Go to a step, and to an item of it."""
        raise NotImplementedError

    def action_why(self) -> None:
        """Why the item under the cursor of the changes is, or is not, in the window."""
        here = self._here()
        if here is None:
            return
        if here.item is None:
            self.say("no item under the cursor of the changes")
            return
        self._point(why_at(here.ordinal, here.item, self._address), here)

    def action_blame(self) -> None:
        """Whose the blocks of the frame are, and since when."""
        here = self._here()
        if here is not None:
            self._point(blame_of(here.ordinal, self._address), here)

    def action_findings(self) -> None:
        """What the rules find in the trace."""
        if self.state.phase != "opening":
            self._point(wants.WantFindings("findings"), self._here())

    def _here(self) -> Goal | None:
        target = self.state.target
        if target is None:
            return None
        cursor = self.query_one("#changes", Rows).cursor
        change = moves.to_change(self.state, cursor).selected
        return Goal(target.ordinal, None if change is None else change.item)

    def _address(self, ordinal: int) -> str:
        """``[THREAD:]TURN.STEP`` of a step."""
        row = self.state.list.turns.rows[ordinal]
        return f"{prefix(row.thread)}{row.turn}.{row.step}"

    def _point(self, want: wants.WantPage, here: Goal | None) -> None:
        def chosen(goal: Goal | None) -> None:
            if goal is not None:
                self.jump(goal.ordinal, goal.item)

        self.app.push_screen(PointerScreen(want, here, self._address), chosen)
