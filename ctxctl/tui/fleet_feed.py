"""The thread behind the overview of a dataset: it reads the sessions, and arranges them as wished."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Condition, Thread
from typing import Final

from ctxctl.dataset.session_values import SessionRow, SessionRows
from ctxctl.errors import CtxctlError
from ctxctl.tui.lifecycle import FAULT_EXIT, place_of
from ctxctl.tui.requests import Answered, Post, receiver_is_gone
from ctxctl.tui.screens.fleet.state import Arranged, Looked, ReadFailed, Wish, arranged

_JOIN: Final = 2.0
"""Seconds that the end of the thread is waited for: a query that runs is not."""


class FleetFeed:
    """Tells what a dataset holds until `stop`, arranged as the user wishes.

    Args:
        read: Reads the newest version; called in the thread.
        post: Sends a message to the event loop from any thread.
        held: What was read before; None: it is read first.
    """

    def __init__(self, read: Callable[[], SessionRows], post: Post, held: SessionRows | None = None) -> None:
        self._read = read
        self._post = post
        self.held = held
        self._changed = Condition()
        self._stopping = False
        self._wish = Wish()
        self._front: str | None = None
        self._due = False
        self._unread = held is None
        self._look: SessionRow | None = None
        self._busy = False
        self._thread = Thread(target=self._run, name="ctxctl-fleet", daemon=True)

    @property
    def idle(self) -> bool:
        """Whether everything that was asked for has been told; what tests wait for."""
        with self._changed:
            return not (self._busy or self._due or self._unread or self._look)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Tell nothing more."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(_JOIN)

    def wish(self, wish: Wish, front: str | None = None) -> None:
        """Arrange the sessions so, with the cursor on `front` where that is listed."""
        with self._changed:
            self._wish, self._front, self._due = wish, front, True
            self._changed.notify_all()

    def again(self) -> None:
        """Read the newest version."""
        with self._changed:
            self._unread = True
            self._changed.notify_all()

    def look(self, row: SessionRow) -> None:
        """Tell whether a session's capture is where it was."""
        with self._changed:
            self._look = row
            self._changed.notify_all()

    def _run(self) -> None:
        try:
            while self._step():
                pass
        except CtxctlError as error:
            self._send(ReadFailed(error.message, error.hint, int(error.exit_code)))
        except Exception as error:
            self._send(ReadFailed(f"internal error: {place_of(error)}", None, FAULT_EXIT))

    def _step(self) -> bool:
        with self._changed:
            self._busy = False
            self._changed.wait_for(
                lambda: self._stopping or self._unread or self._look or (self._due and self.held is not None)
            )
            if self._stopping:
                return False
            self._busy = True
            look, self._look = self._look, None
            unread, self._unread = self._unread, False
            wish, front, self._due = self._wish, self._front, self._due and self.held is None
        if look is not None:
            self._send(Looked(look, there=look.path is not None and os.path.exists(look.path)))
        if unread:
            self._read_again()
            with self._changed:  # of what was wished meanwhile, the last
                wish, front, self._due = self._wish, self._front, False
        if self.held is not None and not self._stopping:
            self._arrange(self.held, wish, front)
        return True

    def _read_again(self) -> None:
        try:
            self.held = self._read()
        except CtxctlError as error:
            if self.held is None:
                raise
            self._send(ReadFailed(error.message, error.hint, int(error.exit_code)))

    def _arrange(self, held: SessionRows, wish: Wish, front: str | None) -> None:
        self._send(arranged(held, wish, front))

    def _send(self, value: object) -> None:
        try:
            self._post(Answered(value, newest_only=isinstance(value, Arranged)))
        except RuntimeError as error:
            if not receiver_is_gone(error):
                raise
            self._stopping = True
