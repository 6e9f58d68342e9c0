"""Records HTTP exchanges with model APIs, seen by a proxy or by a transport inside the program.

Of headers and addresses only ids of sessions are written; bodies are redacted like everything else.  No call
raises, and none keeps more of a body than a bounded copy.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Iterable
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final, NamedTuple, ParamSpec, TypeVar
from weakref import WeakSet

from ctxctl.model import vocab
from ctxctl.record.place import Place
from ctxctl.record.scopes import Scope, Step, current

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxctl.ingest.build import Json
    from ctxctl.providers.dialects.base import Dialect
    from ctxctl.providers.dialects.exchanges import Exchange as Wire
    from ctxctl.record.conversations import Conversations, PendingRequest
    from ctxctl.record.http import Agent, RawAnswer, ReadAnswer
    from ctxctl.record.recorder import Recorder


MAX_BODY: Final = 64 << 20
"""Bytes of one body that are read, as it came and decoded."""
_ALL: Final = 256 << 20
"""Bytes of all unfinished answers together."""
_TAIL: Final = 32
"""Bytes of a stream's end that are searched again with the next bytes."""
LATE: Final = "ctxctl.answer.late"
"""The event of an answer that came when its thread had gone on: the `step`, its `usage`, its `error`."""
_FAILED: Final = 256
"""Unanswered requests that are remembered, as a client sends them again."""
P = ParamSpec("P")
R = TypeVar("R")


def _never_raises(call: Callable[P, R]) -> Callable[P, R | None]:
    """Make a call that never raises, not even if the recorder is strict; what is lost is counted."""

    @wraps(call)
    def never_raising(*args: P.args, **kwargs: P.kwargs) -> R | None:
        try:
            return call(*args, **kwargs)
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:
            args[0]._core.journal.count_lost(f"{type(error).__name__} in an exchange")  # type: ignore[attr-defined]
            return None

    return never_raising


