"""The application: screens, the loader, and a life cycle that leaves the terminal as it was."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from signal import SIGHUP, SIGINT
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import App

from ctxctl.text import visible
from ctxctl.tui import keys, lifecycle, messages
from ctxctl.tui.faults import FAULT_EXIT, place_of
from ctxctl.tui.loader import Loader
from ctxctl.tui.screens.help import Help
from ctxctl.tui.screens.turns import TurnsScreen
from ctxctl.tui.themes import DARK, LIGHT

if TYPE_CHECKING:
    from ctxctl.inspector import Inspector


class CtxApp(App[None]):
    """Opens a trace after the first paint, and shows it."""

    TITLE = "ctxctl"
    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = False
    ALLOW_SELECT = False
    BINDINGS: ClassVar = keys.bindings("app")

    def __init__(self, open_inspector: Callable[[], Inspector], name: str) -> None:
        super().__init__()
        for theme in (DARK, LIGHT):
            self.register_theme(theme)
        self.theme = _theme(os.environ)
        self.loader = Loader(open_inspector, self.post_message)
        self.turns = TurnsScreen(name)
        self.farewell: list[str] = []
        """Lines for the terminal once it is restored; without trace content unless made visible."""
        self.fault = False
        """Something inside went wrong, for one view or for all."""
        self._undo: Callable[[], None] | None = None

    def on_mount(self) -> None:
        """Paint first, open the trace after."""
        self._undo = lifecycle.catch_signals(self._leave)
        self.push_screen(self.turns)
        self.call_after_refresh(self.loader.start)
        if not self.is_headless:
            self.set_interval(1.0, self._watch_terminal)

    def on_unmount(self) -> None:
        """Give the signals back."""
        if self._undo is not None:
            self._undo()

    def _leave(self, code: int) -> None:
        if code == 128 + SIGHUP:
            lifecycle.end_soon(code)
        self.exit(return_code=code)

    def _watch_terminal(self) -> None:
        """A terminal that went away without a signal ends the program too."""
        if lifecycle.hung_up():
            self._leave(128 + SIGHUP)

    # The loader's messages

    @on(messages.Opened)
    def _opened(self, message: messages.Opened) -> None:
        self.turns.opened(message.trace)

    @on(messages.Grown)
    def _grown(self, message: messages.Grown) -> None:
        self.turns.grown(message.growth, message.part)

    @on(messages.Outlined)
    def _outlined(self, message: messages.Outlined) -> None:
        self.turns.outlined(message.growth, message.trace)

    @on(messages.Failed)
    def _failed(self, message: messages.Failed) -> None:
        self.farewell.append(message.message)
        if message.hint:
            self.farewell.append(message.hint)
        self.exit(return_code=message.exit_code)

    @on(messages.Fault)
    def _faulted(self, message: messages.Fault) -> None:
        if not self.fault:
            self.farewell.append(f"internal error: {message.where}")
        self.fault = True

    @on(messages.Want)
    def _want(self, message: messages.Want) -> None:
        """A screen asks for something."""
        self.loader.ask(message)

    # Actions

    def action_leave(self) -> None:
        """Quit."""
        self.exit(return_code=FAULT_EXIT if self.fault else 0)

    def action_interrupt(self) -> None:
        """Quit as an interrupted program does."""
        self.exit(return_code=128 + SIGINT)

    def action_help(self) -> None:
        """Show all keys."""
        if not isinstance(self.screen, Help):
            self.push_screen(Help())

    def action_theme(self) -> None:
        """Light or dark."""
        self.theme = LIGHT.name if self.current_theme.dark else DARK.name

    # Errors: what Textual prints holds local variables, and with them the trace

    def _handle_exception(self, error: Exception) -> None:
        if self._exception is None:
            self._exception = error
            self._exception_event.set()
        self._end_in_error(place_of(error))

    def _fatal_error(self) -> None:
        self._end_in_error(place_of(sys.exc_info()[1] or RuntimeError()))

    def panic(self, *renderables: object) -> None:
        """End without printing anything that Textual has rendered."""
        self._end_in_error("the terminal's input ended")

    def _end_in_error(self, where: str) -> None:
        self._return_code = FAULT_EXIT
        if not self.fault:
            self.farewell.append(f"internal error: {where}")
        self.fault = True
        self._close_messages_no_wait()


def _theme(environment: os._Environ[str]) -> str:
    """Light where the terminal says that its background is (COLORFGBG), else dark."""
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    return (LIGHT if background in ("7", "15") else DARK).name


def run(open_inspector: Callable[[], Inspector], name: str) -> int:
    """Run the UI until the user leaves; the exit code.

    `open_inspector` is called in a thread after the first paint.  Its CtxctlError ends the UI: the message
    goes to stderr once the terminal is restored, and the error's exit code is returned.  128 + n after a
    signal, 130 after Ctrl+C, 70 after an internal error; its place in the code goes to stderr, never a value.
    """
    app = CtxApp(open_inspector, name)
    app.run()
    app.loader.stop()
    for n, line in enumerate(app.farewell):
        sys.stderr.write(("ctxctl: " if n == 0 else "  ") + visible(line) + "\n")
    return app.return_code or 0
