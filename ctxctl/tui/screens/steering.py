"""The part of the main screen that goes further than a line, and that arranges the changes."""

from __future__ import annotations

from ctxctl.tui import state as moves
from ctxctl.tui import walk
from ctxctl.tui.screens.overview import Overview
from ctxctl.tui.screens.pointing import Pointing
from ctxctl.tui.view import State


class Steering(Pointing):
    """A screen whose state is a list of turns and the changes of one."""

    def apply(self, new: State, *, growing: bool = False) -> None:
        """Show another state."""
        raise NotImplementedError

    def jump(self, ordinal: int, item: str | None = None) -> None:
        """Go to a step, and to an item in it; backspace leads back to where one was."""
        self.apply(walk.jump(self.state, ordinal, item))

    def action_jump_back(self) -> None:
        """Back to where a jump came from."""
        if not self.state.visits:
            self.say("no jump to go back from")
        self.apply(walk.came_back(self.state))

    def action_notable(self, by: int) -> None:
        """Go to another turn with something of note."""
        new = walk.notable(self.state, by)
        if new is self.state or new.cursor == self.state.cursor:
            self.say(f"no turn of note {'after' if by > 0 else 'before'} this one")
        self.apply(new)

    def action_follow(self) -> None:
        """Go with the newest turn."""
        self.apply(moves.followed(self.state))

    def action_fold_all(self) -> None:
        """Fold or unfold all groups of changes, or all threads below others."""
        toggle = moves.toggle_threads if self.state.pane == "turns" else moves.toggle_groups
        self.apply(toggle(self.state))

    def action_sort(self) -> None:
        """Sort the changes by the next thing."""
        self.apply(moves.sort(self.state))

    def action_reverse(self) -> None:
        """Sort them the other way round."""
        self.apply(moves.turned(self.state))

    def action_group(self) -> None:
        """Group the changes by the next thing."""
        self.apply(moves.group(self.state))

    def action_overview(self) -> None:
        """The whole session on one screen."""
        if self.state.phase != "opening":
            self.app.push_screen(Overview(lambda: self.state), self._from_overview)

    def _from_overview(self, ordinal: int | None) -> None:
        """Go to the turn that was chosen there, if one was."""
        if ordinal is not None:
            self.jump(ordinal)
