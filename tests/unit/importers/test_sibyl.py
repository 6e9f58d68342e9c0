from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ctxctl.ingest.folder import Folder
from ctxctl.plugins.sibyl import FORMAT
from tests.unit.importers.seed_help import (  # fmt: skip
    FIXTURES,
    Json,
    change,
    data,
    deep,
    detected,
    events,
    items,
    lines,
    named,
    slugs,
    spoilt,
    steps,
)

SIBYL = FIXTURES / "sibyl"
KIND = "durable_memory"
SELECTED, BUDGET = "context.selection.completed", "context.budget.applied"
ASSEMBLY, INJECTION = "context.assembly.created", "context.injection.applied"
MISSING = "context.missing.detected"


def pack(*rows: Json, **more: Any) -> Json:
    sections: dict[str, list[Json]] = {}
    for row in rows:
        sections.setdefault(row["facet"], []).append(row)
    made = [{"facet": facet, "title": facet.title(), "items": found} for facet, found in sections.items()]
    return {
        "goal": "g",
        "intent": "build",
        "layer": "recall",
        "sections": made,
        "total_items": len(rows),
        **more,
    }


def item(name: str, content: str, facet: str = "decisions", score: float = 1.0, **more: Any) -> Json:
    return {"id": name, "type": "decision", "name": name, "content": content, "facet": facet,
            "score": score, "reason": "r", "related": [], **more}  # fmt: skip


def call(ident: int, **arguments: Any) -> Json:
    params = {"name": "context", "arguments": {"goal": "g", **arguments}}
    return {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params}


def answer(ident: int, result: Json) -> Json:
    return {"jsonrpc": "2.0", "id": ident, "result": result}


def structured(found: Json) -> Json:
    return {"structuredContent": found, "content": [], "isError": False}


# -- the pack, and its markdown ------------------------------------------------------------------------------


def test_a_log_of_calls_is_a_turn_a_pack() -> None:
    found, inspector = steps(SIBYL / "mcp.jsonl")
    assert [(s.thread, s.turn, s.step_id, s.time) for s in found] == [
        ("main", 1, "1", "2026-03-02T09:00:01Z"),
        ("failed", 1, "2", "2026-03-02T09:05:01Z"),
        ("main", 2, "3", "2026-03-03T09:00:01Z"),
    ]
    assert all(s.layer == "view" for s in found)
    assert all(
        "injection_not_recorded" in s.flags or s.stages["injection"].verdict == "not_recorded" for s in found
    )
    assert not inspector.problems


def test_the_markdown_is_a_second_selection() -> None:
    (first, _, _), inspector = steps(SIBYL / "mcp.jsonl")
    assert first.stages["selection"].facts["selected"] == 5
    assert named(first, "added", KIND) == ["task_leap", "sess_may"]
    assert named(first, "omitted") == ["dec_moon", "dec_width", "err_feb"]
    assert {c.reason for c in first.changes if c.status == "omitted"} == {"budget_limit"}
    assert "truncated" in change(first, "sess_may").flags
    assert "truncated" not in change(first, "task_leap").flags
    shown = json.loads((SIBYL / "mcp.jsonl").read_text().splitlines()[1])
    assert inspector.assembled(0) == shown["message"]["result"]["structuredContent"]["markdown"]


def test_the_second_selection_is_marked_derived() -> None:
    found, _ = events("sibyl", (SIBYL / "mcp.jsonl").read_bytes())
    budget = data(found, BUDGET)[0]
    assert (budget["max_items"], budget["actual_items"], budget.get("max_tokens")) == (24, 5, None)
    assert budget["metadata"]["native"] == {
        "limit": 40,
        "layer": "recall",
        "layer_limit": 24,
        "clamped": True,
        "markdown_token_budget": 200,
    }
    assert budget["metadata"]["ctxctl"] == {
        "derived": True,
        "max_chars": 800,
        "actual_chars": 530,
        "chars_by": "200 of the tool's tokens, 4 characters each",
    }
    assert [(r["item_ref"].partition("@")[0], r["dropped"]) for r in budget["truncation_records"]] == [
        ("dec_moon", True), ("dec_width", True), ("err_feb", True), ("sess_may", False),
    ]  # fmt: skip
    assert data(found, ASSEMBLY)[0]["metadata"]["ctxctl"]["derived"] is True
    assert not data(found, INJECTION)


