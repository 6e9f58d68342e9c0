"""The application: screens, the loader, and a life cycle that leaves the terminal as it was."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from signal import SIGHUP, SIGINT
from typing import TYPE_CHECKING

import msgspec
from textual import on
from textual.app import ComposeResult
from textual.screen import ModalScreen, Screen

from ctxctl.config import Settings
from ctxctl.model.addresses import prefix
from ctxctl.text import visible
from ctxctl.tui import keymap, keys, lifecycle, memory, messages, textual_private, themes
from ctxctl.tui.lifecycle import FAULT_EXIT, place_of
from ctxctl.tui.loader import Loader
from ctxctl.tui.requests import Asked, Handlers
from ctxctl.tui.screens.diff.screen import DiffScreen
from ctxctl.tui.screens.reader import Help
from ctxctl.tui.screens.turns import navigation
from ctxctl.tui.screens.turns.screen import TurnsScreen
from ctxctl.tui.shell import Shell
from ctxctl.tui.widgets.paint import Swatches

if TYPE_CHECKING:
    from ctxctl.session import Inspector
    from ctxctl.session.live import LiveSession
    from ctxctl.tui.screens.diff.values import Pairing


class CtxApp(Shell):
    """Opens a trace after the first paint, and shows it."""

    TITLE = "ctxctl"
    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = False
    ALLOW_SELECT = False

    def __init__(
        self,
        open_inspector: Callable[[], Inspector],
        name: str,
        live: Callable[[], LiveSession] | None = None,
        *,
        settings: Settings | None = None,
        kept: memory.Memory | None = None,
        left: memory.Left | None = None,
        first: Screen[None] | None = None,
    ) -> None:
        """`live`: watch what this gives, and never call `open_inspector`.

        `kept` is what is remembered, `left` how this trace was left; `first` lies over the main screen at
        first.  Raises UsageError where the settings name keys or actions that are none.
        """
        settings = settings or Settings()
        chosen = keymap.resolve(settings.keys, where=settings.file or "settings")
        super().__init__(name)
        keys.use(chosen)
        self.set_keymap(keymap.keymap(chosen))
        self.theme = themes.first_theme(settings.theme, (kept or memory.Memory()).theme, os.environ)
        self.loader = Loader(open_inspector, self.post_message, live)
        self.swatches = Swatches()
        self.turns = TurnsScreen(name)
        self.first = first
        self.farewell: list[str] = []
        """Lines for the terminal once it is restored; without trace content unless made visible."""
        self.fault = False
        """Something inside went wrong, for one view or for all."""
        self._undo: Callable[[], None] | None = None
        self._left = left if live is None else None
        """Where the trace was left, until the view is there again or the user has gone elsewhere."""

    def compose(self) -> ComposeResult:
        """Add the widget that styles are looked up in; it lies below all screens."""
        yield self.swatches

    def on_mount(self) -> None:
        """Paint first, open the trace after."""
        self.take_signals()
        self.push_screen(self.turns)
        if self.first is not None:
            self.push_screen(self.first)
        self.call_after_refresh(self.loader.start)
        if not self.is_headless:
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

    # What the loader tells

    def handlers(self) -> Handlers:
        """By kind of value, what the application does with what the loader sends."""
        return {
            **super().handlers(),
            messages.Opened: self._opened,
            messages.Grown: self._grown,
            messages.Outlined: self._outlined,
            messages.Anew: self._anew,
            messages.Watched: lambda news: self.turns.watched(news.watching, news.problems),
            messages.Failed: self._failed,
            messages.Fault: self._faulted,
        }

    def _opened(self, news: messages.Opened) -> None:
        self.turns.opened(news.trace)
        if news.trace.live:
            self.trace_name = news.trace.name  # a directory's newest session: what addresses begin with
        if self._left is not None:
            self.turns.apply(navigation.with_choices(self.turns.state, self._left))

    def _grown(self, news: messages.Grown) -> None:
        self.turns.grown(news.growth, news.part, news.kept)
        self._come_back()

    def _outlined(self, news: messages.Outlined) -> None:
        self.turns.outlined(news.growth, news.trace)
        self._come_back()
        self._left = None

    def _anew(self, news: messages.Anew) -> None:
        closed = self._close_views()
        self.turns.anew(news.name, "" if news.same and not closed else news.why, closed=closed)

    def _close_views(self) -> bool:
        """Close what speaks of steps of the trace, with all that lies over it; whether there was anything."""
        above = self.screen_stack[self.screen_stack.index(self.turns) + 1 :]
        views = (n for n, screen in enumerate(above) if not isinstance(screen, Help | ModalScreen))
        first = next(views, None)
        if first is None:
            return False
        for _ in above[first:]:
            self.pop_screen()
        return True

    def _failed(self, news: messages.Failed) -> None:
        self.farewell.append(news.message)
        if news.hint:
            self.farewell.append(news.hint)
        self.exit(return_code=news.exit_code)

    def _faulted(self, news: messages.Fault) -> None:
        if not self.fault:
            self.farewell.append(f"internal error: {news.where}")
        self.fault = True

    @on(Asked)
    def _asked(self, message: Asked) -> None:
        """Let the loader's threads answer what a screen asks for."""
        self.loader.ask(message)

    # Actions

    def action_leave(self) -> None:
        """Quit."""
        self.exit(return_code=FAULT_EXIT if self.fault else 0)

    def action_interrupt(self) -> None:
        """Quit with the exit code of an interrupted program."""
        self.exit(return_code=128 + SIGINT)

    # Where one is, and where one was

    def _come_back(self) -> None:
        """Go to the turn that was left as soon as it is known, unless the user is already elsewhere."""
        state = self.turns.state
        if self._left is None or not state.list.count:
            return
        if state.cursor or state.pane != "turns":
            self._left = None
            return
        found = navigation.back_at(state, self._left)
        if found is None:
            return
        self._left = None
        self.turns.apply(found)
        if found.cursor and found.entry is not None:
            self.tell(f"back at turn {found.entry.turn}, where this trace was left")

    def go_to(self, ordinal: int, *, step: bool) -> bool:
        """Show a step's frame on the main screen, or its turn's; False if the step is not known yet."""
        state = self.turns.state
        found = navigation.at_step(state, ordinal, step=step)
        if found is None:
            return False
        while self.screen is not self.turns and len(self.screen_stack) > 1:
            self.pop_screen()
        self._left = None
        self.turns.apply(replace(found, visits=navigation.jump(state, ordinal).visits))
        return True

    def front_session(self) -> str | None:
        """The session of the turn in front."""
        entry = self.turns.state.entry
        return None if entry is None else entry.session

    def front_address(self) -> str | None:
        """The address of the frame in front, with the trace's name; None while there is none."""
        state = self.turns.state
        here, entry = navigation.here_of(state), state.entry
        if here is None or entry is None:
            return None
        address = str(entry.turn)
        if here.step:
            address += f".{state.list.turns.rows[here.ordinal].step}"
        several = len(state.list.turns.sessions) > 1
        return f"{self.trace_name}@{prefix(entry.thread, entry.session if several else None)}{address}"

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
        if not self.fault:
            self.farewell.append(f"internal error: {where}")
        self.fault = True
        textual_private.end(self, FAULT_EXIT)


