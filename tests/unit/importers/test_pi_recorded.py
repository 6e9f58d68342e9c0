"""A session of pi 0.87.1 beside what it sent: prompt by sections, two models, a compaction."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers.pi.system import strict_schema
from ctxctl.model.vocab import ITEM_ADDED
from tests.unit.importers.agent_help import FIXTURES, Json, Window, imported, windows, written
from tests.unit.importers.recorded_help import held, recorded, sent

NAME = "pi"
LOG = FIXTURES / "pi" / "session-0.87.jsonl"
_SUMMARIES = "You are a context summarization assistant."


def requests() -> list[Json]:
    """The requests but for the one that asks for a summary."""
    run = recorded("pi.json")
    for one in run["wire"]:
        one["tools"] = run["tools"][one["tools"]]
    found = [one for one in run["wire"] if not one["system"][0].startswith(_SUMMARIES)]
    assert len(found) == len(run["wire"]) - 1 == 11
    return found


def pairs() -> list[tuple[Window, Json]]:
    return list(zip(windows(LOG, NAME), requests(), strict=True))


def test_the_prompt_is_the_sections_as_they_were_by_then() -> None:
    for window, body in pairs():
        prompt = [text for kind, text in window.items if kind == "system_prompt"]
        assert "".join(str(text) for text in prompt) == "\n".join(body["system"])
    rules = [body["system"][0] for _, body in pairs()]
    assert sum("bees first" in one for one in rules) == 8
    assert sum("bees third" in one for one in rules) == 3


def test_tools_have_the_schemas_that_were_sent() -> None:
    for window, body in pairs():
        tools = [json.loads(str(text)) for kind, text in window.items if kind == "tool_definition"]
        told = [(one["name"], one["description"], one["parameters"]) for one in tools]
        assert told == [(one["name"], one["description"], one["input_schema"]) for one in body["tools"]]


def test_messages_are_those_that_were_sent_in_order() -> None:
    updates = set()
    for window, body in pairs():
        frame, wire = held(window), sent(body["messages"])
        assert len(frame) == len(wire)
        for (kind, text), (what, said) in zip(frame, wire, strict=True):
            assert kind == what
            updates |= {text} if kind == "system" else set()
            assert text == said or ("<summary>" in said and str(text) in said)
    assert len(updates) == 2
    assert all(str(one).startswith('Updated system prompt section "project_context":') for one in updates)


def test_bills_are_those_of_the_requests() -> None:
    for window, body in pairs():
        bill = body["usage"]
        read, written_ = bill["cache_read_input_tokens"], bill["cache_creation_input_tokens"]
        assert window.billed() == bill["input_tokens"] + read + written_


def test_another_models_reasoning_is_text() -> None:
    found = windows(LOG, NAME)
    assert ("reasoning", "First look.") in found[4].items
    assert ("assistant_message", "First look.") in found[5].items
    assert ("reasoning", "First look.") in found[8].items


def test_the_system_messages_are_no_items_by_themselves() -> None:
    events, problems = imported(NAME, LOG.read_bytes())
    assert not problems
    kinds = [event["data"]["context_kind"] for event in events if event["event_type"] == ITEM_ADDED]
    assert "custom" not in kinds
    assert kinds.count("tool_definition") == 5


def entry(native: str, parent: str | None, **message: Any) -> Json:
    return {"type": "message", "id": native, "parentId": parent, "message": message}


def answer(native: str, parent: str, text: str, model: str = "m") -> Json:
    return entry(
        native, parent, role="assistant", content=[{"type": "text", "text": text}], api="a", provider="p",
        model=model, stopReason="stop",
    )  # fmt: skip


def test_an_edit_stands_for_what_it_edits_from_then_on(tmp_path: Path) -> None:
    shorter = {"content": "x"}
    path = written(
        tmp_path,
        {"type": "session", "id": "s", "cwd": "/d", "version": 3},
        entry("u1", None, role="user", content="long text"),
        answer("a1", "u1", "one"),
        {"type": "context_edit", "id": "e1", "parentId": "a1", "targetId": "u1", "replacement": shorter},
        entry("u2", "e1", role="user", content="next"),
        answer("a2", "u2", "two"),
        {"type": "context_edit", "id": "e2", "parentId": "a2", "targetId": "a1", "replacement": None},
        entry("u3", "e2", role="user", content="last"),
        answer("a3", "u3", "three"),
    )  # fmt: skip
    found = windows(path, NAME)
    assert [window.texts() for window in found] == [
        ["long text"],
        ["x", "one", "next"],
        ["x", "next", "two", "last"],
    ]


@pytest.mark.parametrize("odd", [None, 7, "x", [], {}, [7], {"a": 7}])
def test_system_messages_of_any_shape_do_no_harm(tmp_path: Path, odd: Any) -> None:
    system = {"role": "system", "content": odd, "sections": odd, "toolsAdded": odd, "toolsRemoved": odd}
    path = written(
        tmp_path,
        {"type": "session", "id": "s", "cwd": "/d", "version": 3},
        {"type": "message", "id": "s1", "parentId": None, "message": system},
        entry("u1", "s1", role="user", content="hello"),
        {"type": "compaction", "id": "c1", "parentId": "u1", "summary": "sum", "systemMessage": odd},
        {"type": "context_edit", "id": "e1", "parentId": "c1", "targetId": odd, "replacement": odd},
        entry("u2", "e1", role="user", content="again"),
        answer("a1", "u2", "one", model="gpt-5.5"),
    )
    assert windows(path, NAME)[0].texts()[-1] == "again"


def test_what_cannot_be_enforced_stays_as_it_is() -> None:
    deep: Json = {"type": "string"}
    for _ in range(300):
        deep = {"type": "object", "properties": {"a": deep}}
    assert strict_schema(deep) is None
    assert strict_schema({"type": "object", "properties": {"a": {"$ref": "#"}}}) is None
    assert strict_schema({"type": "object", "additionalProperties": True}) is None
    assert strict_schema({"type": "object", "properties": {"a": {"type": ["string", "null"]}}}) == {
        "type": "object",
        "properties": {"a": {"type": ["string", "null"]}},
        "required": ["a"],
        "additionalProperties": False,
    }
