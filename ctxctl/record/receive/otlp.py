"""OTLP over HTTP: export requests in, export responses out, in either encoding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import orjson

from ctxctl.errors import UnavailableError
from ctxctl.providers.spans.span import Span, spans
from ctxctl.record.receive.replies import JSON, Reply
from ctxctl.trace.depth import deeper_than

if TYPE_CHECKING:
    from ctxctl.record.receive.spans import Spans

Json = dict[str, Any]
PROTOBUF: Final = "application/x-protobuf"
MEDIA: Final = frozenset((PROTOBUF, JSON))
_DEPTH: Final = 100
"""Levels of a document; protobuf's own limit is the same."""
_INVALID: Final = 3
_UNAVAILABLE: Final = 14
_LISTS: Final = {
    "traces": (("resourceSpans", "resource_spans"), ("scopeSpans", "scope_spans"), ("spans",)),
    "logs": (("resourceLogs", "resource_logs"), ("scopeLogs", "scope_logs"), ("logRecords", "log_records")),
}
_REJECTED: Final = {"traces": "rejectedSpans", "logs": "rejectedLogRecords"}


class BadExportError(ValueError):
    """It is no export request."""


def available() -> None:
    """Raise UnavailableError if protobuf cannot be read: most exporters speak nothing else."""
    try:
        import opentelemetry.proto.collector.trace.v1.trace_service_pb2  # noqa: F401
    except ImportError:
        raise UnavailableError(
            "needs-otlp", "OTLP's protobuf needs opentelemetry-proto", hint="pip install 'ctxctl[serve]'"
        ) from None


class Exports:
    """The endpoint of one signal, `traces` or `logs`; hands spans and log records on."""

    def __init__(self, signal: str, held: Spans) -> None:
        self._signal = signal
        self._held = held

    def take(self, body: bytes, media: str) -> Reply:
        """200, which says how many records could not be read if there are any; 400: the request is none."""
        try:
            value = _decoded(self._signal, body) if media == PROTOBUF else _parsed(body)
            taken, rejected = _records(self._signal, value)
        except BadExportError as error:
            return refuse(400, str(error), media)
        # What else stands in an export takes memory too; a record's share of it is near enough.
        size = len(body) // max(1, len(taken))
        for span in taken:
            self._held.add(span, size)
        return _accepted(self._signal, rejected, media)


def ignored(body: bytes, media: str) -> Reply:
    """Accept what is not read (metrics)."""
    return _accepted("metrics", 0, media)


def refuse(status: int, why: str, media: str) -> Reply:
    """An answer with a `google.rpc.Status`, as OTLP wants it."""
    code = _UNAVAILABLE if status >= 500 else _INVALID
    if media != PROTOBUF:
        return Reply(status, orjson.dumps({"code": code, "message": why}), JSON)
    text = why.encode()[:8000]
    return Reply(status, b"\x08" + bytes((code,)) + b"\x12" + _varint(len(text)) + text, PROTOBUF)


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def _accepted(signal: str, rejected: int, media: str) -> Reply:
    why = "not read: no attributes, or not a record at all"
    if media != PROTOBUF:
        made = {"partialSuccess": {_REJECTED[signal]: str(rejected), "errorMessage": why}} if rejected else {}
        return Reply(200, orjson.dumps(made), JSON)
    if not rejected:
        return Reply(200, b"", PROTOBUF)
    text = why.encode()
    inner = b"\x08" + _varint(rejected) + b"\x12" + _varint(len(text)) + text
    return Reply(200, b"\x0a" + _varint(len(inner)) + inner, PROTOBUF)


def _parsed(body: bytes) -> Any:
    if deeper_than(_DEPTH, body):
        raise BadExportError(f"nested more than {_DEPTH} deep")
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadExportError(f"not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None


def _decoded(signal: str, body: bytes) -> Json:
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    from ctxctl.providers.spans import protobuf

    request: Any = ExportTraceServiceRequest() if signal == "traces" else ExportLogsServiceRequest()
    try:
        request.ParseFromString(body)
    except DecodeError:
        raise BadExportError("not an export request in protobuf") from None
    return protobuf.traces(request) if signal == "traces" else protobuf.logs(request)


def _records(signal: str, value: Any) -> tuple[list[Span], int]:
    """What can be read of an export, and the number of what cannot."""
    outer = _LISTS[signal][0]
    if not isinstance(value, dict) or not all(isinstance(value.get(n, []), list) for n in outer):
        raise BadExportError(f"not an export request: an object with {outer[0]} was expected")
    if value and not any(name in value for name in outer):
        raise BadExportError(f"not an export request: no {outer[0]} in it")
    found: list[Any] = [value]
    for names in _LISTS[signal]:
        found = list(_inside(found, names))
    taken: list[Span] = []
    for record in found:
        # OTLP's JSON writes a field that is empty by leaving it out.
        if isinstance(record, dict) and isinstance(record.get("attributes", []), list | dict):
            known = {"attributes": [], **record}
            made = list(spans({outer[0]: [{_LISTS[signal][1][0]: [{_LISTS[signal][2][0]: [known]}]}]}))
            taken += made
    return taken, len(found) - len(taken)


def _inside(values: list[Any], names: tuple[str, ...]) -> Iterator[Any]:
    for value in values:
        for name in names if isinstance(value, dict) else ():
            if isinstance(value.get(name), list):
                yield from value[name]
