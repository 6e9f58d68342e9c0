"""The application that shows what a dataset holds, and ends with the session that was chosen."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from ctxctl.config import Settings
from ctxctl.dataset.session_values import SessionRow, SessionRows
from ctxctl.text import visible
from ctxctl.tui import memory
from ctxctl.tui.fleet_feed import FleetFeed
from ctxctl.tui.program import Program, run_program
from ctxctl.tui.requests import Handlers
from ctxctl.tui.screens.fleet.screen import FleetScreen
from ctxctl.tui.screens.fleet.state import Arranged, Looked, Matter, ReadFailed, Wish, front_of, matter_of


@dataclass
class FleetPick:
    """How the overview was left, to come back to it."""

    wish: Wish = field(default_factory=Wish)
    front: str | None = None
    """What was in front."""
    held: SessionRows | None = None
    """What was read of the dataset."""
    chosen: SessionRow | None = None
    """The session to open; None: the user has left."""
    matter: Matter | None = None
    """Where to open it; None: wherever it opens."""
    lines: list[str] = field(default_factory=list)
    """What to say when the overview comes again."""


class FleetApp(Program):
    """Shows what a dataset holds."""

    HAS_TURNS = False

    def __init__(
        self, read: Callable[[], SessionRows], pick: FleetPick, settings: Settings | None = None,
        kept: memory.Memory | None = None,
    ) -> None:  # fmt: skip
        """Raises UsageError where the settings name keys or actions that are none."""
        super().__init__("fleet", settings or Settings(), kept)
        self.pick = pick
        self.feed = FleetFeed(read, self.post_message, pick.held)
        self.fleet = FleetScreen(pick.wish, self.feed.wish, self.feed.again, self._chosen)

    def on_mount(self) -> None:
        """Paint first, read the dataset after."""
        super().on_mount()
        self.push_screen(self.fleet)
        self.feed.wish(self.pick.wish, self.pick.front)
        self.call_after_refresh(self.feed.start)
        if self.pick.lines:
            self.tell("; ".join(self.pick.lines), bad=True)

    def handlers(self) -> Handlers:
        """What the feed tells."""
        return {
            **super().handlers(), Arranged: self.fleet.apply, Looked: self._looked, ReadFailed: self._failed,
        }  # fmt: skip

    def _failed(self, news: ReadFailed) -> None:
        if self.feed.held is not None:
            self.tell(news.message, bad=True)
            return
        self.farewell += [news.message, *([news.hint] if news.hint else [])]
        self.exit(return_code=news.exit_code)

    def _chosen(self, row: SessionRow) -> None:
        if row.path is None:
            self.tell("this dataset keeps no paths: ctxctl cannot know where the capture is", bad=True)
        else:
            self.feed.look(row)

    def _looked(self, found: Looked) -> None:
        if not found.there:
            self.tell(f"the capture is not here: {found.row.path}", bad=True)
            return
        self.pick.chosen = found.row
        self.pick.matter = matter_of(found.row, self.fleet.wish.sorted_by)
        self._note_place()
        self.exit(return_code=0)

    def _note_place(self) -> None:
        front = self.fleet.front
        self.pick.wish, self.pick.held = self.fleet.wish, self.feed.held
        self.pick.front = None if front is None else front_of(front)

    def go_to(self, ordinal: int, *, step: bool) -> bool:
        """There is no step here."""
        return False

    def front_session(self) -> str | None:
        """There is no turn in front."""
        return None

    def front_address(self) -> str | None:
        """The capture in front, at the request that matters."""
        front, matter = self.fleet.front, self.fleet.matter
        if not isinstance(front, SessionRow) or front.path is None:
            return None
        return front.path if matter is None else f"{front.path}@{matter.address}"


def show_fleet(read: Callable[[], SessionRows], pick: FleetPick, settings: Settings) -> int:
    """Show a dataset until a session is chosen (`pick.chosen`) or the user leaves; the exit code."""
    if settings.color == "never":
        os.environ["NO_COLOR"] = "1"
    where = memory.file(os.environ) if settings.remember else None
    pick.chosen = None
    app = FleetApp(read, pick, settings, memory.load(where))
    lines = run_program(app, settings)
    app.feed.stop()
    for n, line in enumerate(lines):
        sys.stderr.write(("ctxctl: " if n == 0 else "  ") + visible(line) + "\n")
    if where is not None and app.theme_chosen:
        memory.save(where, msgspec.structs.replace(memory.load(where), theme=app.theme_chosen))
    return app.return_code or 0
