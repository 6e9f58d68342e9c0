"""VS Code chats: exports, and replay logs that hold every request whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers.copilot_chat import COPILOT_CHAT, COPILOT_CHATREPLAY
from ctxctl.importers.copilot_chat.reader import pieces, rendered
from tests.unit.importers.agent_help import FIXTURES, Json, imported, items, jsonl, of_type, windows, written

EXPORT = FIXTURES / "copilot_chat" / "export.json"
REPLAY = FIXTURES / "copilot_chatreplay" / "tides.json"
DEEP = 5_000


# -- exports ------------------------------------------------------------------------------------------------


def test_a_step_is_a_round_of_calls_or_the_answer() -> None:
    found = [w for w in windows(EXPORT, "copilot-chat") if "injection_not_recorded" not in w.step.flags]
    assert [w.turn for w in found] == ["request_1", "request_1", "request_2"]
    assert found[0].kinds() == [
        "runtime_state", "runtime_state", "runtime_state", "policy_note", "user_message"
    ]  # fmt: skip
    assert found[1].texts()[5:] == ["I look. ", 'list_dir {"path":"/tides"}', "monday.txt\ntuesday.txt"]
    assert found[2].texts()[-2:] == ["Yes: monday.txt", "Thanks."]


def test_the_last_answer_is_kept_and_a_cancelled_prompt_is_no_request() -> None:
    events, problems = imported("copilot-chat", EXPORT.read_bytes())
    texts = [item.get("content") for item in items(events).values()]
    assert "You are welcome." in texts
    assert "Never mind." in texts
    assert len(of_type(events, "context.injection.applied")) == 3
    assert not problems
    assert {e["session_id"] for e in events} == {"f56f201a-0000-4ada-9736-258cc5860000"}


def test_a_summary_stands_for_the_rounds_before_it() -> None:
    chat = json.loads(EXPORT.read_text())
    metadata = chat["requests"][0]["result"]["metadata"]
    metadata["summary"] = {"toolCallRoundId": "round-1", "text": "There is monday.txt."}
    events, _ = imported("copilot-chat", json.dumps(chat).encode())
    (compaction,) = of_type(events, "context.compaction.completed")
    assert len(compaction["source_item_refs"]) == 8


def stored(chat: Json) -> list[Json]:
    """The chat as VS Code's store comes to hold it."""
    first, *more = chat["requests"]
    begun = {name: field for name, field in first.items() if name != "result"}
    return [
        {"kind": 0, "v": {**chat, "requests": []}},
        {"kind": 2, "k": ["requests"], "v": [begun]},
        {"kind": 2, "k": ["requests"], "v": [{"requestId": "gone", "message": {"text": "gone"}}]},
        {"kind": 1, "k": ["requests", 0, "result"], "v": first["result"]},
        {"kind": 1, "k": ["requests", 7, "result"], "v": {}},
        {"kind": 2, "k": ["requests"], "v": more, "i": 1},
        {"kind": 1, "k": ["customTitle"], "v": "Tides"},
        {"kind": 3, "k": ["customTitle"]},
    ]


def test_a_log_of_changes_holds_what_the_export_holds(tmp_path: Path) -> None:
    records = stored(json.loads(EXPORT.read_text()))
    path = written(tmp_path, *records)
    assert COPILOT_CHAT.detect(path.read_bytes()) >= 80
    wanted = [(w.turn, w.items) for w in windows(EXPORT, "copilot-chat")]
    assert [(w.turn, w.items) for w in windows(path, "copilot-chat")] == wanted
    lost = jsonl(*records[1:])
    assert COPILOT_CHAT.detect(lost) >= 75
    assert of_type(imported("copilot-chat", lost)[0], "context.assembly.created")


@pytest.mark.parametrize(
    "change",
    [
        {"kind": 1, "k": 5, "v": 1},
        {"kind": 1, "k": [], "v": 1},
        {"kind": 1, "k": ["requests", "a", 0], "v": 1},
        {"kind": 1, "k": ["requests", True], "v": 1},
        {"kind": 1, "k": ["requests", -1], "v": 1},
        {"kind": 2, "k": ["requests", 0], "v": 1},
        {"kind": 2, "k": ["requests"], "v": 5, "i": -1},
        {"kind": 3, "k": ["requests", 0]},
        {"kind": 9},
    ],
)
def test_changes_of_any_shape_do_no_harm(change: Json) -> None:
    chat = json.loads(EXPORT.read_text())
    events, problems = imported("copilot-chat", jsonl({"kind": 0, "v": chat}, change))
    assert len(of_type(events, "context.assembly.created")) == 3
    assert [p.slug for p in problems] == (["unknown-record"] if change["kind"] == 9 else [])


