"""A context manager that records every view it gives: Amplifier's `ContextManager`, by its methods alone."""

from __future__ import annotations

from functools import wraps
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from ctxctl.record.calls import guarded
from ctxctl.record.place import Place

if TYPE_CHECKING:
    from ctxctl.record.recorder import Recorder

_CLEARS = frozenset(("clear", "clear_messages", "reset"))


class RecordedManager:
    """Stands in for a context manager: the same attributes, the same answers, the same exceptions.

    Each view of `get_messages_for_request` is an assembly; that it was sent is not recorded, as only the
    loop knows.  Messages that were in the last view and are not in this one are a compaction, derived by
    difference, unless the history was cleared or set anew in between.
    """

    def __init__(self, recorder: Recorder, manager: Any, thread: str | None) -> None:
        self._core = recorder._core
        self._recorder = recorder
        self._manager = manager
        self._thread = thread
        self._cause: str | None = None

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._manager, name)
        if name == "get_messages_for_request" and callable(found):
            return self._viewing(found)
        if name in _CLEARS and callable(found):
            return self._noting(found, "cleared")
        if name == "set_messages" and callable(found):
            return self._noting(found, "branched")
        return found

    def _viewing(self, call: Any) -> Any:
        @wraps(call)
        def viewed(*args: Any, **kwargs: Any) -> Any:
            result = call(*args, **kwargs)
            if isawaitable(result):
                return later(result)
            self._view(result)
            return result

        async def later(result: Any) -> Any:
            view = await result
            self._view(view)
            return view

        return viewed

    def _noting(self, call: Any, cause: str) -> Any:
        @wraps(call)
        def noted(*args: Any, **kwargs: Any) -> Any:
            self._cause = cause
            return call(*args, **kwargs)

        return noted

    @guarded
    def _view(self, messages: Any) -> None:
        from ctxctl.record.bodies import Sent, body_of
        from ctxctl.record.views import Views

        if not isinstance(messages, list | tuple):
            return
        recorder = self._recorder
        where = self._where()
        if self._thread is not None and self._thread != where.thread:
            where = Place(where.session, self._thread, where.turn)
        place = where if where.step is not None else recorder._step_place(where, None)
        body = body_of({"messages": list(messages)}, None)
        if body is None:
            return
        cause, self._cause = self._cause, None
        sent = recorder._send(
            Sent(
                body, Views(), place.step or "", place.turn, injected=False, compacts=cause is None,
                cause=cause,
                marks={"layer": "view"}, acted=self._acted(), reader=self._reader(),
            ),
            place,
        )  # fmt: skip
        self._seen(sent)

    def _where(self) -> Place:
        """Where the next view belongs."""
        return self._recorder._where()

    def _acted(self) -> tuple[dict[str, Any], ...]:
        """What the manager told of its compactions since the last view, as fields of their records."""
        return ()

    def _reader(self) -> Any:
        """What reads the views' messages; None: nothing but their own spelling."""
        return None

    def _seen(self, place: Place) -> None:
        """A view was recorded there."""
