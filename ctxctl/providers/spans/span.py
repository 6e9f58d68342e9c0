"""Spans, whatever file they come in: OTLP, an SDK's own objects, rows of a table, bare attributes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import mapping, string
from ctxctl.providers.spans.chat_values import REDACTED, ChatContent
from ctxctl.providers.spans.inferences import moment

MODELS: Final = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "ai.response.model",
                 "llm.response.model", "llm.request.model", "ai.model.id")  # fmt: skip
"""Attributes that name the model, the one that answered first."""
_DEPTH: Final = 40
_MARKS: Final = ("gen_ai.", "llm.", "ai.", "openinference.", "traceloop.")
_SCOPES: Final = (
    ("scopeSpans", "spans"), ("scope_spans", "spans"), ("instrumentationLibrarySpans", "spans"),
    ("scopeLogs", "logRecords"), ("scope_logs", "log_records"),
)  # fmt: skip
_WRAPPERS: Final = (
    "spans", "data", "trace", "traces", "resource_spans", "items", "result", "results", "log_records",
)  # fmt: skip


class ReadBeside(NamedTuple):
    """What an importer has read of a span itself, where its attributes do not say it."""

    kind: str
    """`llm`, `agent`, or what else it is."""
    asked: ChatContent
    answer: list[Json]
    usage: Json | None
    model: str | None = None
    session: str | None = None
    native_id: str | None = None
    thread: str | None = None
    """Where nothing tells what came before it: a thread of its own."""


class Span:
    """One span, or a log record that belongs to one."""

    __slots__ = (
        "answer_line", "attributes", "error", "events", "given", "id", "is_log", "line", "name", "parent",
        "start", "trace",
    )  # fmt: skip

    def __init__(self, name: str, attributes: Json) -> None:
        self.name = name
        self.attributes = attributes
        self.trace: str | None = None
        self.id: str | None = None
        self.parent: str | None = None
        self.start: str | None = None
        """RFC 3339."""
        self.events: list[tuple[str, Json]] = []
        """Name and attributes, in order."""
        self.error: str | None = None
        self.is_log = False
        self.given: ReadBeside | None = None
        self.line = 0
        self.answer_line = 0
        """Line of what tells the answer, where it is another one."""


def text_of(span: Span, *names: str) -> str | None:
    """The first of a span's attributes that is a text, and none that stands for a redacted one."""
    told = span.attributes
    for name in names:
        if name in told and (value := string(told[name])) is not None and value not in REDACTED:
            return value
    return None


def spans(value: Any, depth: int = 0) -> Iterator[Span]:
    """The spans and log records of a JSON value, in its order."""
    if depth > 6:
        return
    if isinstance(value, list):
        for one in value:
            yield from spans(one, depth + 1)
    elif isinstance(value, dict):
        found = False
        for name in ("resourceSpans", "resource_spans", "resourceLogs", "resource_logs"):
            if isinstance(value.get(name), list):
                found = True
                for resource in value[name]:
                    yield from _resource(resource)
        if found or "resourceMetrics" in value or value.get("type") == "metric":
            return
        span = _span(value)
        if span is not None:
            yield span
            return
        held = [value[name] for name in _WRAPPERS if isinstance(value.get(name), list | dict)]
        for one in held or [inner for inner in value.values() if isinstance(inner, list)]:
            yield from spans(one, depth + 1)


def _resource(resource: Any) -> Iterator[Span]:
    if not isinstance(resource, dict):
        return
    for outer, inner in _SCOPES:
        scopes = resource.get(outer)
        for scope in scopes if isinstance(scopes, list) else []:
            records = scope.get(inner) if isinstance(scope, dict) else None
            for record in records if isinstance(records, list) else []:
                span = _span(record) if isinstance(record, dict) else None
                if span is not None:
                    span.is_log = inner != "spans"
                    yield span


_TIMES: Final = (
    "startTimeUnixNano", "start_time_unix_nano", "startTime", "start_time", "timeUnixNano",
    "observedTimeUnixNano", "hrTime", "timestamp", "time",
)  # fmt: skip


