"""What the parts of the main screen know of it."""

from __future__ import annotations

from typing import Protocol

from textual.screen import Screen

from ctxctl.tui.screens.turns.state import State


class Host(Protocol):
    """The main screen, as seen by what it is made of; a part never knows the screen's class."""

    state: State

    @property
    def screen(self) -> Screen[object]:
        """The screen itself, with its widgets and the application."""
        ...

    def apply(self, new: State, *, growing: bool = False) -> None:
        """Show another state; `growing`: the list of turns is the same, but longer."""
        ...

    def jump(self, ordinal: int, item: str | None = None) -> None:
        """Go to a step, and to an item in it; `jump_back` leads back to where one was."""
        ...

    def say(self, text: str) -> None:
        """Say something in the last line, until one moves on."""
        ...
