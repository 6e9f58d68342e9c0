"""Allow-lists, pushed resources, lists and failures; the version diff is in test_formats_sanqian.py."""

from __future__ import annotations

from typing import Any

import pytest

from ctxctl.ingest import run
from ctxctl.plugins.sanqian import FORMAT, reader
from ctxctl.plugins.sanqian.scope import is_held
from tests.unit.importers.seed_help import (
    FIXTURES,
    Json,
    data,
    deep,
    events,
    items,
    lines,
    named,
    spoilt,
    steps,
)

SURFACE, MISSING, REMOVED = "context.surface.created", "context.missing.detected", "context.item.removed"
ENTERED = ("context.item.added", "context.item.updated")


def registration(app: str = "notes", *contexts: str) -> Json:
    return {"kind": "registration", "app": app, "providers": [], "attachedContexts": list(contexts)}


def agent(name: str, *contexts: str) -> Json:
    return {"kind": "createAgent", "agent_id": name, "attached_contexts": list(contexts)}


def push(turn: int, name: str | None, content: str = "x", **more: Any) -> Json:
    return {
        "kind": "pushResource",
        "turn": turn,
        "resource": {"id": name, "title": "t", "content": content},
        **more,
    }


def flow(*records: Json) -> list[tuple[str | None, str, str]]:
    """What entered and left, as turn, sign and item."""
    found, _ = events("sanqian", lines(*records))
    signs = {**dict.fromkeys(ENTERED, "+"), REMOVED: "-", MISSING: "?"}
    return [
        (e.get("turn_id"), signs[e["event_type"]], e["data"].get("item_id") or e["data"]["question"])
        for e in found
        if e["event_type"] in signs
    ]


def test_an_item_of_any_depth_is_held_by_what_stands_above_it() -> None:
    deep_name = "library/" + "n/" * 500
    by_id = {"kind": "getById", "turn": 1, "provider_id": "notes:library", "data": {"content": "x"}}
    assert is_held({"notes:library"}, f"notes:{deep_name}")
    assert is_held({f"notes:{deep_name}"}, f"notes:{deep_name}")
    attached = registration("notes", "notes:library/n9")
    assert flow(attached, by_id | {"id": "n9"}) == [("t1", "+", "notes:library/n9")]


def test_a_name_is_compared_level_by_level_with_few_of_them() -> None:
    class Counted(set[str]):
        compared = 0

        def __contains__(self, name: object) -> bool:
            self.compared += len(str(name))
            return False

    counts = []
    for n in (1000, 4000):
        attached = Counted()
        assert not is_held(attached, "a/" * n)
        counts.append(attached.compared)
    assert counts[1] < 5 * counts[0]


def test_pushes_to_many_apps_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "WORK", 100)
    monkeypatch.setattr(reader, "_LOOKS", 1)
    selected = [{"kind": "selectApp", "app": f"a{n}"} for n in range(60)]
    pushes = [push(1, f"r{n}", app="zz") for n in range(60)]
    _, problems = events("sanqian", lines(agent("w", "notes:e"), *selected, *pushes))
    # Each push looks at 61 names and at all that was pushed before.
    assert [problem.slug for problem in problems] == ["windows-too-large"]
    assert 62 < problems[0].line < 110


def test_an_app_that_the_agent_does_not_name_may_not_push() -> None:
    made = flow(agent("writer", "notes:editor"), push(1, "s", app="notes"), push(1, "s", app="mail"))
    assert made == [
        ("t1", "+", "notes:s"),
        ("t1", "?", "the resource mail:s stays out: mail is not on the agent's allow-list"),
    ]


def test_selecting_an_app_or_attaching_its_context_extends_the_list() -> None:
    select = {"kind": "selectApp", "turn": 2, "app": "mail"}
    attach = {"kind": "attach", "turn": 2, "contexts": ["mail:inbox"]}
    for opens in (select, attach):
        made = flow(agent("writer", "notes:editor"), push(1, "s", app="mail"), opens)
        assert [row[:2] for row in made] == [("t1", "?"), ("t2", "+")]
    found, _ = events("sanqian", lines(agent("writer", "notes:editor"), push(1, "s", app="mail"), select))
    assert [s["metadata"]["native"]["allowed_apps"] for s in data(found, SURFACE)] == [
        ["notes"],
        ["notes", "mail"],
    ]


