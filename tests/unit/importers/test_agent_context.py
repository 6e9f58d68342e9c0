"""Agent Context records without events: what a capture becomes, rule by rule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers import registry
from ctxctl.ingest.folder import Folder
from ctxctl.model.results import Step
from ctxctl.plugins.agent_context import FORMAT, sure
from ctxctl.session import Inspector

FIXTURES = Path(__file__).parents[3] / "fixtures" / "agent_context"
Json = dict[str, Any]


def opened(path: Path) -> tuple[list[Step], Inspector]:
    inspector = Inspector.open(path)
    return [result for result in inspector.replay() if isinstance(result, Step)], inspector


def of(tmp_path: Path, *records: Any, name: str = "r.json") -> tuple[list[Step], Inspector]:
    path = tmp_path / name
    path.write_text(json.dumps(records[0] if len(records) == 1 else list(records)))
    return opened(path)


def texts(inspector: Inspector, ordinal: int) -> list[str]:
    return [inspector.text(p.content) for p in inspector.frame(ordinal).placements if p.content is not None]


def slugs(inspector: Inspector) -> list[str]:
    return [problem.slug for problem in inspector.problems]


def test_a_bundle_is_one_step_in_the_order_of_the_stages() -> None:
    (step,), inspector = opened(FIXTURES / "snapshot.json")
    assert (step.session, step.turn_id, step.basis, step.layer) == (
        "session_harbour", "turn_5", "assembly", "injected",
    )  # fmt: skip
    assert step.annotations.ids.context_id == "ctx_turn_5"
    assert (step.annotations.ids.task_id, step.annotations.ids.attempt_id) == ("task_timetable", "attempt_1")
    assert texts(inspector, 0) == [
        "The user is in the harbour town.",
        "<doc>Departures: 09:00, 13:30, 17:45.</doc>",
        "When does the last ferry leave?",
    ]
    assert step.segments == {"context": 31, "user": 7}
    assert [(c.item, c.reason) for c in step.changes if c.status == "omitted"] == [("item_old_log", "stale")]
    budget = step.stages["budget"].facts
    assert (budget["actual_items"], budget["max_time_ms"], budget["actual_time_ms"]) == (3, 250, 180)
    assert step.window.cap == 3000
    # A source ref by its id is the source ref itself.
    assert [p.source for p in inspector.frame(0).placements] == [None, "source_timetable", None]
    assert slugs(inspector) == []


def test_lines_are_grouped_by_the_envelopes_that_bind_them() -> None:
    (first, second), inspector = opened(FIXTURES / "records.jsonl")
    assert (first.thread, first.turn_id, second.thread, second.turn_id) == (
        "main",
        "turn_1",
        "navigator",
        "turn_2",
    )
    assert [e.context_id for e in second.annotations.envelopes] == ["ctx_2", "ctx_review"]
    assert texts(inspector, 1) == [
        "Plan the crossing to the island.",
        "Three boats were compared; the blue one was chosen.",
        "Passenger: [name removed]",
    ]
    assert second.annotations.redactions[0].policy_refs == ("policy_privacy",)
    assert second.annotations.missing[0].requested_action == "restart the feed"
    assert second.annotations.compactions[0].loss_notes == ("prices of the boats",)
    assert second.stages["injection"].facts["other_targets"] == ["tool"]
    kinds = [
        problem.message.split()[0] for problem in inspector.problems if problem.slug == "no-schema-version"
    ]
    assert len(kinds) == len(set(kinds)), "said once for each kind"
    assert [p.line for p in inspector.problems if p.slug == "unresolved-ref"] == [16]


def test_markdown_is_read_block_by_block() -> None:
    (step,), inspector = opened(FIXTURES / "example.md")
    assert [(c.item, c.status) for c in step.changes] == [
        ("tide_table", "added"), ("moon_phase", "added"), ("old_tides", "omitted"),
    ]  # fmt: skip
    assert texts(inspector, 0) == ["High water at 6 and at 18."]
    assert step.stages["selection"].facts["selected_refs"] == [
        {"item": "moon_phase", "reason": "explains the tides"}
    ]
    assert [problem.line for problem in inspector.problems] == [4, 21]


def test_refs_go_from_file_to_file_of_a_directory() -> None:
    (step,), inspector = opened(FIXTURES / "folder")
    assert (step.annotations.ids.context_id, step.annotations.ids.task_id) == ("ctx_folder", "task_buoys")
    assert texts(inspector, 0) == ["Green buoy: starboard side.", "Red buoy: port side."]
    assert registry.detect_folder(Folder("f", FIXTURES / "folder")) is FORMAT


@pytest.mark.parametrize("mixed", ["fixtures", "traces"])
def test_captures_beside_each_other_are_no_capture(mixed: str) -> None:
    assert registry.format_of_folder(Folder(mixed, FIXTURES.parents[1] / mixed)) is None


def test_whole_records_may_stand_where_refs_do(tmp_path: Path) -> None:
    item = {"item_id": "a", "context_kind": "user_message", "content_mode": "inline", "content": "hello",
            "visibility": ["model"]}  # fmt: skip
    envelope = {"context_id": "c", "scope": "turn", "lifecycle": "selected", "item_refs": [item]}
    (step,), inspector = of(tmp_path, envelope)
    assert texts(inspector, 0) == ["hello"]
    assert step.annotations.envelopes[0].refs == {"item_refs": ("a",)}


def test_envelopes_are_told_in_the_order_in_which_they_were_made(tmp_path: Path) -> None:
    def envelope(name: str, second: int) -> Json:
        return {
            "context_id": name,
            "scope": "turn",
            "lifecycle": "draft",
            "created_at": f"2026-01-01T00:00:0{second}Z",
        }

    steps, _ = of(tmp_path, envelope("late", 2), envelope("early", 1))
    assert [step.annotations.ids.context_id for step in steps] == ["early", "late"]


def test_attempts_at_one_task_are_steps_of_their_own(tmp_path: Path) -> None:
    def choice(n: int) -> Json:
        return {"selection_id": f"s{n}", "surface_id": "u", "selected_item_refs": [f"i{n}"], "task_id": "t",
                "attempt_id": f"a{n}"}  # fmt: skip

    steps, _ = of(tmp_path, choice(1), choice(2))
    assert [step.annotations.ids.attempt_id for step in steps] == ["a1", "a2"]
    assert [step.stages["selection"].facts["selection_id"] for step in steps] == ["s1", "s2"]


def test_what_does_not_fit_the_schema_is_kept_and_told(tmp_path: Path) -> None:
    item = {"item_id": "a", "context_kind": "custom", "content": "x", "visibility": "model",
            "token_estimate": "many",
            "created_at": "yesterday", "shade": "blue"}  # fmt: skip
    _, inspector = of(tmp_path, item)
    data = inspector.native(1)["data"]
    assert (data["visibility"], data["shade"]) == (["model"], "blue")
    assert data["metadata"]["native"] == {"created_at": "yesterday", "token_estimate": "many"}
    assert slugs(inspector) == ["bad-field", "no-schema-version"]


def test_a_scope_that_the_standard_lacks_is_custom(tmp_path: Path) -> None:
    envelope = {"schema_version": "0.1.1", "context_id": "c", "scope": "team", "lifecycle": "draft"}
    (step,), inspector = of(tmp_path, envelope)
    assert step.annotations.envelopes[0].scope == "custom"
    assert inspector.native(1)["data"]["metadata"]["native"] == {"scope": "team"}
    assert slugs(inspector) == []


def test_the_same_record_twice_is_one(tmp_path: Path) -> None:
    item = {"item_id": "a", "context_kind": "user_message", "content": "x", "content_mode": "inline"}
    _, inspector = of(tmp_path, item, dict(item), {**item, "content": "y"})
    kinds = [event.event_type for event in inspector.trace.events()]
    assert kinds[:2] == ["context.item.added", "context.item.updated"]
    assert texts(inspector, 0) == ["y"]


def test_a_schema_of_the_standard_holds_no_record(tmp_path: Path) -> None:
    schema = {"$id": "https://example.org/schemas/agentcontext-budget.schema.json", "title": "Budget"}
    steps, inspector = of(tmp_path, schema)
    assert (steps, slugs(inspector)) == ([], ["no-records"])


@pytest.mark.parametrize(
    "name", ["snapshot.json", "records.jsonl", "example.md", "folder/items.jsonl", "folder/window.yaml"]
)
def test_captures_are_known_by_their_content(name: str) -> None:
    head = (FIXTURES / name).read_bytes()
    found = registry.of_head(head)
    assert found is not None
    assert found.name == "agent-context"
    assert sure(b"\xef\xbb\xbf\n\n" + head) >= 50


@pytest.mark.parametrize(
    "other",
    [
        b'{"type": "message", "summary": [{"text": "x"}]}\n',
        b'{"type":"response_item","payload":{"type":"reasoning","summary":[{"content":"x"}]}}\n',
        b'{"inputSchema": {"properties": {"item_id": {"type": "string"}, "content": {}}}}',
        b'{"text": "{\\"item_id\\": \\"a\\", \\"context_kind\\": \\"custom\\"}"}\n',
        b'# A page\n\n```json\n{"a": 1}\n```\n',
        b"plain words",
        b"",
    ],
)
def test_other_captures_are_not_claimed(other: bytes) -> None:
    assert sure(other) == 0


def test_aliases_that_blow_up_are_refused(tmp_path: Path) -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    path = tmp_path / "bomb.yaml"
    path.write_text("item_id: a\ncontext_kind: custom\n" + "\n".join(rows))
    _, inspector = opened(path)
    assert "yaml-bomb" in slugs(inspector)


@pytest.mark.parametrize("ending", ["yaml", "md"])
def test_aliases_are_bounded_over_a_whole_capture(tmp_path: Path, ending: str) -> None:
    names = [f"a{n}" for n in range(20)]
    bomb = "a: &a [" + "x," * 300 + "]\nmetadata: {e: [" + "*a," * 160 + "]}\n"
    texts = [f"item_id: {n}\ncontext_kind: custom\ncontent: x\n{bomb}" for n in names]
    path = tmp_path / f"bombs.{ending}"
    made = "---\n".join(texts) if ending == "yaml" else "".join(f"```yaml\n{t}```\n" for t in texts)
    path.write_text(made)
    steps, inspector = opened(path)
    # Of a file of YAML nothing is read; of a file of Markdown, the block that is in bounds.
    assert [slug for slug in slugs(inspector) if slug == "yaml-bomb"] == ["yaml-bomb"] * (
        1 if ending == "yaml" else 19
    )
    assert len(steps) == (0 if ending == "yaml" else 1)


def test_a_number_that_no_float_holds_is_text(tmp_path: Path) -> None:
    path = tmp_path / "number.yaml"
    path.write_text("item_id: a\ncontext_kind: custom\ncontent: x\nmetadata: {v: 1" + ":59" * 1000 + ".5}\n")
    steps, _ = opened(path)
    assert len(steps) == 1


def test_events_of_an_array_are_read_under_the_formats_name(tmp_path: Path) -> None:
    item = {"item_id": "a", "context_kind": "user_message", "content_mode": "inline", "content": "x"}
    event = {"schema_version": "0.1.1", "event_id": "e", "event_type": "context.item.added", "source": "s",
             "time": "2026-01-01T00:00:00Z", "turn_id": "t", "data": item}  # fmt: skip
    path = tmp_path / "events.json"
    path.write_text(json.dumps([event], indent=1))
    inspector = Inspector.open(path, format="agent-context")
    (step,) = (result for result in inspector.replay() if isinstance(result, Step))
    assert (step.turn_id, texts(inspector, 0)) == ("t", ["x"])


def test_what_a_reviewer_saw_of_a_turn_is_no_window_of_the_models(tmp_path: Path) -> None:
    def placed(of: str, target: str) -> list[Json]:
        return [
            {"assembly_id": f"a-{of}", "target": target, "ordered_blocks": [{"item_refs": ["ask"]}]},
            {"injection_id": f"i-{of}", "assembly_id": f"a-{of}", "target": target},
        ]

    def bound(name: str, scope: str, at: int, *turn: str) -> Json:
        refs = [{"kind": "turn", "id": "T"}, *({"kind": "session", "id": s} for s in turn)]
        return {"context_id": name, "scope": scope, "lifecycle": "injected", "runtime_refs": refs,
                "item_refs": ["ask"], "assembly_refs": [f"a-{name}"], "injection_refs": [f"i-{name}"],
                "created_at": f"2026-01-01T00:0{at}:00Z"}  # fmt: skip

    ask = {"item_id": "ask", "context_kind": "user_message", "content_mode": "inline", "content": "When?",
           "visibility": ["model", "reviewer"]}  # fmt: skip
    records = [bound("turn", "turn", 0, "S"), bound("review", "review", 1), ask]
    (step,), inspector = of(tmp_path, *records, *placed("turn", "model"), *placed("review", "reviewer"))
    assert (step.basis, [e.context_id for e in step.annotations.envelopes]) == (
        "assembly",
        ["turn", "review"],
    )
    assert "late-event" not in slugs(inspector)
    reviewer = Inspector.open(tmp_path / "r.json", target="reviewer")
    (seen,) = [result for result in reviewer.replay() if isinstance(result, Step)]
    assert (seen.layer, [c.item for c in seen.changes]) == ("injected", ["ask"])


def test_an_item_without_a_date_has_its_envelopes(tmp_path: Path) -> None:
    envelopes = [
        {"context_id": f"c{n}", "scope": "turn", "lifecycle": "injected", "item_refs": [f"i{n}"],
         "created_at": f"2026-01-01T00:0{n}:00Z"}
        for n in (1, 2)
    ]  # fmt: skip
    asked = [
        {"item_id": f"i{n}", "context_kind": "user_message", "content_mode": "inline", "content": str(n),
         "visibility": ["model"]}
        for n in (1, 2)
    ]  # fmt: skip
    found, _ = of(tmp_path, *envelopes, *asked)
    assert [step.time for step in found] == ["2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"]