def run(
    open_inspector: Callable[[], Inspector],
    name: str,
    *,
    live: Callable[[], LiveSession] | None = None,
    settings: Settings | None = None,
    pair: Pairing | None = None,
) -> int:
    """Run the UI until the user leaves; the exit code.

    `live`: watch what this gives while it is written, and never call `open_inspector`.  `pair`: begin with
    these two frames held against each other; it is called after `open_inspector`.

    `open_inspector` is called in a thread after the first paint.  Its CtxctlError ends the UI: the message
    goes to stderr once the terminal is restored, and the error's exit code is returned.  128 + n after a
    signal, 130 after Ctrl+C, 70 after an internal error; its place in the code goes to stderr, never a value.

    Raises UsageError, before the terminal is touched, where the settings name keys or actions that are none.
    """
    settings = settings or Settings()
    if settings.color == "never":
        os.environ["NO_COLOR"] = "1"  # where Textual looks, and programs that are opened from here
    where = memory.file(os.environ) if settings.remember else None
    key = memory.key_of(name) if where is not None and live is None else None
    kept = memory.load(where)
    left = kept.left(key) if pair is None else None
    first = None if pair is None else DiffScreen(pair, first=True)
    app = CtxApp(open_inspector, name, live, settings=settings, kept=kept, left=left, first=first)
    with lifecycle.stderr_kept_aside() as aside, textual_private.without_tracebacks():
        app.terminal = aside.terminal
        app.run(mouse=settings.mouse)
    app.loader.stop()
    if app.return_code and not app.farewell and not textual_private.REPORTS_ERRORS:
        app.farewell.append("internal error")
    for n, line in enumerate([*app.farewell, *aside.lines]):
        sys.stderr.write(("ctxctl: " if n == 0 else "  ") + visible(line) + "\n")
    _remember(app, where, key)
    return app.return_code or 0


def _remember(app: CtxApp, where: Path | None, key: str | None) -> None:
    """Keep how the trace was left; what others have kept meanwhile stays."""
    if where is None:
        return
    before = memory.load(where)
    after = before.leaving(key, navigation.position_left(app.turns.state))
    if app.theme_chosen:
        after = msgspec.structs.replace(after, theme=app.theme_chosen)
    if after != before:
        memory.save(where, after)
