from __future__ import annotations

import json
from typing import Any

import pytest

from ctxctl.importers import registry
from ctxctl.model.problem import Problem
from ctxctl.model.results import Step
from ctxctl.plugins.sanqian import FORMAT
from ctxctl.session import Inspector
from ctxctl.trace.source import Source, open_source
from ctxctl.trace.validate import validate_event
from tests.unit.importers.claude_code_help import FIXTURES, Json, of_type

ADDED, UPDATED, REMOVED = "context.item.added", "context.item.updated", "context.item.removed"
SURFACE, MISSING = "context.surface.created", "context.missing.detected"


def imported(name: str) -> tuple[list[Json], list[Problem]]:
    problems: list[Problem] = []
    with open_source(FIXTURES / "sanqian" / name) as opened:
        found = registry.detect(opened)
        assert found is not None
        assert found.name == "sanqian"
        return list(found.events(opened, problems.append)), problems


def events(*lines: Any) -> tuple[list[Json], list[Problem]]:
    problems: list[Problem] = []
    data = b"".join(json.dumps(value).encode() + b"\n" for value in lines)
    return list(FORMAT.events(Source.from_bytes("x", data), problems.append)), problems


def in_turn(found: list[Json], event_type: str) -> list[tuple[str, str]]:
    return [(e["turn_id"], e["data"]["item_id"]) for e in of_type(found, event_type)]


@pytest.mark.parametrize("name", ["provider-calls.jsonl", "agents.jsonl"])
def test_every_event_validates(name: str) -> None:
    found, _ = imported(name)
    assert [validate_event(e) for e in found if validate_event(e)] == []
    assert not of_type(found, "context.injection.applied")


def test_items_are_announced_when_new_and_when_their_version_changes() -> None:
    found, problems = imported("provider-calls.jsonl")
    assert in_turn(found, ADDED) == [
        ("t1", "notes:editor"),
        ("t1", "notes:library"),
        ("t4", "notes:selection"),
    ]
    # Turn 2 changes a summary only, which the host cannot see.
    assert in_turn(found, UPDATED) == [("t3", "notes:editor"), ("t3", "notes:library")]
    assert in_turn(found, REMOVED) == [("t4", "notes:selection")]
    assert problems == []


def test_null_while_attached_is_missing_and_not_offered() -> None:
    found, _ = imported("provider-calls.jsonl")
    (missing,) = of_type(found, MISSING)
    assert missing["turn_id"] == "t4"
    assert missing["data"]["question"].startswith("notes:editor ")
    last = of_type(found, SURFACE)[-1]["data"]
    assert last["available_source_refs"] == ["notes:editor", "notes:library"]
    assert [ref.partition("@")[0] for ref in last["available_item_refs"]] == ["notes:library"]


def test_every_turn_has_a_surface_in_the_hosts_order() -> None:
    found, _ = imported("agents.jsonl")
    surfaces = {e["turn_id"]: e["data"]["available_source_refs"] for e in of_type(found, SURFACE)}
    assert surfaces == {
        "t1": ["notes:calendar", "notes:editor", "notes:library"],
        "t2": ["notes:calendar", "notes:editor", "notes:library/n9", "notes:library"],
        "t3": ["notes:calendar", "notes:editor", "notes:library/n9"],
        "t4": ["notes:calendar"],
    }


def test_several_items_of_a_provider_and_picked_ones() -> None:
    found, _ = imported("agents.jsonl")
    items = [item for _, item in in_turn(found, ADDED)]
    assert items[3:6] == ["notes:library/n1", "notes:library/n2", "notes:library/n9"]
    sources = {
        e["data"]["item_id"]: e["data"]["source_refs"][0]["source_id"] for e in of_type(found, UPDATED)
    }
    # An item that is attached itself has itself as source, one that comes with its provider the provider.
    assert sources == {"notes:library/n9": "notes:library/n9", "notes:calendar": "notes:calendar"}


