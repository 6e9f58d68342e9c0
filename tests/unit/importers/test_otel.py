"""OpenTelemetry: every convention gives the same items, and only calls of models are counted."""

from __future__ import annotations

import json

import pytest

from ctxctl.importers.openinference import FORMAT as OPENINFERENCE
from ctxctl.importers.otel import FORMAT as OTEL
from tests.unit.importers.spans_help import FIXTURES, bills, chat, items, read, records, requests, span

TRACE = "0af7651916cd43dd8448eb211c80319c"


def fixture(name: str) -> bytes:
    return (FIXTURES / "otel" / name).read_bytes()


def test_spans_in_the_order_in_which_they_were_begun() -> None:
    found = read(fixture("otlp.json"), "otel")
    assert requests(found) == [("conv-7", None, TRACE), ("conv-7", None, TRACE), ("conv-7", "scout", TRACE)]
    assert [kind for kind, _ in items(found)] == [
        "tool_definition",
        "system_prompt",
        "user_message",
        "reasoning",
        "tool_call",
        "tool_result",
        "user_message",
        "image",
        "assistant_message",
        "assistant_message",
    ]
    assert ("tool_call", 'read_bed {"bed":"north"}') in items(found)
    assert ("tool_result", '{"moisture":12}') in items(found)


def test_a_call_that_names_no_session_is_of_the_only_one_of_its_trace() -> None:
    told = json.loads(fixture("otlp.json"))
    spans = [s for group in told["resourceSpans"] for scope in group["scopeSpans"] for s in scope["spans"]]
    for one in spans[1:]:
        one.pop("parentSpanId", None)
        one["attributes"] = [a for a in one["attributes"] if a["key"] != "gen_ai.conversation.id"]
    assert {session for session, *_ in requests(read(told))} == {"conv-7"}
    for one in spans[1:]:
        one["traceId"] = "f" * 32
    assert {session for session, *_ in requests(read(told))} == {"conv-7", ""}, "of another trace"


def test_only_calls_are_billed_and_not_the_sums_of_agents() -> None:
    assert bills(read(fixture("otlp.json"))) == [
        {"input_tokens": 120, "output_tokens": 20, "reasoning_tokens": 8},
        {"input_tokens": 180, "cached_tokens": 100, "cache_write_tokens": 12, "output_tokens": 9},
        {"input_tokens": 30, "output_tokens": 6},
    ]


def test_an_agent_inside_an_agent_is_a_thread_that_names_its_parent() -> None:
    found = read(fixture("otlp.json"))
    marks = [
        event["data"]["metadata"]["ctxctl"]
        for event in found.events
        if event["event_type"].endswith("assembly.created") and event.get("thread_id") == "scout"
    ]
    assert (marks[0]["parent_thread"], marks[0]["agent_type"]) == ("main", "scout")


def test_images_are_opaque() -> None:
    [image] = records(read(fixture("otlp.json")), "image")
    assert "content" not in image
    assert image["mime_type"] == "image/png"


def test_older_conventions_in_one_file() -> None:
    found = read(fixture("exports.jsonl"), "otel")
    texts = [text for _, text in items(found)]
    for text in (
        "You name boats.", "A name for a red boat, please.", 'look_up {"name":"Robin"}',
        "You sort mail.", "Where does this letter go?", "Into the blue tray.",
        "Count the oars.", "There are six oars.",
        "You translate.", 'lookup {"word":"boat"}', '{"nl":"boot"}', "It is boot.",
    ):  # fmt: skip
        assert text in texts
    assert [bill["input_tokens"] for bill in bills(found)] == [60, 44, 14, 70]


def test_copilots_file_with_content_off() -> None:
    found = read(fixture("copilot.jsonl"), "otel")
    assert requests(found) == [("5c1f0e1a", None, "d" * 32)] * 2
    assert items(found) == [("tool_definition", None)] * 2, "only the names of tools are recorded"
    assert bills(found) == [
        {"input_tokens": 2400, "cached_tokens": 2000, "cache_write_tokens": 0, "output_tokens": 31}
    ], "a redacted bill is none"
    facts = found.events[-1]["data"]["facts"]
    assert facts["system_prompt"] == {"not recorded": 2}
    assert facts["tool_definitions"] == {"not recorded": 2}


def test_a_call_inside_a_call_is_counted_once() -> None:
    outer = chat(1, **{"gen_ai.usage.input_tokens": 50})
    inner = {**chat(2, **{"gen_ai.usage.input_tokens": 40}), "parentSpanId": outer["spanId"]}
    assert [bill["input_tokens"] for bill in bills(read([inner, outer], "otel"))] == [40]


def test_a_span_that_was_exported_twice_is_one() -> None:
    assert len(requests(read([chat(1), chat(2), chat(1)], "otel"))) == 2


def test_an_attribute_that_was_cut_off_is_read_as_far_as_it_goes() -> None:
    messages = json.dumps(
        [
            {"role": "user", "parts": [{"type": "text", "content": "First."}]},
            {"role": "user", "parts": [{"type": "text", "content": "Second, and long."}]},
        ]
    )
    cut = messages[: messages.index(", and")]
    found = read([chat(1, **{"gen_ai.input.messages": cut})], "otel")
    first, second = records(found, "user_message")
    assert (first["content"], second["content"]) == ("First.", "Second")
    assert "truncated" not in first["metadata"]["ctxctl"]
    assert second["metadata"]["ctxctl"]["truncated"] is True


def test_redacted_content_is_not_recorded() -> None:
    found = read([chat(1, **{"gen_ai.input.messages": "[REDACTED]"})], "otel")
    assert len(requests(found)) == 1
    assert items(found) == []


