"""Copilot CLI sessions: what each request carried, from the log on disk and from the stream."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers.copilot_cli import FORMAT
from ctxctl.importers.copilot_cli.parts import pieces
from tests.unit.importers.agent_help import (
    DAMAGES,
    FIXTURES,
    Json,
    damaged,
    imported,
    items,
    jsonl,
    of_type,
    windows,
    written,
)

NAME = "copilot-cli"
LOG = FIXTURES / "copilot_cli" / "events.jsonl"
STREAM = FIXTURES / "copilot_cli" / "stream.jsonl"


def event(kind: str, number: int = 0, **data: Any) -> Json:
    return {
        "type": kind,
        "data": data,
        "id": f"e{number}",
        "timestamp": "2026-07-03T08:36:00.000Z",
        "parentId": None,
    }


def test_a_request_is_what_a_turn_start_begins() -> None:
    main = [w for w in windows(LOG, NAME) if w.thread == "main"]
    assert [w.turn for w in main] == ["int-1", "int-1", "int-2"]
    assert main[0].kinds() == ["system_prompt", "runtime_state", "user_message", "policy_note", "image"]
    assert main[0].texts()[2] == "When is high water?"
    assert "".join(t or "" for t in main[0].texts()[1:4]).count("\n\n") == 2


def test_a_model_that_only_a_result_names_is_the_models_of_the_session(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        event("session.start", 1, sessionId="s", copilotVersion="1.0.20"),
        event("user.message", 2, content="Make a folder."),
        event("assistant.turn_start", 3, turnId="0"),
        event("assistant.message", 4, messageId="m1", content="", outputTokens=9, toolRequests=[
            {"toolCallId": "c1", "name": "bash", "arguments": {"command": "mkdir a"}, "type": "function"},
        ]),
        event("tool.execution_complete", 5, toolCallId="c1", model="claude-sonnet-4.6", success=True,
              result={"content": "done"}),
        event("assistant.turn_end", 6, turnId="0"),
        event("assistant.turn_start", 7, turnId="1"),
        event("assistant.message", 8, messageId="m2", content="Made.", toolRequests=[], outputTokens=4),
        event("assistant.turn_end", 9, turnId="1"),
    )  # fmt: skip
    events = imported(NAME, path.read_bytes())[0]
    bills = of_type(events, "ctxctl.usage.reported")
    assert [(bill["model"], bill["output_tokens"]) for bill in bills] == [
        ("claude-sonnet-4.6", 9),
        ("claude-sonnet-4.6", 4),
    ]


def test_the_model_sees_the_result_and_not_what_a_person_is_shown() -> None:
    second = [w for w in windows(LOG, NAME) if w.thread == "main"][1]
    assert second.texts()[5:] == [
        "A table is there.",
        None,
        "I look.",
        'view {"path":"/home/user/tides/monday.txt"}',
        'task {"agent_type":"explore","prompt":"Read the gauge."}',
        "1. 06:12 3.4 m",
        "The gauge says 1.2 m.",
        "<system_notification>\nThe shell has ended.\n</system_notification>",
    ]
    assert second.kinds().count("system_prompt") == 1


def test_a_sub_agent_is_a_thread_that_names_its_call() -> None:
    found, _ = imported(NAME, LOG.read_bytes())
    (first,) = [
        e["data"]["metadata"]["ctxctl"]
        for e in found
        if e["event_type"] == "context.assembly.created"
        and "parent_tool_call" in e["data"]["metadata"]["ctxctl"]
    ]
    assert (first["parent_tool_call"], first["agent_type"]) == ("call_2", "explore")
    side = [w for w in windows(LOG, NAME) if w.thread == "call_2"]
    assert [w.texts() for w in side] == [
        ["Read the gauge."],
        ["Read the gauge.", 'bash {"command":"gauge"}', "1.2 m"],
    ]


def test_a_message_in_pieces_is_one_answer_with_one_bill() -> None:
    found, _ = imported(NAME, LOG.read_bytes())
    assert [b["output_tokens"] for b in of_type(found, "ctxctl.usage.reported")] == [12, 40, 21, 8, 9]
    texts = [i.get("content") for i in items(found).values()]
    assert texts.count("High water ") == texts.count("is at 06:12.") == 1


def test_the_totals_of_a_session_are_nobodys_bill() -> None:
    found, _ = imported(NAME, LOG.read_bytes())
    (totals,) = of_type(found, "copilot.session.shutdown")
    assert totals["toolDefinitionsTokens"] == 4426
    assert all("input_tokens" not in bill for bill in of_type(found, "ctxctl.usage.reported"))


def test_the_total_of_a_single_request_is_its_bill(tmp_path: Path) -> None:
    usage = {"inputTokens": 12847, "outputTokens": 101, "cacheReadTokens": 5}
    metrics = {"gpt-5.3": {"requests": {"count": 1}, "usage": usage}}
    records = [
        event("user.message", 1, content="Hi"),
        event("assistant.turn_start", 2, turnId="0"),
        event("assistant.message", 3, messageId="m", content="Hello", outputTokens=101),
        event("session.shutdown", 4, modelMetrics=metrics),
    ]
    (window,) = windows(written(tmp_path, *records), NAME)
    assert window.billed() == 12847


def test_a_truncation_gives_the_limit_and_a_compaction_the_summary() -> None:
    last = [w for w in windows(LOG, NAME) if w.thread == "main"][-1]
    assert last.step.window.limit == 128000
    assert last.texts()[1:] == ["High water is at 06:12; the gauge says 1.2 m.", "And tomorrow?"]


def test_the_stream_drops_what_is_transient_and_keeps_the_bill() -> None:
    found = windows(STREAM, NAME)
    assert [w.billed() for w in found] == [9000, None, None]
    assert [len(w.items) for w in found] == [2, 6, 6]
    assert found[1].items[-1] == ("tool_result", "no such file: low.txt")


def test_versions_without_turn_starts_are_read_by_their_answers(tmp_path: Path) -> None:
    requests = [{"toolCallId": "c", "name": "view", "arguments": '{"path":"a"}'}]
    records = [
        event("user.message", 1, content="One"),
        event("assistant.message", 2, messageId="m1", content="", toolRequests=requests),
        event("tool.execution_complete", 3, toolCallId="c", success=True, result={"content": "text"}),
        event("assistant.message", 4, messageId="m2", content="Done"),
        event("user.message", 5, content="Two"),
        event("assistant.message", 6, messageId="m3", content="Done again"),
    ]
    found = windows(written(tmp_path, *records), NAME)
    assert [w.texts()[-1] for w in found] == ["One", "text", "Two"]


def test_what_comes_while_the_model_answers_is_of_the_next_request(tmp_path: Path) -> None:
    records = [
        event("user.message", 1, content="One"),
        event("assistant.turn_start", 2, turnId="0"),
        event("user.message", 3, content="Stop, two."),
        event("assistant.message", 4, messageId="m1", content="Yes"),
        event("assistant.turn_end", 5, turnId="0"),
        event("assistant.turn_start", 6, turnId="1"),
        event("assistant.message", 7, messageId="m2", content="Two then"),
    ]
    found = windows(written(tmp_path, *records), NAME)
    assert [w.texts() for w in found] == [["One"], ["One", "Yes", "Stop, two."]]


@pytest.mark.parametrize("place", ["e2", "e3"])
def test_a_rewind_takes_back_what_came_after_the_event_or_with_it(tmp_path: Path, place: str) -> None:
    records = [
        event("user.message", 1, content="One"),
        event("assistant.message", 2, messageId="m1", content="Yes"),
        event("user.message", 3, content="Two"),
        event("assistant.message", 4, messageId="m2", content="No"),
        {**event("session.snapshot_rewind", 5, upToEventId=place, eventsRemoved=2), "ephemeral": True},
        event("user.message", 6, content="Three"),
        event("assistant.message", 7, messageId="m3", content="Fine"),
    ]
    last = windows(written(tmp_path, *records), NAME)[-1]
    assert last.texts() == ["One", "Yes", "Three"]


def test_a_rewind_to_the_first_prompt_takes_all_back(tmp_path: Path) -> None:
    records = [
        event("user.message", 1, content="One"),
        event("assistant.message", 2, messageId="m1", content="Yes"),
        {**event("session.snapshot_rewind", 3, upToEventId="e1", eventsRemoved=2), "ephemeral": True},
        event("user.message", 4, content="Two"),
        event("assistant.message", 5, messageId="m2", content="Fine"),
    ]
    assert windows(written(tmp_path, *records), NAME)[-1].texts() == ["Two"]


@pytest.mark.parametrize(("call", "step"), [("c" * 80, "c" * 80), ("c" * 81, "r1"), ("c" * 400, "r1")])
def test_a_request_goes_by_its_call_unless_that_is_sealed(tmp_path: Path, call: str, step: str) -> None:
    answer = event("assistant.message", 2, messageId="m1", content="Yes", apiCallId=call, requestId="r1")
    (found,) = windows(written(tmp_path, event("user.message", 1, content="One"), answer), NAME)
    assert found.step.step_id == step


def test_calls_whose_list_was_blanked_are_known_by_their_start(tmp_path: Path) -> None:
    records = [
        event("user.message", 1, content="One"),
        event("assistant.turn_start", 2, turnId="0"),
        event("assistant.message", 3, messageId="m1", content="[REDACTED]", toolRequests="[REDACTED]"),
        event("tool.execution_start", 4, toolCallId="c", toolName="bash", arguments="[REDACTED]"),
        event("tool.execution_complete", 5, toolCallId="c", success=True, result="[REDACTED]"),
        event("assistant.turn_start", 6, turnId="1"),
        event("assistant.message", 7, messageId="m2", content="Done"),
    ]
    found = windows(written(tmp_path, *records), NAME)
    assert found[1].kinds() == ["user_message", "assistant_message", "tool_call", "tool_result"]


@pytest.mark.parametrize(
    ("sent", "typed"),
    [
        ("<current_datetime>now</current_datetime>\n\nHello\n\n<reminder>\nx\n</reminder>", "Hello"),
        ("<current_datetime>now</current_datetime>\n\nHello", "[REDACTED]"),
        ("Hello <b>you</b>", "Hello <b>you</b>"),
        ("a a", "a"),
        ("<system_reminder>only</system_reminder>", None),
    ],
)
def test_the_pieces_of_a_prompt_are_the_whole(sent: str, typed: str | None) -> None:
    found = pieces(sent, typed)
    assert "".join(piece.text for piece in found) == sent
    assert [p.text.strip() for p in found if p.kind == "user_message"] in (
        ["Hello"],
        ["Hello <b>you</b>"],
        ["a a"],
        [],
    )


class _Text(str):
    """A text that counts how many of its characters are copied, and those of its parts."""

    __slots__ = ()
    copied = 0

    def __getitem__(self, at: Any) -> str:
        part = _Text(str.__getitem__(self, at))
        _Text.copied += len(part)
        return part


def test_the_elements_that_a_prompt_ends_with_are_cut_off_without_copies_of_the_rest() -> None:
    sent = _Text("x" + "<reminder></reminder>\n" * 500)
    _Text.copied = 0
    found = pieces(sent, None)
    assert [(piece.kind, piece.tag) for piece in found[:2]] == [
        ("user_message", None),
        ("policy_note", "reminder"),
    ]
    assert "".join(piece.text for piece in found) == sent
    assert len(found) == 501
    assert _Text.copied < 2 * len(sent)


def test_both_forms_are_known_by_their_lines() -> None:
    for path in (LOG, STREAM):
        data = path.read_bytes()
        assert FORMAT.detect(data) >= 85
        assert FORMAT.detect(b"\n{broken\n" + data) >= 85
    assert FORMAT.detect(LOG.read_bytes()[:180]) >= 85
    other = b'{"type":"message","id":"a","parentId":null,"timestamp":"x","message":{}}'
    assert FORMAT.detect(other) == 0
    assert FORMAT.detect(b'{"type":"item.completed","data":{}}') == 0


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("path", [LOG, STREAM], ids=["log", "stream"])
def test_no_damage_raises(path: Path, how: str) -> None:
    for data in damaged(path.read_bytes(), how):
        imported(NAME, data)


@pytest.mark.parametrize("value", [None, 7, "x", [], [3], {}, {"content": 4}, True])
def test_fields_of_any_type_are_tolerated(value: Any) -> None:
    records: list[Json] = []
    for line in LOG.read_text().splitlines():
        record: Json = json.loads(line)
        records += [{**record, "data": {**record["data"], name: value}} for name in record["data"]]
        records += [{**record, name: value} for name in record]
    imported(NAME, jsonl(*records))


def kept_usage(number: int, tokens: int, longest: Any = 128_000) -> Json:
    usage = {
        "model": "gpt-5", "inputTokens": tokens, "outputTokens": 7, "cacheReadTokens": 5,
        "maxPromptTokens": longest, "apiCallId": f"call-{number}",
    }  # fmt: skip
    return event("session.usage_record", number, usage=usage)


def test_each_request_s_bill_and_longest_prompt_are_kept_since_1_0_102() -> None:
    log = jsonl(
        event("session.start", 1, sessionId="s", copilotVersion="1.0.102", selectedModel="gpt-5"),
        event("user.message", 2, content="Hi", interactionId="i"),
        event("assistant.turn_start", 3, turnId="0"),
        kept_usage(4, 1000),
        event("assistant.message", 5, content="One.", messageId="m1", apiCallId="call-4"),
        event("assistant.turn_end", 6, turnId="0"),
        event("assistant.turn_start", 7, turnId="1"),
        kept_usage(8, 1100, None),
        event("assistant.message", 9, content="Two.", messageId="m2", apiCallId="call-8"),
        event("assistant.turn_end", 10, turnId="1"),
    )
    events, problems = imported(NAME, log)
    assert problems == []
    (budget,) = of_type(events, "context.budget.applied")
    assert budget["metadata"]["ctxctl"] == {"max_input": 128_000}
    assert "max_tokens" not in budget
    bills = of_type(events, "ctxctl.usage.reported")
    assert [(b["input_tokens"], b["cached_tokens"], b["output_tokens"]) for b in bills] == [
        (1000, 5, 7),
        (1100, 5, 7),
    ]
    assert len(of_type(events, "context.assembly.created")) == 2


def test_the_totals_of_a_session_do_not_replace_the_bill_of_its_one_request() -> None:
    totals = {"gpt-5": {"requests": {"count": 1}, "usage": {"inputTokens": 900, "outputTokens": 1}}}
    log = jsonl(
        event("session.start", 1, sessionId="s", copilotVersion="1.0.102", selectedModel="gpt-5"),
        event("user.message", 2, content="Hi", interactionId="i"),
        event("assistant.turn_start", 3, turnId="0"),
        kept_usage(4, 1000),
        event("assistant.message", 5, content="One.", messageId="m1", apiCallId="call-4"),
        event("session.shutdown", 6, modelMetrics=totals),
    )
    (bill,) = of_type(imported(NAME, log)[0], "ctxctl.usage.reported")
    assert bill["input_tokens"] == 1000
    assert "metadata" not in bill
