from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.importers.calls_help import FIXTURES, detected, events, seen, slugs

Json = dict[str, Any]
NAME = "claude-stream-json"
FOLDER = FIXTURES / "claude_stream_json"
RUN = (FOLDER / "run.jsonl").read_bytes()
PARTIAL = (FOLDER / "partial.jsonl").read_bytes()
WRAPPED = (FOLDER / "wrapped.jsonl").read_bytes()
SESSION = "5e55105a-0000-4000-8000-000000000001"


def records(data: bytes) -> list[Json]:
    return [json.loads(line) for line in data.splitlines()]


def lines(values: list[Json]) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def bills(data: bytes) -> dict[str, tuple[int, int | None]]:
    """Input and output tokens billed, by step."""
    found, _ = events(NAME, data)
    used = [e for e in found if e["event_type"] == "ctxctl.usage.reported"]
    return {e["step_id"]: (e["data"]["input_tokens"], e["data"].get("output_tokens")) for e in used}


def assistant(identity: str, text: str, **fields: Any) -> Json:
    message = {"id": identity, "type": "message", "role": "assistant", "model": "claude-sonnet-5"}
    message["content"] = [{"type": "text", "text": text}]  # type: ignore[assignment]
    return {
        "type": "assistant", "message": message | fields, "session_id": "s", "parent_tool_use_id": None,
        "uuid": f"u-{identity}-{text}",
    }  # fmt: skip


def user(text: str, **fields: Any) -> Json:
    return {
        "type": "user", "message": {"role": "user", "content": text}, "session_id": "s",
        "parent_tool_use_id": None, "uuid": f"u-{text}", **fields,
    }  # fmt: skip


def windows(values: list[Json]) -> list[list[str]]:
    """The items of each request's window, the splices of its assembly done."""
    found, _ = events(NAME, lines(values))
    window: list[str] = []
    all_windows = []
    for event in found:
        if event["event_type"] == "context.assembly.created":
            fresh = [block["block_id"] for block in event["data"]["ordered_blocks"]]
            splices = event["data"]["metadata"]["ctxctl"].get("splices")
            for at, removed, added in reversed(splices if splices is not None else [[0, 0, len(fresh)]]):
                window[at : at + removed] = fresh[len(fresh) - added :] if added else []
                fresh = fresh[: len(fresh) - added]
            all_windows.append(list(window))
    return all_windows


def test_a_message_id_is_a_step_and_its_blocks_stand_before_the_results_of_its_calls() -> None:
    steps, problems = seen("claude_stream_json/run.jsonl")
    main = [step for step in steps if step.thread == "main"]
    assert [(step.turn, step.billed) for step in main] == [(1, 30010), (1, 30208), (2, 30356), (2, 21109)]
    assert main[0].window == [("user_message", "How hot does the kiln get?")]
    assert main[1].kinds() == [
        "user_message", "reasoning", "tool_call", "tool_call", "tool_result", "tool_result",
    ]  # fmt: skip
    assert not problems


def test_sub_agents_are_threads_with_their_origin() -> None:
    steps, _ = seen("claude_stream_json/run.jsonl")
    agent = [step for step in steps if step.thread == "agent-toolu_2"]
    assert [step.kinds() for step in agent] == [
        ["user_message"],
        ["user_message", "tool_call", "tool_result"],
    ]
    found, _ = events(NAME, RUN)
    first = next(e for e in found if e.get("step_id") == "msg_s1" and "assembly" in e["event_type"])
    assert first["data"]["metadata"]["ctxctl"].items() >= {
        "parent_thread": "main", "parent_tool_call": "toolu_2", "agent_type": "Explore",
    }.items()  # fmt: skip
    assert {e.get("session_id") for e in found if "step_id" in e} == {SESSION}


def test_a_compaction_leaves_its_summary_and_what_was_preserved() -> None:
    steps, _ = seen("claude_stream_json/run.jsonl")
    last = [step for step in steps if step.thread == "main"][-1]
    assert last.kinds() == ["thread_summary", "tool_call", "tool_result"]
    found, _ = events(NAME, RUN)
    told = next(e["data"] for e in found if e["event_type"] == "context.compaction.completed")
    assert told["trigger"] == "token_pressure"
    assert told["metadata"]["native"] == {"trigger": "auto", "pre_tokens": 30400, "post_tokens": 900}
    assert not any("toolu_3" in ref for ref in told["source_item_refs"])


@pytest.mark.parametrize("end", ["head_uuid", "tail_uuid"])
def test_an_end_of_what_a_compaction_preserved_that_is_no_name(end: str) -> None:
    broken = [json.loads(line) for line in RUN.splitlines()]
    (boundary,) = (one for one in broken if "compact_metadata" in one)
    boundary["compact_metadata"]["preserved_segment"][end] = [{"a": "x"}]
    found, _ = events(NAME, lines(broken))
    (told,) = (e["data"] for e in found if e["event_type"] == "context.compaction.completed")
    assert any("toolu_3" in ref for ref in told["source_item_refs"])


