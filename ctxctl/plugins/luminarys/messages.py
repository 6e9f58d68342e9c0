"""The messages of Luminarys' skill interface: msgpack maps, or the same maps written as JSON."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

from ctxctl.errors import UnavailableError
from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import string
from ctxctl.trace.source import Source

_CHUNK: Final = 1 << 20
_MAX_BUFFER: Final = 64 << 20
"""Bytes of one message; more is refused before it is unpacked."""
_MAX_BYTES: Final = 32 << 20
_MAX_VALUES: Final = 1 << 17
_MAX_DEPTH: Final = 64
_REMEMBERED: Final = 1 << 12
"""Bytes of the largest value that is remembered decoded."""
_LIMITS: Final[Json] = {
    "raw": False,
    "strict_map_key": False,
    "unicode_errors": "replace",
    "max_str_len": _MAX_BYTES,
    "max_bin_len": _MAX_BYTES,
    "max_ext_len": _MAX_BYTES,
    "max_array_len": _MAX_VALUES,
    "max_map_len": _MAX_VALUES,
}
_DEEPER: Final = "…"


class Blob(NamedTuple):
    """Bytes of a message, and what they hold."""

    data: bytes
    value: Any
    """Decoded msgpack; None if they are something else."""
    known: bool
    """`value` says what they hold."""


class Request(NamedTuple):
    """An `InvokeRequest`."""

    native: Json
    """Its other fields: `request_id`, `trace_id`, `session_id`, `llm_session_id`, `skill_id`, `method` …"""
    state: Blob | None
    payload: Blob | None

    def text(self, name: str) -> str | None:
        """One of the ids."""
        return string(self.native.get(name))


class Response(NamedTuple):
    """An `InvokeResponse`."""

    state: Blob | None
    payload: Blob | None
    context: str | None
    """`llm_context`: what the skill tells the model beside its result."""
    error: str | None
    commands: list[str]


def unpacked_messages(source: Source, damaged: Callable[[int, str], None]) -> Iterator[tuple[int, Any]]:
    """The messages of a file, one behind the other, each with its offset.

    Ends at the first that cannot be read, and tells `damaged` its offset and why.  Raises UnavailableError
    (`needs-msgpack`).
    """
    unpacker = _library().Unpacker(max_buffer_size=_MAX_BUFFER, **_LIMITS)
    at = start = 0
    try:
        while chunk := source.read(at, _CHUNK):
            at += len(chunk)
            unpacker.feed(chunk)
            for message in unpacker:
                yield start, plain_value(message)
                start = unpacker.tell()
    except Exception as error:
        # The library has errors of its own, which derive from nothing more special.
        damaged(start, str(error) or type(error).__name__)
        return
    if start < at:
        damaged(start, "the last message is cut off")


def _library() -> Any:
    try:
        import msgpack
    except ImportError:
        raise UnavailableError(
            "needs-msgpack", "this capture is msgpack", hint="pip install 'ctxctl[msgpack]'"
        ) from None
    return msgpack


def plain_value(value: Any, depth: int = 0) -> Any:
    """A decoded value with text keys only, no deeper than any reader takes; bytes stay bytes."""
    if isinstance(value, str | bytes | int):
        return value
    if isinstance(value, dict):
        if depth >= _MAX_DEPTH:
            return _DEEPER
        return {str(key): plain_value(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        if depth >= _MAX_DEPTH:
            return _DEEPER
        return [plain_value(inner, depth + 1) for inner in value]
    if isinstance(value, str | bytes | bool | int | float) or value is None:
        return value
    return str(value)


def json_value(value: Any) -> Any:
    """A decoded value as JSON can hold it: bytes as `{"b64": …}`."""
    if isinstance(value, bytes):
        return {"b64": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {key: json_value(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [json_value(inner) for inner in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    return value


def is_request(value: Any) -> bool:
    """Whether a map is an `InvokeRequest`."""
    return isinstance(value, dict) and isinstance(value.get("method"), str) and "skill_id" in value


def is_response(value: Any) -> bool:
    """Whether a map is an `InvokeResponse`."""
    if not isinstance(value, dict) or "method" in value or "methods" in value:
        return False
    return "version" in value and any(
        key in value for key in ("state", "payload", "llm_context", "error", "commands")
    )


def request(value: Json) -> Request:
    """The request of a map."""
    native = {key: json_value(inner) for key, inner in value.items() if key not in ("state", "payload")}
    return Request(native, blob(value.get("state")), blob(value.get("payload")))


def response(value: Json) -> Response:
    """The response of a map."""
    commands = value.get("commands")
    types = [c.get("type") for c in commands if isinstance(c, dict)] if isinstance(commands, list) else []
    return Response(
        blob(value.get("state")),
        blob(value.get("payload")),
        string(value.get("llm_context")),
        string(value.get("error")),
        [name for name in types if isinstance(name, str)],
    )


def blob(value: Any) -> Blob | None:
    """Bytes, `{"b64": …}`, or a value that a log has decoded already; None where there is nothing."""
    if isinstance(value, dict) and isinstance(value.get("b64"), str) and len(value) == 1:
        try:
            value = base64.b64decode(value["b64"], validate=True)
        except (binascii.Error, ValueError):
            return None
    if value is None or value in (b"", ""):
        return None
    if not isinstance(value, bytes):
        return Blob(b"", value, known=True)
    found = _decoded(value)
    return Blob(value, *found)


def _decoded(data: bytes) -> tuple[Any, bool]:
    """The one msgpack value that bytes are, and whether they are one."""
    return _remembered(data) if len(data) <= _REMEMBERED else _unpacked(data)


@lru_cache(maxsize=256)
def _remembered(data: bytes) -> tuple[Any, bool]:
    """As `_unpacked`; a state comes back with the next call as it went."""
    return _unpacked(data)


def _unpacked(data: bytes) -> tuple[Any, bool]:
    library = _library()
    try:
        return plain_value(library.unpackb(data, **_LIMITS)), True
    except Exception:
        # Whatever a skill put there: it is shown as bytes then.
        return None, False
