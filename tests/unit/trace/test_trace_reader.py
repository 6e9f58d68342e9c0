"""Passes over a trace: where they start and stop, duplicates, problems told once."""

from __future__ import annotations

import json
import threading
from typing import Any

import msgspec
import pytest

from ctxctl.errors import UnreadableError
from ctxctl.model import vocab
from ctxctl.model.event import Event
from ctxctl.model.records import Assembly, Injection, Item
from ctxctl.trace.reader import Trace
from ctxctl.trace.source import Source


def event(number: int, **more: Any) -> dict[str, Any]:
    return {
        "schema_version": "0.1.1",
        "event_id": f"e{number}",
        "event_type": vocab.ITEM_ADDED,
        "source": "s",
        "time": "2026-01-01T00:00:00Z",
        "data": {"item_id": f"i{number % 7}", "content": f"text {number % 7} " * 50},
        **more,
    }


def lines(*events: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in events)


def trace(data: bytes) -> Trace:
    return Trace(Source.from_bytes("memory", data))


MANY = lines(*[event(number) for number in range(2000)])


def test_every_event_with_its_place() -> None:
    reading = trace(MANY)
    events = list(reading.events())
    assert [one.line for one in events] == list(range(1, 2001))
    assert [reading.line(one.offset, one.length) for one in events] == MANY.splitlines()


def test_a_part_of_the_trace() -> None:
    reading = trace(MANY)
    events = list(reading.events())
    first, last = events[700], events[1500]
    part = list(reading.events(first.offset, first.line, last.offset))
    assert [(one.line, one.offset, one.event_id) for one in part] == [
        (one.line, one.offset, one.event_id) for one in events[700:1500]
    ]
    for inside in (last.offset - 1, last.offset - last.length):
        assert list(reading.events(first.offset, first.line, inside))[-1].line == events[1499].line
    assert len(list(reading.events(first.offset, first.line, last.offset + 1))) == 801
    assert list(reading.events(first.offset, first.line, first.offset)) == []
    assert list(reading.events(len(MANY))) == []


def test_second_passes_tell_nothing_twice() -> None:
    data = lines(event(1)) + b"oops\n" + lines(event(2), event(1))
    reading = trace(data)
    for _ in range(3):
        assert [one.event_id for one in reading.events()] == ["e1", "e2"]
    assert [problem.slug for problem in reading.problems] == ["bad-json", "duplicate-event"]
    assert reading.problem_count == 2


def test_a_pass_in_the_middle_leaves_problems_to_the_pass_that_gets_there() -> None:
    data = MANY + b"oops\n" + lines(event(5000))
    reading = trace(data)
    assert len(list(reading.events(len(MANY), 2001))) == 1
    assert reading.problems == []
    list(reading.events())
    assert [(problem.line, problem.slug) for problem in reading.problems] == [(2001, "bad-json")]


def test_duplicates_are_per_session_and_source() -> None:
    data = lines(
        event(1),
        event(1, session_id="other"),
        event(1, source="other"),
        event(1),
        {**event(2), "event_id": None},
        {**event(3), "event_id": None},
    )
    reading = trace(data)
    assert len(list(reading.events())) == 5
    assert [problem.line for problem in reading.problems] == [4]


def test_a_content_ref_reads_the_same_in_every_pass() -> None:
    shown = event(1, data={"item_id": "a", "content": "the text " * 20})
    item = next(iter(trace(lines(shown)).events())).record
    assert isinstance(item, Item)
    ref = event(2, data={"item_id": "b", "content_ref": f"sha256:{item.content_digest}"})
    reading = trace(lines({**ref, "event_id": "x"}, shown, ref))
    passes = [[one.record for one in reading.events()] for _ in range(2)]
    for records in passes:
        early, _, late = records
        assert isinstance(early, Item)
        assert isinstance(late, Item)
        assert early.content is None
        assert late.content is not None


def test_headers_have_ids_and_records_only_where_an_index_needs_them() -> None:
    data = lines(
        event(1, turn_id="t", step_id="s"),
        event(
            2,
            event_type=vocab.ASSEMBLY_CREATED,
            data={"assembly_id": "a", "target": "tool", "ordered_blocks": []},
        ),
        event(
            3,
            event_type=vocab.INJECTION_APPLIED,
            data={"injection_id": "i", "injection_point": "system_prompt"},
        ),
        event(4, turn_id=9),
    )
    reading = trace(data + b"oops\n" + lines(event(5))[:-1])
    headers = list(reading.headers())
    assert [(one.event_id, one.line) for one in headers] == [
        ("e1", 1),
        ("e2", 2),
        ("e3", 3),
        ("e4", 4),
        ("e5", 6),
    ]
    assert headers[0].record is None
    assert isinstance(headers[1].record, Assembly)
    assert headers[1].record.target == "tool"
    assert isinstance(headers[2].record, Injection)
    assert headers[3].turn_id == "9"
    assert reading.problems == []
    assert len(reading.contents) == 0
    full = list(reading.events())
    assert [(one.offset, one.length, one.turn_id) for one in headers] == [
        (one.offset, one.length, one.turn_id) for one in full
    ]


