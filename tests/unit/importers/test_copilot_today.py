"""Copilot CLI 1.0.102: a resumed session, results out of order, a sub-agent by either of its names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ctxctl.importers.registry import capture_events, detect
from ctxctl.trace.source import open_source
from tests.unit.importers.agent_help import FIXTURES, Json, imported, jsonl, of_type, windows

RESUMED = FIXTURES / "copilot_cli" / "resumed.jsonl"
NAME = "copilot-cli"


def main(path: Path) -> list[Any]:
    return [window for window in windows(path, NAME) if window.thread == "main"]


def event(kind: str, **data: Any) -> Json:
    outer = {name: data.pop(name) for name in ("agentId",) if name in data}
    return {"type": kind, "data": data, "id": f"e-{kind}-{len(data)}", "parentId": None,
            "timestamp": "2026-11-22T09:00:00.000Z", **outer}  # fmt: skip


def test_results_stand_in_the_order_of_their_calls() -> None:
    second = main(RESUMED)[1].texts()
    assert second[-3:] == [
        "06:12 3.4 m\n18:40 3.1 m\n<shellId: 1 completed with exit code 0>",
        None,
        "monday.txt\n<shellId: 0 completed with exit code 0>",
    ]


def test_a_failed_call_s_text_is_not_known_until_the_client_goes_on_from_its_log() -> None:
    before, after = main(RESUMED)[1], main(RESUMED)[2]
    assert before.texts().count(None) == 1
    assert "Path does not exist" not in before.texts()
    assert after.texts().count(None) == 0
    assert "Path does not exist" in after.texts()
    (item,) = (
        data
        for data in of_type(imported(NAME, RESUMED.read_bytes())[0], "context.item.added")
        if data["content_mode"] == "opaque"
    )
    assert item["metadata"]["native"] == {"success": False, "error": "Path does not exist"}


def test_an_older_version_s_message_of_a_failed_call_is_its_text(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(
        RESUMED.read_bytes().replace(b'"copilotVersion":"1.0.102"', b'"copilotVersion":"1.0.64"')
    )
    assert "Path does not exist" in main(path)[1].texts()


def test_a_sub_agent_s_events_are_one_thread_whichever_name_they_bear() -> None:
    found = windows(RESUMED, NAME)
    assert {window.thread for window in found} == {"main", "call_0030"}
    own = [window for window in found if window.thread != "main"]
    assert [window.billed() for window in own] == [3921, 4008]
    assert own[0].kinds() == ["system_prompt", "runtime_state", "user_message"]
    assert own[0].texts()[2] == "Count the lines of monday.txt"
    assert len({window.turn for window in own}) == 1
    assert [window.billed() for window in found if window.thread == "main"] == BILLS


BILLS = [13089, 13310, 13404, 13500]


def test_a_message_that_the_client_wrote_itself_is_no_answer(tmp_path: Path) -> None:
    call = {"toolCallId": "c9", "name": "read_agent", "arguments": {"agent_id": "a"}}
    path = tmp_path / "events.jsonl"
    path.write_bytes(
        jsonl(
            event("session.start", sessionId="s", copilotVersion="1.0.102", producer="copilot-agent"),
            event("user.message", content="go", interactionId="i"),
            event("assistant.turn_start", turnId="0"),
            event("assistant.message", content="waiting", model="gpt-5.4", turnId="0", apiCallId="r1"),
            event("assistant.turn_end", turnId="0"),
            event("assistant.message", content="", messageId="m", toolRequests=[call]),
            event("tool.execution_complete", toolCallId="c9", success=True, result={"content": "idle"}),
            event("assistant.turn_start", turnId="1"),
            event("assistant.message", content="done", model="gpt-5.4", turnId="1", apiCallId="r2"),
        )
    )
    found = main(path)
    assert [window.texts() for window in found] == [
        ["go"],
        ["go", "waiting", 'read_agent {"agent_id":"a"}', "idle"],
    ]


def test_reasoning_that_a_resumed_client_leaves_behind_is_in_no_later_window(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    held = {"provider": "openai-responses", "blocks": []}
    path.write_bytes(
        jsonl(
            event("session.start", sessionId="s", copilotVersion="1.0.102", producer="copilot-agent"),
            event("user.message", content="go", interactionId="i"),
            event("assistant.turn_start", turnId="0"),
            event("assistant.message", content="yes", messageId="m", model="gpt-5.4", apiCallId="r1",
                  reasoningText="hm", encryptedContent="c2VhbGVk", reasoningBlocks=held),
            event("assistant.turn_end", turnId="0"),
            event("user.message", content="again", interactionId="j"),
            event("assistant.turn_start", turnId="0"),
            event("assistant.message", content="so", messageId="n", model="gpt-5.4", apiCallId="r2"),
            event("assistant.turn_end", turnId="0"),
            event("session.resume", eventCount=9),
            event("user.message", content="more", interactionId="k"),
            event("assistant.turn_start", turnId="0"),
            event("assistant.message", content="ok", messageId="o", model="gpt-5.4", apiCallId="r3"),
        )
    )  # fmt: skip
    assert [window.texts() for window in main(path)] == [
        ["go"],
        ["go", "hm", None, "yes", "again"],
        ["go", "yes", "again", "so", "more"],
    ]


def test_a_picture_beside_the_log_stands_behind_the_line_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    picture = {"type": "file", "path": "/home/user/tides/pic.png", "displayName": "pic.png",
               "assetId": "sha256:6b7fa434f92a8b80aab02d9bf1a12e49", "mimeType": "image/png",
               "byteLength": 70}  # fmt: skip
    left_out = {**picture, "omittedReason": "too_large"}
    path.write_bytes(
        jsonl(
            event("session.start", sessionId="s", copilotVersion="1.0.102", producer="copilot-agent"),
            event("user.message", content="Look.", interactionId="i", attachments=[picture, left_out]),
            event("assistant.turn_start", turnId="0"),
            event("assistant.message", content="yes", messageId="m", model="gpt-5.4", apiCallId="r1"),
        )
    )
    (found,) = main(path)
    assert found.texts() == ["Look.", "Image file at path /home/user/tides/pic.png", None]
    assert found.kinds() == ["user_message", "policy_note", "image"]


def test_a_summary_stands_for_what_was_there_when_it_was_begun(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(
        jsonl(
            event("session.start", sessionId="s", copilotVersion="1.0.102", producer="copilot-agent"),
            event("user.message", content="go", interactionId="i"),
            event("assistant.turn_start", turnId="0"),
            event("assistant.message", content="one", messageId="m", model="gpt-5.4", apiCallId="r1"),
            event("assistant.turn_end", turnId="0"),
            event("session.compaction_start", trigger="threshold"),
            event("user.message", content="more", interactionId="j"),
            event("assistant.turn_start", turnId="0"),
            event("assistant.message", content="two", messageId="n", model="gpt-5.4", apiCallId="r2"),
            event("assistant.turn_end", turnId="0"),
            event("session.compaction_complete", success=True, summaryContent="so far"),
            event("user.message", content="end", interactionId="k"),
            event("assistant.turn_start", turnId="0"),
            event("assistant.message", content="three", messageId="o", model="gpt-5.4", apiCallId="r3"),
            event("session.context_cleared", messagesCleared=5),
            event("user.message", content="new", interactionId="l"),
            event("assistant.turn_start", turnId="0"),
            event("assistant.message", content="four", messageId="p", model="gpt-5.4", apiCallId="r4"),
        )
    )
    assert [window.texts() for window in main(path)] == [
        ["go"],
        ["go", "one", "more"],
        ["so far", "more", "two", "end"],
        ["new"],
    ]


def test_every_event_of_the_fixtures_is_one_that_the_importer_knows() -> None:
    found: list[str] = []
    for path in sorted(RESUMED.parent.glob("*.jsonl")):
        with open_source(path) as source:
            form = detect(source)
            assert form is not None
            for _ in capture_events(form, source, lambda one: found.append(one.slug)):
                pass
    assert "unknown-type" not in found
    assert "newer-version" not in found
