"""Records what a program's HTTP clients send to models: all of them with one line, or one that is given."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ctxctl.hooks.transport import MODULES, in_front_of
from ctxctl.record.exchange import Exchanges
from ctxctl.record.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Sequence

_CHOOSES = "_transport_for_url"
"""How a client finds the transport for an address; the method of clients that is patched."""
_lock = threading.RLock()
_active: tuple[Exchanges, ...] = ()
_plain: dict[type[Any], Any] = {}
"""What the patched method was, by class."""
Client = TypeVar("Client")


class Capture:
    """A recording of all requests to models; ends with `close`, its `with`, or the program.

    Attributes:
        recorder: Where it goes; usable as ever (`with capture.recorder.turn(): …`).
    """

    def __init__(self, recorder: Recorder, *, own: bool) -> None:
        self.recorder = recorder
        self._own = own
        self._exchanges = Exchanges(recorder)
        _add(self._exchanges)
        atexit.register(self.close)

    def close(self) -> None:
        """Stop recording; a file that was opened for it is closed."""
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

    That is what the SDKs of OpenAI and Anthropic send with, and most of what is built on them.  Clients that
    were made before are recorded too, and those of a package that is imported later.

    Args:
        to: The trace, or a recorder.
        options: As for `Recorder`, where a trace is named.
    """
    own = not isinstance(to, Recorder)
    return Capture(Recorder(to, **options) if not isinstance(to, Recorder) else to, own=own)


def recorded(client: Client, to: str | os.PathLike[str] | Recorder, **options: Any) -> Client:
    """The same HTTP client (httpx or httpx2, synchronous or not), which records from now on.

    `OpenAI(http_client=recorded(DefaultHttpxClient(), "run.jsonl"))`

    Raises:
        TypeError: it is no such client.
    """
    inner = getattr(client, "_transport", None)
    recorder = to if isinstance(to, Recorder) else Recorder(to, **options)
    exchanges = (Exchanges(recorder),)
    front = in_front_of(inner, lambda: exchanges)
    if front is inner:
        raise TypeError("a client of httpx or httpx2 that is not recorded yet is needed")
    mounts = getattr(client, "_mounts", {})
    for pattern, transport in list(mounts.items()):
        if transport is not None:
            mounts[pattern] = in_front_of(transport, lambda: exchanges)
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
    """Patch a module's clients; one that is not as expected stays as it is."""
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
            return in_front_of(transport, _watchers) if _active else transport
        except Exception:
            return transport

    chosen._ctxctl = True  # type: ignore[attr-defined]
    return chosen


def _watchers() -> tuple[Exchanges, ...]:
    return _active


class _Finder(MetaPathFinder):
    """Patches what is imported later, as soon as it is."""

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
    """A loader that gives way to the real one when it has done its work."""

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
