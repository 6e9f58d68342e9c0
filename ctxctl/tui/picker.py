"""The application that lists sessions, and ends with the one that was chosen."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from ctxctl.config import Settings
from ctxctl.model.session_list import ListedSession
from ctxctl.text import visible
from ctxctl.tui import memory
from ctxctl.tui.program import Program, run_program
from ctxctl.tui.requests import Handlers
from ctxctl.tui.screens.sessions.screen import SessionsScreen
from ctxctl.tui.screens.sessions.state import Arranged, ListFailed, Wish
from ctxctl.tui.session_feed import Opener, SessionFeed


@dataclass
class Pick:
    """How a list was left, to come back to it."""

    wish: Wish = field(default_factory=Wish)
    path: str | None = None
    """The session in front."""
    chosen: str | None = None
    """The one to open; None: the user has left."""
    lines: list[str] = field(default_factory=list)
    """What to say when the list comes again."""


class PickerApp(Program):
    """Lists sessions."""

    HAS_TURNS = False

    def __init__(
        self, open_sessions: Opener, pick: Pick, settings: Settings | None = None,
        kept: memory.Memory | None = None, make_feed: Callable[..., SessionFeed] = SessionFeed,
    ) -> None:  # fmt: skip
        """Raises UsageError where the settings name keys or actions that are none."""
        super().__init__("sessions", settings or Settings(), kept)
        self.pick = pick
        self.feed = make_feed(open_sessions, self.post_message)
        self.sessions = SessionsScreen(pick.wish, self.feed.wish, self.feed.front, self._chosen)

    def on_mount(self) -> None:
        """Paint first, look for sessions after."""
        super().on_mount()
        self.push_screen(self.sessions)
        self.feed.front(self.pick.path)
        self.feed.wish(self.pick.wish)
        self.call_after_refresh(self.feed.start)
        if self.pick.lines:
            self.tell("; ".join(self.pick.lines), bad=True)

    def handlers(self) -> Handlers:
        """What the feed tells."""
        return {**super().handlers(), Arranged: self.sessions.apply, ListFailed: self._failed}

    def _failed(self, news: ListFailed) -> None:
        self.farewell += [news.message, *([news.hint] if news.hint else [])]
        self.exit(return_code=news.exit_code)

    def _chosen(self, session: ListedSession) -> None:
        self.pick.chosen = session.path
        self._note_place()
        self.exit(return_code=0)

    def _note_place(self) -> None:
        front = self.sessions.front
        self.pick.wish, self.pick.path = self.sessions.wish, None if front is None else front.path

    def go_to(self, ordinal: int, *, step: bool) -> bool:
        """There is no step here."""
        return False

    def front_session(self) -> str | None:
        """There is no turn in front."""
        return None

    def front_address(self) -> str | None:
        """The path of the session in front."""
        front = self.sessions.front
        return None if front is None else front.path


def pick_session(open_sessions: Opener, pick: Pick, settings: Settings) -> int:
    """Show a list of sessions until one is chosen (`pick.chosen`) or the user leaves; the exit code."""
    if settings.color == "never":
        os.environ["NO_COLOR"] = "1"
    where = memory.file(os.environ) if settings.remember else None
    kept = memory.load(where)
    pick.chosen = None
    app = PickerApp(open_sessions, pick, settings, kept)
    lines = run_program(app, settings)
    app.feed.stop()
    for n, line in enumerate(lines):
        sys.stderr.write(("ctxctl: " if n == 0 else "  ") + visible(line) + "\n")
    if where is not None and app.theme_chosen:
        memory.save(where, msgspec.structs.replace(memory.load(where), theme=app.theme_chosen))
    return app.return_code or 0
