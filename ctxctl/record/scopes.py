"""Turns and steps of a recorder, as context managers: what is recorded inside belongs to them."""

from __future__ import annotations

from contextlib import suppress
from contextvars import ContextVar, Token
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from ctxctl.model import vocab
from ctxctl.record.calls import Calls, guarded
from ctxctl.record.place import Place

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Iterable

    from ctxctl.record.bodies import SentRequest, Stream
    from ctxctl.record.core import Core


current: ContextVar[Scope | None] = ContextVar("ctxctl_scope", default=None)
"""The innermost turn or step that is open; each asyncio task and each thread has its own."""


class Host(Protocol):
    """What turns, steps and the wrappers of a program's own objects need of their recorder."""

    _core: Core

    def _current_place(self) -> Place:
        """Return the place where an event that is recorded now belongs."""
        ...

    def _step_place(self, place: Place, step_id: object) -> Place:
        """Return the place of a step; a step without an id gets the thread's next number."""
        ...

    def _end_turn(self, turn: Scope) -> None:
        """End a turn, which frees its thread for another one."""
        ...

    def _record_request(self, sent: SentRequest, place: Place) -> Place:
        """Record a request; return its place."""
        ...

    def _record_answer(self, response: dict[str, Any], place: Place, dialect: Any) -> None:
        """Record the answer to a request."""
        ...


class Scope(Calls):
    """A place that calls record to: the base of `Turn` and `Step`."""

    def __init__(self, recorder: Host, place: Place) -> None:
        self.recorder = recorder
        self._core = recorder._core
        self._place = place
        self._outer: Scope | None = None
        self._token: Token[Scope | None] | None = None
        self.open = True
        """True until its `with` is left."""

    @property
    def session(self) -> str | None:
        """The id of its session."""
        return self._place.session

    @property
    def thread(self) -> str | None:
        """The name of its thread: not the one asked for, where that was busy with another turn."""
        return self._place.thread

    def _current_place(self) -> Place:
        return self._place

    def __enter__(self) -> Self:
        self.open = True
        self._outer = current.get()
        self._token = current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.open = False
        token, self._token = self._token, None
        if token is not None:
            with suppress(ValueError):  # left in another task than it was entered in
                current.reset(token)
        self._close(error)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    def _close(self, error: BaseException | None) -> None:
        """End the scope."""


class Turn(Scope):
    """All that one prompt sets off."""

    @property
    def id(self) -> str | None:
        """The turn's id."""
        return self._place.turn

    def step(self, *, model: str | None = None, step_id: str | None = None) -> Step:
        """Begin a request to a model; use the step in a `with`, or keep it."""
        return Step(self.recorder, self.recorder._step_place(self._place, step_id), model)

    def request(self, **body: Any) -> Step:
        """Record a request in a step of its own; see `Step.request`."""
        return self.step().request(**body)

    def _close(self, error: BaseException | None) -> None:
        self.recorder._end_turn(self)


class Step(Scope):
    """One request to a model."""

    def __init__(self, recorder: Host, place: Place, model: str | None) -> None:
        super().__init__(recorder, place)
        self.model = model
        self._dialect: Any = None

    @property
    def id(self) -> str | None:
        """The step's id."""
        return self._place.step

    def request(
        self,
        body: Any = None,
        *,
        dialect: str | None = None,
        url: str | None = None,
        model: str | None = None,
        native_id: str | None = None,
        **fields: Any,
    ) -> Step:
        """Record what goes to the model: its items, the assembly, and that it was injected.

        Args:
            body: The request's JSON, as an object or as text; or give its fields (`messages`, `tools`,
                `system`, `input`, `instructions` …) as keywords.
            dialect: `openai-chat`, `openai-responses`, `anthropic` or `gemini`; None: found from the body.
            url: The address it goes to, which shows the dialect as well.
            model: The model asked, if the body does not say.
            native_id: The provider's or the program's id of the request.
            fields: Fields of the body.
        """
        self._request(body, dialect, url, model, native_id, fields)
        return self

    @guarded
    def _request(
        self,
        body: Any,
        dialect: str | None,
        url: str | None,
        model: str | None,
        native_id: str | None,
        fields: Any,
    ) -> None:
        from ctxctl.record.bodies import SentRequest, body_of, dialect_of

        whole = body_of(fields, body)
        if whole is None:
            raise TypeError("a request's body is a JSON object")
        self._dialect = dialect_of(dialect, whole, url)
        named = model or self.model or whole.get("model")
        self.model = named if isinstance(named, str) else None
        place = self._place
        sent = SentRequest(
            whole, self._dialect, place.step or "", place.turn, self.model, self._core.clean_id(native_id)
        )
        self._place = self.recorder._record_request(sent, place)

    @guarded
    def response(self, response: Any) -> None:
        """Record the answer: its bill, and the items that it adds to the conversation."""
        from ctxctl.record.bodies import body_of

        whole = body_of({}, response)
        if whole is None:
            raise TypeError("a response's body is a JSON object")
        self.usage(whole, model=None if "model" in whole else self.model)
        self.recorder._record_answer(whole, self._place, self._dialect)

    def stream(self) -> Stream:
        """Collect a streamed answer; its pieces are joined, and recorded when the stream is closed."""
        from ctxctl.record.bodies import Stream

        return Stream(self._core, self.response, self._dialect)

    def watch(self, chunks: Iterable[Any] | AsyncIterable[Any]) -> Any:
        """Hand the same chunks on, for `for` or `async for`, and record the answer when they end."""
        from ctxctl.record.bodies import watched

        return watched(self.stream(), chunks)

    @guarded
    def failed(self, error: BaseException | str) -> None:
        """Record that there was no answer; of an exception only the type, as its text may hold secrets."""
        from ctxctl.record.values import shortened, type_name

        reason = shortened(error) if isinstance(error, str) else type_name(error)
        self._core.record(vocab.STEP_FAILED, {"error": reason}, self._place)

    def _close(self, error: BaseException | None) -> None:
        if error is not None and not isinstance(error, GeneratorExit):
            self.failed(error)
