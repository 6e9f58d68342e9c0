from __future__ import annotations

import json
from pathlib import Path

from ctxctl.model.results import Step
from ctxctl.session import Inspector
from tests.unit.importers.calls_help import FIXTURES, detected, events, seen, slugs

PATH = "copilot_snapshots/tides.yaml"
DATA = (FIXTURES / PATH).read_bytes()


def test_each_answer_is_a_step_and_no_request_is_told_twice() -> None:
    steps, problems = seen(PATH)
    assert sorted((step.thread, step.turn) for step in steps) == [
        ("conversation-2", 1), ("main", 1), ("main", 1), ("main", 2), ("main", 3),
    ]  # fmt: skip
    assert not problems


def test_placeholders_and_images_have_no_text() -> None:
    steps, _ = seen(PATH)
    assert steps[0].window[0] == ("system_prompt", None)
    assert steps[0].window[1] == ("user_message", "When is high tide in ${workdir}?\ntide.png")
    assert steps[0].window[2] == ("image", None)
    assert steps[2].window[-1] == ("user_message", None), "the prompt that asks for a summary is not recorded"


def test_a_sub_agent_is_a_thread_of_the_call_that_began_it() -> None:
    found, _ = events("copilot-snapshots", DATA)
    origins = [
        e["data"]["metadata"]["ctxctl"] for e in found if e["event_type"] == "context.assembly.created"
    ]
    (origin,) = [o for o in origins if "parent_tool_call" in o]
    assert origin["parent_thread"] == "main"
    assert origin["parent_tool_call"] == "toolcall_0"
    assert origin["agent_type"] == "explore"
    assert all(o.get("derived") for o in origins)


def test_nothing_is_billed_and_the_model_is_the_only_one() -> None:
    steps, _ = seen(PATH)
    assert {step.billed for step in steps} == {None}
    assert {step.model for step in steps} == {"claude-sonnet-4.5"}
    two, _ = events("copilot-snapshots", DATA.replace(b"  - claude-sonnet-4.5\n", b"  - a\n  - b\n"))
    assert not [e for e in two if e["data"].get("metadata", {}).get("ctxctl", {}).get("model")]


def test_detection_and_damage() -> None:
    assert detected(DATA) == "copilot-snapshots"
    assert detected(b"conversations: []\n") == "copilot-snapshots"
    _, problems = events(
        "copilot-snapshots", b"conversations:\n- messages: 5\n- 7\n- messages: [5, {role: [1]}]\n"
    )
    assert slugs(problems) == ["not-a-record", "not-a-record"]


def test_an_answer_in_several_choices_is_one() -> None:
    said = b"      - {role: user, content: hi}\n      - {role: assistant, content: I look.}\n"
    call = b"{id: toolcall_0, type: function, function: {name: view, arguments: '{}'}}"
    split = b"      - {role: assistant, tool_calls: [" + call + b"]}\n"
    whole = said.replace(b"content: I look.", b"content: I look., tool_calls: [" + call + b"]")
    data = b"conversations:\n  - messages:\n" + said + split + b"  - messages:\n" + whole
    found, problems = events("copilot-snapshots", data)
    assert not problems
    assert len([e for e in found if e["event_type"] == "context.injection.applied"]) == 1


def test_the_words_of_several_choices_are_one_text() -> None:
    words = ("I look.", " It is blue.")
    split = "".join(f"      - {{role: assistant, content: '{one}'}}\n" for one in words)
    whole = f"      - {{role: assistant, content: '{''.join(words)}'}}\n"
    asked, more = "      - {role: user, content: hi}\n", "      - {role: user, content: and now}\n"
    told = "      - {role: assistant, content: It is red.}\n"
    data = f"conversations:\n  - messages:\n{asked}{split}  - messages:\n{asked}{whole}{more}{told}".encode()
    found, problems = events("copilot-snapshots", data)
    assert not problems
    said = {e["data"]["content"] for e in found if e["data"].get("context_kind") == "assistant_message"}
    assert said == {"I look. It is blue.", "It is red."}
    assert len([e for e in found if e["event_type"] == "context.injection.applied"]) == 2