# -- replay logs --------------------------------------------------------------------------------------------


def test_each_request_is_what_its_body_holds() -> None:
    found = [w for w in windows(REPLAY, "copilot-chatreplay") if w.thread == "main"]
    assert [w.billed() for w in found] == [900, 960, 1000]
    assert [w.turn for w in found] == ["prompt-1", "prompt-1", "prompt-2"]
    assert found[1].kinds() == [
        "tool_definition", "system_prompt", "runtime_state", "runtime_state", "user_message",
        "assistant_message", "tool_call", "tool_result",
    ]  # fmt: skip
    assert found[2].texts()[-3:] == ["06:12 3.4 m", "At 06:12.", "<userRequest>\nAnd low?\n</userRequest>\n"]
    assert found[0].step.window.limit == 127997
    assert found[1].step.counts.skipped == 5


def test_an_answer_is_the_message_that_the_next_request_repeats() -> None:
    events, _ = imported("copilot-chatreplay", REPLAY.read_bytes())
    texts = [e["data"].get("content") for e in events if e["event_type"] == "context.item.added"]
    assert texts.count("I read it.") == 1
    assert texts.count("At 12:20.") == 1


def test_other_requests_are_threads_of_their_own() -> None:
    (side,) = [w for w in windows(REPLAY, "copilot-chatreplay") if w.thread != "main"]
    assert side.thread == "copilotLanguageModelWrapper"
    assert side.texts() == ["Give the chat a title.", "When is high water?"]


# -- pieces, detection, damage ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "plain <context> in the middle",
        "<context>\nnever closed",
        "<context>\na\n</context>\n<userRequest>\nb\n</userRequest>\n",
        'before\n<attachments>\n<attachment id="a">\nx\n</attachment>\n</attachments>\nafter',
        "\n\n<userRequest>\nb\n</userRequest>",
    ],
)
def test_the_pieces_of_a_message_are_the_whole(text: str) -> None:
    assert "".join(piece.text for piece in pieces(text)) == text


def test_a_tree_of_any_depth_is_rendered() -> None:
    node: dict[str, Any] = {"type": 2, "text": "leaf", "lineBreakBefore": True}
    for _ in range(DEEP):
        node = {"type": 1, "children": [node]}
    assert rendered({"node": node}) == "leaf"
    assert rendered({"node": 5}) == rendered(None) == ""


def test_each_is_known_by_its_first_bytes() -> None:
    export, replay = EXPORT.read_bytes(), REPLAY.read_bytes()
    assert COPILOT_CHAT.detect(export) >= 90
    assert COPILOT_CHAT.detect(json.dumps(json.loads(export)).encode()[:300]) >= 80
    assert COPILOT_CHATREPLAY.detect(replay) >= 90
    assert COPILOT_CHAT.detect(replay) == COPILOT_CHATREPLAY.detect(export) == 0
    assert COPILOT_CHATREPLAY.detect(b'{"prompts": []}') == 0


@pytest.mark.parametrize("path", [EXPORT, REPLAY], ids=["export", "replay"])
def test_damaged_documents_do_not_raise(path: Any) -> None:
    name = "copilot-chat" if path is EXPORT else "copilot-chatreplay"
    data = path.read_bytes()
    for at in range(0, len(data), 97):
        imported(name, data[:at])
        imported(name, data[:at] + data[at + 5 :])


@pytest.mark.parametrize("value", [None, 7, "x", [], [3], {}, {"text": 4}, True])
def test_fields_of_any_type_are_tolerated(value: Any) -> None:
    def each(node: Any) -> list[Any]:
        """The document with each of its values replaced, one at a time."""
        if isinstance(node, dict):
            return [{**node, k: v} for k in node for v in [value, *each(node[k])]]
        if isinstance(node, list):
            return [
                [*node[:at], v, *node[at + 1 :]] for at in range(len(node)) for v in [value, *each(node[at])]
            ]
        return []

    for path, name in ((EXPORT, "copilot-chat"), (REPLAY, "copilot-chatreplay")):
        for changed in each(json.loads(path.read_text())):
            imported(name, json.dumps(changed).encode())
