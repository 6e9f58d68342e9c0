"""The part of the main screen that leads from a frame to its text, and to another frame beside it."""

from __future__ import annotations

from dataclasses import replace

from ctxctl.tui import keys
from ctxctl.tui.diff.values import against
from ctxctl.tui.literal import shown
from ctxctl.tui.screens.assembled import AssembledScreen
from ctxctl.tui.screens.diff import DiffScreen
from ctxctl.tui.screens.itempane import ItemScreen


class FramesScreen(ItemScreen):
    """A screen whose state has a target: the frame that is looked at."""

    def jump(self, ordinal: int, item: str | None = None) -> None:
        """Go to a step, and to an item of it."""
        raise NotImplementedError

    def action_mark(self) -> None:
        """Mark the frame, or no frame any more."""
        target = self.state.target
        if target is None:
            return
        again = self.state.marked == target.ordinal
        self.apply(replace(self.state, marked=None if again else target.ordinal))
        row = self.state.list.turns.rows[target.ordinal]
        said = (
            "no frame is marked"
            if again
            else f"step {row.turn}.{row.step} is marked: {keys.key_of('frames')} compares another with it"
        )
        self.app.notify(shown(said), markup=False, timeout=3)

    def action_frames(self) -> None:
        """Hold the frame against the marked one, else against the one before."""
        target = self.state.target
        if target is not None:
            self.app.push_screen(DiffScreen(against(target.ordinal, target.first, self.state.marked)))

    def action_assembled(self) -> None:
        """Read the step's assembled text."""
        target = self.state.target
        if target is None:
            return
        ordinal = target.ordinal

        def chosen(item: str | None) -> None:
            if item is not None:
                self.jump(ordinal, item)

        self.app.push_screen(AssembledScreen(ordinal), chosen)