def _span(value: Json) -> Span | None:
    """A span of any layout; None for what is none."""
    attributes = value.get("attributes")
    if isinstance(attributes, list):
        attributes = flat_attributes(attributes)
    named = {name[11:]: inner for name, inner in value.items() if name.startswith("attributes.")}
    if named:
        # A row of a table: its columns are attributes.
        attributes = {**named, **attributes} if isinstance(attributes, dict) else named
    if not isinstance(attributes, dict):
        if not any(name.startswith(_MARKS) and not isinstance(v, list | dict) for name, v in value.items()):
            return None
        attributes = value
    kind = value.get("span_kind")
    if isinstance(kind, str) and "openinference.span.kind" not in attributes and kind.isupper():
        attributes = {**attributes, "openinference.span.kind": kind}
    span = Span(string(value.get("name")) or string(value.get("eventName")) or "", attributes)
    context = mapping(value.get("spanContext") or value.get("context"))
    span.trace = _first(value, context, "traceId", "trace_id", "context.trace_id")
    span.id = _first(value, context, "spanId", "span_id", "context.span_id")
    parent = value.get("parentSpanContext")
    span.parent = _first(
        value, {"parentSpanId": parent.get("spanId")} if isinstance(parent, dict) else {},
        "parentSpanId", "parent_span_id", "parent_id",
    )  # fmt: skip
    span.start = next(
        (t for name in _TIMES if name in value and (t := moment(value[name])) is not None), None
    )
    span.events = list(_events(value.get("events")))
    span.error = _error(value)
    if value.get("type") == "log" or ("body" in value and "spanId" in value) or "eventName" in value:
        span.is_log = True
    if "body" in value:
        body = value["body"]
        span.attributes = {**attributes, "_body": plain(body) if isinstance(body, dict) else body}
    return span


def _first(value: Json, other: Json, *names: str) -> str | None:
    for name in names:
        found = string(value.get(name)) or string(other.get(name))
        if found is not None:
            return found
    return None


def _events(value: Any) -> Iterator[tuple[str, Json]]:
    for event in value if isinstance(value, list) else []:
        if isinstance(event, dict):
            attributes = event.get("attributes")
            if isinstance(attributes, list):
                attributes = flat_attributes(attributes)
            yield string(event.get("name")) or "", attributes if isinstance(attributes, dict) else {}


def _error(value: Json) -> str | None:
    status = value.get("status")
    code = status.get("code") if isinstance(status, dict) else value.get("status_code")
    if code not in (2, "STATUS_CODE_ERROR", "ERROR"):
        return None
    message = status.get("message") if isinstance(status, dict) else value.get("status_message")
    return (string(message) or "error").partition("\n")[0][:160]


# -- OTLP values ------------------------------------------------------------------------------------------


def flat_attributes(pairs: list[Any]) -> Json:
    """OTLP attributes (`[{key, value}]`) by name."""
    return {
        pair["key"]: plain(pair.get("value"))
        for pair in pairs
        if isinstance(pair, dict) and isinstance(pair.get("key"), str)
    }


def plain(value: Any, depth: int = 0) -> Any:
    """An OTLP `AnyValue` as JSON; what is none stays."""
    if not isinstance(value, dict) or depth > _DEPTH:
        return value
    for name in ("stringValue", "string_value", "boolValue", "bool_value", "doubleValue", "double_value"):
        if name in value:
            return value[name]
    for name in ("intValue", "int_value"):
        if name in value:
            found = value[name]
            return (
                int(found)
                if isinstance(found, str) and found.lstrip("-").isdigit() and len(found) < 20
                else found
            )
    for name in ("arrayValue", "array_value"):
        if isinstance(value.get(name), dict):
            inner = value[name].get("values")
            return [plain(one, depth + 1) for one in inner] if isinstance(inner, list) else []
    for name in ("kvlistValue", "kvlist_value"):
        if isinstance(value.get(name), dict):
            inner = value[name].get("values")
            made: Json = {}
            for pair in inner if isinstance(inner, list) else []:
                if isinstance(pair, dict) and isinstance(pair.get("key"), str):
                    made[pair["key"]] = plain(pair.get("value"), depth + 1)
            return made
    if "bytesValue" in value or "bytes_value" in value:
        return value.get("bytesValue", value.get("bytes_value"))
    return value or None
