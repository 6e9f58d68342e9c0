"""Records what a program's HTTP clients send to models: all clients with one call, or a given one.

A wrapper of a client's transport passes the same bytes on, and a copy of them to the recorder.  It serves
httpx and httpx2, whose classes are alike and not the same.  The transport is called exactly once, its
exceptions are raised as they are, and a stream is handed on piece by piece as it comes.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeVar

from ctxctl.record.exchange import Exchanges
from ctxctl.record.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxctl.record.exchange import Exchange, Exchanges


MODULES: Final = ("httpx", "httpx2")
_inside: ContextVar[bool] = ContextVar("ctxctl_transport", default=False)
"""Whether a request is on its way: one that a transport hands to another transport is the same."""
Watchers = Callable[[], "tuple[Exchanges, ...]"]
"""Gives the recorders' exchanges that take the next request."""


class TransportClasses(NamedTuple):
    """The classes that wrap the transports of one module."""

    sync: type[Any]
    asynchronous: type[Any]
    both: type[Any]


class _WatchedTransport:
    """A transport that reports what goes through another one."""

    def __init__(self, inner: Any, watchers: Watchers) -> None:
        self._ctxctl_inner = inner
        self._ctxctl_watchers = watchers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctxctl_inner, name)


def watched_transport(transport: Any, watchers: Watchers) -> Any:
    """Return the transport, wrapped; itself if it is wrapped already or belongs to neither module."""
    if isinstance(transport, _WatchedTransport):
        return transport
    for module in _loaded():
        kinds = _kinds(module)
        sync = isinstance(transport, module.BaseTransport)
        if isinstance(transport, module.AsyncBaseTransport):
            return (kinds.both if sync else kinds.asynchronous)(transport, watchers)
        if sync:
            return kinds.sync(transport, watchers)
    return transport


def _loaded() -> list[ModuleType]:
    import sys

    found = (sys.modules.get(name) for name in MODULES)
    return [module for module in found if hasattr(module, "AsyncBaseTransport")]  # type: ignore[misc]


def _streams(module: ModuleType) -> tuple[type[_Tee], type[_Tee]]:
    """Make the stream classes of a module, as its clients check for them."""

    class SyncStream(_Tee, module.SyncByteStream):  # type: ignore[name-defined,misc]
        def __iter__(self) -> Iterator[bytes]:
            done = False
            try:
                for chunk in self._inner:
                    self._data(chunk)
                    yield chunk
                done = True
            except BaseException as error:
                self._end(end_reason(error))
                raise
            finally:
                if done:
                    self._end("complete")

        def close(self) -> None:
            try:
                self._inner.close()
            finally:
                self._end("client_gone")

    class AsyncStream(_Tee, module.AsyncByteStream):  # type: ignore[name-defined,misc]
        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for chunk in self._inner:
                    self._data(chunk)
                    yield chunk
            except BaseException as error:
                self._end(end_reason(error))
                raise
            self._end("complete")

        async def aclose(self) -> None:
            try:
                await self._inner.aclose()
            finally:
                self._end("client_gone")

    return SyncStream, AsyncStream


@cache
def _kinds(module: ModuleType) -> TransportClasses:
    """Make the transport classes of a module."""
    sync_stream, async_stream = _streams(module)

    class SyncTransport(_WatchedTransport, module.BaseTransport):  # type: ignore[name-defined,misc]
        def handle_request(self, request: Any) -> Any:
            exchanges = begin_exchanges(request, self._ctxctl_watchers)
            if not exchanges:
                return self._ctxctl_inner.handle_request(request)
            token = _inside.set(True)
            try:
                response = self._ctxctl_inner.handle_request(request)
            except BaseException as error:
                _end_all(exchanges, end_reason(error))
                raise
            finally:
                _inside.reset(token)
            return _teed(response, exchanges, sync_stream)

        def close(self) -> None:
            self._ctxctl_inner.close()

    class AsyncTransport(_WatchedTransport, module.AsyncBaseTransport):  # type: ignore[name-defined,misc]
        async def handle_async_request(self, request: Any) -> Any:
            exchanges = begin_exchanges(request, self._ctxctl_watchers)
            if not exchanges:
                return await self._ctxctl_inner.handle_async_request(request)
            token = _inside.set(True)
            try:
                response = await self._ctxctl_inner.handle_async_request(request)
            except BaseException as error:
                _end_all(exchanges, end_reason(error))
                raise
            finally:
                _inside.reset(token)
            return _teed(response, exchanges, async_stream)

        async def aclose(self) -> None:
            await self._ctxctl_inner.aclose()

    class BothTransport(SyncTransport, AsyncTransport):
        """For transports that are both, as mocks mostly are."""

    return TransportClasses(SyncTransport, AsyncTransport, BothTransport)


