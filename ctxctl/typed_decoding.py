"""Decoders of typed values, each made once.

What `msgspec` works out of a type at its first use is not safe against a second thread that uses the type
for the first time meanwhile: the process crashes (0.22.0; two threads of the UI that asked for prices).  So
decoders are made one at a time.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, Final, TypeVar

import msgspec

_T = TypeVar("_T")
_LOCK: Final = Lock()
_JSON: Final[dict[Any, msgspec.json.Decoder[Any]]] = {}
_MSGPACK: Final[dict[Any, msgspec.msgpack.Decoder[Any]]] = {}


def from_json(data: bytes | str | msgspec.Raw, kind: type[_T]) -> _T:
    """A value of a type, from JSON; raises what `msgspec.json.decode` raises."""
    decoder = _JSON.get(kind)
    if decoder is None:
        with _LOCK:
            decoder = _JSON[kind] = msgspec.json.Decoder(kind)
    found: _T = decoder.decode(data)
    return found


def from_msgpack(data: bytes | memoryview, kind: type[_T]) -> _T:
    """A value of a type, from MessagePack; raises what `msgspec.msgpack.decode` raises."""
    decoder = _MSGPACK.get(kind)
    if decoder is None:
        with _LOCK:
            decoder = _MSGPACK[kind] = msgspec.msgpack.Decoder(kind)
    found: _T = decoder.decode(data)
    return found