def test_outputs_are_told_where_the_answer_ended_and_totals_are_not_added() -> None:
    assert bills(RUN) == {
        "msg_1": (30010, None), "msg_s1": (3004, None), "msg_s2": (3093, 4), "msg_2": (30208, 31),
        "msg_3": (30356, 1), "msg_4": (21109, 19),
    }  # fmt: skip
    assert bills(PARTIAL) == {"msg_p1": (31010, 88), "msg_p2": (31308, 12)}


def test_the_totals_of_an_older_result_are_those_of_its_only_call() -> None:
    usage = {"input_tokens": 3, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 5}
    called = assistant("msg_1", "hi", usage={**usage, "output_tokens": 1})
    total = {"type": "result", "subtype": "success", "session_id": "s", "num_turns": 1}
    assert bills(lines([called, {**total, "usage": {**usage, "output_tokens": 6}}])) == {"msg_1": (15, 6)}
    more = {**usage, "input_tokens": 9, "output_tokens": 6}
    assert bills(lines([called, {**total, "usage": more}])) == {"msg_1": (15, None)}


def test_the_window_is_the_models_own_from_the_end_of_the_run() -> None:
    found, _ = events(NAME, RUN)
    budgets = [e["data"] for e in found if e["event_type"] == "context.budget.applied"]
    assert [b["max_tokens"] for b in budgets] == [1_000_000] * 6


def test_partial_messages_add_nothing_to_what_the_lines_told() -> None:
    plain = [value for value in records(PARTIAL) if value["type"] != "stream_event"]
    with_pieces, _ = seen("claude_stream_json/partial.jsonl")
    assert [step.kinds() for step in with_pieces] == [[], ["reasoning", "tool_call", "tool_result"]]
    assert len(windows(plain)) == len(windows(records(PARTIAL))) == 2
    assert windows(plain) == windows(records(PARTIAL))


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_partial_messages_stand_in_for_a_line_that_is_missing(lost: int) -> None:
    whole = records(PARTIAL)
    gone = [value for value in whole if value["type"] == "assistant"][lost]
    found, problems = events(NAME, lines([value for value in whole if value is not gone]))
    added = [e["data"] for e in found if e["event_type"] == "context.item.added"]
    kinds = [item["context_kind"] for item in added]
    assert kinds == ["reasoning", "tool_call", "tool_result", "assistant_message"]
    derived = [item for item in added if item.get("metadata", {}).get("ctxctl", {}).get("derived")]
    assert len(derived) == 1
    assert [item["content"] for item in added] == [
        "Look at the shelf.", 'Bash {"command":"ls shelf"}', "bowl\nvase", "A bowl and a vase.",
    ]  # fmt: skip
    assert not problems


def test_a_request_that_only_partial_messages_tell_of_is_a_step() -> None:
    whole = [value for value in records(PARTIAL) if value["type"] != "assistant"]
    assert bills(lines(whole)) == {"msg_p1": (31010, 88), "msg_p2": (31308, 12)}


def test_fields_that_were_moved_under_message() -> None:
    steps, problems = seen("claude_stream_json/wrapped.jsonl")
    assert [step.kinds() for step in steps] == [
        [],
        ["assistant_message", "tool_call", "tool_result"],
        ["thread_summary"],
    ]
    assert bills(WRAPPED) == {"msg_w1": (25002, None), "msg_w2": (25406, None), "msg_w3": (12903, 9)}
    assert not problems


def test_an_error_is_no_request() -> None:
    steps, problems = seen("claude_stream_json/refused.jsonl")
    assert not steps
    assert slugs(problems) == ["no-model-calls"]
    assert (
        "Not logged in; looked at 3 records (system 1, assistant 1, result 1; keys type"
        in problems[0].message
    )
    found, _ = events(NAME, RUN)
    assert not any("overloaded" in json.dumps(event) for event in found)


def test_a_user_line_that_nobody_typed_is_no_prompt() -> None:
    values = [
        user("Fire it", isReplay=True), assistant("msg_1", "On."), user("Stop hook: wait", isSynthetic=True),
        assistant("msg_2", "I wait."), user("<command-name>/cost</command-name>"), user("And now?"),
        assistant("msg_3", "Now."),
    ]  # fmt: skip
    found, _ = events(NAME, lines(values))
    turns = {e["step_id"]: e["turn_id"] for e in found if "step_id" in e}
    assert turns == {"msg_1": "u-Fire it", "msg_2": "u-Fire it", "msg_3": "u-And now?"}
    kinds = [e["data"]["context_kind"] for e in found if e["event_type"] == "context.item.added"]
    assert kinds.count("policy_note") == 1
    assert kinds.count("runtime_state") == 1


