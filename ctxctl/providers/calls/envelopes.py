"""Bodies in envelopes: fields in fields, segments, base64, JSON in strings; one is taken off at a time."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

from ctxctl.ingest.build import Json
from ctxctl.providers.calls import encodings

FIELDS: Final = (
    "body", "json", "payload", "data", "parsed_body", "content", "text", "body_raw", "raw_body",
    "body_segments", "bodySegments", "byte_segments", "message", "string", "base64_string", "base64", "raw",
    "value",
)  # fmt: skip
"""Fields that an envelope may hold a body in, the likelier ones first."""
MAX_DEPTH: Final = 6
"""Envelopes in each other that are taken off."""
MAX_LOOKS: Final = 64
"""Values looked at for one body."""
MAX_OPENED: Final = 64 << 20
"""Characters of text, decompressed, that are read for one body, all envelopes together."""
_CODINGS: Final = ("encoding", "content_encoding", "contentEncoding", "transfer_encoding", "type")
_FLAGS: Final = ("base64", "is_base64", "isBase64", "isBase64Encoded", "is_base64_encoded", "base64_encoded")
_BASE64: Final = re.compile(r"(?:eyJ|ewo|ew0|W3s|Wwo|H4sI|KLUv|ZXZlbnQ6|ZGF0YTo)[A-Za-z0-9+/_=\s-]*\Z")
"""Base64 of `{"`, `[{`, gzip, zstd, or an event stream."""


def enveloped_body(
    value: Any,
    wanted: Callable[[Any], bool],
    *,
    encoded: bool = False,
    unpacker: encodings.Unpacker | None = None,
) -> Any:
    """The first body that `wanted` says yes to, in a value or the envelopes around it; None if there is none.

    Args:
        value: What a capture holds: JSON, text, bytes, or an envelope with any of these.
        wanted: Says whether a value is such a body.
        encoded: The value's text is base64.
        unpacker: Of the capture.
    """
    waiting: deque[tuple[Any, bool, int]] = deque([(value, encoded, MAX_DEPTH)])
    left = MAX_OPENED
    for _ in range(MAX_LOOKS):
        if not waiting:
            return None
        found, coded, depth = waiting.popleft()
        if not isinstance(found, dict | list):
            text = encodings.text_of(found, encoded=coded, limit=left, unpacker=unpacker)
            if text is None or len(text) >= left:
                continue
            left -= len(text)
            found = encodings.parsed(text)
        if wanted(found):
            return found
        if depth > 0:
            waiting.extend((inner, inside, depth - 1) for inner, inside in _inside(found))
    return None


def _inside(value: Any) -> Iterator[tuple[Any, bool]]:
    """What is in one envelope, and whether it is said to be base64."""
    if isinstance(value, str):
        if _BASE64.match(value):
            yield value, True
        return
    if isinstance(value, list):
        if len(value) == 1:
            yield value[0], False
        elif value and all(isinstance(piece, str) for piece in value):
            yield "".join(value), False
        return
    if not isinstance(value, dict):
        return
    coded = _says_base64(value)
    for name in FIELDS:
        inner = value.get(name)
        if isinstance(inner, dict | list | str | bytes) and inner:
            yield inner, coded or name.startswith("base64")


def _says_base64(envelope: Json) -> bool:
    told = any(str(envelope.get(name)).lower() in ("base64", "binary") for name in _CODINGS)
    return told or any(envelope.get(name) is True for name in _FLAGS)
