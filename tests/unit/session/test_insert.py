"""Learned items at the head of a log's frames."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxctl.ingest.build import digest_of
from ctxctl.ingest.parts import Part
from ctxctl.providers.dialects.slots import structured
from ctxctl.session.learned import store
from ctxctl.session.learned.gather import requests
from ctxctl.session.learned.insert import LogTexts
from ctxctl.session.learned.window import HeldPlacement
from ctxctl.trace.validate import validate_event
from tests.unit.session.learned_help import (
    DUMP,
    LOG,
    NOTE,
    SYSTEM,
    TOOL,
    frames,
    gathered,
    inserted,
    of_capture,
    part,
    stream,
)


def prompt(text: str) -> Part:
    return Part("user_message", text, "user")


WIRE = stream([part(TOOL), part(SYSTEM), part(NOTE), prompt("hello")])


def texts(events: list[dict[str, object]]) -> list[list[str | None]]:
    return [[held.text for held in carried.window.held()] for carried in requests(events)]


def test_every_frame_is_the_head_and_what_it_was() -> None:
    log = stream(
        [prompt("hello")],
        [prompt("hello"), prompt("two"), prompt("three")],
        [prompt("other"), prompt("three"), prompt("four")],
        [prompt("anew")],
    )
    head = [TOOL.text, SYSTEM.text, NOTE.text]
    found = inserted(log, gathered(WIRE))
    assert texts(found) == [[*head, *before] for before in texts(log)]


def test_items_are_marked_derived_with_where_they_are_from_and_events_are_valid() -> None:
    found = inserted(stream([prompt("hello")], [prompt("hello"), prompt("two")]), gathered(WIRE))
    items = [e["data"] for e in found if e["data"].get("item_id", "").startswith("learned:")]
    assert [item["metadata"]["ctxctl"]["derived"] for item in items] == [True] * 3
    assert {item["source_refs"][0]["source_id"] for item in items} == {"learned from c 1.0"}
    assert not [fault for event in found for fault in validate_event(event)]
    ids = [event["event_id"] for event in found]
    assert len(set(ids)) == len(ids)


def test_a_learned_tool_has_the_text_that_was_sent_and_the_version_of_the_wire() -> None:
    tool = structured("tool_definition", {"name": "read", "about": "files"}, "system", key="t", title="read")
    wire = stream([tool, part(NOTE), prompt("hello")])
    found = inserted(stream([prompt("hello")]), gathered(wire))
    (sent, *_), (shown, *_) = (next(requests(events)).window.held() for events in (wire, found))
    assert shown.text == sent.text == '{"name":"read","about":"files"}'
    assert shown.version == sent.version == digest_of('{"about":"files","name":"read"}')[:16]
    assert not [fault for event in found for fault in validate_event(event)]


def test_what_the_log_holds_itself_is_not_shown_twice() -> None:
    log = stream([part(SYSTEM), prompt("hello")])
    assert texts(inserted(log, gathered(WIRE))) == [[TOOL.text, NOTE.text, SYSTEM.text, "hello"]]
    named = stream([Part("tool_definition", '{"name":"read","more":1}', "system", title="read"), prompt("x")])
    assert TOOL.text not in texts(inserted(named, gathered(WIRE)))[0]


def test_a_sub_agent_of_an_unknown_kind_gets_nothing() -> None:
    log = stream([prompt("look around")], thread="agent-1", origin={"agent_type": "explore"})
    assert inserted(log, gathered(WIRE)) == log


def test_of_a_text_that_the_log_holds_in_part_the_rest_is_shown_in_pieces() -> None:
    own = LogTexts(
        [HeldPlacement("policy_note", "user", "", None, "You are powered by a model of some name.")]
    )
    text = "# Environment\nIn a directory.\nYou are powered by a model of some name.\nThe end."
    assert own.lacks("system_prompt", None, text) == ["# Environment\nIn a directory.\n", "\nThe end."]


def test_the_strings_of_a_logs_json_count_as_its_texts() -> None:
    held = (
        '{"sections":{"rules":"Use the tools that you have.\\nSay what you did."},"tools":[{"name":"read"}]}'
    )
    own = LogTexts([HeldPlacement("custom", "system", "", None, held)])
    assert own.lacks("system_prompt", None, "Use the tools that you have.\nSay what you did.") == []
    assert own.lacks("system_prompt", None, "Something that it never said.") != []


def test_short_lines_alone_prove_nothing() -> None:
    own = LogTexts([HeldPlacement("user_message", "user", "", None, "be kind")])
    assert own.lacks("system_prompt", None, "be kind\nor be gone") == ["be kind\nor be gone"]


def test_a_real_log_shows_the_requests_of_its_own_recording(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CTXCTL_DATA_DIR", str(tmp_path))
    made = gathered(of_capture(DUMP)).learned("claude-code", "2.1.330")
    assert made is not None
    store.save_set(made)
    bare, full = frames(LOG), frames(LOG, "auto")
    wire = [texts for thread, texts in frames(DUMP) if thread == "main"]
    assert [thread for thread, _ in full] == [thread for thread, _ in bare] == ["main"] * len(full)
    learned = [text for item, text in full[0][1] if item.startswith("learned:")]
    assert learned == [text for item, text in wire[0] if not item.startswith("user_message")]
    for (_, before), (_, after) in zip(bare, full, strict=True):
        assert [one for one in after if not one[0].startswith("learned:")] == before


def test_what_the_capture_lacked_is_derived_then_and_no_longer_named_as_missing() -> None:
    log = of_capture(LOG)
    told = {fact: counts for fact, counts in log[-1]["data"]["facts"].items() if "not recorded" in counts}
    assert set(told) >= {"system_prompt", "tool_definitions"}
    learned = gathered(of_capture(DUMP))
    facts = inserted(log, learned, "claude-code", "2.1.330")[-1]["data"]["facts"]
    for fact in ("system_prompt", "tool_definitions"):
        assert facts[fact] == {"derived": told[fact]["not recorded"]}
    unchanged = {name: counts for name, counts in log[-1]["data"]["facts"].items() if name not in told}
    assert {name: facts[name] for name in unchanged} == unchanged
