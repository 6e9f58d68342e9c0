"""What stands in front of an HTTP client's transport: the same bytes, and a copy of them for the recorder.

For httpx and httpx2, whose classes are alike and not the same.  A transport is asked exactly once, what it
raises goes on as it is, and a stream is handed on piece by piece as it comes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from ctxctl.record.exchange import Exchange, Exchanges

MODULES: Final = ("httpx", "httpx2")
_inside: ContextVar[bool] = ContextVar("ctxctl_transport", default=False)
"""A request is on its way here: what a transport asks another one for is the same request."""
Watchers = Callable[[], "tuple[Exchanges, ...]"]
"""Who is to be told of the next request."""


class Kinds(NamedTuple):
    """The classes that stand in front, for one module."""

    sync: type[Any]
    asynchronous: type[Any]
    both: type[Any]


class _Front:
    """A transport that tells of what goes through another one."""

    def __init__(self, inner: Any, watchers: Watchers) -> None:
        self._ctxctl_inner = inner
        self._ctxctl_watchers = watchers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctxctl_inner, name)


def in_front_of(transport: Any, watchers: Watchers) -> Any:
    """The transport with a front, or itself if it is of none of the modules or has one."""
    if isinstance(transport, _Front):
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
    """Streams of this module, as its clients insist on."""

    class SyncStream(_Tee, module.SyncByteStream):  # type: ignore[name-defined,misc]
        def __iter__(self) -> Iterator[bytes]:
            done = False
            try:
                for chunk in self._inner:
                    self._data(chunk)
                    yield chunk
                done = True
            except BaseException as error:
                self._end(how(error))
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
                self._end(how(error))
                raise
            self._end("complete")

        async def aclose(self) -> None:
            try:
                await self._inner.aclose()
            finally:
                self._end("client_gone")

    return SyncStream, AsyncStream


@cache
def _kinds(module: ModuleType) -> Kinds:
    """Transports of this module."""
    sync_stream, async_stream = _streams(module)

    class SyncTransport(_Front, module.BaseTransport):  # type: ignore[name-defined,misc]
        def handle_request(self, request: Any) -> Any:
            exchanges = begun(request, self._ctxctl_watchers)
            if not exchanges:
                return self._ctxctl_inner.handle_request(request)
            token = _inside.set(True)
            try:
                response = self._ctxctl_inner.handle_request(request)
            except BaseException as error:
                _end_all(exchanges, how(error))
                raise
            finally:
                _inside.reset(token)
            return _teed(response, exchanges, sync_stream)

        def close(self) -> None:
            self._ctxctl_inner.close()

    class AsyncTransport(_Front, module.AsyncBaseTransport):  # type: ignore[name-defined,misc]
        async def handle_async_request(self, request: Any) -> Any:
            exchanges = begun(request, self._ctxctl_watchers)
            if not exchanges:
                return await self._ctxctl_inner.handle_async_request(request)
            token = _inside.set(True)
            try:
                response = await self._ctxctl_inner.handle_async_request(request)
            except BaseException as error:
                _end_all(exchanges, how(error))
                raise
            finally:
                _inside.reset(token)
            return _teed(response, exchanges, async_stream)

        async def aclose(self) -> None:
            await self._ctxctl_inner.aclose()

    class BothTransport(SyncTransport, AsyncTransport):
        """Of a mock, mostly."""

    return Kinds(SyncTransport, AsyncTransport, BothTransport)


class _Tee:
    """A stream whose pieces are told as they come."""

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


def begun(request: Any, watchers: Watchers) -> list[Exchange]:
    """The exchanges that a request begins; never raises."""
    if _inside.get():
        return []
    made: list[Exchange] = []
    try:
        all_of = watchers()
        if not all_of or request.method != "POST":
            return made
        headers = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in request.headers.raw]
        # A body that is streamed up is no JSON of a few messages, and is not there yet.
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
            # It is there already (a transport that makes its answers up): nobody will read its stream.
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


def how(error: BaseException) -> str:
    """How an exchange ended that an error ended."""
    if not isinstance(error, Exception):
        return "client_gone"  # cancelled, interrupted, or no longer read
    name = type(error).__name__
    if "Timeout" in name:
        return "timeout"
    return (
        "malformed" if "Decod" in name or ("Protocol" in name and "Remote" not in name) else "upstream_reset"
    )
