"""The threads that ask the inspector, so that the event loop never does.

One reads the trace from end to end, or follows it while it is written, and tells which turns there are as it
finds them; others, the workers, answer what the screens ask for, meanwhile and afterwards.

Requests of one kind replace each other: while the cursor runs down a list, what it passed is not computed.
The threads are daemons and not Textual workers, because the interpreter waits for workers: quitting while a
large trace is being read must not take as long as reading it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from threading import Condition, Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Final

from textual.message import Message

from ctxctl.errors import CtxctlError
from ctxctl.tui import messages, scheduling
from ctxctl.tui.answers import ANSWERS, trace_facts
from ctxctl.tui.answers.context import AnswerContext
from ctxctl.tui.lifecycle import FAULT_EXIT, place_of
from ctxctl.tui.messages import Fault
from ctxctl.tui.outline import Grouping
from ctxctl.tui.requests import Answered, Asked, Post, Request, receiver_is_gone
from ctxctl.tui.watching import Watching

if TYPE_CHECKING:
    from ctxctl.session import Inspector
    from ctxctl.session.live import LiveNews, LiveSession

REPLAYED_ANEW: Final = "replayed-anew"
"""Slug of a reason that the user is not told: nothing happened to the session itself."""
_LOOK: Final = 0.25
"""Seconds after which a quiet watch is told anew: its rate has changed."""


class Follower:
    """Polls a `LiveSession` and tells what is new.

    `tell` sends a value to the event loop and raises to stop; `hand` gives the inspector to whoever answers
    requests, and None takes back what is kept of earlier answers.
    """

    def __init__(
        self, live: LiveSession, tell: Callable[[object], None], hand: Callable[[Inspector | None], None]
    ) -> None:
        self._live = live
        self._tell = tell
        self._hand = hand
        self._epoch: int | None = None
        self._inspector: Inspector | None = None
        self._grouping = Grouping()
        self._told: Watching | None = None

    def look(self, stopping: Callable[[], bool], check: Callable[[], None]) -> bool:
        """Wait a while for news and pass them on; returns whether there were any."""
        news = self._live.poll(_LOOK, stopping)
        check()
        if news.epoch != self._epoch:
            self._begin(news)
        if news.inspector is not self._inspector and news.inspector is not None:
            self._inspector = news.inspector
            self._hand(news.inspector)
            self._tell(messages.Opened(trace_facts.trace(news.inspector, live=True)))
        if news.changed and news.inspector is not None:
            self._hand(None)
            growth = self._grouping.take(news.rows, check, kept=news.kept)
            share = _share(news)
            self._tell(messages.Grown(growth, share, news.kept))
        watching = _watching(news)
        if watching != self._told:
            self._told = watching
            self._tell(messages.Watched(watching, news.problems))
        return news.changed or news.state == "reading"

    def _begin(self, news: LiveNews) -> None:
        """Another session, or the same name with another content: nothing of before is true any more."""
        first = self._epoch is None
        self._epoch = news.epoch
        self._grouping = Grouping()
        self._told = None
        if not first:
            self._inspector = None
            why = news.why
            same = why is not None and why.slug == REPLAYED_ANEW
            self._tell(messages.Anew(news.name, why.message if why is not None else "", same=same))


def _share(news: LiveNews) -> float:
    """How much of what is written has been read, 0 to 1; only news of a file says how large it is."""
    size = news.inspector.trace.source.size if news.inspector is not None else 0
    return 1.0 if not news.behind or not size else max(0.0, 1.0 - news.behind / size)


def _watching(news: LiveNews) -> Watching:
    why = news.why.message if news.why is not None else ""
    return Watching(news.state, news.behind, round(news.rate, 1), news.events, news.rows.settled, why)


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
        live: Callable[[], LiveSession] | None = None,
    ) -> None:
        """`live`: watch what this gives, and never call `open_inspector`."""
        self._open = open_inspector
        self._live = live
        self._post = post
        self._stopping = False
        self._workers: dict[str, Worker] = {}
        self._inspector: Inspector | None = None
        self._lock = Lock()
        """Guards the workers and the inspector's coming."""
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
            for worker in self._workers.values():
                worker.stop()
        if self._thread.is_alive():
            self._thread.join(timeout)
        deadline = monotonic() + timeout
        for worker in self._workers.values():
            worker.join(max(deadline - monotonic(), 0.0))
        if self._inspector is not None and self._live is None:
            self._inspector.close()

    def ask(self, asked: Asked) -> None:
        """Ask for something; an unanswered request of the same kind is dropped."""
        with self._lock:
            if self._stopping:
                return
            name = asked.request.worker
            worker = self._workers.get(name)
            if worker is None:
                worker = self._workers[name] = Worker(name, self._post, self._activity)
                if self._inspector is not None:
                    worker.open(self._inspector)
            worker.ask(asked)

    def _run(self) -> None:
        with contextlib.suppress(Stopped):
            if self._live is not None:
                self._watch(self._live)
            else:
                inspector = self._begin()
                if inspector is not None:
                    self._read(inspector)
        self._activity.end(self)

    def _watch(self, open_live: Callable[[], LiveSession]) -> None:
        """Follow a session until the program ends."""
        from ctxctl.session.live import PollStopped as Left

        live = None
        try:
            with scheduling.short_waits():
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
        """Have requests answered from another inspector; with None from the same one, but afresh."""
        with self._lock:
            self._inspector = inspector or self._inspector
            for worker in self._workers.values():
                if inspector is not None:
                    worker.open(inspector)
                else:
                    worker.forget()

    def _begin(self) -> Inspector | None:
        """Open the trace; None if it cannot be shown."""
        inspector = None
        try:
            inspector = self._open()
            self._tell(messages.Opened(trace_facts.trace(inspector)))
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
            from ctxctl.importers.registry import hint_with_plugins

            self._tell(messages.Failed(str(error), hint_with_plugins(error), int(error.exit_code)))
        elif isinstance(error, Exception):
            self._tell(messages.Failed(f"internal error: {place_of(error)}", None, FAULT_EXIT))
        else:
            raise error

    def _read(self, inspector: Inspector) -> None:
        """Read the whole trace once, telling which turns there are."""
        try:
            with scheduling.short_waits():
                self._outline(inspector)
        except Exception as error:
            self._fail(error)

    def _outline(self, inspector: Inspector) -> None:
        grouping = Grouping()
        sent_at = 0.0
        found = False

        def progress(part: float) -> None:
            nonlocal sent_at, found
            self._check()
            now = monotonic()
            if now - sent_at < _UPDATE and (found or not inspector.known):
                return
            found = found or bool(inspector.known)
            self._tell(messages.Grown(grouping.take(inspector.known, self._check), part))
            scheduling.settle_objects()
            sent_at = monotonic()

        rows = inspector.outline(progress).rows
        scheduling.settle_objects()
        growth = grouping.take(rows, self._check, complete=True)
        self._tell(messages.Outlined(growth, trace_facts.trace(inspector)))

    def _check(self) -> None:
        if self._stopping:
            raise Stopped

    def _tell(self, value: object) -> None:
        self._check()
        try:
            self._post(Answered(value, newest_only=isinstance(value, messages.Watched)))
        except RuntimeError as error:
            if not receiver_is_gone(error):
                raise
            raise Stopped from None


