from __future__ import annotations

from tests.unit.formats.calls_help import FIXTURES, detected, events, seen, slugs

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
