"""Exports as OpenTelemetry's SDKs send them, as JSON and as protobuf, and what became of them."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from ctxctl.session import Inspector

Json = dict[str, Any]
START = 1_790_000_000_000_000_000
TOOLS = [{"type": "function", "name": "look", "description": "Looks.", "parameters": {"type": "object"}}]


class Program:
    """Spans of a program, in the order in which they begin."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._time = START

    def span(self, name: str, trace: int, parent: Json | None = None, **attributes: Any) -> Json:
        self._time += 1_000_000
        given = {name.replace("__", "."): value for name, value in attributes.items()}
        return {
            "traceId": f"{trace:032x}", "spanId": f"{next(self._ids):016x}",
            "parentSpanId": parent["spanId"] if parent is not None else "",
            "name": name, "startTimeUnixNano": str(self._time), "endTimeUnixNano": str(self._time + 500_000),
            "attributes": [{"key": key, "value": _value(value)} for key, value in given.items()],
        }  # fmt: skip

    def chat(
        self, trace: int, said: list[tuple[str, str]], answer: str, parent: Json | None = None, **more: Any
    ) -> Json:
        """A call of a model; `more`: other attributes, or None to leave one out."""
        attributes = {
            "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "m-1",
            "gen_ai.input.messages": json.dumps([_message(role, text) for role, text in said]),
            "gen_ai.output.messages": json.dumps([_message("assistant", answer)]),
            "gen_ai.tool.definitions": json.dumps(TOOLS), "gen_ai.usage.input_tokens": 10 * len(said),
            "gen_ai.usage.output_tokens": 3, **{key.replace("__", "."): value for key, value in more.items()},
        }  # fmt: skip
        kept = {key.replace(".", "__"): value for key, value in attributes.items() if value is not None}
        return self.span("chat m-1", trace, parent, **kept)

    def agent(self, trace: int, name: str, parent: Json | None = None, **more: Any) -> Json:
        marks = {"gen_ai__operation__name": "invoke_agent", "gen_ai__agent__name": name, **more}
        return self.span(f"invoke_agent {name}", trace, parent, **marks)


def details(span: Json, **attributes: Any) -> Json:
    """The log record of a call: its texts, beside the span."""
    return {
        "timeUnixNano": span["startTimeUnixNano"], "traceId": span["traceId"], "spanId": span["spanId"],
        "eventName": "gen_ai.client.inference.operation.details",
        "attributes": [{"key": key, "value": _value(value)} for key, value in attributes.items()],
    }  # fmt: skip


def _message(role: str, text: str) -> Json:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _value(value: Any) -> Json:
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def traces(*spans: Json) -> Json:
    return {
        "resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "x"}, "spans": list(spans)}]}]
    }


def logs(*records: Json) -> Json:
    return {"resourceLogs": [{"resource": {}, "scopeLogs": [{"scope": {}, "logRecords": list(records)}]}]}


def traces_protobuf(*spans: Json) -> bytes:
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for span in spans:
        made = scope.spans.add()
        made.trace_id, made.span_id = bytes.fromhex(span["traceId"]), bytes.fromhex(span["spanId"])
        made.parent_span_id = bytes.fromhex(span["parentSpanId"])
        made.name, made.start_time_unix_nano = span["name"], int(span["startTimeUnixNano"])
        made.attributes.extend(map(_pair, span["attributes"]))
    data: bytes = request.SerializeToString()
    return data


def logs_protobuf(*records: Json) -> bytes:
    request = ExportLogsServiceRequest()
    scope = request.resource_logs.add().scope_logs.add()
    for record in records:
        made = scope.log_records.add()
        made.trace_id, made.span_id = bytes.fromhex(record["traceId"]), bytes.fromhex(record["spanId"])
        made.event_name, made.time_unix_nano = record["eventName"], int(record["timeUnixNano"])
        made.attributes.extend(map(_pair, record["attributes"]))
    data: bytes = request.SerializeToString()
    return data


def _pair(pair: Json) -> KeyValue:
    value = pair["value"]
    if "intValue" in value:
        return KeyValue(key=pair["key"], value=AnyValue(int_value=int(value["intValue"])))
    return KeyValue(key=pair["key"], value=AnyValue(string_value=value["stringValue"]))


def frames(path: Path) -> list[Json]:
    """What each request of a capture or a trace carried, less how steps, turns and items are named."""
    made = []
    with Inspector.open(str(path)) as inspector:
        list(inspector.replay())
        assert inspector.summary is not None
        for at in range(inspector.summary.steps):
            frame = inspector.frame(at)
            usage = frame.step.usage
            made.append(
                {
                    "session": frame.step.session, "thread": frame.step.thread, "turn": frame.step.turn_id,
                    "model": frame.step.model, "input": usage.reported_input if usage else None,
                    "carried": [(one.kind, one.role, one.digest) for one in frame.placements],
                }
            )  # fmt: skip
    return made


def told(found: list[Json], name: str) -> Counter[Any]:
    """How often each value of one fact is there."""
    return Counter(json.dumps(frame[name], default=str) for frame in found)
