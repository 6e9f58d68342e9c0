"""A program with the terminal: signals, errors, and an end that leaves the terminal as it was."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from signal import SIGHUP, SIGINT
from typing import ClassVar

from textual.app import ComposeResult

from ctxctl.config import Settings
from ctxctl.tui import keymap, keys, lifecycle, memory, textual_private, themes
from ctxctl.tui.lifecycle import FAULT_EXIT, place_of
from ctxctl.tui.shell import Shell
from ctxctl.tui.widgets.paint import Swatches


class Program(Shell):
    """A shell that ends in order, whatever ends it."""

    TITLE = "ctxctl"
    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE: ClassVar = False
    ALLOW_SELECT = False

    def __init__(self, name: str, settings: Settings, kept: memory.Memory | None = None) -> None:
        """Raises UsageError where the settings name keys or actions that are none."""
        chosen = keymap.resolve(settings.keys, where=" and ".join(settings.files) or "settings")
        super().__init__(name)
        keys.use(chosen)
        self.set_keymap(keymap.keymap(chosen))
        self.theme = themes.first_theme(settings.theme, (kept or memory.Memory()).theme, os.environ)
        self.swatches = Swatches()
        self.farewell: list[str] = []
        """Lines for the terminal once it is restored; without trace content unless made visible."""
        self.fault = False
        """Something inside went wrong, for one view or for all."""
        self._undo: Callable[[], None] | None = None

    def compose(self) -> ComposeResult:
        """Add the widget that styles are looked up in; it lies below all screens."""
        yield self.swatches

    def on_mount(self) -> None:
        """Be told of signals, and see when the terminal goes away."""
        self.take_signals()
        if not self.is_headless:
            textual_private.resume_only_what_was_suspended(self)
            self.set_interval(1.0, self._watch_terminal)

    def on_unmount(self) -> None:
        """Give the signals back to the program."""
        self.release_signals()

    def take_signals(self) -> None:
        """Leave in order when a signal says so."""
        self.release_signals()
        self._undo = lifecycle.catch_signals(self._leave)

    def release_signals(self) -> None:
        """Leave the signals to whoever has the terminal."""
        if self._undo is not None:
            self._undo()
            self._undo = None

    def _leave(self, code: int) -> None:
        if code == 128 + SIGHUP:
            lifecycle.end_soon(code)
        self.exit(return_code=code)

    def _watch_terminal(self) -> None:
        """End the program when its terminal has gone away without a signal."""
        if lifecycle.hung_up():
            self._leave(128 + SIGHUP)

    # Actions

    def action_leave(self) -> None:
        """Quit."""
        self.exit(return_code=FAULT_EXIT if self.fault else 0)

    def action_interrupt(self) -> None:
        """Quit with the exit code of an interrupted program."""
        self.exit(return_code=128 + SIGINT)

    # Errors: what Textual prints holds local variables, and with them the trace

    def _handle_exception(self, error: Exception) -> None:
        textual_private.note_error(self, error)
        self._end_in_error(place_of(error))

    def _fatal_error(self) -> None:
        self._end_in_error(place_of(sys.exc_info()[1] or RuntimeError()))

    def panic(self, *renderables: object) -> None:
        """End without printing anything that Textual has rendered."""
        self._end_in_error("the terminal's input ended")

    def _end_in_error(self, where: str) -> None:
        if lifecycle.hung_up():  # Textual finds that out by an error, and may do so before we look
            lifecycle.end_soon(128 + SIGHUP)
            textual_private.end(self, 128 + SIGHUP)
            return
        if not self.fault:
            self.farewell.append(f"internal error: {where}")
        self.fault = True
        textual_private.end(self, FAULT_EXIT)


def run_program(app: Program, settings: Settings) -> list[str]:
    """Run an application until the user leaves; the lines that the terminal is to have behind it."""
    with lifecycle.stderr_kept_aside() as aside, textual_private.without_tracebacks():
        app.terminal = aside.terminal
        app.run(mouse=settings.mouse)
    if app.return_code and not app.farewell and not textual_private.REPORTS_ERRORS:
        app.farewell.append("internal error")
    return [*app.farewell, *aside.lines]