@pytest.mark.parametrize(
    ("usage", "billed"),
    [
        ({"cache_write.input_tokens": 7}, {"input_tokens": 100, "cache_write_tokens": 7}),
        ({"cache_creation.input_tokens": 7}, {"input_tokens": 100, "cache_write_tokens": 7}),
        ({"cache_read_input_tokens": 90}, {"input_tokens": 100, "cached_tokens": 90}),
        (
            {"cache_read.input_tokens": 900, "cache_write.input_tokens": 50},
            {"input_tokens": 1050, "cached_tokens": 900, "cache_write_tokens": 50},
        ),
        (
            {"reasoning_tokens": 3, "completion_tokens": 5},
            {"input_tokens": 100, "output_tokens": 5, "reasoning_tokens": 3},
        ),
        ({"input_tokens": True}, None),
    ],
)
def test_bills_in_every_spelling(usage: dict[str, int], billed: dict[str, int] | None) -> None:
    told = {f"gen_ai.usage.{name}": value for name, value in {"input_tokens": 100, **usage}.items()}
    assert bills(read([chat(1, **told)], "otel")) == ([billed] if billed else [])


def test_the_ai_sdks_outer_span_shows_what_was_asked_but_sums_are_no_bill() -> None:
    outer = span(
        1,
        {
            "ai.operationId": "ai.generateText",
            "ai.prompt": json.dumps({"prompt": "Hello there."}),
            "ai.usage.promptTokens": 900,
        },
    )
    found = read([outer], "otel")
    assert items(found) == [("user_message", "Hello there.")]
    assert bills(found) == []


def test_logfires_events_in_an_attribute() -> None:
    events = [
        {"event.name": "gen_ai.user.message", "role": "user", "content": "Hi.", "gen_ai.message.index": 0},
        {"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "content": "Hello."}},
    ]
    call = {"gen_ai.request.model": "gpt-5", "gen_ai.operation.name": "chat", "events": json.dumps(events)}
    assert items(read([span(1, call)])) == [("user_message", "Hi."), ("assistant_message", "Hello.")]


def test_a_details_record_alone_is_a_call() -> None:
    record = {
        "timeUnixNano": "1767225600000000000",
        "eventName": "gen_ai.client.inference.operation.details",
        "attributes": [
            {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
            {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "12"}},
            {
                "key": "gen_ai.input.messages",
                "value": {
                    "arrayValue": {
                        "values": [
                            {
                                "kvlistValue": {
                                    "values": [
                                        {"key": "role", "value": {"stringValue": "user"}},
                                        {
                                            "key": "parts",
                                            "value": {
                                                "arrayValue": {
                                                    "values": [
                                                        {
                                                            "kvlistValue": {
                                                                "values": [
                                                                    {
                                                                        "key": "type",
                                                                        "value": {"stringValue": "text"},
                                                                    },
                                                                    {
                                                                        "key": "content",
                                                                        "value": {"stringValue": "Ping."},
                                                                    },
                                                                ]
                                                            }
                                                        }
                                                    ]
                                                }
                                            },
                                        },
                                    ]
                                }
                            }
                        ]
                    }
                },
            },
        ],
    }
    found = read({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}, "otel")
    assert items(found) == [("user_message", "Ping.")]
    assert bills(found) == [{"input_tokens": 12}]


def test_metrics_alone_hold_no_call() -> None:
    found = read({"resourceMetrics": [{"scopeMetrics": []}]}, "otel")
    assert [problem.slug for problem in found.problems] == ["no-model-calls"]


def test_protobuf() -> None:
    service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    request = service.ExportTraceServiceRequest()
    made = request.resource_spans.add().scope_spans.add().spans.add()
    made.trace_id, made.span_id, made.name = b"t" * 16, b"s" * 8, "chat"
    made.start_time_unix_nano = 1767225600 * 10**9
    for name, value in json.loads(json.dumps(chat(1)["attributes"])).items():
        pair = made.attributes.add()
        pair.key = name
        pair.value.string_value = value
    pair = made.attributes.add()
    pair.key = "gen_ai.usage.input_tokens"
    pair.value.int_value = 31
    data = request.SerializeToString()
    found = read(data, "otel")
    assert items(found) == [("user_message", "Question 1?")]
    assert bills(found) == [{"input_tokens": 31}]
    assert requests(found) == [(None, None, (b"t" * 16).hex())]
    twice = read(data + data[: len(data) // 2], "otel")
    assert items(twice) == [("user_message", "Question 1?")], "what is whole of a damaged export is read"


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\n",
        b'\n{\n  "name": "gen_ai.x"\n}',
        b"{}",
        b'{"messages": []}',
        b"gen_ai.operation.name",
        b'{"type":"user","message":{"role":"user","content":"about gen_ai.usage.input_tokens"}}\n',
        b"\x0a\x05hello gen_ai.",
    ],
)
def test_other_files_are_not_claimed(head: bytes) -> None:
    assert OTEL.detect(head) == 0
    assert OPENINFERENCE.detect(head) == 0


@pytest.mark.parametrize("name", ["otlp.json", "exports.jsonl", "copilot.jsonl"])
def test_it_is_known_with_a_byte_order_mark_and_by_a_cut_head(name: str) -> None:
    data = fixture(name)
    assert OTEL.detect(b"\xef\xbb\xbf\n" + data) >= 50
    assert OTEL.detect(data[: len(data) * 3 // 4]) >= 50
    assert OTEL.detect(data[40:] if name != "otlp.json" else data) >= 50
