"""Threads that answer what screens ask for, so that the event loop never computes.

Requests of one kind replace each other: while the cursor runs down a list, what it passed is not computed.
The threads are daemons and not Textual workers, because the interpreter waits for workers: quitting while a
large trace is being read must not take as long as reading it.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition, Event, Thread
from typing import TYPE_CHECKING

from textual.message import Message

from ctxctl.errors import CtxctlError
from ctxctl.tui.answers import ANSWERS
from ctxctl.tui.answers.context import AnswerContext
from ctxctl.tui.errors import place_of
from ctxctl.tui.messages import Fault
from ctxctl.tui.requests import Answered, Asked, Request
from ctxctl.tui.textual_private import has_no_application

if TYPE_CHECKING:
    from ctxctl.session import Inspector

Post = Callable[[Message], object]
"""Sends a message to the event loop from any thread, as `post_message` does."""


class Stopped(BaseException):
    """Raised in a thread to leave what it is at: the program ends."""


class Superseded(BaseException):
    """Raised in a worker's thread to leave an answer that nobody waits for any more."""


def gone(error: RuntimeError) -> bool:
    """Whether a message could not be sent because the event loop, or the screen that asked, is there no more.

    Any other error is one: a thread that ended without a word would leave a screen that looks alive.
    """
    return has_no_application(error) or "loop is closed" in str(error)


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
            if not gone(error):
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