def test_two_packs_of_a_goal_are_compared() -> None:
    found, inspector = steps(SIBYL / "mcp.jsonl")
    second = found[2]
    assert named(second, "added", KIND) == ["dec_moon2", "dec_width", "err_feb"]
    assert named(second, "updated", KIND) == ["task_leap", "sess_may"]
    assert change(second, "task_leap").version != change(second, "task_leap").previous_version
    # The same content, rendered whole this time.
    assert change(second, "sess_may").version == change(second, "sess_may").previous_version
    assert "rescored" in change(second, "task_leap").flags
    facets = {p.item: p.segment for p in inspector.frame(2).placements}
    assert facets["task_leap"] == "prior_art"


def test_score_and_facet_alone_are_no_update() -> None:
    one = pack(item("a", "A", score=1.0), item("b", "B", "gotchas", 0.5))
    two = pack(item("b", "B", "decisions", 0.9), item("a", "A", "gotchas", 1.0))
    found, _ = events("sibyl", lines(one, two))
    assert [s["selected_item_refs"][0]["item_ref"][:1] for s in data(found, SELECTED)] == ["a", "b"]
    again = [e["data"] for e in found if e["event_type"] == "context.item.updated"]
    assert [(i["item_id"], i["metadata"]["native"]["facet"]) for i in again] == [
        ("b", "decisions"),
        ("a", "gotchas"),
    ]


def test_moved_and_rescored(tmp_path: Path) -> None:
    one = pack(item("a", "A", score=1.0), item("b", "B", score=0.5))
    two = pack(item("b", "B", score=0.9), item("a", "A", score=1.0))
    path = tmp_path / "packs.jsonl"
    path.write_bytes(lines(one, two))
    found, _ = steps(path)
    flags = {c.item: c.flags for c in found[1].changes}
    assert found[1].counts.skipped == 2
    assert "rescored" in flags["b"]
    assert any("moved" in told for told in flags.values())


def test_packs_of_another_goal_are_another_thread() -> None:
    found, _ = events(
        "sibyl", lines(pack(item("a", "A")), pack(item("a", "A"), goal="h"), pack(item("a", "B")))
    )
    where = [(e.get("thread_id"), e["turn_id"]) for e in found if e["event_type"] == SELECTED]
    assert where == [(None, "pack-1"), ("goal-2", "pack-1"), (None, "pack-2")]


def test_what_sibyl_says_of_an_item_is_kept() -> None:
    found, _ = events("sibyl", (SIBYL / "mcp.jsonl").read_bytes())
    leap = next(
        e["data"] for e in found if e["event_type"] == "context.item.added" and ".item." in e["event_type"]
    )
    native = leap["metadata"]["native"]
    assert (native["facet"], native["score"], native["reason"][:4]) == ("active_work", 0.0, "task")
    assert [r["id"] for r in native["related"]] == ["dec_moon"]
    selection = data(found, SELECTED)[0]
    assert selection["ranking_signals"][selection["selected_item_refs"][1]["item_ref"]]["relevance"] == 1.42
    chosen = selection["selected_item_refs"][0]
    assert (chosen["rank"], chosen["score"], chosen["reason"][:17]) == (1, 0.0, "active_work: task")
    assert selection["metadata"]["native"]["usage_metadata"]["usage_exposure"]["message_key"] == "msg-4"
    assert selection["metadata"]["candidates_not_reported"] is True


def test_the_layer_clamps_the_limit() -> None:
    found, _ = events("sibyl", (SIBYL / "wake.json").read_bytes())
    (budget,) = data(found, BUDGET)
    assert budget["max_items"] == 8
    assert budget["metadata"]["native"]["limit"] == 12
    assert "max_tokens" not in budget, "a markdown budget of null is none"


