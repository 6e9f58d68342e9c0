"""OTLP's protobuf: export requests as collectors and SDKs send them, as the JSON that they stand for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from ctxctl.errors import UnavailableError
from ctxctl.ingest.build import Json
from ctxctl.trace.source import Source

if TYPE_CHECKING:
    from ctxctl.ingest.run import Run

MAX_EXPORT: Final = 256 << 20
"""Bytes of the largest file that is read; an export request has to be in memory whole."""
_IDS: Final = re.compile(rb"\x0a\x10.{16}\x12\x08.{8}", re.DOTALL)
_MARKS: Final = (b"gen_ai.", b"openinference.", b"llm.", b"ai.prompt", b"traceloop.")
_FIELDS: Final = (0x0A, 0x12, 0x1A)
"""Of `ResourceSpans`: resource, scope spans, schema's address."""
_DEPTH: Final = 60


def is_export(head: bytes) -> bool:
    """Whether the first bytes are an export request with spans of model calls."""
    if head[:1] != b"\x0a" or not any(mark in head for mark in _MARKS) or _IDS.search(head) is None:
        return False
    size, at = _varint(head, 1)
    if size is None or size < 2:
        return False
    end = at + size
    if end < len(head) and head[end] != 0x0A:
        return False
    while at < min(end, len(head)):
        if head[at] not in _FIELDS:
            return False
        inner, at = _varint(head, at + 1)
        if inner is None:
            return at >= len(head)
        at += inner
    return at == end or end > len(head)


def _varint(data: bytes, at: int) -> tuple[int | None, int]:
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    return None, at


def exports(source: Source, run: Run) -> Iterator[Json]:
    """The export requests of a file as JSON; problems: `document-too-large`, `not-a-record`.

    Raises UnavailableError where `opentelemetry-proto` (the extra `otlp`) is lacking.
    """
    try:
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    except ImportError:
        raise UnavailableError(
            "needs-otlp", "OTLP's protobuf needs opentelemetry-proto", hint="pip install 'ctxctl[otlp]'"
        ) from None
    data = source.read(0, MAX_EXPORT + 1)
    if len(data) > MAX_EXPORT:
        run.problem("document-too-large", f"one export of more than {MAX_EXPORT >> 20} MiB; not read")
        return
    request = ExportTraceServiceRequest()
    try:
        request.ParseFromString(data)
    except DecodeError:
        run.problem("not-a-record", "OTLP's protobuf is damaged; read as far as it goes")
        for piece in _pieces(data):
            one = ExportTraceServiceRequest()
            try:
                one.ParseFromString(piece)
            except DecodeError:
                continue
            yield traces(one)
        return
    yield traces(request)


def _pieces(data: bytes) -> Iterator[bytes]:
    """The whole resources of an export that is damaged further behind."""
    at = 0
    while at < len(data) and data[at] == 0x0A:
        size, start = _varint(data, at + 1)
        if size is None or start + size > len(data):
            return
        yield data[at : start + size]
        at = start + size


def traces(request: Any) -> Json:
    """An `ExportTraceServiceRequest` as JSON."""
    return {"resourceSpans": [_resource(resource) for resource in request.resource_spans]}


def logs(request: Any) -> Json:
    """An `ExportLogsServiceRequest` as JSON."""
    return {
        "resourceLogs": [
            {
                "scopeLogs": [
                    {"logRecords": [_log(record) for record in scope.log_records]}
                    for scope in resource.scope_logs
                ]
            }
            for resource in request.resource_logs
        ]
    }


def _log(record: Any) -> Json:
    made = {
        "traceId": record.trace_id.hex(),
        "spanId": record.span_id.hex(),
        "timeUnixNano": record.time_unix_nano or record.observed_time_unix_nano,
        "eventName": record.event_name,
        "attributes": _pairs(record.attributes),
    }
    body = _value(record.body)
    return made if body is None else {**made, "body": body}


def _resource(resource: Any) -> Json:
    return {
        "scopeSpans": [{"spans": [_span(span) for span in scope.spans]} for scope in resource.scope_spans]
    }


def _span(span: Any) -> Json:
    return {
        "traceId": span.trace_id.hex(),
        "spanId": span.span_id.hex(),
        "parentSpanId": span.parent_span_id.hex(),
        "name": span.name,
        "startTimeUnixNano": span.start_time_unix_nano,
        "attributes": _pairs(span.attributes),
        "events": [{"name": event.name, "attributes": _pairs(event.attributes)} for event in span.events],
        "status": {"code": span.status.code, "message": span.status.message},
    }


def _pairs(pairs: Any) -> Json:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any, depth: int = 0) -> Any:
    kind = value.WhichOneof("value")
    if kind is None or depth > _DEPTH:
        return None
    found = getattr(value, kind)
    if kind == "array_value":
        return [_value(one, depth + 1) for one in found.values]
    if kind == "kvlist_value":
        return {pair.key: _value(pair.value, depth + 1) for pair in found.values}
    return found.hex() if kind == "bytes_value" else found
