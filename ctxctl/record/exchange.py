"""HTTP exchanges with model APIs, whoever sees them: a proxy, a transport inside the program.

Nothing of a header or an address is written but ids of sessions; bodies are redacted like everything else.
No call raises, and none keeps more of a body than a bounded copy.
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
"""Bytes of one body, as it came and decoded, that are looked at."""
_ALL: Final = 256 << 20
"""Bytes of all answers that are on their way."""
_TAIL: Final = 32
"""Bytes of a stream that are looked at again with the next ones."""
LATE: Final = "ctxctl.answer.late"
"""What was told of a `step`'s answer when its thread had gone on: its `usage`, its `error`."""
_FAILED: Final = 256
"""Requests remembered that got no answer: a client sends them again."""
P = ParamSpec("P")
R = TypeVar("R")


def _never_raises(call: Callable[P, R]) -> Callable[P, R | None]:
    """A call that never raises, not even if the recorder is strict: what is lost is counted."""

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
    """The exchanges of one recorder; for any number of threads.

    Memory: at most 256 MB of answers that are on their way, and what tells a thousand conversations apart.
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
        """Ends of exchanges that came in the middle of another one."""

    def begin(
        self, method: str, url: str, headers: Iterable[tuple[str, str]], body: bytes | None,
        *, apart: str | None = None, derived: bool = False,
    ) -> Exchange | None:  # fmt: skip
        """Record a request that is about to be sent, and return what takes its answer.

        None where it asks no model (a count of tokens, an embedding, a file, an unknown address): then
        nothing is recorded.  Inside of a step that the program itself records nothing is, either.

        Args:
            method: HTTP method.
            url: The whole address; only its path is looked at.
            headers: As sent; only ids of sessions, the content's type and encoding are looked at.
            body: As sent, with its Content-Encoding.
            apart: The thread of a request that no conversation goes on with; None: told by the request.
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
        """The turn or step of this recorder that is open here."""
        scope = current.get()
        while scope is not None and not (scope.recorder is self.recorder and scope.open):
            scope = scope._outer
        return scope

    def _ask(
        self, wire: Wire, dialect: Dialect, scope: Scope | None, agent: Agent | None = None
    ) -> _Attempt | None:
        from ctxctl.record.http import repeat_key

        recorder = self.recorder
        # A session that the program gave its recorder, or its turn, says more than a request does.
        turn, thread = None, wire.thread
        if scope is not None:
            place = scope._place
            turn, session = place.turn, place.session
            thread = place.thread if place.thread != recorder._thread else thread
        else:
            session = recorder._given_session or self._core.clean_id(wire.session)
        assert wire.request is not None
        # Two agents may be told the same.
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
            # The first, or in a forked child: another writer, with a file state of its own.
            self._writer = self._core.journal.writer
            self._known_conversations = Conversations(self.recorder)
            self._failed.clear()
        return self._known_conversations

    def _answered(self, attempt: _Attempt, answer: ReadAnswer, dialect: Dialect | None = None) -> None:
        """Write what came back: what was billed, the answer, and why it is none or not all of it."""
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
                # The reader has closed the step: told by name, it is not taken for the next one's.
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
        """Tell of what was not over yet; what comes of it now is not recorded."""
        for exchange in list(self._open):
            exchange.end("the recording ended")
        self._finish_postponed()

    def _finish_postponed(self) -> None:
        """Tell the ends that were put off."""
        while self._postponed and not self.recorder._in_request:
            self._postponed.popleft()()

    def _reserve(self, size: int) -> bool:
        """Whether there is room for so many bytes more."""
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
    """What the same request is known by when it is sent again."""
    number: int = 1
    """How often it was sent, this time among them."""


class Exchange:
    """One request that was recorded, on the way to its answer; ended at the latest when it is forgotten."""

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
        """Its end is looked for in what comes."""
        self._tail = b""
        self._marked = False
        self._lock = threading.Lock()
        self._ended = False
        exchanges._open.add(self)

    @property
    def session(self) -> str | None:
        """The session that it is recorded in."""
        return self._attempt.asked.place.session if self._attempt is not None else None

    @_never_raises
    def head(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        """The answer's status and headers; of these only the content's type and encoding are looked at."""
        self._status = int(status)
        wanted = ("content-type", "content-encoding")
        self._headers = {name: value for name, value in _lower(headers) if name in wanted}
        kind, encoding = (self._headers.get(name) for name in wanted)
        self._watched = "event-stream" in (kind or "") and not encoding

    @_never_raises
    def data(self, chunk: bytes) -> None:
        """The next bytes of the answer's body, as they come over the wire."""
        size = len(chunk)
        if self._full or self._ended or not size:
            return
        if self._size + size > MAX_BODY or not self._exchanges._reserve(size):
            self._full = True
            return
        self._size += size
        self._parts.append(bytes(chunk))
        if self._watched and self._is_over(chunk):
            # Some clients read no further, and close much later.
            self.end("complete")

    def _is_over(self, chunk: bytes) -> bool:
        """Whether the stream has said that nothing follows."""
        from ctxctl.record.http import MARKS, is_end

        recent = self._tail + chunk
        self._tail = recent[-_TAIL:]
        self._marked = self._marked or any(mark in recent for mark in MARKS)
        if not self._marked or not recent.endswith((b"\n\n", b"\r\n\r\n", b"\r\r")):
            return False
        self._marked = False
        return is_end(b"".join(self._parts), self._dialect)

    @_never_raises
    def end(self, how: str) -> None:
        """It is over; only the first time counts.

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
            response: The answer's JSON as an object or as text; None: there is none.
            bill: What was billed, as `Calls.usage` takes it; None: told by the answer.
            failure: Why there is no answer, or not all of it, in few words and with nothing of its text.
            cut: It is not all of the answer.
            dialect: Of the answer, where it is another than the request's.
        """
        from ctxctl.record.bodies import body_of
        from ctxctl.record.http import ReadAnswer

        if not self._mark_ended() or self._attempt is None:
            return
        whole = None if response is None else body_of({}, response)
        why = None if failure is None else {"error": failure[:200]}
        self._exchanges._answered(self._attempt, ReadAnswer(whole, why, cut, bill), dialect)

    def _mark_ended(self) -> bool:
        """It ends here; False: it has before."""
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
        """It was forgotten, and collected in the middle of another exchange: it is told with the next one."""
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
