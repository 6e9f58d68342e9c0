"""Decoders of typed values, each made once.

What `msgspec` works out of a type at its first use is not safe against a second thread that uses the type
for the first time meanwhile: the process crashes (0.22.0; two threads of the UI that asked for prices).  So
decoders are made one at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, Final, TypeVar

import msgspec

_T = TypeVar("_T")
_Decoder = TypeVar("_Decoder", bound=msgspec.json.Decoder[Any] | msgspec.msgpack.Decoder[Any])
_LOCK: Final = Lock()
_JSON: Final[dict[Any, msgspec.json.Decoder[Any]]] = {}
_MSGPACK: Final[dict[Any, msgspec.msgpack.Decoder[Any]]] = {}


def from_json(data: bytes | str | msgspec.Raw, kind: type[_T]) -> _T:
    """A value of a type, from JSON; raises what `msgspec.json.decode` raises."""
    found: _T = _decoder(_JSON, msgspec.json.Decoder, kind).decode(data)
    return found


def from_msgpack(data: bytes | memoryview, kind: type[_T]) -> _T:
    """A value of a type, from MessagePack; raises what `msgspec.msgpack.decode` raises."""
    found: _T = _decoder(_MSGPACK, msgspec.msgpack.Decoder, kind).decode(data)
    return found


def _decoder(made: dict[Any, _Decoder], make: Callable[[Any], _Decoder], kind: Any) -> _Decoder:
    decoder = made.get(kind)
    if decoder is None:
        with _LOCK:
            decoder = made[kind] = make(kind)
    return decoder
