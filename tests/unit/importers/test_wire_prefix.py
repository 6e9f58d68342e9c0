"""What breaks a provider's cache, through the importer of request bodies: one change between two requests."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxctl.model.results import Placement, Step
from ctxctl.session import Inspector

Json = dict[str, Any]
Edit = Callable[[Json], object]
SIGNED = "c2lnbmF0dXJl" * 20
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}


def _claude() -> Json:
    schema = {"type": "object", "properties": {"path": {"type": "string"}, "all": {"type": "boolean"}}}
    return {
        "model": "claude-opus-5",
        "max_tokens": 900,
        "thinking": {"type": "enabled", "budget_tokens": 4000},
        "system": [{"type": "text", "text": "Be kind and brief."}],
        "tools": [
            {"name": "read", "description": "Reads a file.", "input_schema": schema},
            {"name": "write", "description": "Writes a file.", "input_schema": {"type": "object"}},
        ],
        "messages": [
            {"role": "user", "content": "What does the file say?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "I shall look.", "signature": SIGNED},
                    {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a.txt", "all": True}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "no file"}]},
        ],
    }


def _chat() -> Json:
    call = {"name": "read", "arguments": '{"path": "a.txt", "all": true}'}
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}}
    return {
        "model": "gpt-5.6",
        "tool_choice": "auto",
        "tools": [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": {"type": "object", "title": "Answer"}},
        },
        "messages": [
            {"role": "system", "content": "Be kind and brief."},
            {"role": "user", "content": [{"type": "text", "text": "What is this?"}, image]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "no file"},
        ],
    }


def _answer(body: Json) -> Json:
    if "response_format" in body:
        message = {"role": "assistant", "content": "I see."}
        return {"object": "chat.completion", "model": body["model"], "choices": [{"message": message}]}
    content = [{"type": "text", "text": "I see."}]
    return {"type": "message", "role": "assistant", "model": body["model"], "content": content}


def after(tmp_path: Path, body: Json, edit: Edit) -> tuple[Step, list[Placement]]:
    """The second step, of the same body but for one change, and the frame of the first."""
    changed = copy.deepcopy(body)
    edit(changed)
    path = tmp_path / "pairs.jsonl"
    pairs = [{"request": b, "response": _answer(b)} for b in (body, changed)]
    path.write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    with Inspector.open(str(path)) as inspector:
        steps = [one for one in inspector.replay() if isinstance(one, Step)]
        assert [step.thread for step in steps] == ["main", "main"]
        return steps[1], list(inspector.frame(0).placements)


def tokens(frame: list[Placement], rank: int) -> int:
    """Of what stands in front of a level of the cache."""
    return sum(p.tokens for p in frame if p.rank < rank)


def reordered(value: Json) -> Json:
    return dict(reversed(value.items()))


def test_the_same_request_again_breaks_nothing(tmp_path: Path) -> None:
    for body in (_claude(), _chat()):
        step, frame = after(tmp_path, body, lambda _: None)
        assert step.cache.broken_by is None
        assert step.cache.possible_prefix == sum(p.tokens for p in frame) > 0
        assert step.cache.compared == "wire"
        assert (step.counts.updated, step.counts.skipped) == (0, len(frame))


SETTINGS: list[tuple[str, Edit, str, int]] = [
    ("model", lambda b: b.update(model="claude-sonnet-5"), "tools", 0),
    ("speed", lambda b: b.update(speed="fast"), "system", 1),
    ("tool_choice", lambda b: b.update(tool_choice={"type": "any"}), "messages", 2),
    ("tool_choice", lambda b: b.update(tool_choice={"type": "auto", "disable_parallel_tool_use": True}),
     "messages", 2),
    ("thinking", lambda b: b["thinking"].update(budget_tokens=8000), "messages", 2),
    ("thinking", lambda b: b.pop("thinking"), "messages", 2),
    ("effort", lambda b: b.update(output_config={"effort": "low"}), "messages", 2),
    ("images", lambda b: b["messages"].append({"role": "user", "content": [PICTURE]}), "messages", 2),
]  # fmt: skip


@pytest.mark.parametrize(("name", "edit", "level", "rank"), SETTINGS)
def test_a_parameter_breaks_what_anthropic_says(
    tmp_path: Path, name: str, edit: Edit, level: str, rank: int
) -> None:
    step, frame = after(tmp_path, _claude(), edit)
    by = step.cache.broken_by
    assert by is not None
    assert (by.item, by.setting, by.level, by.status) == (None, name, level, "updated")
    assert step.cache.possible_prefix == tokens(frame, rank)
    assert by.position == sum(p.rank < rank for p in frame)
    assert step.counts.updated == 0  # no item is another one


UNBROKEN: list[Edit] = [
    lambda b: b.update(max_tokens=17, temperature=0.5, metadata={"user_id": "u"}, stream=True),
    lambda b: b.update(tool_choice={"type": "auto"}, speed="standard", output_config={"effort": "high"}),
    lambda b: b["thinking"].update(display="omitted"),
    lambda b: b["system"][0].update(cache_control={"type": "ephemeral"}),
    lambda b: b["messages"][0].update(content=[{"type": "text", "text": "What does the file say?"}]),
    lambda b: b["messages"][2]["content"][0].update(is_error=False),
    lambda b: b.update(model="claude-opus-5-20261101"),
    lambda b: b["messages"].append({"role": "system", "content": "The user is in a hurry."}),
]


@pytest.mark.parametrize("edit", UNBROKEN)
def test_what_reaches_no_model_breaks_nothing(tmp_path: Path, edit: Edit) -> None:
    step, frame = after(tmp_path, _claude(), edit)
    assert step.cache.broken_by is None
    assert step.cache.possible_prefix == sum(p.tokens for p in frame)


def _schema_order(body: Json) -> None:
    schema = body["tools"][0]["input_schema"]
    schema["properties"] = reordered(schema["properties"])


def _input_order(body: Json) -> None:
    block = body["messages"][1]["content"][1]
    block["input"] = reordered(block["input"])


RENDERINGS: list[tuple[str, Edit, str]] = [
    ("tool:read", _schema_order, "key order in input_schema.properties"),
    ("t1", _input_order, "key order"),
    ("reasoning", lambda b: b["messages"][1]["content"][0].update(signature=SIGNED[:-4]), "signature"),
    ("t1/result", lambda b: b["messages"][2]["content"][0].update(is_error=True), "is_error"),
]  # fmt: skip


@pytest.mark.parametrize(("item", "edit", "change"), RENDERINGS)
def test_another_rendering_is_an_update_that_breaks_the_prefix(
    tmp_path: Path, item: str, edit: Edit, change: str
) -> None:
    step, frame = after(tmp_path, _claude(), edit)
    by = step.cache.broken_by
    assert by is not None
    assert by.item is not None
    assert by.item.startswith(item)
    assert (by.setting, by.status, by.change) == (None, "updated", change)
    at = next(n for n, p in enumerate(frame) if p.item == by.item)
    assert by.position == at
    assert step.cache.possible_prefix == sum(p.tokens for p in frame[:at])
    (update,) = [one for one in step.changes if one.status == "updated"]
    assert (update.item, update.reason, update.version) == (by.item, change, update.previous_version)
    assert "rendering" in update.flags
    assert step.ledger.new - step.ledger.freed == step.ledger.window_after - step.ledger.window_before
    assert step.ledger.freed == frame[at].tokens


def test_cache_markers_do_not_hide_another_order(tmp_path: Path) -> None:
    body = _claude()
    body["tools"][0]["cache_control"] = {"type": "ephemeral"}
    body["messages"][1]["content"][1]["cache_control"] = {"type": "ephemeral"}
    for edit in (_schema_order, _input_order):
        step, _ = after(tmp_path, body, edit)
        assert step.cache.broken_by is not None
        assert step.counts.updated == 1


def test_tools_in_another_order_break_all(tmp_path: Path) -> None:
    step, _ = after(tmp_path, _claude(), lambda b: b["tools"].reverse())
    assert step.cache.broken_by is not None
    assert (step.cache.broken_by.status, step.cache.possible_prefix) == ("moved", 0)


def test_web_search_is_a_part_of_the_system_prompt(tmp_path: Path) -> None:
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}
    step, frame = after(tmp_path, _claude(), lambda b: b["tools"].insert(0, search))
    by = step.cache.broken_by
    assert by is not None
    assert (by.item, by.status) == ("tool:web_search", "added")
    assert step.cache.possible_prefix == tokens(frame, 1) > 0


def test_citations_change_the_system_prompt(tmp_path: Path) -> None:
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "A text."}}
    body = _claude()
    body["messages"].append({"role": "user", "content": [document]})
    cite = {"citations": {"enabled": True}}
    step, frame = after(tmp_path, body, lambda b: b["messages"][3]["content"][0].update(cite))
    by = step.cache.broken_by
    assert by is not None
    assert (by.setting, by.level) == ("citations", "system")
    assert step.cache.possible_prefix == tokens(frame, 1)


def test_an_answers_schema_stands_in_front_of_the_system_prompt(tmp_path: Path) -> None:
    config = {"format": {"type": "json_schema", "schema": {"type": "object"}}}
    for body, edit in (
        (_claude(), lambda b: b.update(output_config=config)),
        (_chat(), lambda b: b["response_format"]["json_schema"]["schema"].update(title="Reply")),
    ):
        step, frame = after(tmp_path, body, edit)
        by = step.cache.broken_by
        assert by is not None
        assert by.item is not None
        assert by.item.startswith("body:")
        assert step.cache.possible_prefix == tokens(frame, 1)


CHAT: list[tuple[str | None, Edit, str | None]] = [
    ("c1", lambda b: b["messages"][2]["tool_calls"][0]["function"].update(
        arguments='{"path":"a.txt","all":true}'), "spacing"),
    ("c1", lambda b: b["messages"][2]["tool_calls"][0]["function"].update(
        arguments='{"all": true, "path": "a.txt"}'), "key order"),
    ("image", lambda b: b["messages"][1]["content"][1]["image_url"].update(detail="high"),
     "image_url.detail"),
    (None, lambda b: b.update(tool_choice="required", reasoning_effort="low", prompt_cache_key="k"), None),
    (None, lambda b: b["messages"][2].update(__clientSource="resumed"), None),
]  # fmt: skip


@pytest.mark.parametrize(("item", "edit", "change"), CHAT)
def test_openais_prefix_is_exact(tmp_path: Path, item: str | None, edit: Edit, change: str | None) -> None:
    step, frame = after(tmp_path, _chat(), edit)
    by = step.cache.broken_by
    if item is None or by is None:
        assert by is None
        assert item is None
        assert step.cache.possible_prefix == sum(p.tokens for p in frame)
        return
    assert by.item is not None
    assert by.item.startswith(item)
    assert (by.status, by.change) == ("updated", change)


def test_openais_caches_are_one_models(tmp_path: Path) -> None:
    step, _ = after(tmp_path, _chat(), lambda b: b.update(model="gpt-5.6-mini"))
    assert step.cache.broken_by is not None
    assert (step.cache.broken_by.setting, step.cache.possible_prefix) == ("model", 0)


def test_a_setting_that_stays_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    bodies = [_claude(), _claude(), {**_claude(), "tool_choice": {"type": "any"}}]
    path.write_text("".join(json.dumps({"request": b, "response": _answer(b)}) + "\n" for b in bodies))
    with Inspector.open(str(path)) as inspector:
        told = []
        for event in inspector.trace.events():
            if event.event_type == "context.assembly.created":
                record = json.loads(inspector.trace.line(event.offset, event.length))
                told.append(record["data"]["metadata"]["ctxctl"].get("request"))
    first = {"api": "anthropic", "thinking": {"type": "enabled", "budget_tokens": 4000}}
    assert told == [first, None, {**first, "tool_choice": {"type": "any"}}]