class _Tee:
    """A stream whose pieces are reported as they come."""

    def __init__(self, inner: Any, exchanges: list[Exchange]) -> None:
        self._inner = inner
        self._exchanges = exchanges

    def _data(self, chunk: bytes) -> None:
        for exchange in self._exchanges:
            exchange.data(chunk)

    def _end(self, how: str) -> None:
        _end_all(self._exchanges, how)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_inner":
            raise AttributeError(name)
        return getattr(self._inner, name)


def begin_exchanges(request: Any, watchers: Watchers) -> list[Exchange]:
    """Begin the exchanges of a request; never raises."""
    if _inside.get():
        return []
    made: list[Exchange] = []
    try:
        all_of = watchers()
        if not all_of or request.method != "POST":
            return made
        headers = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in request.headers.raw]
        # A streamed upload is no JSON of messages, and is not there yet.
        body = getattr(request, "_content", None)
        for exchanges in all_of:
            found = exchanges.begin(request.method, str(request.url), headers, body)
            if found is not None:
                made.append(found)
    except Exception:
        return made
    return made


def _teed(response: Any, exchanges: list[Exchange], stream: type[_Tee]) -> Any:
    try:
        headers = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in response.headers.raw]
        for exchange in exchanges:
            exchange.head(response.status_code, headers)
        held = getattr(response, "_content", None)
        if held is not None:
            # The body is there already, as from a mock transport: nobody will read its stream.
            for exchange in exchanges:
                exchange.data(held)
            _end_all(exchanges, "complete")
        else:
            response.stream = stream(response.stream, exchanges)
    except Exception:
        _end_all(exchanges, "malformed")
    return response


def _end_all(exchanges: list[Exchange], how: str) -> None:
    for exchange in exchanges:
        exchange.end(how)


def end_reason(error: BaseException) -> str:
    """Return how an exchange ended that this error ended."""
    if not isinstance(error, Exception):
        return "client_gone"  # cancelled, interrupted, or no longer read
    name = type(error).__name__
    if "Timeout" in name:
        return "timeout"
    return (
        "malformed" if "Decod" in name or ("Protocol" in name and "Remote" not in name) else "upstream_reset"
    )


_CHOOSES = "_transport_for_url"
"""The method by which a client finds the transport for an address; it is patched."""
_lock = threading.RLock()
_active: tuple[Exchanges, ...] = ()
_plain: dict[type[Any], Any] = {}
"""The original of the patched method, by class."""
Client = TypeVar("Client")


class Capture:
    """A recording of all requests to models; ends with `close`, its `with`, or the program.

    Attributes:
        recorder: The recorder; usable as ever (`with capture.recorder.turn(): …`).
    """

    def __init__(self, recorder: Recorder, *, own: bool) -> None:
        self.recorder = recorder
        self._own = own
        self._exchanges = Exchanges(recorder)
        _add(self._exchanges)
        atexit.register(self.close)

    def close(self) -> None:
        """Stop recording, and close the file if it was opened for this capture."""
        atexit.unregister(self.close)
        _remove(self._exchanges)
        self._exchanges.close()
        if self._own:
            self.recorder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def capture(to: str | os.PathLike[str] | Recorder, **options: Any) -> Capture:
    """Record every request to a model that this program sends with httpx or httpx2, from now on.

    The SDKs of OpenAI and Anthropic use these, and so does most of what is built on them.  Clients made
    before are recorded too, and those of a package that is imported later.

    Args:
        to: The trace, or a recorder.
        options: As for `Recorder`, where a trace is named.
    """
    own = not isinstance(to, Recorder)
    return Capture(Recorder(to, **options) if not isinstance(to, Recorder) else to, own=own)


