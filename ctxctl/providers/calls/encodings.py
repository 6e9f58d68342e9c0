"""Bodies of HTTP messages as captures keep them: JSON, text, bytes; compressed, base64, serialised twice."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Iterable
from typing import Any, Final

import orjson

from ctxctl.ingest.build import Json

MAX_BODY: Final = 64 << 20
"""Bytes that one compressed body may become; a larger one is cut there."""
_UNPACKED: Final = 128 << 20
"""Bytes that all compressed bodies of a capture may become together, whatever their size."""
_RATIO: Final = 64
"""Bytes more for each of theirs; bodies that say the same again and again reach 30."""
UNPACKED: Final = (
    f"compressed bodies are unpacked up to {MAX_BODY >> 20} MiB each, and all together up to"
    f" {_UNPACKED >> 20} MiB and {_RATIO} times their size: what is beyond that is not read"
)
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_JSON_STARTS: Final = ("{", "[")
_FRAME: Final = 16
"""Bytes of a frame of AWS's event streams beside its headers and its payload."""


class Unpacker:
    """Unpacks the compressed bodies of one capture, together to a size that is bound to theirs."""

    def __init__(self) -> None:
        self._left = _UNPACKED
        self.cut = False
        """Something was not unpacked whole."""

    def unpack(self, data: bytes, limit: int) -> bytes:
        """What is packed in some data, if anything is: at most `limit` bytes."""
        if not _is_packed(data):
            return data
        self._left += _RATIO * len(data)
        most = min(limit, self._left)
        made = _inflated(data, most) if most > 0 else b""
        self._left -= len(made)
        self.cut = self.cut or len(made) >= most
        return made


def decoded_body(raw: Any, *, encoded: bool = False, unpacker: Unpacker | None = None) -> Any:
    """A body as its sender meant it: a JSON object or array, else text; None where nothing can be read.

    Args:
        raw: What the capture holds: parsed JSON, text, or bytes.
        encoded: The text is base64 of the bytes.
        unpacker: Of the capture; a body by itself has its own.
    """
    if isinstance(raw, dict | list):
        return raw
    text = text_of(raw, encoded=encoded, unpacker=unpacker)
    return parsed(text) if text is not None else None


def text_of(
    raw: Any, *, encoded: bool = False, limit: int = MAX_BODY, unpacker: Unpacker | None = None
) -> str | None:
    """A body's text, decoded and decompressed to at most `limit` bytes; None for what is no text."""
    if isinstance(raw, str) and encoded:
        raw = unbase64(raw)
    if isinstance(raw, str) and raw.startswith("\x1f\x8b"):
        # Bytes that were written down as text, one character each.
        raw = raw.encode("latin-1", "replace")
    if isinstance(raw, bytes | bytearray):
        raw = _text((unpacker or Unpacker()).unpack(bytes(raw), limit))
    return raw if isinstance(raw, str) else None


def unbase64(text: str) -> bytes | None:
    """The bytes of base64 text; None if it is not base64."""
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return None


def _text(data: bytes) -> str | None:
    events = _framed_events(data)
    if events is not None:
        return events
    if data.startswith(_ZSTD):
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace") if b"\0" not in data[:1024] else None


def _framed_events(data: bytes) -> str | None:
    """The stream of events that Bedrock sends in frames of AWS, as text; None for other bytes.

    A frame is its length, that of its headers, a checksum of both (4 bytes each), headers, a payload and a
    checksum; of an event of the model the payload is JSON whose `bytes` are the event.  What is cut off at
    the end, or is no such event, is left out.
    """
    if len(data) < _FRAME or zlib.crc32(data[:8]) != int.from_bytes(data[8:12], "big"):
        return None
    events, at = [], 0
    while at + _FRAME <= len(data):
        size, head = (int.from_bytes(data[at + skip : at + skip + 4], "big") for skip in (0, 4))
        if size < _FRAME + head or at + size > len(data):
            break
        payload = parsed(data[at + 12 + head : at + size - 4].decode("utf-8", "replace"))
        sealed = payload.get("bytes") if isinstance(payload, dict) else None
        event = unbase64(sealed) if isinstance(sealed, str) else None
        if event is not None:
            events.append(f"data: {event.decode('utf-8', 'replace')}\n\n")
        at += size
    return "".join(events)