@pytest.mark.parametrize(
    ("arguments", "limit"),
    [
        ({"limit": 6}, 6),
        ({"limit": 0}, 1),
        ({"limit": 90, "layer": "deep_search"}, 50),
        ({}, 24),
        ({"layer": "wake"}, 8),
        ({"layer": "deep_search"}, 24),
        ({"limit": "9"}, None),
    ],
)
def test_limits(arguments: Json, limit: int | None) -> None:
    layer = arguments.get("layer", "recall")
    found, _ = events(
        "sibyl", lines(call(1, **arguments), answer(1, structured(pack(item("a", "A"), layer=layer))))
    )
    budgets = data(found, BUDGET)
    assert [b.get("max_items") for b in budgets] == ([limit] if limit is not None else [])
    assert all(
        ("limit" in b["metadata"]["native"]["defaults"]) == ("limit" not in arguments) for b in budgets
    )


TITLE = "# Sibyl Context Pack: g\n\n## Decisions\n- **A** `a`"


@pytest.mark.parametrize(
    ("arguments", "native", "chars"),
    [
        ({}, 4000, 16_000),
        ({"markdown_token_budget": None}, None, None),
        ({"markdown_token_budget": 99}, 99, 400),
        ({"markdown_token_budget": -5}, -5, 400),
        ({"markdown_token_budget": "x"}, "nothing", None),
    ],
)
def test_a_budget_that_no_call_names_is_the_tools_own(
    arguments: Json, native: int | str | None, chars: int | None
) -> None:
    made = pack(item("a", "A") | {"name": "A"}, markdown=TITLE)
    found, _ = events("sibyl", lines(call(1, **arguments), answer(1, structured(made))))
    (budget,) = data(found, BUDGET)
    assert budget["metadata"]["native"].get("markdown_token_budget", "nothing") == native
    assert budget["metadata"].get("ctxctl", {}).get("max_chars") == chars
    assert "max_tokens" not in budget
    defaults = budget["metadata"]["native"].get("defaults", [])
    assert ("markdown_token_budget" in defaults) == (not arguments)


def test_nothing_is_taken_for_a_default_where_no_call_is_recorded() -> None:
    found, _ = events("sibyl", lines(pack(item("a", "A") | {"name": "A"}, markdown=TITLE)))
    assert not data(found, BUDGET)
    row = {"id": "aud-1", "action": "memory.context_pack", "derived_ids": ["g"], "policy_allowed": True,
           "details": {"layer": "wake"}}  # fmt: skip
    found, _ = events("sibyl", json.dumps({"events": [row]}).encode())
    assert not data(found, BUDGET), "an audit row does not hold every argument"


def test_what_a_receipt_says_of_the_budget_counts(tmp_path: Path) -> None:
    receipt = {"schema_version": "sibyl-context-render-v2", "options": {"token_budget": 700}}
    made = pack(item("a", "A") | {"name": "A"}, markdown=TITLE, render_receipt=receipt)
    found, _ = events("sibyl", lines(call(1), answer(1, structured(made))))
    (budget,) = data(found, BUDGET)
    assert budget["metadata"]["ctxctl"]["max_chars"] == 2800
    assert budget["metadata"]["native"]["defaults"] == ["limit"]


def test_characters_are_no_tokens_of_a_window() -> None:
    (first, _, _), _ = steps(SIBYL / "mcp.jsonl")
    facts = first.stages["budget"].facts
    assert (facts["max_chars"], facts["actual_chars"]) == (800, 530)
    assert (first.window.limit, first.window.free) == (None, None)
    command = [sys.executable, "-m", "ctxctl", "why", f"{SIBYL / 'mcp.jsonl'}@1", "err_feb"]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60, text=True)
    said = " ".join(done.stdout.split())
    assert "530 of 800 characters (200 of the tool's tokens, 4 characters each) used" in said
    assert "the budget there counts characters (530 of 800), so no number of tokens says" in said
    assert "of 800 tokens" not in said
    assert "of 200 tokens" not in said