def recorded(client: Client, to: str | os.PathLike[str] | Recorder, **options: Any) -> Client:
    """Make an HTTP client (httpx or httpx2, synchronous or not) record from now on, and return it.

    `OpenAI(http_client=recorded(DefaultHttpxClient(), "run.jsonl"))`

    Raises:
        TypeError: it is no such client.
    """
    inner = getattr(client, "_transport", None)
    recorder = to if isinstance(to, Recorder) else Recorder(to, **options)
    exchanges = (Exchanges(recorder),)
    front = watched_transport(inner, lambda: exchanges)
    if front is inner:
        raise TypeError("a client of httpx or httpx2 that is not recorded yet is needed")
    mounts = getattr(client, "_mounts", {})
    for pattern, transport in list(mounts.items()):
        if transport is not None:
            mounts[pattern] = watched_transport(transport, lambda: exchanges)
    client._transport = front  # type: ignore[attr-defined]
    return client


# -- all clients --------------------------------------------------------------------------------------------


def _add(exchanges: Exchanges) -> None:
    global _active
    with _lock:
        _active = (*_active, exchanges)
        for name in MODULES:
            if name in sys.modules:
                _patch(sys.modules[name])
        if _finder not in sys.meta_path:
            sys.meta_path.insert(0, _finder)


def _remove(exchanges: Exchanges) -> None:
    global _active
    with _lock:
        _active = tuple(one for one in _active if one is not exchanges)
        if _active:
            return
        if _finder in sys.meta_path:
            sys.meta_path.remove(_finder)
        for kind, plain in list(_plain.items()):
            if getattr(vars(kind).get(_CHOOSES), "_ctxctl", False):
                setattr(kind, _CHOOSES, plain)
                del _plain[kind]


def _patch(module: ModuleType) -> None:
    """Patch a module's client classes; one that is not as expected stays as it is."""
    for name in ("Client", "AsyncClient"):
        kind = getattr(module, name, None)
        plain = vars(kind).get(_CHOOSES) if isinstance(kind, type) else None
        if kind is None or plain is None or getattr(plain, "_ctxctl", False):
            continue
        _plain[kind] = plain
        setattr(kind, _CHOOSES, _choosing(plain))


def _choosing(plain: Any) -> Any:
    def chosen(self: Any, *args: Any, **kwargs: Any) -> Any:
        transport = plain(self, *args, **kwargs)
        try:
            return watched_transport(transport, _watchers) if _active else transport
        except Exception:
            return transport

    chosen._ctxctl = True  # type: ignore[attr-defined]
    return chosen


def _watchers() -> tuple[Exchanges, ...]:
    return _active


class _Finder(MetaPathFinder):
    """Patches a module that is imported later, as soon as it is imported."""

    def __init__(self) -> None:
        self._looking = threading.local()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in MODULES or getattr(self._looking, "now", False):
            return None
        self._looking.now = True
        try:
            from importlib.util import find_spec

            spec = find_spec(fullname)
        finally:
            self._looking.now = False
        if spec is None or spec.loader is None:
            return None
        spec.loader = _Loading(spec.loader)
        return spec


class _Loading(Loader):
    """A loader that patches what the real one loads, and then gives way to it."""

    def __init__(self, inner: Loader) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._inner
        module.__loader__ = self._inner
        self._inner.exec_module(module)
        with _lock:
            if _active:
                _patch(module)


_finder = _Finder()
