"""Two threads that ask the inspector, so that the event loop never does.

One reads the trace from end to end and tells which turns there are as it finds them; the other answers what
the screens ask for, meanwhile and afterwards.  Requests of one kind replace each other: while the cursor runs
down a list, what it passed is not computed.  The threads are daemons and not Textual workers, because the
interpreter waits for workers: quitting while a large trace is being read must not take as long as reading it.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Callable
from threading import Condition, Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Final

from textual.message import Message

from ctxctl.errors import CtxctlError
from ctxctl.tui import gather, messages, pauses
from ctxctl.tui.changes import ChangeTable
from ctxctl.tui.document import Document
from ctxctl.tui.outline import Grouping
from ctxctl.tui.state import Detail, ItemText, Target

if TYPE_CHECKING:
    from ctxctl.inspector import Inspector

_KEPT: Final = 64
"""Frames whose changes are kept for coming back to them."""

_UPDATE: Final = 0.1
"""Seconds between two tellings of which turns there are."""

FAULT_EXIT: Final = 70
"""Exit code after something inside went wrong; EX_SOFTWARE of sysexits.h."""


class _Stopped(BaseException):
    """Raised in the loader's thread to leave a long reading."""


class Loader:
    """Opens the trace, then reads it and answers requests until `stop`.

    `post` is called from the threads and must be safe for that, as `post_message` is.
    """

    def __init__(self, open_inspector: Callable[[], Inspector], post: Callable[[Message], object]) -> None:
        self._open = open_inspector
        self._post = post
        self._wanted: dict[type[messages.Want], messages.Want] = {}
        self._changed = Condition()
        self._stopping = False
        self._reading = self._answering = False
        """What the two threads are at; guarded by `_changed`, as is `_wanted`."""
        self._kept: dict[tuple[Target, bool], Detail] = {}
        self._thread = Thread(target=self._run, name="ctxctl-loader", daemon=True)
        self.idle = Event()
        """Set while nothing is under way; what tests wait for."""

    def start(self) -> None:
        """Begin to open the trace."""
        self._thread.start()

    def stop(self, timeout: float = 1.0) -> None:
        """End the threads and close the inspector; one that is busy is left to the end of the process."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def ask(self, want: messages.Want) -> None:
        """Ask for something; an unanswered request of the same kind is dropped."""
        with self._changed:
            self.idle.clear()
            self._wanted.pop(type(want), None)
            self._wanted[type(want)] = want
            self._changed.notify_all()

    def _run(self) -> None:
        try:
            inspector = self._begin()
        except _Stopped:
            return
        if inspector is None:
            self.idle.set()
            return
        self._reading = True
        reader = Thread(target=self._read, args=(inspector,), name="ctxctl-reader", daemon=True)
        reader.start()
        try:
            while (want := self._next()) is not None:
                self._answer(inspector, want)
        except _Stopped:
            pass
        finally:
            reader.join()
            inspector.close()
            self.idle.set()

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
        """Read the whole trace once, telling which turns there are; a thread of its own."""
        try:
            with pauses.short():
                self._outline(inspector)
        except _Stopped:
            pass
        except Exception as error:
            with contextlib.suppress(_Stopped):
                self._fail(error)
        finally:
            with self._changed:
                self._reading = False
                self._rest()

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
            raise _Stopped

    def _tell(self, message: Message) -> None:
        self._check()
        try:
            self._post(message)
        except RuntimeError:  # the event loop is gone
            raise _Stopped from None

    def _next(self) -> messages.Want | None:
        with self._changed:
            self._answering = False
            while not self._wanted and not self._stopping:
                self._rest()
                self._changed.wait()
            if self._stopping:
                return None
            self._answering = True
            kind = next(iter(self._wanted))
            return self._wanted.pop(kind)

    def _rest(self) -> None:
        """Say so if nothing is under way."""
        if not (self._wanted or self._answering or self._reading):
            self.idle.set()

    def _answer(self, inspector: Inspector, want: messages.Want) -> None:
        fault = None
        try:
            answer = self._compute(inspector, want)
        except CtxctlError as error:
            answer = _failed(want, str(error))
        except Exception as error:
            fault = place_of(error)
            answer = _failed(want, f"internal error: {fault}")
        if fault is not None:
            self._tell(messages.Fault(fault))
        if answer is not None:
            self._tell(answer)

    def _compute(self, inspector: Inspector, want: messages.Want) -> Message | None:
        match want:
            case messages.WantDetail():
                return messages.Detailed(self._detail(inspector, want))
            case messages.WantItem():
                return messages.Texted(gather.item(inspector, want.key))
            case messages.WantAssembled():
                return messages.Reading(want.title, gather.assembled(inspector, want.ordinal))
            case messages.WantStages():
                return messages.Reading(want.title, gather.stages(inspector, want.ordinal))
            case messages.WantProblems():
                found = gather.problems(inspector.problems, inspector.problem_count)
                return messages.Reading("problems", found)
            case messages.WantAbout():
                return messages.Reading("recorded", gather.about(inspector.format, inspector.summary))
        return None

    def _detail(self, inspector: Inspector, want: messages.WantDetail) -> Detail:
        key = (want.target, want.with_skipped)
        found = self._kept.pop(key, None)
        if found is None:
            found = gather.detail(inspector, want.target, want.with_skipped)
        self._kept[key] = found
        if len(self._kept) > _KEPT:
            del self._kept[next(iter(self._kept))]
        return found


def _failed(want: messages.Want, why: str) -> Message | None:
    """The answer to a request that cannot be fulfilled."""
    match want:
        case messages.WantDetail():
            return messages.Detailed(Detail(want.target, None, None, ChangeTable(), want.with_skipped, why))
        case messages.WantItem():
            return messages.Texted(ItemText(want.key, None, None, why, why))
        case messages.WantAssembled() | messages.WantStages():
            return messages.Reading(want.title, Document.of_lines([("!", why)]))
    return None


def place_of(error: BaseException) -> str:
    """Kind and place in our code of an error, without its message, which may quote the trace."""
    frames = traceback.extract_tb(error.__traceback__ or sys.exc_info()[2])
    ours = [frame for frame in frames if "ctxctl" in frame.filename] or list(frames)
    if not ours:
        return type(error).__name__
    last = ours[-1]
    name = last.filename.replace("\\", "/").rpartition("ctxctl/")[2]
    return f"{type(error).__name__} at {name}:{last.lineno} in {last.name}"
