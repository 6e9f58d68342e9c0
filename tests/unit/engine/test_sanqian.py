"""sanqian's version diff as a policy: what it would have injected, and whether the trace agrees."""

from __future__ import annotations

from ctxctl.model.policy import Offered, Situation
from ctxctl.model.results import Step
from ctxctl.plugins.sanqian.policy import Sanqian
from tests.unit.engine.making import Json, event, inspect, statuses, steps


def surface(turn: str, *sources: str) -> Json:
    return event(
        "surface.created", {"surface_id": f"s-{turn}", "available_source_refs": list(sources)}, turn=turn
    )


def provide(
    turn: str, source: str, content: str, *, item: str | None = None, update: bool = False, **more: object
) -> Json:
    data = {
        "item_id": item or source,
        "context_kind": "external_resource",
        "content_mode": "inline",
        "content": content,
        "visibility": ["model"],
        "source_refs": [{"source_id": source}],
        **more,
    }
    return event("item.updated" if update else "item.added", data, turn=turn)


def missing(turn: str, source: str) -> Json:
    question = f"{source}.getCurrent returned null"
    return event("missing.detected", {"missing_id": "m", "question": question, "severity": "info"}, turn=turn)


def selection(turn: str, selected: list[str], unchanged: list[str]) -> Json:
    omitted = [{"item_ref": ref, "reason": "duplicate"} for ref in unchanged]
    return event(
        "selection.completed", {"selected_item_refs": selected, "omitted_item_refs": omitted}, turn=turn
    )


def simulate(*events: Json) -> list[Step]:
    return steps(events, policy="sanqian")


def test_added_skipped_updated_removed() -> None:
    found = simulate(
        surface("1", "app:editor", "app:notes"),
        provide("1", "app:editor", "one", title="Editor"),
        provide("1", "app:notes", "list", title="Notes"),
        surface("2", "app:editor", "app:notes"),
        surface("3", "app:editor", "app:notes"),
        provide("3", "app:editor", "two", title="Editor", update=True),
        surface("4", "app:notes"),
    )
    assert [statuses(s) for s in found] == [
        {"app:editor": "added", "app:notes": "added"},
        {},
        {"app:editor": "updated"},
        {"marker:app:editor": "added", "app:editor": "removed"},
    ]
    assert [s.counts.skipped for s in found] == [0, 2, 1, 1]
    assert all("simulated" in s.flags and s.mode == "append" for s in found)
    assert found[3].changes[-1].cause == "detached"
    assert found[2].ledger.stale > 0
    assert found[1].ledger.saved == found[1].window.used


def test_the_markers_ride_with_the_content() -> None:
    inspector = inspect(
        [
            surface("1", "app:e"),
            provide("1", "app:e", "one", title="Editor"),
            surface("2", "app:e"),
            provide("2", "app:e", "two", title="Editor", update=True),
            surface("3"),
        ],
        policy="sanqian",
    )
    assert inspector.assembled(2).split("\n") == [
        "<system_reminder>",
        "[Context: Editor]",
        "one",
        "</system_reminder>",
        "<system_reminder>",
        "[Context updated: Editor]",
        "two",
        "</system_reminder>",
        "<system_reminder>",
        "[Context removed: app:e]",
        "</system_reminder>",
    ]


def test_a_given_version_decides_even_where_the_text_changed() -> None:
    found = simulate(
        surface("1", "app:e"),
        provide("1", "app:e", "one", metadata={"version": "7"}),
        surface("2", "app:e"),
        provide("2", "app:e", "two", metadata={"version": "7"}, update=True),
    )
    assert found[1].counts.skipped == 1
    assert found[1].ledger.new == 0


def test_items_of_one_provider_do_not_take_each_others_place() -> None:
    found = simulate(
        surface("1", "app:notes"),
        provide("1", "app:notes", "a", item="app:notes/1"),
        provide("1", "app:notes", "b", item="app:notes/2"),
        surface("2", "app:notes"),
    )
    assert found[0].counts.added == 2
    assert found[1].counts.skipped == 2


