"""`Recorder`: writes what a program puts into a model's context to a trace, as it happens."""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

from ctxctl.model import vocab
from ctxctl.record.calls import Calls, guarded
from ctxctl.record.scopes import Scope, Step, Turn, current

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxctl.ingest.build import Block
    from ctxctl.record.bodies import SentRequest, ThreadConversations
    from ctxctl.record.core import Core
    from ctxctl.record.place import Place


ROTATE_BYTES = 1 << 30
_recorders: WeakSet[Recorder] = WeakSet()
"""Recorders of this process: a forked child begins them anew, and the end of the process closes them."""


class Recorder(Calls):
    """Appends a session to a trace file; any number of recorders, threads and processes may share one.

    No call raises (but see `strict`), and what a call recorded is in the file when it returns, whatever
    becomes of the process.  What could not be written is counted: in the file as soon as that works again
    (`ctxctl.record.dropped`), in `dropped`, and in one line on stderr at exit.

    Args:
        path: The trace; made with mode 0600, never followed through a symbolic link.
        session: The id of the session; None: a new one.
        thread: The thread of turns that name none.
        source: Who records (`my-agent/1.2`).
        fsync: Wait until each event is on the disk, so that it survives a power loss too.
        redact: True: secrets are replaced before anything is written.  False: they are not.  A path: they
            are, also by the user's own rules in this TOML file.
        rotate_bytes: The file is renamed before it grows beyond (`run.jsonl` to `run.1.jsonl`); None: never.
        strict: Raise the errors of a call, and of a file that cannot be opened.

    Raises:
        OSError: only if `strict`: the file cannot be written.
        UsageError: only if `strict`: `bad-redaction-rules`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        session: str | None = None,
        thread: str = "main",
        source: str | None = None,
        fsync: bool = False,
        redact: bool | str | os.PathLike[str] = True,
        rotate_bytes: int | None = ROTATE_BYTES,
        strict: bool = False,
    ) -> None:
        # Imported here: at the top, these would cost a program that records nothing some milliseconds.
        from ctxctl.record.core import Core
        from ctxctl.record.redact import redactor_of
        from ctxctl.record.sink import Sink

        sink, redactor, wrong = Sink("nowhere"), None, None
        try:
            sink = Sink(os.fsdecode(path), fsync=bool(fsync), rotate_bytes=_size(rotate_bytes))
            redactor = redactor_of(redact)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            if strict:
                raise
            wrong = error
        self._core: Core = Core(sink, _program() if source is None else source, redactor, strict=strict)
        self._given_session = self._core.clean_id(session)
        self._base_thread = self._core.clean_id(thread) or "main"
        self._open: dict[str, int] = {}
        """The turns that are open, by thread."""
        self._turns: dict[str, int] = {}
        self._steps: dict[str, int] = {}
        self._known_conversations: ThreadConversations | None = None
        self._begin()
        if wrong is not None:
            # Without its rules nothing is written at all.
            self._core.journal.refuse(f"not recording: {wrong}"[:300])
        if strict:
            sink.prepare(0)
        _recorders.add(self)

    def _begin(self) -> None:
        """Begin as a new writer: at the start, and in a forked child."""
        import _thread

        from ctxctl.record.earlier_writers import EarlierWriters
        from ctxctl.record.place import Place

        writer = self._core.journal.writer
        self._session = self._given_session or f"session-{writer[:12]}"
        self._own_session = self._given_session is None
        self._earlier_writers = EarlierWriters(self._core.journal)
        self._thread = self._base_thread
        self._lock = _thread.RLock()
        self._request_lock = _thread.RLock()
        self._in_request = False
        self._default = Place(self._session, self._thread)
        self._known_conversations = None

    def _forked(self) -> None:
        """Begin anew in a forked child: as another writer and, in a given session, in another thread."""
        self._core.forked()
        self._open, self._turns, self._steps = {}, {}, {}
        if self._given_session is not None:
            self._base_thread = f"{self._base_thread}~{self._core.journal.writer[:8]}"
        self._begin()

    # -- where ----------------------------------------------------------------------------------------------

    @property
    def session(self) -> str:
        """The id of the session of turns that name none."""
        return self._session

    def _current_place(self) -> Place:
        scope = current.get()
        while scope is not None:
            if scope.recorder is self and scope.open:
                return scope._place
            scope = scope._outer
        return self._default

    def turn(
        self, turn_id: str | None = None, *, session: str | None = None, thread: str | None = None
    ) -> Turn:
        """Begin a turn, all that one prompt sets off: `with recorder.turn() as turn:`.

        A thread that is busy with another turn is branched: `main` becomes `main~2` for that time.
        """
        from ctxctl.record.place import Place

        name_of = self._core.clean_id
        own = name_of(session) or self._session
        with self._lock:
            wanted = name = name_of(thread) or self._thread
            number = 1
            while self._open.get(Place(own, name).key):
                number += 1
                name = f"{wanted}~{number}"
            key = Place(own, name).key
            self._open[key] = 1
            turn = name_of(turn_id) or self._next_turn(Place(own, name))
        return Turn(self, Place(own, name, turn))

    def step(self, *, model: str | None = None, step_id: str | None = None) -> Step:
        """Begin a request to a model, in the turn that is open here or outside of any."""
        return Step(self, self._step_place(self._current_place(), step_id), model)

    def request(self, body: Any = None, **fields: Any) -> Step:
        """Record a request (see `Step.request`) in the open step, else in one of its own.

        Outside of a turn, a prompt of the user at its end begins one.
        """
        scope = current.get()
        if isinstance(scope, Step) and scope.recorder is self and scope.open:
            return scope.request(body, **fields)
        return self.step().request(body, **fields)

    def _step_place(self, place: Place, step_id: object) -> Place:
        from ctxctl.record.place import Place

        with self._lock:
            step = self._core.clean_id(step_id) or self._next_name(self._steps, place, "step")
        return Place(place.session, place.thread, place.turn, step)

    def _next_turn(self, place: Place) -> str:
        """Return a name for another turn of a thread."""
        return self._next_name(self._turns, place, "turn")

    def _next_name(self, counts: dict[str, int], place: Place, what: str) -> str:
        """Return a name that is new in the file: it goes on counting where other writers stopped."""
        key = place.key
        if key not in counts:
            counts[key] = self._earlier_writers.number(place, what) if self._is_shared(place) else 0
        number = counts[key] = counts[key] + 1
        if len(counts) > 100_000:
            counts.pop(next(iter(counts)))
        return f"{what}-{number}{self._name_suffix(place)}"

    def _is_shared(self, place: Place) -> bool:
        """Whether other writers may record the same session."""
        return not (self._own_session and place.session == self._session)

    def _earlier_window(self, place: Place) -> list[tuple[Block, str]] | None:
        """Return the window that another writer left in a thread; None where no other may record there."""
        return self._earlier_writers.rows(place) if self._is_shared(place) else None

    def _name_suffix(self, place: Place) -> str:
        """Return the end of a thread's new names, so that no other writer of the file gives them."""
        return self._core.journal.mark if self._is_shared(place) else ""

    def _end_turn(self, turn: Scope) -> None:
        with self._lock:
            self._open.pop(turn._place.key, None)

    # -- requests -------------------------------------------------------------------------------------------

    def _conversations(self) -> ThreadConversations:
        from ctxctl.record.bodies import ThreadConversations

        if self._known_conversations is None:
            self._known_conversations = ThreadConversations(self._core, self._earlier_window)
        return self._known_conversations

    def _record_request(self, sent: SentRequest, place: Place) -> Place:
        from ctxctl.record.bodies import ends_with_prompt

        with self._exclusively() as free:
            if not free:
                return place
            if sent.turn is None:
                if place.key not in self._turns or ends_with_prompt(sent.body, sent.dialect):
                    self._next_turn(place)
                sent = sent._replace(turn=f"turn-{self._turns[place.key]}{self._name_suffix(place)}")
            return self._conversations().request(sent, place)

    def _record_answer(self, response: dict[str, Any], place: Place, dialect: Any) -> None:
        with self._exclusively() as free:
            if free:
                self._conversations().respond(response, place, dialect)

    @contextmanager
    def _exclusively(self) -> Iterator[bool]:
        """Let in one thread at a time, and none twice; yields False, and counts a loss, where it cannot."""
        from ctxctl.record.journal import WAIT

        if not self._request_lock.acquire(timeout=WAIT):
            self._core.journal.count_lost("busy")
            yield False
            return
        try:
            if self._in_request:
                self._core.journal.count_lost("re-entered")
                yield False
                return
            self._in_request = True
            try:
                yield True
            finally:
                self._in_request = False
        finally:
            self._request_lock.release()

    # -- wrappers of a program's own objects ----------------------------------------------------------------

    def context_provider(self, provider: Any, *, app: str | None = None) -> Any:
        """Wrap a provider (sanqian's `getCurrent`, `getList`, `getById`) and record what it gives."""
        from ctxctl.record.wrappers import RecordedProvider, with_methods_of

        return with_methods_of(RecordedProvider, type(provider))(self, provider, app)

    def context_manager(self, manager: Any, *, thread: str | None = None) -> Any:
        """Wrap a context manager (Amplifier's) and record every view that it gives for a request."""
        from ctxctl.record.wrappers import RecordedManager, with_methods_of

        return with_methods_of(RecordedManager, type(manager))(self, manager, thread)

    # -- counts and the end ---------------------------------------------------------------------------------

    @property
    def written(self) -> int:
        """Events of this process that are in the file."""
        return self._core.journal.written

    @property
    def dropped(self) -> int:
        """Events of this process that are not in the file."""
        return self._core.journal.dropped

    @property
    def redacted(self) -> dict[str, int]:
        """Secrets replaced so far, by kind."""
        return dict(self._core.redacted)

    @guarded
    def end_session(self, session: str | None = None) -> None:
        """Record that the session is over: views then show its last turn as finished."""
        from ctxctl.record.place import Place

        self._core.record(vocab.SESSION_ENDED, {}, Place(self._core.clean_id(session) or self._session))

    @guarded
    def close(self) -> None:
        """Close the file, and report on stderr what was lost, if anything was."""
        self._core.journal.close()
        self._core.journal.complain()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if "_core" in self.__dict__:
            self.close()


def _size(value: int | None) -> int | None:
    if value is None or (isinstance(value, int) and value > 0):
        return value
    raise TypeError("rotate_bytes is a number of bytes")


def _program() -> str:
    """Return the program's name, for the events' `source`."""
    name = os.path.basename(sys.argv[0]) if sys.argv and isinstance(sys.argv[0], str) else ""
    name = name.removesuffix(".py").encode("utf-8", "replace").decode()
    return name if name and not name.startswith("-") else "ctxctl"


def _forked() -> None:
    for recorder in list(_recorders):
        recorder._forked()


def _ended() -> None:
    for recorder in list(_recorders):
        recorder.close()


os.register_at_fork(after_in_child=_forked)
atexit.register(_ended)
