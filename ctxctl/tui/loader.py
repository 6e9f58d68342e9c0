"""The threads that ask the inspector, so that the event loop never does.

One reads the trace from end to end and tells which turns there are as it finds them; others, the lanes,
answer what the screens ask for, meanwhile and afterwards.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from threading import Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Final

from textual.message import Message

from ctxctl.errors import CtxctlError
from ctxctl.tui import gather, messages, pauses
from ctxctl.tui.faults import FAULT_EXIT, place_of
from ctxctl.tui.follower import Follower
from ctxctl.tui.lanes import Activity, Lane, Post, Stopped, gone
from ctxctl.tui.outline import Grouping

if TYPE_CHECKING:
    from ctxctl.inspector import Inspector
    from ctxctl.inspector.live import Live

_UPDATE: Final = 0.1
"""Seconds between two tellings of which turns there are."""


class Loader:
    """Opens the trace, then reads it and answers requests until `stop`.

    `post` is called from the threads and must be safe for that, as `post_message` is.
    """

    def __init__(
        self,
        open_inspector: Callable[[], Inspector],
        post: Post,
        live: Callable[[], Live] | None = None,
    ) -> None:
        """`live`: watch what this gives, and never call `open_inspector`."""
        self._open = open_inspector
        self._live = live
        self._post = post
        self._stopping = False
        self._lanes: dict[str, Lane] = {}
        self._inspector: Inspector | None = None
        self._lock = Lock()
        """Guards the lanes and the inspector's coming."""
        self._activity = Activity()
        self._thread = Thread(target=self._run, name="ctxctl-loader", daemon=True)
        self.idle = self._activity.idle
        """Set while nothing is under way; what tests wait for."""

    def start(self) -> None:
        """Begin to open the trace."""
        self._activity.begin(self)
        self._thread.start()

    def stop(self, timeout: float = 1.0) -> None:
        """End the threads and close the inspector; one that is busy is left to the end of the process."""
        with self._lock:
            self._stopping = True
            for lane in self._lanes.values():
                lane.stop()
        if self._thread.is_alive():
            self._thread.join(timeout)
        deadline = monotonic() + timeout
        for lane in self._lanes.values():
            lane.join(max(deadline - monotonic(), 0.0))
        if self._inspector is not None and self._live is None:
            self._inspector.close()

    def ask(self, want: messages.Want) -> None:
        """Ask for something; an unanswered request of the same kind is dropped."""
        with self._lock:
            if self._stopping:
                return
            lane = self._lanes.get(want.lane)
            if lane is None:
                lane = self._lanes[want.lane] = Lane(want.lane, self._post, self._activity)
                if self._inspector is not None:
                    lane.open(self._inspector)
            lane.ask(want)

    def _run(self) -> None:
        with contextlib.suppress(Stopped):
            if self._live is not None:
                self._watch(self._live)
            else:
                inspector = self._begin()
                if inspector is not None:
                    self._read(inspector)
        self._activity.end(self)

    def _watch(self, open_live: Callable[[], Live]) -> None:
        """Follow a session until the program ends."""
        from ctxctl.inspector.live import Stopped as Left

        live = None
        try:
            with pauses.short():
                live = open_live()
                follower = Follower(live, self._tell, self._hand)
                while True:
                    if follower.look(lambda: self._stopping, self._check):
                        self._activity.begin(self)
                    else:
                        self._activity.end(self)
        except Left:
            raise Stopped from None
        except Exception as error:
            self._fail(error)
        finally:
            if live is not None:
                live.close()

    def _hand(self, inspector: Inspector | None) -> None:
        """Answer from another inspector; None: from the same one, but afresh."""
        with self._lock:
            self._inspector = inspector or self._inspector
            for lane in self._lanes.values():
                if inspector is not None:
                    lane.open(inspector)
                else:
                    lane.forget()

    def _begin(self) -> Inspector | None:
        """Open the trace; None if it cannot be shown."""
        inspector = None
        try:
            inspector = self._open()
            self._tell(messages.Opened(gather.trace(inspector)))
        except BaseException as error:
            if inspector is not None:
                inspector.close()
            self._fail(error)
            return None
        self._hand(inspector)
        return inspector

    def _fail(self, error: BaseException) -> None:
        """Tell why the trace cannot be shown; only errors that are meant for the user say what they say."""
        if isinstance(error, CtxctlError):
            self._tell(messages.Failed(str(error), error.hint, int(error.exit_code)))
        elif isinstance(error, Exception):
            self._tell(messages.Failed(f"internal error: {place_of(error)}", None, FAULT_EXIT))
        else:
            raise error

    def _read(self, inspector: Inspector) -> None:
        """Read the whole trace once, telling which turns there are."""
        try:
            with pauses.short():
                self._outline(inspector)
        except Exception as error:
            self._fail(error)

    def _outline(self, inspector: Inspector) -> None:
        grouping = Grouping()
        told = 0.0
        found = False

        def progress(part: float) -> None:
            nonlocal told, found
            self._check()
            now = monotonic()
            if now - told < _UPDATE and (found or not inspector.known):
                return
            found = found or bool(inspector.known)
            self._tell(messages.Grown(grouping.take(inspector.known, self._check), part))
            pauses.settle()
            told = monotonic()

        rows = inspector.outline(progress).rows
        pauses.settle()
        growth = grouping.take(rows, self._check, complete=True)
        self._tell(messages.Outlined(growth, gather.trace(inspector)))

    def _check(self) -> None:
        if self._stopping:
            raise Stopped

    def _tell(self, message: Message) -> None:
        self._check()
        try:
            self._post(message)
        except RuntimeError as error:
            if not gone(error):
                raise
            raise Stopped from None