def test_repeated_lines_are_told_once() -> None:
    values = [user("Fire it"), user("Fire it"), assistant("msg_1", "On."), assistant("msg_1", "On."),
              assistant("msg_2", "Off.")]  # fmt: skip
    found, problems = events(NAME, lines(values))
    assert slugs(problems) == ["duplicate-uuid", "duplicate-uuid"]
    assert windows(values)[-1] == ["u-Fire it", "u-msg_1-On."]
    assert [e["step_id"] for e in found if "assembly" in e["event_type"]] == ["msg_1", "msg_2"]


def test_what_was_taken_back_leaves_the_window() -> None:
    values = [
        user("Fire it"), assistant("msg_1", "No."),
        {"type": "system", "subtype": "model_refusal_fallback", "session_id": "s",
         "retracted_message_uuids": ["u-msg_1-No.", 5, "x"]},
        assistant("msg_2", "On."), assistant("msg_3", "Done."),
    ]  # fmt: skip
    assert windows(values) == [["u-Fire it"], ["u-Fire it"], ["u-Fire it", "u-msg_2-On."]]


def test_answers_made_up_locally_stay_but_are_no_request() -> None:
    values = [assistant("x", "No response requested.", model="<synthetic>"), assistant("msg_1", "Hi.")]
    assert windows(values) == [["u-x-No response requested."]]


def test_one_array_and_two_runs_in_one_file() -> None:
    array = b"[" + b",".join(RUN.splitlines()) + b"]"
    assert detected(array) == NAME
    assert bills(array) == bills(RUN)
    again = RUN.replace(SESSION.encode(), b"other").replace(b'"msg_', b'"msg_b')
    found, _ = events(NAME, RUN + again)
    assert {e.get("session_id") for e in found if "step_id" in e} == {SESSION, "other"}


def test_wrong_types_are_tolerated() -> None:
    wrong: list[Any] = [
        {"type": "system", "subtype": "init", "tools": 5, "session_id": 7},
        {"type": "system", "subtype": "compact_boundary", "compact_metadata": 4},
        {"type": "assistant", "message": {"content": [4, {"type": 7}, {}], "usage": {"input_tokens": "x"}}},
        {"type": "user", "message": {"content": {"a": 1}}},
        {"type": "stream_event", "event": {"type": "message_start", "message": {"id": 5}}},
        {"type": "stream_event", "event": {"type": "content_block_start", "index": "a"}},
        {"type": "stream_event", "event": {"type": "content_block_delta", "index": 0, "delta": 5}},
        {"type": "stream_event", "event": {"type": "message_delta", "usage": []}},
        {"type": "result", "usage": 5, "modelUsage": {"m": 4}, "is_error": True},
        {"type": ["x"]}, 7,
    ]  # fmt: skip
    found, problems = events(NAME, lines(wrong))
    assert found
    assert slugs(problems) == ["not-a-record", "unknown-type"]


@pytest.mark.parametrize("name", ["run", "partial", "wrapped", "refused"])
def test_detection_by_any_line(name: str) -> None:
    data = (FOLDER / f"{name}.jsonl").read_bytes()
    assert detected(data) == NAME
    assert detected(b"\xef\xbb\xbf\n" + data) == NAME
    assert detected(data[len(data.splitlines()[0]) // 2 :]) == NAME
    assert detected(b"\n".join(data.splitlines()[1:])) == NAME


def test_detection_of_others() -> None:
    cursor = {"type": "system", "subtype": "init", "apiKeySource": "login", "cwd": "/", "session_id": "s"}
    said = {"type": "assistant", "message": {"role": "assistant", "content": []}, "session_id": "s"}
    assert detected(lines([cursor, said])) != NAME
    assert detected((FIXTURES / "claude_code" / "session.jsonl").read_bytes()) == "claude-code"
    long = {"type": "user", "message": {"role": "user", "content": "x" * 70_000}, "parent_tool_use_id": None}
    first = {"type": "user", "parent_tool_use_id": None, "session_id": "s", **long}
    assert detected(lines([first])) == NAME


def test_hours_in_the_cache_and_the_reason_of_a_miss_come_along() -> None:
    usage = {
        "input_tokens": 10, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 4,
        "cache_creation": {"ephemeral_1h_input_tokens": 3},
    }  # fmt: skip
    reason = {"cache_miss_reason": {"type": "tools_changed"}}
    found, _ = events(NAME, lines([user("go"), assistant("m1", "hi", usage=usage, diagnostics=reason)]))
    [bill] = [e["data"] for e in found if e["event_type"] == "ctxctl.usage.reported"]
    assert (bill["cache_write_tokens"], bill["cache_write_1h_tokens"]) == (4, 3)
    assert bill["cache_miss_cause"] == "tools_changed"
