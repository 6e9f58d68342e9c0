"""ATIF trajectories: steps, sub-agents, continuations after a summarisation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ctxctl.importers.atif import detect_folder
from ctxctl.ingest.folder import Folder
from tests.unit.importers.trajectories import detected, read

Json = dict[str, Any]


def trajectory(*steps: Json, **more: Any) -> Json:
    return {
        "schema_version": "ATIF-v1.5",
        "session_id": "s",
        "agent": {"name": "a"},
        "steps": list(steps),
        **more,
    }


def step(number: Any, source: Any, message: Any = "x", **more: Any) -> Json:
    return {"step_id": number, "source": source, "message": message, **more}


def test_each_step_of_the_agent_is_a_request() -> None:
    found = read(Path("atif/trajectory.json"))
    assert found.format == "atif"
    main = [r for r in found.requests() if r.thread == "main"]
    assert [(r.session, r.turn, r.step) for r in main] == [
        ("s-9", "step-2", "step-3"),
        ("s-9", "step-2", "step-6"),
    ]
    assert found.kinds(0) == ["tool_definition", "system_prompt", "user_message", "image"]


def test_only_the_first_words_of_the_system_are_its_prompt() -> None:
    said = [
        step(1, "system", ""),
        step(2, "system", "Be brief."),
        step(3, "system", "Be kind."),
        step(4, "user"),
    ]
    found = read(trajectory(*said, step(5, "agent")))
    assert found.kinds(0) == ["system_prompt", "policy_note", "user_message"]


def test_later_steps_of_the_system_are_notes_and_steps_without_a_call_are_no_requests() -> None:
    found = read(Path("atif/trajectory.json"))
    items = found.items()
    assert items["step-4"]["context_kind"] == "policy_note"
    assert items["step-5"]["context_kind"] == "assistant_message"


def test_bill_of_several_calls_is_not_one_request_s() -> None:
    assert read(Path("atif/trajectory.json")).usage() == [(210, 128, 12), (30, None, 3)]


def test_embedded_sub_agent_is_a_thread_of_its_call() -> None:
    (inner,) = [r for r in read(Path("atif/trajectory.json")).requests() if r.thread != "main"]
    origin = inner.data["metadata"]["ctxctl"]
    assert (inner.thread, origin["agent_type"], origin["parent_tool_call"]) == ("child-1", "seer", "c1")


def test_request_that_an_exporter_kept_is_the_window() -> None:
    found = read(Path("atif/request.json"))
    (request,) = found.requests()
    assert not request.derived
    assert found.kinds(0) == ["tool_definition", "system_prompt", "user_message"]
    assert found.usage() == [(44, 0, 2)]


def test_continuation_goes_on_in_the_same_thread_after_one_compaction() -> None:
    found = read(Path("atif/summarised"))
    main = [r for r in found.requests() if r.thread == "main"]
    assert [r.step for r in main] == ["step-2", "step-3", "step-1.5"]
    assert main[2].items == ["step-1", "step-1.2", "step-1.3", "step-1.4"]
    (record,) = found.of("context.compaction.completed")
    assert record["compaction_id"] == "step-4"
    assert len(record["source_item_refs"]) == 4
    assert record["summary_ref"].startswith("step-1.2@")
    assert found.items()["step-1.2"]["context_kind"] == "thread_summary"


def test_summarising_agent_is_a_thread_whose_copied_steps_are_no_requests() -> None:
    found = read(Path("atif/summarised"))
    (inner,) = [r for r in found.requests() if r.thread != "main"]
    assert (inner.thread, inner.step) == ("summarization-1-summary", "step-4")
    assert inner.items == ["step-1", "step-2", "step-3"]


def test_continuation_alone_begins_with_what_it_copied() -> None:
    found = read(Path("atif/summarised/trajectory.cont-1.json"))
    (request,) = found.requests()
    assert request.items == ["step-1", "step-2", "step-3", "step-4"]


def test_calls_that_a_continuation_copied_are_the_same_items(tmp_path: Path) -> None:
    call = {"tool_call_id": "c1", "function_name": "look", "arguments": {}}
    seen = {"results": [{"source_call_id": "c1", "content": "seen"}]}
    asked = step(1, "user", "task")
    looked = step(2, "agent", "look", tool_calls=[call], observation=seen)
    first = trajectory(asked, looked, step(3, "agent"), continued_trajectory_ref="trajectory.cont-1.json")
    copied = [{**asked, "is_copied_context": True}, {**looked, "is_copied_context": True}]
    (tmp_path / "trajectory.json").write_text(json.dumps(first))
    (tmp_path / "trajectory.cont-1.json").write_text(json.dumps(trajectory(*copied, step(3, "agent", "y"))))
    requests = read(tmp_path).requests()
    assert requests[-1].items == ["step-1", "step-2", "c1", "c1/result"]


def test_a_result_without_a_calls_id_goes_by_the_steps_only_call() -> None:
    call = {"tool_call_id": "c1", "function_name": "look", "arguments": {"path": "x"}}
    seen = {"results": [{"content": "seen"}]}
    looked = step(2, "agent", "look", tool_calls=[call], observation=seen)
    items = read(trajectory(step(1, "user"), looked, step(3, "agent"))).items()
    assert items["step-2/observation"]["title"] == "look: x"


def test_summarisation_without_continuation_keeps_the_first_message_and_says_what_is_lost() -> None:
    management = {"context_management": {"type": "compaction"}}
    found = read(
        trajectory(
            step(1, "user", "task"),
            step(2, "agent", "a"),
            step(3, "system", "cut", extra=management),
            step(4, "user", "go on"),
            step(5, "agent", "b"),
        )
    )
    assert found.requests()[1].items == ["step-1", "step-4"]
    (record,) = found.of("context.compaction.completed")
    assert record["loss_notes"]
    assert record["metadata"]["ctxctl"]["derived"] is True


def test_detection_by_version_or_by_steps() -> None:
    assert detected({"schema_version": "ATIF-v1.2"}) == "atif"
    assert detected({"session_id": "x", "steps": [step(1, "user")]}) == "atif"
    assert detected({"steps": [{"step_id": 1}]}) is None


def test_wrong_types_everywhere_do_no_harm() -> None:
    steps: list[Any] = [
        3,
        step(1, 4, {"a": 1}),
        step([], "agent", 5, tool_calls=[3, {"function_name": 4, "arguments": "{"}]),
        step(
            2,
            "agent",
            None,
            observation={"results": [3, {"content": [None, {"type": "image", "source": 4}]}]},
        ),
        step(
            3,
            "system",
            "x",
            observation=[],
            metrics={"prompt_tokens": "many"},
            extra={"llm_request": {"input": 4}},
        ),
        step(4, "agent", "y", metrics={"prompt_tokens": -1}, is_copied_context="yes"),
    ]
    found = read(trajectory(*steps, subagent_trajectories=[3, {"steps": 4}], continued_trajectory_ref=4))
    assert len(found.requests()) == 3
    assert found.usage() == []


def test_a_trajectory_below_a_directory_is_not_all_of_it() -> None:
    fixtures = Path(__file__).parents[3] / "fixtures" / "atif"
    assert detect_folder(Folder("x", fixtures / "summarised")) > 0
    assert detect_folder(Folder("x", fixtures)) == 0, "it holds two more"