def test_another_agent_has_another_list() -> None:
    made = flow(
        agent("writer", "notes:editor"),
        agent("clerk", "mail:inbox"),
        push(1, "s", app="notes"),
        {"kind": "switchAgent", "turn": 2, "agent_id": "clerk"},
        {"kind": "switchAgent", "turn": 3, "agent_id": "writer"},
    )
    assert made == [("t1", "+", "notes:s"), ("t2", "-", "notes:s"), ("t3", "+", "notes:s")]


def test_without_an_agents_contexts_every_app_may_push() -> None:
    assert flow(push(1, "s", app="mail")) == [("t1", "+", "mail:s")]
    made = flow({"kind": "registration", "app": "notes", "providers": []}, push(1, "s"))
    assert made == [("t1", "+", "notes:s")]


def test_resources_go_with_their_removal_their_session_and_their_app() -> None:
    opened = (
        agent("writer", "notes:editor", "mail:inbox"),
        push(1, "s", app="notes"),
        push(1, "s", app="mail"),
    )
    assert flow(*opened, {"kind": "removeResource", "turn": 2, "resourceId": "mail:s"})[2:] == [
        ("t2", "-", "mail:s")
    ]
    assert flow(*opened, {"kind": "disconnect", "turn": 2, "app": "notes"})[2:] == [("t2", "-", "notes:s")]
    assert len(flow(*opened, {"kind": "sessionEnd", "turn": 2})) == 4
    # What was taken back is not shown again by a later change of the list.
    gone = flow(
        *opened, {"kind": "sessionEnd", "turn": 2}, {"kind": "attach", "turn": 3, "contexts": ["x:y"]}
    )
    assert len(gone) == 4


def test_a_resource_without_an_id_and_one_that_is_pushed_anew() -> None:
    anew = (push(turn, "s", text, app="notes") for turn, text in ((2, "old"), (3, "new"), (4, "new")))
    found, problems = events("sanqian", lines(agent("a", "notes:e"), push(1, None, app="notes"), *anew))
    assert items(found)["notes:resource-2"]["metadata"]["ctxctl"] == {"identity": "derived"}
    told = [(e["turn_id"], e["event_type"]) for e in found if e["data"].get("item_id") == "notes:s"]
    assert told == [("t2", ENTERED[0]), ("t3", ENTERED[1])]
    assert not problems


def test_the_full_id_of_a_stored_resource_names_its_app() -> None:
    record = push(1, "s", stored_fields={"fullId": "mail:s", "appName": "mail"})
    assert flow(agent("writer", "notes:editor"), record)[0][1] == "?"


def test_what_a_list_offers_stands_with_the_surface() -> None:
    offered = {"items": [{"id": "n1", "title": "Tides"}, {"id": "n2"}], "hasMore": True}
    listed = {"kind": "getList", "turn": 1, "provider_id": "library", "data": offered}
    found, problems = events("sanqian", lines(registration("notes", "notes:library"), listed))
    (surface,) = data(found, SURFACE)
    rows = [{"id": "n1", "title": "Tides"}, {"id": "n2", "title": None}]
    told = {"notes:library": {"items": rows, "count": 2, "has_more": True}}
    assert surface["metadata"]["native"]["listed"] == told
    assert surface["available_item_refs"] == []
    assert not problems


def test_a_picked_item_may_come_without_its_content() -> None:
    made = flow(
        registration("notes", "notes:editor"),
        {"kind": "load_items", "turn": 1, "provider_id": "library", "items": [{"id": "n1"}]},
        {
            "kind": "getById",
            "turn": 1,
            "provider_id": "library",
            "id": "n1",
            "data": {"id": "n1", "content": "Spring"},
        },
    )
    assert made == [("t1", "+", "notes:library/n1")]


