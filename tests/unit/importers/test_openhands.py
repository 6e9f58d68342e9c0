"""OpenHands event streams: 0.x, evaluation outputs, and the V1 SDK."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ctxctl.model.results import Step
from ctxctl.session import Inspector
from tests.unit.importers.trajectories import detected, read

Json = dict[str, Any]


def test_actions_of_one_response_are_one_step_billed_once() -> None:
    found = read(Path("openhands/events.json"))
    main = [r for r in found.requests() if r.thread == "main"]
    assert [r.step for r in main] == ["event-4", "event-9", "event-15"]
    assert [r.turn for r in main] == ["event-1"] * 3
    assert found.usage() == [(101, 50, 10), (102, 50, 10), (103, 50, 10)]
    assert main[1].items[-4:] == ["toolu_1", "toolu_2", "toolu_1/result", "toolu_2/result"]


def test_system_event_holds_prompt_and_tools() -> None:
    found = read(Path("openhands/events.json"))
    assert found.kinds(0)[:3] == ["tool_definition", "system_prompt", "user_message"]
    assert found.items()["event-0"]["content"] == "You are an agent with a shell."


def test_what_is_recalled_is_context_of_its_own() -> None:
    found = read(Path("openhands/events.json"))
    items = found.items()
    assert items["event-3"]["content"] == "Run make weed first."
    assert items["event-3/1"]["metadata"]["ctxctl"]["derived"] is True
    assert items["microagent:github"]["source_refs"][0]["source_id"] == "github"
    assert found.kinds(0)[3:] == ["image", "external_resource", "runtime_state", "external_resource"]


def test_condensation_takes_events_out_and_its_summary_in() -> None:
    found = read(Path("openhands/events.json"))
    last = [r for r in found.requests() if r.thread == "main"][-1]
    assert "event-14" in last.items
    assert not {"event-4", "toolu_1", "toolu_2/result"} & set(last.items)
    (record,) = found.of("context.compaction.completed")
    assert record["compaction_id"] == "event-14"
    assert len(record["source_item_refs"]) == 5
    assert record["summary_ref"].startswith("event-14@")


def test_a_microagent_that_was_condensed_away_is_told_again_and_one_still_there_is_not() -> None:
    def recalled(number: int) -> Json:
        agents = [{"name": name, "content": f"How {name} works."} for name in ("github", "docker")[:number]]
        extras = {"recall_type": "knowledge", "microagent_knowledge": agents}
        return {"source": "environment", "observation": "recall", "content": "", "extras": extras}

    def said(source: str, text: str) -> Json:
        return {"source": source, "action": "message", "args": {"content": text}}

    forget: Json = {"forgotten_event_ids": [1, 2], "summary": "Early talk.", "summary_offset": 0}
    told = [
        said("user", "first"), recalled(1), said("agent", "one"), said("user", "second"), recalled(2),
        said("agent", "two"), {"source": "agent", "action": "condensation", "args": forget},
        said("user", "third"), recalled(2), said("agent", "three"),
    ]  # fmt: skip
    events = [{"id": n, "timestamp": "2026-01-01T00:00:00", **one} for n, one in enumerate(told, 1)]
    windows = [
        [item.removeprefix("microagent:") for item in one.items if item.startswith("microagent:")]
        for one in read(events).requests()
    ]
    assert windows == [["github"], ["github", "docker"], ["docker", "github"]]


def test_delegate_is_a_thread_with_its_origin() -> None:
    found = read(Path("openhands/events.json"))
    (inner,) = [r for r in found.requests() if r.thread != "main"]
    origin = inner.data["metadata"]["ctxctl"]
    assert inner.thread == "BrowsingAgent-9"
    assert (origin["agent_type"], origin["parent_tool_call"]) == ("BrowsingAgent", "toolu_3")
    assert inner.items == ["event-10"]


def test_outputs_of_evaluations_are_sessions() -> None:
    found = read(Path("openhands/output.jsonl"))
    assert [(r.session, r.model) for r in found.requests()] == [
        ("logic-1", "acme-old"),
        ("logic-1", "acme-old"),
        ("acme__garden-7", "acme-large"),
        ("acme__garden-7", "acme-large"),
    ]


def test_accumulated_counts_give_the_difference_marked_derived() -> None:
    bills = read(Path("openhands/output.jsonl")).of("ctxctl.usage.reported")
    assert [(b["input_tokens"], b["output_tokens"]) for b in bills] == [(500, 20), (560, 8)]
    assert all(b["metadata"]["ctxctl"]["derived"] for b in bills)


def test_counts_that_shrink_are_no_usage() -> None:
    def event(number: int, total: int) -> Json:
        metrics = {"accumulated_token_usage": {"prompt_tokens": total, "completion_tokens": number}}
        return {
            "id": number,
            "timestamp": "2025-01-01T00:00:00",
            "source": "agent",
            "action": "run",
            "args": {"command": "x"},
            "llm_metrics": metrics,
        }

    assert read([event(1, 100), event(2, 90), event(3, 130)]).usage() == [(100, None, 1), (40, None, 1)]


def test_sdk_events_share_a_response_and_take_usage_from_the_state() -> None:
    found = read(Path("openhands/sdk.jsonl"))
    first, second = found.requests()
    assert (first.step, second.step) == ("event-e0003", "event-e0008")
    assert found.kinds(0) == ["tool_definition", "system_prompt", "user_message", "external_resource"]
    assert second.items[-2:] == ["event-e0002/1", "event-e0007"] or "event-e0007" in second.items
    assert found.usage() == [(700, 600, 30), (400, 0, 6)]
    assert found.items()["call_2/result"]["content"] == "no room for b.txt"
    assert found.items()["call_1"]["title"] == "file_editor: a.txt"


def test_directory_of_event_files_is_read_by_number(tmp_path: Path) -> None:
    lines = (Path(__file__).parents[3] / "fixtures/openhands/sdk.jsonl").read_text().splitlines()
    events = tmp_path / "c1" / "events"
    events.mkdir(parents=True)
    for number, line in enumerate(lines[:-1]):
        (events / f"event-{number:05}-0000aaaa-1111.json").write_text(line)
    stats = {"stats": json.loads(lines[-1])["value"]}
    (tmp_path / "c1" / "base_state.json").write_text(json.dumps(stats))
    found = read(tmp_path)
    assert found.format == "openhands"
    assert found.usage() == [(700, 600, 30), (400, 0, 6)]
    assert found.events[0]["metadata"]["ctxctl"]["source_file"].endswith("-0000aaaa-1111.json")


def test_event_that_comes_twice_counts_once() -> None:
    event = {
        "id": 1,
        "timestamp": "2025-01-01T00:00:00",
        "source": "user",
        "action": "message",
        "args": {"content": "hi"},
    }
    answer = {**event, "id": 2, "source": "agent", "args": {"content": "ho"}}
    found = read([event, event, answer])
    assert [p.slug for p in found.problems] == ["duplicate-event"]
    assert found.requests()[0].items == ["event-1"]


def test_detection_wants_a_source_with_args_or_extras() -> None:
    assert (
        detected([{"id": 1, "source": "user", "action": "message", "args": {}, "timestamp": "x"}])
        == "openhands"
    )
    assert detected([{"id": 1, "source": "user", "action": "message"}]) is None
    assert detected('{"kind": "ActionEvent", "source": "agent", "id": "a"}\n') == "openhands"


def test_wrong_types_everywhere_do_no_harm() -> None:
    base = {"source": "agent", "timestamp": 5, "message": None}
    events: list[Any] = [
        3,
        {
            **base,
            "id": [],
            "action": "run",
            "args": 3,
            "tool_call_metadata": {"model_response": {"choices": [3]}},
        },
        {**base, "id": 2, "observation": "run", "content": {"a": 1}, "extras": []},
        {
            **base,
            "id": 3,
            "action": "condensation",
            "args": {
                "forgotten_event_ids": 4,
                "forgotten_events_start_id": 0,
                "forgotten_events_end_id": 10**12,
                "summary_offset": -1,
            },
        },
        {**base, "id": 4, "observation": "recall", "extras": {"microagent_knowledge": [3, {"name": 4}]}},
        {**base, "id": "e", "kind": "ActionEvent", "tool_call": 3, "thought": 4},
        {**base, "id": "f", "kind": "MessageEvent", "llm_message": []},
        {**base, "id": "g", "kind": "Condensation", "forgotten_event_ids": [{}], "summary": 3},
        {**base, "id": 9, "action": "message", "args": {"content": None}, "extras": {}},
    ]
    found = read(events)
    assert found.requests()


def test_runs_of_one_instance_are_sessions_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "output.jsonl"
    said = [{"id": 0, "source": "user", "action": "message", "args": {"content": "hi"}},
            {"id": 1, "source": "agent", "action": "message", "args": {"content": "hello"}}]  # fmt: skip
    line = json.dumps({"instance_id": "one", "history": said})
    path.write_text(f"{line}\n{line}\n")
    with Inspector.open(path, format="openhands") as inspector:
        assert [r.session for r in inspector.replay() if isinstance(r, Step)] == ["one", "one~2"]
        assert inspector.problems == []


def test_a_refused_action_is_told_in_the_sdks_words() -> None:
    base = {"timestamp": "2026-01-01T00:00:00", "source": "agent"}
    message = {"role": "user", "content": [{"type": "text", "text": "Go."}]}
    call = {"id": "c1", "name": "run", "arguments": "{}"}
    action = {
        **base,
        "tool_name": "run",
        "tool_call_id": "c1",
        "tool_call": call,
        "action": {},
        "thought": [],
    }
    refused = {**base, "tool_name": "run", "tool_call_id": "c1", "rejection_reason": "Not now."}
    found = read(
        [
            {**base, "id": "e1", "kind": "MessageEvent", "source": "user", "llm_message": message},
            {**action, "id": "e2", "kind": "ActionEvent", "llm_response_id": "r1"},
            {**refused, "id": "e3", "kind": "UserRejectObservation", "action_id": "e2"},
        ]
    )
    assert found.items()["c1/result"]["content"] == "Action rejected: Not now."