class Stopped(BaseException):
    """Raised in a thread to leave what it is at: the program ends."""


class Superseded(BaseException):
    """Raised in a worker's thread to leave an answer that nobody waits for any more."""


class Activity:
    """Which threads are at work; `idle` is set while none is, and is what tests wait for."""

    def __init__(self) -> None:
        self.idle = Event()
        self._changed = Condition()
        self._busy: set[object] = set()

    def begin(self, who: object) -> None:
        """`who` has something to do."""
        with self._changed:
            self._busy.add(who)
            self.idle.clear()

    def end(self, who: object) -> None:
        """`who` has nothing to do any more."""
        with self._changed:
            self._busy.discard(who)
            if not self._busy:
                self.idle.set()


class Worker:
    """One thread and the requests that wait for it; several answer side by side.

    `post` takes what is meant for the application and not for the screen that asked.
    """

    def __init__(self, name: str, post: Post, activity: Activity) -> None:
        self._post = post
        self._activity = activity
        self._waiting: dict[type[Request], Asked] = {}
        self._changed = Condition()
        self._stopping = False
        self._context: AnswerContext | None = None
        self._at: AnswerContext | None = None
        """The one at which an answer is computed: another than `_context` once the session was replaced."""
        self._thread = Thread(target=self._run, name=f"ctxctl-{name}", daemon=True)

    def open(self, inspector: Inspector) -> None:
        """Begin to answer, or go on with another inspector; what was asked before waits until now."""
        with self._changed:
            first, self._context = self._context is None, AnswerContext(self, inspector)
        if first:
            self._thread.start()

    def forget(self) -> None:
        """The trace has changed: answers given before are not given again."""
        if self._context is not None:
            self._context.forget()

    def ask(self, asked: Asked) -> None:
        """Ask for something; an unanswered request of the same kind is dropped."""
        with self._changed:
            self._activity.begin(self)
            kind = type(asked.request)
            self._waiting.pop(kind, None)
            self._waiting[kind] = asked
            self._changed.notify_all()

    def stop(self) -> None:
        """Let the thread end soon."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def join(self, timeout: float | None = None) -> None:
        """Wait for the thread to end."""
        if self._thread.is_alive():
            self._thread.join(timeout)

    def check(self, asked: Asked | None) -> None:
        """Raise `Stopped` or `Superseded` where an answer to `asked` is of no use any more."""
        if self._stopping:
            raise Stopped
        if asked is not None and (type(asked.request) in self._waiting or self._at is not self._context):
            raise Superseded

    def reply(self, asked: Asked, value: object) -> None:
        """Send an answer to the screen that asked, or to the application where none did."""
        asker = asked.asker
        try:
            message = Answered(value, newest_only=asked.request.newest_only)
            self._tell(asker.post_message if asker is not None else self._post, message)
        except Stopped:
            if self._stopping or asker is None or asker.is_attached:
                raise  # else only the screen that asked is gone

    def _tell(self, post: Post, message: Message) -> None:
        if self._stopping:
            raise Stopped
        try:
            post(message)
        except RuntimeError as error:
            if not receiver_is_gone(error):
                raise
            raise Stopped from None

    def _run(self) -> None:
        try:
            while (asked := self._next()) is not None:
                self._answer(asked)
        except Stopped:
            pass
        finally:
            self._activity.end(self)

    def _next(self) -> Asked | None:
        with self._changed:
            while not self._waiting and not self._stopping:
                self._activity.end(self)
                self._changed.wait()
            if self._stopping:
                return None
            return self._waiting.pop(next(iter(self._waiting)))

    def _answer(self, asked: Asked) -> None:
        context = self._at = self._context
        assert context is not None
        context.asked, request = asked, asked.request
        fault = None
        try:
            answer = ANSWERS[type(request)](context, request)
        except CtxctlError as error:
            answer = request.failed(str(error))
        except Superseded:
            return
        except Exception as error:
            fault = place_of(error)
            answer = request.failed(f"internal error: {fault}")
        if context is not self._context:
            return  # its files are closed by now, and nobody asks for what it said
        if fault is not None:
            self._tell(self._post, Answered(Fault(fault)))
        if answer is not None:
            self.reply(asked, answer)