def test_names_and_goals_of_several_lines() -> None:
    rows = [item("a", "A") | {"name": "One\n## Two\n- **x** `b`"}, item("b", "B", score=0.5) | {"name": "b"}]
    text = (
        "# Sibyl Context Pack: g\n\n## of it\nIntent: build\nLayer: recall\nQuery: g\n\n## of it\n"
        "\n## Decisions\n"
        "- **One\n## Two\n- **x** `b`** (decision) `a`\n  - Memory: A\n- **b** (decision) `b`\n  - Memory: B"
    )
    goal = "g\n\n## of it"
    found, _ = events("sibyl", lines(pack(*rows, goal=goal, query=goal, markdown=text)))
    (assembly,) = data(found, ASSEMBLY)
    assert [b["block_id"] for b in assembly["ordered_blocks"]] == [
        "pack/header", "pack/section/decisions", "a", "b",
    ]  # fmt: skip
    assert "\n".join(b["content"] for b in assembly["ordered_blocks"]) == text


def test_a_first_answer_that_is_long_is_found_by_its_beginning() -> None:
    made = pack(item("a", "A" * 100_000), usage_hint="h", query="g")
    for result in (structured(made), {"content": [{"type": "text", "text": json.dumps(made)}]}):
        assert detected(lines(call(1), answer(1, result))[:65_536]) == "sibyl"


def test_a_receipt_is_taken_at_its_word() -> None:
    found, _ = events("sibyl", (SIBYL / "receipt.json").read_bytes())
    (budget,) = data(found, BUDGET)
    assert [
        (r["item_ref"].partition("@")[0], r["metadata"]["native_reason"])
        for r in budget["truncation_records"]
    ] == [("err_feb", "item_limit")]
    assert "ctxctl" not in budget["metadata"]
    assert {e.get("step_id") for e in found if "turn_id" in e} == {"req-5"}


def test_a_verbatim_procedure_is_one_piece() -> None:
    """Its headings and list items are its own, not the markdown's."""
    (step,), inspector = steps(SIBYL / "receipt.json")
    assert named(step, "added", KIND) == ["proc_print", "dec_width"]
    shown = json.loads((SIBYL / "receipt.json").read_text())
    assert inspector.assembled(0) == shown["markdown"]


def test_markdown_alone_names_its_items() -> None:
    (step,), inspector = steps(SIBYL / "pack.md")
    assert named(step, "added", KIND) == ["task_leap", "sess_may"]
    assert inspector.assembled(0) == (SIBYL / "pack.md").read_text()
    found, _ = events("sibyl", (SIBYL / "pack.md").read_bytes())
    assert items(found)["task_leap"]["content_mode"] == "opaque"
    assert data(found, SELECTED)[0]["metadata"]["ctxctl"] == {"derived": True}


def test_names_with_marks_in_them() -> None:
    row = item("d-1", "A") | {"name": "Use `x` **now**"}
    text = "# Sibyl Context Pack: g\n\n## Decisions\n- **Use `x` **now**** (decision) `d-1` _updated=2026_"
    found, _ = events("sibyl", lines(pack(row, markdown=text)))
    blocks = data(found, ASSEMBLY)[0]["ordered_blocks"]
    assert [b["block_id"] for b in blocks] == ["pack/header", "pack/section/decisions", "d-1"]


# -- errors, audits ------------------------------------------------------------------------------------------


def test_an_error_is_missing_context() -> None:
    (_, failed, _), _ = steps(SIBYL / "mcp.jsonl")
    assert failed.window.used == 0
    found, _ = events("sibyl", (SIBYL / "mcp.jsonl").read_bytes())
    (missing,) = data(found, MISSING)
    assert missing["question"] == "Project access denied: proj_other"
    assert (missing["severity"], missing["status"]) == ("high", "open")