def _is_packed(data: bytes) -> bool:
    deflated = data[:1] == b"\x78" and data[1:2] in (b"\x01", b"\x5e", b"\x9c", b"\xda")
    return deflated or data.startswith((_GZIP, _ZSTD))


def _inflated(data: bytes, limit: int) -> bytes:
    if data.startswith(_GZIP):
        try:
            return zlib.decompressobj(wbits=31).decompress(data, limit)
        except zlib.error:
            return b""
    if data.startswith(_ZSTD):
        return _unzstd(data, limit)
    try:
        return zlib.decompressobj().decompress(data, limit)
    except zlib.error:
        return data


def _unzstd(data: bytes, limit: int) -> bytes:
    try:
        import zstandard
    except ImportError:
        return data
    try:
        return zstandard.ZstdDecompressor().stream_reader(data).read(limit)
    except zstandard.ZstdError:
        return b""


def parsed(text: str) -> Any:
    """The JSON object or array that a text is, serialised once or twice; else the text."""
    stripped = text.lstrip("\ufeff \t\r\n")
    if stripped.startswith(_JSON_STARTS):
        try:
            return orjson.loads(stripped)
        except orjson.JSONDecodeError:
            return text
    if stripped.startswith('"'):
        # Serialised twice: a JSON string that holds the JSON object.
        try:
            inner = orjson.loads(stripped)
        except orjson.JSONDecodeError:
            return text
        if isinstance(inner, str) and inner.lstrip().startswith(_JSON_STARTS):
            try:
                return orjson.loads(inner)
            except orjson.JSONDecodeError:
                return text
    return text


def header(headers: Any, name: str) -> str | None:
    """A header's value, whatever the case of its name and the shape of the capture's header list."""
    for key, value in _pairs(headers):
        if isinstance(key, str) and key.lower() == name:
            if isinstance(value, list) and value:
                value = value[0]
            if isinstance(value, str) and value:
                return value
    return None


def _pairs(headers: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(headers, dict):
        yield from headers.items()
    elif isinstance(headers, list):
        for entry in headers:
            if isinstance(entry, dict):
                yield entry.get("name"), entry.get("value")
            elif isinstance(entry, list) and len(entry) == 2:
                yield entry[0], entry[1]


def plain(value: Any, *, bytes_too: bool = False) -> Any:
    """A value of another notation (YAML) as JSON has it: string keys, no dates, 64-bit numbers.

    Bytes stay unless `bytes_too`, which makes text of them.  The value is no deeper than its reader allows.
    """
    if isinstance(value, dict):
        return {k if isinstance(k, str) else str(k): plain(v, bytes_too=bytes_too) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(entry, bytes_too=bytes_too) for entry in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace") if bytes_too else value
    if isinstance(value, int) and not isinstance(value, bool):
        return value if -(2**63) <= value < 2**64 else float(value) if abs(value) < 2**1023 else None
    return value if value is None or isinstance(value, str | float | bool) else str(value)


def as_events(chunks: list[Any]) -> str:
    """A streamed answer that a client collected as a JSON array, as the event stream that it was."""
    lines: list[str] = []
    for chunk in chunks:
        if isinstance(chunk, dict):
            kind = chunk.get("type")
            if isinstance(kind, str) and "\n" not in kind:
                lines.append(f"event: {kind}")
            lines.append(f"data: {_dumped(chunk)}\n")
    return "\n".join(lines) + "\n"


def _dumped(chunk: Json) -> str:
    """One line of JSON, also of what a line that was repaired holds: numbers of any size, any depth."""
    try:
        return orjson.dumps(chunk).decode()
    except (orjson.JSONEncodeError, RecursionError):
        return json.dumps(chunk, separators=(",", ":"), default=str)


def is_stream(text: str) -> bool:
    """Whether a text is an event stream (or JSON lines, as some servers stream)."""
    start = text.lstrip("\ufeff \t\r\n")[:32]
    return start.startswith(("event:", "data:", ":", "id:", "retry:"))


def objects_of_text(text: str) -> list[Json]:
    """The JSON objects of a text of JSON lines."""
    found: list[Json] = []
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if isinstance(value, dict):
                found.append(value)
    return found