def test_a_switch_of_agents_switches_contexts() -> None:
    found, _ = imported("agents.jsonl")
    gone = [(e["turn_id"], e["data"]["item_id"], e["data"]["metadata"]) for e in of_type(found, REMOVED)]
    assert gone == [
        ("t3", "notes:library/n1", {"cause": "detached", "native": {"type": "switchAgent"}}),
        ("t3", "notes:library/n2", {"cause": "detached", "native": {"type": "switchAgent"}}),
        ("t4", "notes:editor", {"cause": "detached", "native": {"type": "detach"}}),
        ("t4", "notes:library/n9", {"cause": "detached", "native": {"type": "detach"}}),
    ]


def test_given_versions_are_the_versions() -> None:
    found, problems = imported("agents.jsonl")
    added = {e["data"]["item_id"]: e["data"] for e in of_type(found, ADDED)}
    assert added["notes:calendar"]["metadata"]["version"] == "7"
    assert "version" not in added["notes:editor"]["metadata"]
    assert [(p.line, p.slug) for p in problems] == [(10, "same-version-other-content")]
    assert ("t3", "notes:calendar") in in_turn(found, UPDATED)


def test_the_policy_makes_the_three_way_diff_of_it() -> None:
    opened = Inspector.open(str(FIXTURES / "sanqian" / "provider-calls.jsonl"))
    assert opened.params.policy == "sanqian"
    steps = [s for s in opened.replay() if isinstance(s, Step)]
    counts = [(s.counts.added, s.counts.updated, s.counts.skipped) for s in steps[:3]]
    assert counts == [(2, 0, 0), (0, 0, 2), (0, 2, 0)]


def test_reattached_items_are_new_again() -> None:
    data = {"content": "x"}
    found, _ = events(
        {"kind": "registration", "app": "a", "providers": [], "attachedContexts": ["a:p"]},
        {"kind": "getCurrent", "turn": 1, "provider_id": "p", "data": data},
        {"kind": "detach", "turn": 2, "contexts": ["a:p"]},
        {"kind": "attach", "turn": 3, "contexts": ["p"]},
        {"kind": "getCurrent", "turn": 3, "provider_id": "a:p", "data": data},
    )
    assert in_turn(found, ADDED) == [("t1", "a:p"), ("t3", "a:p")]
    assert in_turn(found, REMOVED) == [("t2", "a:p")]


def test_calls_for_what_is_not_attached_are_no_context() -> None:
    found, problems = events(
        {"kind": "registration", "app": "a", "providers": [], "attachedContexts": ["a:p"]},
        {"kind": "getCurrent", "turn": 1, "provider_id": "a:other", "data": {"content": "x"}},
        {"kind": "getById", "turn": 1, "provider_id": "a:p", "id": "1", "data": {"id": "1", "content": "x"}},
        {"kind": "getList", "turn": 1, "provider_id": "a:p", "data": {"items": []}},
    )
    assert [e["event_type"] for e in found] == [SURFACE]
    assert problems == []


def test_nonsense_is_reported_and_skipped() -> None:
    odd: list[Any] = [None, 3, "", "x", [], {}, [None, 3, {}], {"id": 1}, {"content": 3}]
    keys = [
        "turn",
        "provider_id",
        "data",
        "items",
        "contexts",
        "resource",
        "resourceId",
        "agent_id",
        "content",
    ]
    kinds = [
        "registration",
        "agent",
        "switchAgent",
        "attach",
        "detach",
        "load_items",
        "getCurrent",
        "getById",
    ]
    kinds += ["pushResource", "removeResource", "message", "future", None]
    good = {
        "turn": 1,
        "provider_id": "a:p",
        "agent_id": "g",
        "contexts": ["a:p"],
        "data": {"content": "x"},
        "resource": {"id": "r", "content": "x"},
        "id": "1",
        "content": "x",
    }
    found, problems = events(
        3, *[{"kind": kind, **good, key: bad} for kind in kinds for key in keys for bad in odd]
    )
    assert [validate_event(e) for e in found if validate_event(e)] == []
    assert {p.slug for p in problems} >= {"not-a-record", "unknown-record"}


def test_not_detected() -> None:
    assert FORMAT.detect(b'{"kind":"span","turn":1}\n{"type":"user"}') == 0