def test_answers_that_a_later_conversation_repeats_in_its_history_are_no_requests() -> None:
    """The tool's result is rendered anew: the history behind it is sent again, and was asked for once."""
    call = "{id: toolcall_0, type: function, function: {name: view, arguments: '{}'}}"
    first = f"""
      - {{role: user, content: hi}}
      - {{role: assistant, tool_calls: [{call}]}}
      - {{role: tool, tool_call_id: toolcall_0, content: RESULT}}
      - {{role: assistant, content: It is blue.}}
"""
    more = """      - {role: user, content: and now}
      - {role: assistant, content: It is red.}
"""
    data = "conversations:\n  - messages:" + first.replace("RESULT", "a picture")
    data += "  - messages:" + first.replace("RESULT", "other words") + more
    found, problems = events("copilot-snapshots", data.encode())
    assert not problems
    assert len([e for e in found if e["event_type"] == "context.injection.applied"]) == 3
    said = [e["data"]["item_id"] for e in found if e["data"].get("content") == "It is blue."]
    assert len(said) == 1, "it is the same item in both conversations"


PROMPT = "      - {role: user, content: Look at the tide gauge}\n"
CALL = (
    "      - {role: assistant, tool_calls: [{id: toolcall_0, type: function, "
    "function: {name: view, arguments: '{}'}}]}\n"
)


def conversations(*stored: list[str]) -> bytes:
    return ("conversations:\n" + "".join("  - messages:\n" + "".join(lines) for lines in stored)).encode()


def result(text: str) -> str:
    return f"      - {{role: tool, tool_call_id: toolcall_0, content: {text}}}\n"


def message(role: str, text: str) -> str:
    return f"      - {{role: {role}, content: {text}}}\n"


def test_a_history_told_again_with_other_results_asks_nothing_anew(tmp_path: Path) -> None:
    answer = message("assistant", "High tide.")
    first = [PROMPT, CALL]
    second = [PROMPT, CALL, result("Four metres and rising"), answer]
    shown = message("user", "Image of the gauge")
    third = [PROMPT, CALL, result("Four metres"), shown, answer, message("user", "And now?"),
             message("assistant", "Ebb.")]  # fmt: skip
    path = tmp_path / "gauge.yaml"
    path.write_bytes(conversations(first, second, third))
    steps, problems = seen(path)
    assert not problems
    assert [[text for _, text in step.window] for step in steps[2:]] == [
        ["Look at the tide gauge", "view {}", "Four metres", "Image of the gauge", "High tide.", "And now?"]
    ]
    with Inspector.open(path) as inspector:
        last = [step for step in inspector.replay() if isinstance(step, Step)][-1]
    gone = [change for change in last.changes if change.status in ("removed", "omitted")]
    assert not gone, "what the history keeps is the same item"


def test_another_prompt_or_another_answer_is_a_branch() -> None:
    def asked(*stored: list[str]) -> int:
        found, problems = events("copilot-snapshots", conversations(*stored))
        assert not problems
        return sum(event["event_type"] == "context.injection.applied" for event in found)

    ok, more = message("assistant", "ok"), [message("user", "more"), message("assistant", "done")]
    low, high = message("user", "low?"), message("user", "high?")
    assert asked([PROMPT, CALL, result("a"), ok, low, ok], [PROMPT, CALL, result("a"), ok, high, ok]) == 4
    assert (
        asked([PROMPT, CALL, result("a"), ok, low, ok], [PROMPT, CALL, result("a"), ok, high, ok, *more]) == 5
    )
    assert asked([PROMPT, CALL, result("a"), ok], [PROMPT, CALL, result("b"), ok]) == 3, (
        "each was stored for its last"
    )
    assert asked([PROMPT, CALL, result("a"), ok], [PROMPT, CALL, result("b"), ok, *more]) == 3


def test_an_empty_image_that_the_history_leaves_out_makes_no_branch() -> None:
    """The model cannot see any more: the next conversation goes on from the same answer without the image."""
    first, answer = [PROMPT, CALL, result("seen")], message("assistant", "High tide.")
    more = [message("user", "And now?"), message("assistant", "Ebb.")]
    found, problems = events(
        "copilot-snapshots",
        conversations([*first, "      - {role: user}\n", answer], [*first, answer, *more]),
    )
    assert not problems
    assert sum(event["event_type"] == "context.injection.applied" for event in found) == 3
    assert '"branched"' not in json.dumps(found)


def test_images_without_number_are_not_items_without_number() -> None:
    many = message("user", '"Look:' + "\\n[image]" * 4000 + '"')
    found, problems = events("copilot-snapshots", conversations([many, message("assistant", "ok")]))
    assert not problems
    images = [e["data"] for e in found if e["data"].get("context_kind") == "image"]
    assert len(images) == 1001
    assert images[0]["title"] == "image, not recorded"
    assert images[-1]["title"] == "3,000 more images, not recorded"
    (typed,) = [e["data"] for e in found if e["data"].get("context_kind") == "user_message"]
    assert typed["content"] == "Look:"