def test_errors_of_json_rpc_and_of_other_tools() -> None:
    other = {"jsonrpc": "2.0", "id": 9, "error": {"code": 1, "message": "not ours"}}
    failed = {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {"code": -32000, "message": "recall_concurrency_limit_exceeded"},
    }
    found, problems = events("sibyl", lines(call(1), other, failed, call(2)))
    assert [m["question"] for m in data(found, MISSING)] == ["recall_concurrency_limit_exceeded"]
    assert slugs(problems) == ["no-answer"]


def test_failed_lanes_and_items_that_the_capture_lacks() -> None:
    found, _ = events(
        "sibyl", lines(pack(item("a", "A"), total_items=4, usage_metadata={"failed_lanes": ["vector"]}))
    )
    assert [m["question"] for m in data(found, MISSING)] == [
        "vector", "the pack says that it has 4 items; the capture holds 1",
    ]  # fmt: skip


def test_a_pack_whose_json_was_cut_is_read_as_far_as_it_goes() -> None:
    whole = json.dumps(pack(item("a", "A"), item("b", "B"), usage_hint="h"))
    for text in (whole + "\n\n[note of a proxy]", whole[: whole.index('"id": "b"') + 40] + "[cut]"):
        found, problems = events(
            "sibyl", lines(call(1), answer(1, {"content": [{"type": "text", "text": text}]}))
        )
        assert "a" in items(found)
        assert not problems


def test_an_audit_row_is_joined_to_its_pack() -> None:
    found, _ = events("sibyl", (SIBYL / "mcp.jsonl").read_bytes())
    last = [e for e in found if e.get("step_id") == "3"]
    assert {tuple(e["evidence_refs"]) for e in last} == {("aud-7",)}
    assert all("evidence_refs" not in e for e in found if e.get("step_id") == "1")


# -- what reached a model ------------------------------------------------------------------------------------


def test_what_a_transcript_beside_it_holds_was_injected() -> None:
    (step,), inspector = steps(SIBYL / "beside")
    assert inspector.trace is not None
    assert step.layer == "injected"
    assert named(step, "added", KIND) == ["task_leap", "sess_may", "dec_moon2", "dec_width"]
    assert "truncated" in change(step, "dec_width").flags
    assert [(c.item, c.reason) for c in step.changes if c.status == "omitted"] == [
        ("err_feb", "not_visible_to_target")
    ]
    text = next(p for p in inspector.frame(0).placements if p.item == "dec_width").content
    assert text is not None
    assert inspector.text(text).endswith("Every column")


def test_a_request_behind_a_pack_that_holds_its_json() -> None:
    rows = [item("a", "Line one\nline “two”"), item("b", "B")]
    whole = json.dumps(pack(*rows))
    body = {"model": "m-1", "messages": [{"role": "tool", "content": whole[: whole.index('"id": "b"')]}]}
    found, _ = events("sibyl", lines(pack(*rows), body))
    (assembly,) = data(found, ASSEMBLY)
    assert [b["block_id"] for b in assembly["ordered_blocks"]] == ["a"]
    assert assembly["metadata"]["native"] == {"form": "json", "request_line": 2, "request_file": None}
    (injected,) = data(found, INJECTION)
    assert injected["metadata"] == {"model": "m-1", "ctxctl": {"derived": True}}


def test_what_the_markdown_cuts_does_not_matter_to_who_got_the_json() -> None:
    text = "# Sibyl Context Pack: g\n\n## D\n- **a** `a`\n  - Memory: one...\n\n_Trimmed to ~9 tokens; x_"
    whole = pack(item("a", "one two"), item("b", "B"), markdown=text)
    found, _ = events("sibyl", lines(whole, {"messages": [{"role": "tool", "content": json.dumps(whole)}]}))
    (assembly,) = data(found, ASSEMBLY)
    assert [b["block_id"] for b in assembly["ordered_blocks"]] == ["a", "b"]
    assert not any("metadata" in b or "content" in b for b in assembly["ordered_blocks"])
    assert not data(found, BUDGET)
    assert sorted(items(found)) == ["a", "b"]


