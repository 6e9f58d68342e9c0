"""The threads behind the list of sessions: one looks for sessions and has them read, one arranges them.

Sessions are read by a process of their own, newest first.  Leaving the list ends it; what was read is kept.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from threading import Condition, Thread
from typing import TYPE_CHECKING, Final, NamedTuple

from ctxctl.errors import CtxctlError
from ctxctl.model.session_list import ListedSession
from ctxctl.tui.lifecycle import FAULT_EXIT, place_of
from ctxctl.tui.requests import Answered, receiver_is_gone
from ctxctl.tui.screens.sessions.state import Arranged, ListFailed, Wish, in_order, twins_of

if TYPE_CHECKING:
    from ctxctl.fleet.asking import Asker
    from ctxctl.fleet.session_list import SessionList
    from ctxctl.tui.requests import Post

LOOK: Final = 5.0
"""Seconds between two looks at the directories."""
_TELL: Final = 0.25
"""Seconds between two tellings of what was read."""
_BATCH: Final = 200
"""Sessions that are asked for at once."""
_ALIKE: Final = 80.0
"""How like a part of a session's words a typed word is at least, of 100, where it does not stand there."""
_LONG: Final = 4
"""Letters of a word from which on it may be mistyped."""

Opener = Callable[[], "AbstractContextManager[tuple[SessionList, Asker]]"]


class Told(NamedTuple):
    """What is known of all sessions."""

    sessions: Sequence[ListedSession]
    places: tuple[str, ...] = ()
    looked: bool = False
    reading: bool = False
    unread: int = 0
    closed: tuple[str, ...] = ()
    """`PATH: why` of each file or directory that the system does not let be read."""


class SessionFeed:
    """Tells which sessions there are until `stop`, arranged as the user wishes.

    Args:
        open_sessions: Called in a thread, which alone uses what it gives.
        post: Sends a message to the event loop from any thread.
        clock: Seconds since the epoch.
        read: Whether sessions that are not known are read.
    """

    def __init__(
        self, open_sessions: Opener, post: Post, *, clock: Callable[[], float] = time.time, read: bool = True
    ) -> None:
        self._open = open_sessions
        self._post = post
        self._clock = clock
        self._reads = read
        self._changed = Condition()
        self._stopping = False
        self._told: Told | None = None
        self._wish = Wish()
        self._front: str | None = None
        self._due = False
        """Whether something is to be arranged."""
        self._busy = 0
        self._threads = [
            Thread(target=self._look_and_read, name="ctxctl-sessions", daemon=True),
            Thread(target=self._arrange, name="ctxctl-arrange", daemon=True),
        ]

    @property
    def idle(self) -> bool:
        """Whether everything that is known has been told; what tests wait for."""
        with self._changed:
            return (
                self._told is not None
                and self._told.looked
                and not self._told.reading
                and not (self._due or self._busy)
            )

    def start(self) -> None:
        """Begin to look."""
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float = 2.0) -> None:
        """End the threads and the process that reads."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout)

    def wish(self, wish: Wish) -> None:
        """Arrange the sessions so."""
        with self._changed:
            self._wish, self._due = wish, True
            self._changed.notify_all()

    def front(self, path: str | None) -> None:
        """The session under the cursor is this one; it stays there."""
        self._front = path

    # Looking and reading

    def _look_and_read(self) -> None:
        try:
            with self._open() as (sessions, asker):
                _Reader(self, sessions, asker).run()
        except CtxctlError as error:
            self._send(ListFailed(str(error), error.hint, int(error.exit_code)))
        except Exception as error:
            self._send(ListFailed(f"internal error: {place_of(error)}", None, FAULT_EXIT))

    def stopping(self) -> bool:
        """Whether the list is left."""
        return self._stopping

    def pause(self, seconds: float) -> None:
        """Wait, but not when the list is left."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping, seconds)

    def tell(self, told: Told) -> None:
        """Have this arranged."""
        with self._changed:
            self._told, self._due = told, True
            self._changed.notify_all()

    @property
    def reads(self) -> bool:
        """Whether sessions are read."""
        return self._reads

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._clock()

    # Arranging

    def _arrange(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._stopping or (self._due and self._told is not None))
                if self._stopping:
                    return
                told, wish, self._due = self._told, self._wish, False
                self._busy += 1
            assert told is not None
            made = arranged(told, wish, self._front, self._clock(), lambda: self._due or self._stopping)
            if made is not None:
                self._send(made)
            with self._changed:
                self._busy -= 1

    def _send(self, value: object) -> None:
        try:
            self._post(Answered(value, newest_only=isinstance(value, Arranged)))
        except RuntimeError as error:
            if not receiver_is_gone(error):
                raise
            self._stopping = True


