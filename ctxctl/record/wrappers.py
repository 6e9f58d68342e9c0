"""Wraps a program's own context managers and providers, and records what they give.

`RecordedManager` is for Amplifier's `ContextManager`, by its methods alone; `RecordedProvider` for sanqian's
three methods, in either spelling.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from ctxctl.record.calls import guarded
from ctxctl.record.place import Place

if TYPE_CHECKING:
    from ctxctl.record.calls import Calls
    from ctxctl.record.scopes import Host


def with_methods_of(base: type, other: type) -> type:
    """Make a subclass of `base` that has a method for each public one of `other`.

    Each asks `base.__getattr__`, which alone would not do: a check of an interface looks for methods in the
    class.
    """
    names = [name for name in dir(other) if not name.startswith("_") and not hasattr(base, name)]
    methods = {name: _forward(name) for name in names if callable(getattr(other, name, None))}
    return type(base.__name__, (base,), {"__module__": base.__module__, **methods})


def _forward(name: str) -> Callable[..., Any]:
    def forwarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.__getattr__(name)(*args, **kwargs)

    forwarded.__name__ = forwarded.__qualname__ = name
    return forwarded


_CLEARS = frozenset(("clear", "clear_messages", "reset"))


class RecordedManager:
    """Wraps a context manager: the same attributes, results and exceptions.

    Each view of `get_messages_for_request` is an assembly; whether it was sent is not recorded, as only the
    loop knows.  Messages that a view lacks and the one before had are recorded as a compaction, unless the
    history was cleared or set anew in between.
    """

    def __init__(self, recorder: Host, manager: Any, thread: str | None) -> None:
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
        from ctxctl.record.amplifier_views import ViewDialect
        from ctxctl.record.bodies import SentRequest, body_of

        if not isinstance(messages, list | tuple):
            return
        recorder = self._recorder
        where = self._current_place()
        if self._thread is not None and self._thread != where.thread:
            where = Place(where.session, self._thread, where.turn)
        place = where if where.step is not None else recorder._step_place(where, None)
        body = body_of({"messages": list(messages)}, None)
        if body is None:
            return
        cause, self._cause = self._cause, None
        sent = recorder._record_request(
            SentRequest(
                body, ViewDialect(), place.step or "", place.turn, injected=False, compacts=cause is None,
                cause=cause,
                marks={"layer": "view"}, acted=self._acted(), reader=self._reader(),
            ),
            place,
        )  # fmt: skip
        self._seen(sent)

    def _current_place(self) -> Place:
        """Return the place of the next view."""
        return self._recorder._current_place()

    def _acted(self) -> tuple[dict[str, Any], ...]:
        """Return the compactions reported since the last view, as fields of their records."""
        return ()

    def _reader(self) -> Any:
        """Return the reader of the views' messages; None: they are cut as they are spelled."""
        return None

    def _seen(self, place: Place) -> None:
        """Note the place of a view that was recorded."""


_CURRENT = ("getCurrent", "get_current")
_LIST = ("getList", "get_list")
_BY_ID = ("getById", "get_by_id")
_ITEM_FIELDS = ("summary", "type", "link")


class RecordedProvider:
    """Wraps a provider: the same attributes, results and exceptions.

    An item is named `APP:PROVIDER`, or `APP:PROVIDER/ID` where the data has an id, so that two pieces of one
    provider are not taken for versions of one.  An item without a version has its content's digest as one.
    """

    def __init__(self, recorder: Calls, provider: Any, app: str | None) -> None:
        self._core = recorder._core
        self._recorder = recorder
        self._provider = provider
        self._app = app
        self._lacking: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._provider, name)
        if not callable(found):
            return found
        if name in _CURRENT:
            return _after(found, lambda given, data: self._given(None, data))
        if name in _BY_ID:
            return _after(found, lambda given, data: self._given(given, data))
        if name in _LIST:
            return _after(found, lambda given, data: self._listed(data))
        return found

    @property
    def _name(self) -> str:
        found = _field(self._provider, "id")
        name = str(found) if isinstance(found, str | int) else type(self._provider).__name__
        return f"{self._app}:{name}" if self._app and ":" not in name else name

    @guarded
    def _given(self, asked: Any, data: Any) -> None:
        recorder, name = self._recorder, self._name
        own = _field(data, "id")
        if own is None and isinstance(asked, str | int):
            own = asked
        item = f"{name}/{own}" if own is not None else name
        content = _field(data, "content")
        if data is None or content is None:
            # Attached and empty is a fact of its own: the model gets nothing, and nothing was removed.
            self._lacking.add(item)
            recorder.missing(f"{item} gave nothing", missing_id=f"missing-{item}", needed_for=name)
            return
        if item in self._lacking:
            self._lacking.discard(item)
            recorder.missing(f"{item} gave nothing", missing_id=f"missing-{item}", status="resolved")
        version, title = _field(data, "version"), _field(data, "title")
        native = {field: value for field in _ITEM_FIELDS if (value := _field(data, field)) is not None}
        meta: dict[str, Any] = {"version_source": "supplied" if version else "computed"}
        if native:
            meta["native"] = native
        recorder.item(
            item, content, kind="external_resource", title=title if isinstance(title, str) else None,
            version=str(version) if isinstance(version, str | int) and version != "" else None, source=name,
            metadata=meta,
        )  # fmt: skip

    @guarded
    def _listed(self, data: Any) -> None:
        rows = _field(data, "items")
        if rows is None:
            rows = data
        if not isinstance(rows, list | tuple):
            return
        name = self._name
        ids = [_field(row, "id") for row in rows]
        more = _field(data, "hasMore")
        self._recorder.surface(
            f"list-{name}", kind="provider_list", sources=[name],
            items=[f"{name}/{one}" for one in ids if isinstance(one, str | int)],
            metadata={"count": len(rows), "has_more": more if isinstance(more, bool) else None},
        )  # fmt: skip


def _after(call: Callable[..., Any], then: Callable[[Any, Any], None]) -> Callable[..., Any]:
    """Wrap a call so that `then` gets its first argument and its result."""

    def called(*args: Any, **kwargs: Any) -> Any:
        asked = args[0] if args else kwargs.get("id")
        result = call(*args, **kwargs)
        if isawaitable(result):
            return _awaited(result, then, asked)
        then(asked, result)
        return result

    return called


async def _awaited(result: Awaitable[Any], then: Callable[[Any, Any], None], asked: Any) -> Any:
    data = await result
    then(asked, data)
    return data


def _field(data: Any, name: str) -> Any:
    """Return a field of a table or an attribute of an object; None where there is none."""
    if isinstance(data, dict):
        return data.get(name)
    return None if data is None or isinstance(data, list | tuple | str) else getattr(data, name, None)