def test_an_older_version_in_a_request_is_not_this_one() -> None:
    text = "# Sibyl Context Pack: g\n\n## Decisions\n- **a** (decision) `a`\n  - Memory: {}"
    new, old = text.format("new words"), text.format("old words")
    body = {"messages": [{"role": "user", "content": [{"type": "text", "text": old}]}]}
    found, _ = events("sibyl", lines(pack(item("a", "new words"), markdown=new), body))
    assert not data(found, INJECTION)
    assert [m["severity"] for m in data(found, MISSING)] == ["info"]


def test_the_request_belongs_to_the_pack_before_it() -> None:
    one, two = pack(item("a", "A")), pack(item("a", "A2"))
    body = {"messages": [{"role": "tool", "content": json.dumps(one)}]}
    found, _ = events("sibyl", lines(one, body, two))
    assert [e["turn_id"] for e in found if e["event_type"] == INJECTION] == ["pack-1"]


def test_directories(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(json.dumps(pack(item("a", "B")), indent=2))
    (tmp_path / "a.json").write_text(json.dumps(pack(item("a", "A"))))
    (tmp_path / "README.md").write_text("# Notes")
    assert FORMAT.detect_folder(Folder("d", tmp_path)) > 95
    found, problems = events("sibyl", tmp_path)
    files = [e["metadata"]["ctxctl"]["source_file"] for e in found if e["event_type"] == SELECTED]
    assert files == ["a.json", "b.json"]
    assert not problems
    (tmp_path / "other.json").write_text('{"unrelated": 1}')
    assert FORMAT.detect_folder(Folder("d", tmp_path)) == 0


# -- detection and nonsense ----------------------------------------------------------------------------------


def test_detection() -> None:
    whole = pack(item("a", "A"), usage_hint="h")
    assert detected(json.dumps(whole).encode()) == "sibyl"
    assert detected(b"\xef\xbb\xbf\n" + json.dumps(whole, indent=2).encode()) == "sibyl"
    assert detected(json.dumps(whole, indent=2).encode()[:400]) == "sibyl"
    assert FORMAT.detect(lines(call(1))) == 80, "the name of the tool and its arguments are all there is"
    assert detected(b'{"broken\n' + lines(call(1), answer(1, structured(whole)))) == "sibyl"
    assert detected(b"# Sibyl Context Pack: g\n") == "sibyl"
    smoke = {"expect": {"equals": {}}, "id": "x", "kind": "rest", "method": "GET", "path": "/"}
    assert detected(lines(smoke)) == "sibyl"
    assert slugs(events("sibyl", lines(smoke))[1]) == ["no-context-pack"]


def test_not_detected() -> None:
    quoted = json.dumps(
        {"type": "user", "message": {"role": "user", "content": json.dumps(pack(item("a", "A")))}}
    )
    assert FORMAT.detect(quoted.encode()) == 0
    assert FORMAT.detect(b'{"goal": "x", "sections": []}\n') == 0
    assert FORMAT.detect(b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}\n') == 0
    assert FORMAT.detect(b"# Some other pack\n") == 0


def test_odd_values_are_survived() -> None:
    row = item("a", "A", metadata={"status": "x"}, quality={"url": "u"})
    markdown = "# Sibyl Context Pack: g\n\n## D\n- **a** `a`"
    receipt = {"dispositions": [{"record_id": "a", "state": "emitted"}]}
    arguments = {"goal": "g", "limit": 3, "markdown_token_budget": 9}
    response = pack(row, item("a", "B"), markdown=markdown, usage_metadata={}, render_receipt=receipt)
    record = {"request": {"name": "context", "arguments": arguments}, "response": response}
    found, problems = events("sibyl", lines(*spoilt(record)))
    assert found
    assert set(slugs(problems)) <= {"unknown-record", "no-answer"}


def test_deep_values_are_cut() -> None:
    whole = json.dumps(pack(item("a", "A", metadata="?"), usage_metadata="?")).encode()
    for levels in (150, 300, 900, 5000):
        record = whole.replace(b'"?"', deep(levels))
        texts = json.dumps({"content": [{"type": "text", "text": record.decode()}]}).encode()
        for capture in (
            record,
            record + b"\n{}\n",
            b"[" * levels + record + b"]" * levels,
            texts + b"\n{}\n",
        ):
            events("sibyl", capture)


def test_two_items_of_one_id() -> None:
    found, _ = events("sibyl", lines(pack(item("a", "A"), item("a", "B"), {"facet": "x"})))
    assert sorted(items(found)) == ["a", "a~2"]
    assert len(data(found, SELECTED)[0]["selected_item_refs"]) == 2


def test_audit_rows_without_a_pack_are_ids_without_a_text() -> None:
    rows = [
        {"id": "aud-1", "action": "memory.context_pack", "derived_ids": ["g", "d"], "policy_allowed": True,
         "created_at": "2026-01-01T00:00:00Z", "details": {"limit": 50, "layer": "wake"}},
        {"id": "aud-2", "action": "memory.context_pack", "derived_ids": [], "policy_allowed": False,
         "policy_reason": "api_key_memory_space_denied"},
    ]  # fmt: skip
    found, problems = events("sibyl", json.dumps({"events": rows, "limit": 200}).encode())
    assert problems == []
    items = [e["data"] for e in found if e["event_type"] == "context.item.added"]
    assert [(i["item_id"], i["content_mode"]) for i in items] == [("g", "opaque"), ("d", "opaque")]
    (chosen, _) = data(found, SELECTED)
    assert chosen["rationale"] == "limit 50, cut to 8 by the layer wake; audit aud-1"
    (denied,) = data(found, "context.missing.detected")
    assert denied["question"] == "denied: api_key_memory_space_denied"


def test_an_audit_row_is_of_the_pack_with_its_ids_in_any_order() -> None:
    items = [{"id": name, "content": name, "facet": "decisions"} for name in "ab"]
    pack = {"goal": "g", "intent": "build", "query": "g", "layer": "recall", "total_items": 2,
            "sections": [{"facet": "decisions", "title": "Decisions", "items": items}]}  # fmt: skip
    row = {"id": "aud-9", "action": "memory.context_pack", "derived_ids": ["b", "a"]}
    found, _ = events("sibyl", b"\n".join(json.dumps(one).encode() for one in (pack, row)))
    (chosen,) = data(found, SELECTED)
    assert chosen["rationale"] == "audit aud-9"


def test_two_packs_of_one_goal_show_what_moved_and_what_is_rescored(tmp_path: Path) -> None:
    def pack(*rows: tuple[str, str, float]) -> str:
        sections = [
            {"facet": facet, "title": facet, "items": [{"id": name, "name": name, "content": f"On {name}.",
                                                        "score": score, "facet": facet}]}
            for name, facet, score in rows
        ]  # fmt: skip
        markdown = "# Sibyl Context Pack: g\nIntent: build\n" + "".join(
            f"\n## {facet}\n- **{name}** (note) `{name}`\n  - Memory: On {name}.\n" for name, facet, _ in rows
        )
        return json.dumps({"goal": "g", "intent": "build", "query": "g", "layer": "recall",
                           "total_items": len(rows), "sections": sections, "markdown": markdown})  # fmt: skip

    one, two = tmp_path / "1.json", tmp_path / "2.json"
    one.write_text(pack(("a", "x", 0.5), ("b", "y", 0.4), ("c", "z", 0.3)))
    two.write_text(pack(("c", "z", 0.3), ("a", "x", 0.9), ("b", "w", 0.4)))
    command = [sys.executable, "-m", "ctxctl", "diff", str(one), str(two), "--json"]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    (diff,) = [line for line in told if line["type"] == "diff"]
    flags = {c["item"]: c["flags"] for c in diff["changes"]}
    assert (flags["a"], flags["b"]) == (["rescored"], ["moved", "rendering"])