def test_a_provider_that_fails_is_missing_context() -> None:
    failed = {"kind": "getCurrent", "turn": 1, "provider_id": "notes:editor", "error": "timeout"}
    found, _ = events("sanqian", lines(registration("notes", "notes:editor"), failed))
    (missing,) = data(found, MISSING)
    assert missing["question"] == "notes:editor failed while attached: timeout"
    assert missing["severity"] == "high"


def test_the_policy_sees_resources_come_and_go() -> None:
    found, _ = steps(FIXTURES / "sanqian" / "resources.jsonl")
    first = ["message-1", "notes:editor", "notes:selection"]
    assert [sorted(named(s, "added")) for s in found] == [first, [], ["mail:draft"]]
    assert [named(s, "removed") for s in found] == [[], ["notes:selection"], []]
    assert [s.counts.skipped for s in found] == [0, 2, 2]


def test_conversations_are_kept_apart() -> None:
    def current(session: str, turn: int) -> Json:
        made: Json = {"kind": "getCurrent", "turn": turn, "provider_id": "notes:editor"}
        return {**made, "data": {"content": "x"}, "session_id": session}

    opened = registration("notes", "notes:editor")
    picked = {"kind": "attach", "turn": 1, "session_id": "a", "contexts": ["mail:inbox"]}
    calls = (current("a", 1), current("b", 1), current("a", 2))
    found, _ = events("sanqian", lines(opened, picked, *calls))
    entered = [(e["session_id"], e["turn_id"]) for e in found if e["event_type"] in ENTERED]
    assert entered == [("a", "t1"), ("b", "t1")]
    both = ["mail:inbox", "notes:editor"]
    surfaces = [e for e in found if e["event_type"] == SURFACE]
    assert [(e["session_id"], e["turn_id"], e["data"]["available_source_refs"]) for e in surfaces] == [
        ("a", "t1", both),
        ("b", "t1", ["notes:editor"]),
        ("a", "t2", both),
    ]


def test_odd_values_are_survived() -> None:
    listed = {"items": [{"id": 1, "title": 2}], "hasMore": 1}
    now = {"kind": "getCurrent", "turn": 2, "provider_id": "notes:editor"}
    records = [
        agent("writer", "notes:editor"),
        push(1, "s", app="notes", stored_x={"fullId": "a:s", "appName": "a"}),
        {"kind": "selectApp", "turn": 1, "app": "mail"},
        {"kind": "disconnect", "app": "notes"},
        {"kind": "getList", "provider_id": "a:b", "data": listed},
        {**now, "data": {"content": "x"}, "error": "e"},
    ]
    odd = [value for record in records for value in spoilt(record)]
    found, _ = events("sanqian", lines(*records, *odd, *records))
    assert found


def test_deep_values_are_cut() -> None:
    for levels in (150, 300, 900, 5000):
        opened = lines(registration("a", "a:b"), push(1, "s", summary="?"))
        record = {
            "kind": "getCurrent",
            "turn": 1,
            "provider_id": "a:b",
            "data": {"content": "x", "metadata": "?"},
        }
        events("sanqian", (opened + lines(record)).replace(b'"?"', deep(levels)))


def test_detection() -> None:
    assert FORMAT.detect(lines({"kind": "selectApp", "app": "x"})) > 50
    assert FORMAT.detect(lines({"kind": "sessionEnd"})) == 0


def test_the_sdks_own_events_push_and_take_back() -> None:
    stored = {"id": "m", "title": "t", "content": "x", "fullId": "mail:m", "appName": "mail", "pushedAt": "z"}
    came = {"kind": "resourcePushed", "turn": 1, "resource": stored}
    gone = {"kind": "resourceRemoved", "turn": 2, "resourceId": "mail:m"}
    assert flow(came, gone) == [("t1", "+", "mail:m"), ("t2", "-", "mail:m")]
    assert FORMAT.detect(lines(came)) > 90