def test_headers_of_crlf_lines_are_as_long_as_those_of_events() -> None:
    reading = trace(lines(event(1), event(2), event(1, event_id="z")).replace(b"\n", b"\r\n"))
    assert [one.length for one in reading.headers()] == [one.length for one in reading.events()]


def test_passes_in_several_threads_agree() -> None:
    reading = trace(MANY + b"oops\n" + MANY.replace(b'"event_id": "e', b'"event_id": "f'))
    found: list[list[str | None]] = []

    def work() -> None:
        found.append([one.event_id for one in reading.events()])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found[0]) == 4000
    assert all(ids == found[0] for ids in found)
    assert [problem.slug for problem in reading.problems] == ["bad-json"]


def test_repeated_items_are_one_object_within_and_across_passes() -> None:
    reading = trace(MANY)
    first = [one.record for one in reading.events()]
    assert len({id(record) for record in first}) == 7
    assert all(a is b.record for a, b in zip(first, reading.events(), strict=True))


@pytest.mark.parametrize(("name", "told"), [("-", "stdin holds no "), ("run.jsonl", "run.jsonl holds no ")])
def test_a_trace_without_events_is_called_by_its_name(name: str, told: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        list(Trace(Source.from_bytes(name, b"nothing of ours\n")).events())
    assert caught.value.message.startswith(told)


def test_every_field_of_a_line_can_be_asked_for_as_it_may_be_shown() -> None:
    class Redactor:
        def events(self, events: list[Event]) -> list[Event]:
            return events

        def value(self, value: Any) -> Any:
            return {**value, "acme": "hidden"}

    trace = Trace(Source.from_bytes("memory", lines(event(1, acme="secret"))))
    (only,) = trace.events()
    assert trace.fields(only) == event(1, acme="secret")
    nowhere = msgspec.structs.replace(only, offset=5)
    assert trace.fields(nowhere) is None
    trace.redactor = Redactor()
    assert trace.fields(only) == event(1, acme="hidden")
    assert trace.fields(nowhere) is None


def test_the_metadata_of_a_line_is_that_of_its_fields() -> None:
    told = {"ctxctl": {"source_line": 7}, "who": "secret"}
    older = event(3, metadata=told) | {"schema_version": "0.1.0"}
    odd = [event(4, metadata=[1]), event(5)]
    torn = lines(event(2, metadata=told, source="?")).replace(b"?", b"\xff")
    trace = Trace(Source.from_bytes("memory", lines(event(1, metadata=told)) + torn + lines(older, *odd)))
    events = list(trace.events())
    assert [trace.metadata(one) for one in events] == [told, told, told, {}, {}]
    masked = Masked()
    trace.redactor = masked
    assert [trace.metadata(one).get("who") for one in events] == ["*", "*", "*", None, None]
    for one in events:
        whole = (trace.fields(one) or {}).get("metadata")
        assert trace.metadata(one) == (whole if isinstance(whole, dict) else {})


class Masked:
    """A redactor that takes out one word wherever it stands."""

    def events(self, events: list[Event]) -> list[Event]:
        return events

    def value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self.value(one) for name, one in value.items()}
        return "*" if value == "secret" else value


def test_headers_of_repaired_lines_have_the_records_that_the_index_wants_and_no_other() -> None:
    injection = {"injection_id": "j", "assembly_id": "a", "target": "model", "injection_point": "top"}
    data = lines(
        event(1, source="torn ?"),
        event(2, event_type=vocab.INJECTION_APPLIED, data=injection, source="torn ?"),
    )
    trace = Trace(Source.from_bytes("memory", data.replace(b"?", b"\xff")))
    item, injected = trace.headers()
    assert item.record is None
    assert isinstance(injected.record, Injection)
    assert injected.record.assembly_id == "a"


def test_headers_have_the_records_that_stand_elsewhere_in_their_lines() -> None:
    assembly = {"assembly_id": "a", "target": "tool", "ordered_blocks": []}
    injection = {"injection_id": "j", "assembly_id": "a", "target": "model", "injection_point": "top"}
    reading = trace(
        lines(
            event(1, event_type=vocab.ASSEMBLY_CREATED, data={"context_assembly": assembly}),
            event(2, event_type=vocab.INJECTION_APPLIED, data={"context_injection": injection}),
        )
    )
    made, injected = (one.record for one in reading.headers())
    assert isinstance(made, Assembly)
    assert (made.assembly_id, made.target) == ("a", "tool")
    assert isinstance(injected, Injection)
    assert (injected.injection_id, injected.assembly_id, injected.injection_point) == ("j", "a", "top")
