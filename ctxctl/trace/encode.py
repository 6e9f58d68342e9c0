"""Encode lines of a trace, from events as dictionaries and from events whose parts are JSON already.

Both give the same line, with `data` at its end, by which a reader recognises a repeated record. Both write a
content of `REF_FROM` bytes or more once, and refer to it until `TELL_AGAIN` bytes have followed. This module
imports little, because recorded programs load it.
"""

from __future__ import annotations

import math
from typing import Any, Final

import orjson

from ctxctl.trace.depth import DEPTH_LIMIT

TELL_AGAIN: Final = 64 << 20
"""Bytes after which a content is written again, so that a lost line affects a bounded part."""
REF_FROM: Final = 64
"""Shortest content, in bytes of JSON, that becomes a reference."""
FIRST: Final = ("schema_version", "event_id", "event_type", "source", "time")
"""The first fields of a line, in this order."""


class InvalidEventError(Exception):
    """An event that has no valid line."""


def line_of(event: dict[str, Any]) -> tuple[bytes, dict[str, Any]]:
    """Return the line of an event, and the event as written: without lone surrogates and NaN.

    Raises InvalidEventError for what JSON cannot hold, or not at that depth.
    """
    try:
        return orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE), event
    except (orjson.JSONEncodeError, RecursionError):
        import json

        event = _plain(event, 0)
        try:
            line = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
        except (ValueError, RecursionError) as error:
            raise InvalidEventError(str(error)) from None
        return line + b"\n", event


def head_of(version: str, writer: str) -> bytes:
    """Return the common beginning of all lines of one writer, up to the event's number."""
    return b'{"schema_version":"%b","event_id":"%b-' % (version.encode(), writer.encode())


def line_of_parts(
    head: bytes,
    number: int,
    event_type: str,
    source: bytes,
    time: bytes,
    place: bytes,
    marks: bytes,
    metadata: bytes,
    data: tuple[bytes, ...],
) -> bytes:
    """Return the line of an event whose parts are JSON already; nothing is looked at or copied twice.

    Args:
        head: As `head_of` gives it.
        number: Of the event, among its writer's.
        event_type: A name without quotes or backslashes.
        source: A JSON text.
        time: RFC 3339, without quotes.
        place: Fields with a comma in front of each.
        marks: The same, for `metadata.ctxctl`.
        metadata: The same, for `metadata`.
        data: Pieces of the record: a body alone, or as `with_content` or `with_reference` give them.
    """
    seq = b"%d" % number
    return b"".join((
        head, seq, b'","event_type":"', event_type.encode(), b'","source":', source, b',"time":"', time, b'"',
        place, b',"metadata":{"ctxctl":{"seq":', seq, marks, b"}", metadata, b'},"data":', *data, b"}\n",
    ))  # fmt: skip


def with_content(body: bytes, raw: bytes) -> tuple[bytes, ...]:
    """Return a record with its content, which is JSON; `body` is an object that is not empty."""
    return body[:-1], b',"content_mode":"inline","content":', raw, b"}"


def with_reference(body: bytes, digest: str) -> tuple[bytes, ...]:
    """Return a record with a reference to its content, which an earlier line holds."""
    return body[:-1], b',"content_mode":"ref","content_ref":"sha256:%b"}' % digest.encode()


def without_surrogates(text: str) -> str:
    """`text` with lone surrogates replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _plain(value: Any, depth: int) -> Any:
    """Return a value for JSON, with surrogates and NaN replaced. Other objects are refused."""
    if isinstance(value, str):
        return without_surrogates(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth > DEPTH_LIMIT:
        raise InvalidEventError(f"nested more than {DEPTH_LIMIT} deep")
    if isinstance(value, dict):
        return {without_surrogates(str(key)): _plain(child, depth + 1) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(child, depth + 1) for child in value]
    raise InvalidEventError(f"a value of type {type(value).__name__} is not JSON")