class Exchanges:
    """The exchanges of one recorder; safe to use from several threads.

    Memory: at most 256 MB of unfinished answers, and what tells a thousand conversations apart.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._core = recorder._core
        # Re-entrant: an exchange may be forgotten, and ended, by a collection in the middle of another one.
        self._lock = threading.RLock()
        self._held = 0
        self._writer = self._core.journal.writer
        self._known_conversations: Conversations | None = None
        self._failed: OrderedDict[bytes, _Attempt] = OrderedDict()
        self._open: WeakSet[Exchange] = WeakSet()
        self._postponed: deque[Callable[[], object]] = deque()
        """Calls that end exchanges which were forgotten in the middle of another one."""

    def begin(
        self, method: str, url: str, headers: Iterable[tuple[str, str]], body: bytes | None,
        *, apart: str | None = None, derived: bool = False,
    ) -> Exchange | None:  # fmt: skip
        """Record a request that is about to be sent; return the exchange that takes its answer.

        None where it asks no model (a count of tokens, an embedding, a file, an unknown address): then
        nothing is recorded.  Nor is anything recorded inside a step that the program itself records.

        Args:
            method: HTTP method.
            url: The whole address; only its path is read.
            headers: As sent; only ids of sessions and the content's type and encoding are read.
            body: As sent, with its Content-Encoding.
            apart: The thread of a request that belongs to no conversation; None: found from the request.
            derived: The body was put together from several messages.
        """
        found = self._begin(method, url, headers, body, apart, derived)
        return found if isinstance(found, Exchange) else None

    @_never_raises
    def _begin(
        self, method: str, url: str, headers: Iterable[tuple[str, str]], body: bytes | None,
        apart: str | None, derived: bool,
    ) -> Exchange | None:  # fmt: skip
        if method.upper() != "POST" or not body:
            return None
        scope = self._scope()
        if isinstance(scope, Step):
            return None
        from ctxctl.providers.dialects.exchanges import Exchange as Wire
        from ctxctl.record.http import model_request

        asked = model_request(method, url, dict(_lower(headers)), body)
        if asked is None:
            return None
        wire = Wire(
            asked.body,
            None,
            url=url,
            session=asked.session,
            thread=apart,
            apart=apart is not None,
            derived=derived,
        )
        return Exchange(self, asked.dialect, self._ask(wire, asked.dialect, scope, asked.agent))

    def begin_from_body(
        self, body: Any, dialect: Dialect | None = None, *, url: str = "", session: str | None = None
    ) -> Exchange | None:
        """Record a request that a program's own hook reports: its JSON as an object or as text.

        `Exchange.answered` takes its answer.  None where it is no request to a model in a known dialect.
        """
        found = self._begin_from_body(body, dialect, url, session)
        return found if isinstance(found, Exchange) else None

    @_never_raises
    def _begin_from_body(
        self, body: Any, dialect: Dialect | None, url: str, session: str | None
    ) -> Exchange | None:
        from ctxctl.providers.dialects import of_body
        from ctxctl.providers.dialects.exchanges import Exchange as Wire
        from ctxctl.record.bodies import body_of
        from ctxctl.record.http import session_of

        scope, given = self._scope(), body_of({}, body)
        if given is None or isinstance(scope, Step):
            return None
        dialect = dialect or of_body(given, url or None)
        if dialect is None:
            return None
        wire = Wire(given, None, url=url, session=session or session_of({}, given))
        return Exchange(self, dialect, self._ask(wire, dialect, scope))

    def _scope(self) -> Scope | None:
        """Return the innermost open turn or step of this recorder."""
        scope = current.get()
        while scope is not None and not (scope.recorder is self.recorder and scope.open):
            scope = scope._outer
        return scope

    def _ask(
        self, wire: Wire, dialect: Dialect, scope: Scope | None, agent: Agent | None = None
    ) -> _Attempt | None:
        from ctxctl.record.http import repeat_key

        recorder = self.recorder
        # The session that the program gave its recorder or its turn goes before the request's.
        turn, thread = None, wire.thread
        if scope is not None:
            place = scope._place
            turn, session = place.turn, place.session
            thread = place.thread if place.thread != recorder._thread else thread
        else:
            session = recorder._given_session or self._core.clean_id(wire.session)
        assert wire.request is not None
        # Two agents may send the same request.
        key = repeat_key(wire.request, session if agent is None else f"{session}\n{agent.id}", dialect)
        self._finish_postponed()
        with recorder._exclusively() as free:
            if not free:
                return None
            conversations = self._conversations()
            before = self._failed.pop(key, None)
            if before is not None and conversations.send_again(before.asked):
                return before._replace(number=before.number + 1)
            url = (wire.url or "").partition("?")[0]
            wire = wire._replace(url=url, session=session, thread=thread, turn=turn)
            return _Attempt(conversations.ask(wire, dialect, agent if thread is None else None), key)

    def _conversations(self) -> Conversations:
        from ctxctl.record.conversations import Conversations

        if self._known_conversations is None or self._writer != self._core.journal.writer:
            # The first request, or a forked child, which is another writer with a file state of its own.
            self._writer = self._core.journal.writer
            self._known_conversations = Conversations(self.recorder)
            self._failed.clear()
        return self._known_conversations

    def _answered(self, attempt: _Attempt, answer: ReadAnswer, dialect: Dialect | None = None) -> None:
        """Write the bill, the answer, and why the answer is missing or incomplete."""
        core, asked = self._core, attempt.asked
        response, failure = answer.response, answer.failure
        if self._writer != core.journal.writer:
            return  # asked before a fork: the parent's
        bill: Json = {}
        if response is not None:
            bill = core.bill(response) if answer.bill is None else dict(answer.bill)
            if bill and "model" not in bill and asked.model is not None:
                bill["model"] = asked.model
        with self.recorder._exclusively() as free:
            if not free or self._known_conversations is None:
                return
            if self._known_conversations.is_late(asked):
                # The thread has gone on, and its step is closed: the event names the step it belongs to.
                late = {"step": asked.place.step, "usage": bill or None, **(failure or {})}
                core.record(LATE, late, Place(asked.place.session, asked.place.thread))
            else:
                if bill:
                    core.record(vocab.USAGE_REPORTED, bill, asked.place)
                if failure is not None:
                    core.record(vocab.STEP_FAILED, failure, asked.place)
                elif attempt.number > 1:
                    core.record(vocab.STEP_ANSWERED, {"attempts": attempt.number}, asked.place)
            self._known_conversations.answered(asked, response, cut=answer.cut, dialect=dialect)
            if response is None and failure is not None:
                self._failed[attempt.key] = attempt
                while len(self._failed) > _FAILED:
                    self._failed.popitem(last=False)

    @_never_raises
    def close(self) -> None:
        """End the exchanges that are still open; what comes of them later is not recorded."""
        for exchange in list(self._open):
            exchange.end("the recording ended")
        self._finish_postponed()

    def _finish_postponed(self) -> None:
        """End the exchanges whose end was postponed."""
        while self._postponed and not self.recorder._in_request:
            self._postponed.popleft()()

    def _reserve(self, size: int) -> bool:
        """Reserve memory for this many bytes; False where there is none left."""
        with self._lock:
            if self._held + size > _ALL:
                return False
            self._held += size
            return True

    def _release(self, size: int) -> None:
        with self._lock:
            self._held -= size


class _Attempt(NamedTuple):
    asked: PendingRequest
    key: bytes
    """Recognises the same request when it is sent again."""
    number: int = 1
    """How often it was sent so far."""


class Exchange:
    """A recorded request that waits for its answer; it ends at the latest when the program drops it."""

    def __init__(self, exchanges: Exchanges, dialect: Dialect, attempt: _Attempt | None) -> None:
        self._exchanges = exchanges
        self._core = exchanges._core
        self._dialect = dialect
        self._attempt = attempt
        self._status: int | None = None
        self._headers: dict[str, str] = {}
        self._parts: list[bytes] = []
        self._size = 0
        self._full = False
        self._watched = False
        """Whether the end of the stream is looked for in the bytes that come."""
        self._tail = b""
        self._marked = False
        self._last = 0
        """The index of the part in which the last event begins, or of one before it."""
        self._lock = threading.Lock()
        self._ended = False
        exchanges._open.add(self)

    @property
    def session(self) -> str | None:
        """The session in which it is recorded."""
        return self._attempt.asked.place.session if self._attempt is not None else None

    @_never_raises
    def head(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        """Take the answer's status and headers; only the content's type and encoding are read."""
        self._status = int(status)
        wanted = ("content-type", "content-encoding")
        self._headers = {name: value for name, value in _lower(headers) if name in wanted}
        kind, encoding = (self._headers.get(name) for name in wanted)
        self._watched = "event-stream" in (kind or "") and not encoding

    @_never_raises
    def data(self, chunk: bytes) -> None:
        """Take the next bytes of the answer's body, as they come over the wire."""
        size = len(chunk)
        if self._full or self._ended or not size:
            return
        if self._size + size > MAX_BODY or not self._exchanges._reserve(size):
            self._full = True
            return
        self._size += size
        self._parts.append(bytes(chunk))
        if self._watched and self._is_over(chunk):
            # Some clients read no further, and close the connection much later.
            self.end("complete")

    def _is_over(self, chunk: bytes) -> bool:
        """Whether the stream has announced its end."""
        from ctxctl.record.http import MARKS, is_end

        recent = self._tail + chunk
        self._tail = recent[-_TAIL:]
        self._marked = self._marked or any(mark in recent for mark in MARKS)
        if not recent.endswith((b"\n\n", b"\r\n\r\n", b"\r\r")):
            return False
        marked, self._marked = self._marked, False
        first, self._last = self._last, len(self._parts)
        return marked and is_end(b"".join(self._parts[first:]), self._dialect)

    @_never_raises
    def end(self, how: str) -> None:
        """End the exchange; only the first call counts.

        Args:
            how: `complete`; or why it is not: `upstream_reset`, `client_gone`, `timeout`, `malformed` …
        """
        if not self._mark_ended():
            return
        raw, self._parts = b"".join(self._parts), []
        self._exchanges._release(self._size)
        if self._attempt is not None:
            _finish(self._exchanges, self._attempt, self._dialect, self._raw_answer(raw, how))

    @_never_raises
    def answered(
        self, response: Any, *, bill: Json | None = None, failure: str | None = None, cut: bool = False,
        dialect: Dialect | None = None,
    ) -> None:  # fmt: skip
        """End the exchange as a program's own hook reports it, instead of with `head`, `data` and `end`.

        Args:
            response: The answer's JSON, as an object or as text; None: there is no answer.
            bill: What was billed, as `Calls.usage` takes it; None: the answer holds it.
            failure: Why the answer is missing or incomplete, in few words and without any of its text.
            cut: The answer is incomplete.
            dialect: The answer's dialect, where it differs from the request's.
        """
        from ctxctl.record.bodies import body_of
        from ctxctl.record.http import ReadAnswer

        if not self._mark_ended() or self._attempt is None:
            return
        whole = None if response is None else body_of({}, response)
        why = None if failure is None else {"error": failure[:200]}
        self._exchanges._answered(self._attempt, ReadAnswer(whole, why, cut, bill), dialect)

    def _mark_ended(self) -> bool:
        """Mark the exchange as ended; False where it was ended before."""
        with self._lock:
            if self._ended:
                return False
            self._ended = True
        self._exchanges._open.discard(self)
        return True

    def _raw_answer(self, raw: bytes, how: str) -> RawAnswer:
        from ctxctl.record.http import RawAnswer

        return RawAnswer(self._status, self._headers, raw, how, self._full)

    def __del__(self) -> None:
        if self.__dict__.get("_ended", True):
            return
        if self._attempt is not None and self._exchanges.recorder._in_request:
            self._postpone()
        else:
            self.end("client_gone")

    @_never_raises
    def _postpone(self) -> None:
        """End it with the next exchange: it was collected in the middle of another one."""
        self._ended = True
        self._exchanges._release(self._size)
        came = self._raw_answer(b"".join(self._parts), "client_gone")
        assert self._attempt is not None
        self._exchanges._postponed.append(
            partial(_finish, self._exchanges, self._attempt, self._dialect, came)
        )


def _finish(exchanges: Exchanges, attempt: _Attempt, dialect: Dialect, came: RawAnswer) -> None:
    from ctxctl.record.http import read_answer

    exchanges._answered(attempt, read_answer(came, dialect))


def _lower(headers: Iterable[tuple[Any, Any]]) -> Iterable[tuple[str, str]]:
    for name, value in headers:
        if isinstance(name, str) and isinstance(value, str):
            yield name.lower(), value