def test_null_while_attached_injects_nothing_and_takes_nothing_back() -> None:
    found = simulate(
        surface("1", "app:e"),
        provide("1", "app:e", "one"),
        surface("2", "app:e"),
        missing("2", "app:e"),
        surface("3", "app:e"),
    )
    assert [s.ledger.new > 0 for s in found] == [True, False, False]
    assert all(s.counts.removed == 0 for s in found)


def test_switching_the_agent_switches_its_contexts_and_back() -> None:
    found = simulate(
        surface("1", "app:e"),
        provide("1", "app:e", "one"),
        surface("2", "cal:day"),
        provide("2", "cal:day", "busy"),
        surface("3", "app:e"),
    )
    assert statuses(found[1]) == {"cal:day": "added", "marker:app:e": "added", "app:e": "removed"}
    assert statuses(found[2])["app:e"] == "added"
    assert statuses(found[2])["cal:day"] == "removed"


def test_recorded_stages_are_held_against_the_rules() -> None:
    agreeing = simulate(
        surface("1", "app:e"),
        provide("1", "app:e", "one"),
        selection("1", ["app:e"], []),
        surface("2", "app:e"),
        selection("2", [], ["app:e"]),
    )
    assert [s.stages["selection"].verdict for s in agreeing] == ["matches", "matches"]
    differing = simulate(
        surface("1", "app:e"),
        provide("1", "app:e", "one"),
        selection("1", ["app:e"], []),
        surface("2", "app:e"),
        selection("2", ["app:e"], []),
    )
    stage = differing[1].stages["selection"]
    assert stage.verdict == "differs"
    assert stage.facts["expected"] == {"selected": [], "unchanged": ["app:e"]}
    assert differing[1].stages["assembly"].verdict == "not_recorded"


def test_attached_twice_is_injected_once() -> None:
    offered = (Offered("app:e", "1", None, "app:e"),)
    plan = Sanqian().plan(Situation(("app:e", "app:e"), offered, frozenset(), {}))
    assert [act.action for act in plan.acts] == ["added"]


def test_the_reminder_rides_on_the_last_human_message() -> None:
    prompt = {
        "item_id": "m1",
        "context_kind": "user_message",
        "content_mode": "inline",
        "content": "rewrite this",
    }
    found = inspect(
        [surface("1", "app:e"), provide("1", "app:e", "one"), event("item.added", prompt, turn="1")],
        policy="sanqian",
    )
    assert found.assembled(0).split("\n") == [
        "rewrite this",
        "<system_reminder>",
        "[Context: app:e]",
        "one",
        "</system_reminder>",
    ]


def test_nothing_to_inject_makes_no_reminder() -> None:
    found = inspect([surface("1", "app:e"), missing("1", "app:e")], policy="sanqian")
    assert found.assembled(0) == ""


def injected(turn: str, point: str) -> Json:
    return event("injection.applied", {"target": "model", "injection_point": point}, turn=turn)


def test_a_recorded_injection_is_held_against_whether_there_is_anything_to_inject() -> None:
    first = [surface("1", "app:e"), provide("1", "app:e", "one")]
    there, elsewhere = "user_message_appendix", "message_history"
    told = []
    for points in ([there], [there, elsewhere], [elsewhere], []):
        (step,) = simulate(*first, *(injected("1", point) for point in points))
        told.append(step.stages["injection"])
    assert [stage.verdict for stage in told] == ["matches", "matches", "differs", "not_recorded"]
    assert (told[2].facts["expected"], told[2].facts["recorded"]) == (True, False)
    # The second turn has nothing new.
    again = [*first, injected("1", there), surface("2", "app:e")]
    stage = simulate(*again, injected("2", there))[1].stages["injection"]
    assert (stage.verdict, stage.facts["expected"], stage.facts["recorded"]) == ("differs", False, True)
    stage = simulate(*again, injected("2", elsewhere))[1].stages["injection"]
    assert stage.verdict == "recorded"