class _Reader:
    """Looks again and again, and has read what is not known."""

    def __init__(self, feed: SessionFeed, sessions: SessionList, asker: Asker) -> None:
        self._feed = feed
        self._list = sessions
        self._asker = asker
        self._places = tuple(sessions.places)
        self._known: dict[str, ListedSession] = {}
        self._looked_at = 0.0
        self._told_at = 0.0

    def run(self) -> None:
        """Until the list is left."""
        while not self._feed.stopping():
            self._look()
            unread = self._unread()
            self._tell(reading=bool(unread))
            if not unread:
                self._list.save()
                self._feed.pause(LOOK)
                continue
            with contextlib.closing(self._list.read(self._asker, unread[:_BATCH], self._stop)) as coming:
                for one in coming:
                    if one.path in self._known:
                        self._known[one.path] = _still_live(one, self._known[one.path])
                    if time.monotonic() - self._told_at > _TELL:
                        self._tell(reading=True)

    def _unread(self) -> list[ListedSession]:
        return self._list.unread(self._known.values(), self._feed.now()) if self._feed.reads else []

    def _look(self) -> None:
        self._known = {one.path: one for one in self._list.scan(self._feed.now())}
        self._looked_at = time.monotonic()

    def _stop(self) -> bool:
        """Asked while a process reads: whether to leave it; looks again when it is time."""
        if not self._feed.stopping() and time.monotonic() - self._looked_at > LOOK:
            self._look()
            self._tell(reading=True)
        return self._feed.stopping()

    def _tell(self, *, reading: bool) -> None:
        self._told_at = time.monotonic()
        sessions = tuple(self._known.values())
        unread = sum(one.facts is None and one.failed is None for one in sessions)
        closed = tuple(f"{path}: {why}" for path, why in self._list.not_read.items())
        self._feed.tell(
            Told(sessions, self._places, looked=True, reading=reading, unread=unread, closed=closed)
        )


def _still_live(one: ListedSession, before: ListedSession) -> ListedSession:
    from msgspec.structs import replace

    return replace(one, live=before.live, written=before.written)


def arranged(
    told: Told, wish: Wish, front: str | None, now: float, superseded: Callable[[], bool] = lambda: False
) -> Arranged | None:
    """The sessions that fit a wish, those with every word before those with words like these.

    None once it is of no use any more.
    """
    rows = in_order(told.sessions, wish)
    if wish.typed.strip():
        fitting = fitting_sessions(rows, wish.typed, superseded)
        if fitting is None:
            return None
        rows = fitting
    cursor = next((n for n, one in enumerate(rows) if one.path == front), 0)
    live = sum(bool(one.live) for one in told.sessions)
    return Arranged(
        rows, wish, now, cursor, len(told.sessions), told.unread, live, told.places,
        looked=told.looked, reading=told.reading, twins=twins_of(rows), closed=told.closed,
    )  # fmt: skip


def fitting_sessions(
    rows: Iterable[ListedSession], typed: str, superseded: Callable[[], bool] = lambda: False
) -> list[ListedSession] | None:
    """The sessions in whose project, prompt or client every typed word stands, then those in whose project or
    prompt are words like it.

    None once that is of no use any more.
    """
    from rapidfuzz.fuzz import partial_ratio  # slow to import, and only needed once something is typed

    words = typed.lower().split()
    exact: list[ListedSession] = []
    alike: list[tuple[float, ListedSession]] = []
    for n, one in enumerate(rows):
        if n % 256 == 255 and superseded():
            return None
        prompt = one.facts.prompt if one.facts is not None else None
        told = f"{one.directory or ''}\n{prompt or ''}".lower()
        missing = [word for word in words if word not in told and word not in one.format]
        if not missing:
            exact.append(one)
        elif all(len(word) >= _LONG for word in missing):
            score = min(partial_ratio(word, told, score_cutoff=_ALIKE) for word in missing)
            if score:
                alike.append((score, one))
    alike.sort(key=lambda pair: -pair[0])
    return [*exact, *(one for _, one in alike)]
