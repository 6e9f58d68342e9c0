"""The application on one trace: its screens and its loader."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from textual import on
from textual.screen import ModalScreen, Screen

from ctxctl.config import Settings
from ctxctl.model.addresses import prefix
from ctxctl.text import visible
from ctxctl.tui import memory, messages
from ctxctl.tui.loader import Loader
from ctxctl.tui.program import Program, run_program
from ctxctl.tui.requests import Asked, Handlers, Placed, PlaceRequest, ask
from ctxctl.tui.screens.diff.screen import DiffScreen
from ctxctl.tui.screens.reader import Help
from ctxctl.tui.screens.turns import navigation
from ctxctl.tui.screens.turns.screen import TurnsScreen

if TYPE_CHECKING:
    from ctxctl.session import Inspector
    from ctxctl.session.live import LiveSession
    from ctxctl.tui.screens.diff.values import Pairing


class Start(NamedTuple):
    """Where a trace is to be opened, and why there."""

    address: str
    why: str


@dataclass
class Return:
    """A list that the user came from, and may go back to."""

    back: bool = False
    """Whether they did."""
    lines: list[str] = field(default_factory=list)
    """Why, where that was not what they asked for."""


class CtxApp(Program):
    """Opens a trace after the first paint, and shows it."""

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
        came_from: Return | None = None,
        start: Start | None = None,
    ) -> None:
        """`live`: watch what this gives, and never call `open_inspector`.

        `kept` is what is remembered, `left` how this trace was left; `first` lies over the main screen at
        first; `came_from`: one level out of the main screen lies a list; `start`: where to go first.
        Raises UsageError where the settings name keys or actions that are none.
        """
        super().__init__(name, settings or Settings(), kept)
        self.loader = Loader(open_inspector, self.post_message, live)
        self.turns = TurnsScreen(name)
        self.first = first
        self.came_from = came_from
        self._start = start
        self._left = left if live is None and start is None else None
        """Where the trace was left, until the view is there again or the user has gone elsewhere."""

    def on_mount(self) -> None:
        """Paint first, open the trace after."""
        super().on_mount()
        self.push_screen(self.turns)
        if self.first is not None:
            self.push_screen(self.first)
        self.call_after_refresh(self.loader.start)

    def action_out(self) -> None:
        """Back to the list, where the user came from one."""
        if self.came_from is not None:
            self.came_from.back = True
            self.exit(return_code=0)

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
        if self._start is not None:
            ask(self, PlaceRequest(self._start.address, None))

    def _placed(self, found: Placed) -> None:
        start, self._start = self._start, None
        if start is not None and found.address == start.address:
            if (
                not self.turns.state.cursor
                and self.screen is self.turns
                and self.go_to(found.ordinal, step=True)
            ):
                self.tell(f"at {start.address}: {start.why}")
        else:
            super()._placed(found)

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
        said = self.farewell
        if self.came_from is not None:
            self.came_from.back, said = True, self.came_from.lines
        said.append(news.message)
        if news.hint:
            said.append(news.hint)
        self.exit(return_code=news.exit_code)

    def _faulted(self, news: messages.Fault) -> None:
        if not self.fault:
            self.farewell.append(f"internal error: {news.where}")
        self.fault = True

    @on(Asked)
    def _asked(self, message: Asked) -> None:
        """Let the loader's threads answer what a screen asks for."""
        self.loader.ask(message)

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


def run(
    open_inspector: Callable[[], Inspector],
    name: str,
    *,
    live: Callable[[], LiveSession] | None = None,
    settings: Settings | None = None,
    pair: Pairing | None = None,
    came_from: Return | None = None,
    start: Start | None = None,
) -> int:
    """Run the UI until the user leaves; the exit code.

    `live`: watch what this gives while it is written, and never call `open_inspector`.  `pair`: begin with
    these two frames held against each other; it is called after `open_inspector`.  `came_from`: a list that
    the user may go back to, and does where the trace cannot be opened.  `start`: where to go first.

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
    app = CtxApp(
        open_inspector, name, live, settings=settings, kept=kept, left=left, first=first, came_from=came_from,
        start=start,
    )  # fmt: skip
    lines = run_program(app, settings)
    app.loader.stop()
    with suppress(OSError):  # of a terminal that is gone
        for n, line in enumerate(lines):
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
