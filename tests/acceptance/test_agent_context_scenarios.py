"""The acceptance scenarios of Agent Context 0.1.1, each through the command line and the UI."""

from __future__ import annotations

from pathlib import Path

from contexts import (
    Json,
    assembly,
    event,
    findings,
    injection,
    item,
    plain,
    says,
    screens,
    selection,
    steps,
    trace,
)
from runs import ctxctl

PROMPT = item("ask", "When does the ferry leave?", "user_message")


def turn_snapshot() -> list[Json]:
    surface = {"surface_id": "surface-1", "scope": "turn", "surface_kind": "turn_surface",
               "available_item_refs": ["history", "memory", "snippet", "result", "ask"]}  # fmt: skip
    budget = {"budget_id": "budget-1", "target": "model", "max_tokens": 400, "reserved_tokens": 100,
              "actual_tokens": 60, "max_items": 8, "actual_items": 5}  # fmt: skip
    envelope = {
        "context_id": "ctx-1", "scope": "turn", "lifecycle": "injected",
        "runtime_refs": [{"kind": "turn", "id": "turn-1"}],
        "surface_refs": ["surface-1"], "item_refs": ["history", "memory", "snippet", "result", "ask"],
        "selection_refs": ["selection-1"], "budget_ref": "budget-1", "assembly_refs": ["assembly-1"],
        "injection_refs": ["injection-1"],
    }  # fmt: skip
    found = [
        event("surface.created", surface),
        item("history", "Yesterday we spoke of the islands.", "session_history"),
        item("memory", "The user lives in the harbour town.", "working_memory"),
        item("snippet", "Ferries leave at 9 and 17.", "knowledge_pack_item",
             source_refs=[{"source_id": "timetable", "uri": "file:timetable.md"}]),
        item("result", "next ferry: 17:00", "tool_result"),
        PROMPT,
        selection("selection-1", ["history", "memory", "snippet", "result", "ask"], rationale="all fit"),
        event("budget.applied", budget),
        assembly("assembly-1", ["history", "memory", "snippet", "result", "ask"]),
        injection("injection-1", "assembly-1"),
        event("exported", envelope),
    ]  # fmt: skip
    return [{**one, "session_id": "s", "turn_id": "turn-1"} for one in found]


async def test_scenario_turn_snapshot_shows_all_stages_of_the_turn(tmp_path: Path) -> None:
    """SCENARIO-turn-snapshot."""
    path = trace(tmp_path / "t.jsonl", *turn_snapshot())
    (step,) = steps(path)
    verdicts = {name: stage["verdict"] for name, stage in step["stages"].items()}
    assert {name for name, verdict in verdicts.items() if verdict == "recorded"} == {
        "surface", "selection", "budget", "assembly", "injection",
    }  # fmt: skip
    (envelope,) = step["envelopes"]
    assert envelope["context_id"] == "ctx-1"
    # Each ref leads to the record of that stage.
    refs, stages = envelope["refs"], step["stages"]
    assert refs["surface_refs"] == [stages["surface"]["surface_id"]]
    assert refs["selection_refs"] == [stages["selection"]["selection_id"]]
    assert refs["assembly_refs"] == [stages["assembly"]["assembly_id"]]
    assert refs["injection_refs"] == [stages["injection"]["injection_id"]]
    assert refs["item_refs"] == [change["item"] for change in step["changes"]]
    says(plain(path), "context ctx-1", "ctx-1 [turn, injected] binds", "assembly assembly-1", "5 of 8 items")
    says(ctxctl("show", path).out, "surface    recorded", "assembly   recorded", "injection  recorded")
    shown = await screens(path, ".", "s")
    says(shown, "selection: recorded", "all fit", "assembly-1", "injection-1", "ctx-1 [turn")
    assert findings(path) == []


async def test_scenario_turn_snapshot_as_loose_records(tmp_path: Path) -> None:
    """SCENARIO-turn-snapshot, exported as records without events, in any order."""
    import json

    names = {"surface.created": "surface", "selection.completed": "selection", "budget.applied": "budget",
             "assembly.created": "assembly", "injection.applied": "injection",
             "exported": "envelope"}  # fmt: skip
    bundle: Json = {"items": []}
    for one in turn_snapshot():
        kind = one["event_type"].removeprefix("context.")
        data = {**one["data"], "created_at": "2026-05-08T00:00:00Z"}
        if kind == "item.added":
            bundle["items"].append(data)
        else:
            bundle = {names[kind]: data, **bundle}
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(bundle, indent=2))
    (step,) = steps(path)
    assert (step["turn_id"], step["ids"]["context_id"], step["basis"]) == ("turn-1", "ctx-1", "assembly")
    assert [change["item"] for change in step["changes"]] == ["history", "memory", "snippet", "result", "ask"]
    recorded = [name for name, stage in step["stages"].items() if stage["verdict"] == "recorded"]
    assert recorded == ["surface", "selection", "budget", "assembly", "injection"]
    assert ctxctl("replay", path, "--json").of_type("problem") == []


async def test_scenario_omitted_shows_what_did_not_fit_and_why(tmp_path: Path) -> None:
    """SCENARIO-omitted."""
    snippets = [item(f"snippet-{n}", f"This is what snippet {n} says.") for n in range(1, 6)]
    omitted = [
        {"item_ref": "snippet-4", "reason": "budget_limit"},
        {"item_ref": "snippet-5", "reason": "low_relevance"},
    ]
    kept = ["snippet-1", "snippet-2", "snippet-3"]
    path = trace(
        tmp_path / "t.jsonl",
        *snippets,
        selection("s1", kept, omitted, candidate_item_refs=[f"snippet-{n}" for n in range(1, 6)]),
        event("budget.applied", {"budget_id": "b", "target": "model", "max_items": 3, "actual_items": 3}),
    )
    (step,) = steps(path)
    assert [(c["item"], c["reason"]) for c in step["changes"] if c["status"] == "omitted"] == [
        ("snippet-4", "budget_limit"), ("snippet-5", "low_relevance"),
    ]  # fmt: skip
    budget = step["stages"]["budget"]
    assert (budget["max_items"], budget["actual_items"], budget["counted_items"]) == (3, 3, 3)
    assert step["flags"] == ["injection_not_recorded"]
    says(plain(path), "3 of 3 items", "snippet-4", "budget_limit", "snippet-5", "low_relevance")
    says(await screens(path, ".", "s"), "∅ omitted 2", "budget_limit", "low_relevance", "3 of 3 items")


def test_scenario_omitted_item_budgets_can_be_exceeded(tmp_path: Path) -> None:
    """SCENARIO-omitted: limits on items, bytes and time are limits as those on tokens are."""
    path = trace(
        tmp_path / "t.jsonl",
        *[item(f"snippet-{n}", f"This is what snippet {n} says.") for n in range(1, 6)],
        selection("s1", [f"snippet-{n}" for n in range(1, 6)]),
        event("budget.applied", {"budget_id": "b", "target": "model", "max_items": 3, "max_bytes": 100,
                                 "max_time_ms": 50, "actual_time_ms": 80}),
    )  # fmt: skip
    (step,) = steps(path)
    budget = step["stages"]["budget"]
    assert (budget["over_items"], budget["over_bytes"], budget["over_time_ms"]) == (2, 40, 30)
    assert "over_budget" in step["flags"]
    says(plain(path), "5 of 3 items, OVER BY 2; 140 of 100 bytes, OVER BY 40; 80 of 50 ms, OVER BY 30")


async def test_scenario_compaction_shows_what_it_replaced_and_lost(tmp_path: Path) -> None:
    """SCENARIO-compaction."""
    compaction = {
        "compaction_id": "compact-1", "scope": "session", "source_item_refs": ["turn-1", "turn-2"],
        "summary_ref": "summary-1", "method": "rolling_summary", "trigger": "token_pressure",
        "coverage": {"items_covered": 2, "estimated_tokens_after": 9},
        "loss_notes": ["wording of the jokes"], "validation": {"status": "reviewed", "reviewer": "agent"},
        "replacement_policy": "summary_replaces_source_until_review",
    }  # fmt: skip
    path = trace(
        tmp_path / "t.jsonl",
        {**item("turn-1", "A long talk about ferries.", "user_message"), "turn_id": "t1"},
        {**item("turn-2", "A longer talk about islands.", "assistant_message"), "turn_id": "t1"},
        assembly("a1", ["turn-1", "turn-2"], turn_id="t1"),
        injection("i1", "a1", turn_id="t1"),
        event("summary.created", {"summary_id": "summary-1", "content": "They spoke of ferries and islands."},
              turn_id="t2"),
        event("compaction.completed", compaction, turn_id="t2"),
        assembly("a2", ["summary-1"], turn_id="t2"),
        injection("i2", "a2", turn_id="t2"),
    )  # fmt: skip
    step = steps(path)[1]
    (told,) = step["compactions"]
    assert told == {
        "request": None,
        "compaction_id": "compact-1", "scope": "session", "method": "rolling_summary",
        "trigger": "token_pressure", "summary": "summary-1", "source_item_refs": ["turn-1", "turn-2"],
        "coverage": {"items_covered": 2, "estimated_tokens_after": 9}, "loss_notes": ["wording of the jokes"],
        "validation": "reviewed by agent", "replacement_policy": "summary_replaces_source_until_review",
    }  # fmt: skip
    gone = [(c["item"], c["cause"], c["into"]) for c in step["changes"] if c["status"] == "removed"]
    assert gone == [("turn-1", "compacted", "summary-1"), ("turn-2", "compacted", "summary-1")]
    words = (
        "(session, rolling_summary, token_pressure)", "items_covered 2", "wording of the jokes",
        "replacement policy summary_replaces_source_until_review", "compact-1 of turn-1, turn-2",
    )  # fmt: skip
    says(plain(path), *words)
    shown = await screens(path, "G", "s", "escape", "t")
    says(shown.replace("\n", " "), "compact-1 of", "They spoke of ferries and islands.")
    says(ctxctl("show", path, "--text").out, "They spoke of ferries and islands.")


async def test_scenario_tool_visible_context_is_not_the_models(tmp_path: Path) -> None:
    """SCENARIO-tool-visible."""
    ids = {"turn_id": "t1", "step_id": "r1"}
    path = trace(
        tmp_path / "t.jsonl",
        {**PROMPT, **ids},
        {
            **item("key-file", "resource contents for the tool", "external_resource", visibility=["tool"]),
            **ids,
        },
        assembly("for-tool", ["key-file"], "tool", **ids),
        injection("into-tool", "for-tool", "tool_visible_resource", "tool", **ids),
        assembly("for-model", ["ask"], **ids),
        injection("into-model", "for-model", **ids),
    )
    (step,) = steps(path)
    assert [change["item"] for change in step["changes"]] == ["ask"]
    assert step["stages"]["injection"]["other_targets"] == ["tool"]
    (tool,) = steps(path, "--target", "tool")
    assert [change["item"] for change in tool["changes"]] == ["key-file"]
    assert tool["stages"]["injection"]["injection_id"] == "into-tool"
    assert tool["stages"]["injection"]["points"] == ["tool_visible_resource"]
    assert "resource contents" not in ctxctl("show", path, "--text").out
    says(ctxctl("show", path, "--text", "--target", "tool").out, "resource contents for the tool")
    assert "key-file" not in plain(path)
    says(plain(path, "--target", "tool"), "key-file", "layer injected")
    assert "resource contents" not in await screens(path, "t")
    says(
        await screens(path, "t", "escape", "s", target="tool"),
        "resource contents for the",
        "tool_visible_resource",
        "into-tool",
    )


async def test_scenario_missing_shows_who_was_asked_and_what_came_of_it(tmp_path: Path) -> None:
    """SCENARIO-missing."""
    gap = {
        "missing_id": "gap-1", "scope": "task", "question": "Where is the signed contract?",
        "needed_for": "checking the terms", "severity": "blocking", "requested_from": "user",
        "candidate_sources": [{"kind": "file", "hint": "contract.pdf"}], "blocked_actions": ["final_answer"],
        "status": "requested",
    }  # fmt: skip
    found = {"missing_id": "gap-1", "status": "resolved", "resolution_refs": ["contract"]}
    path = trace(
        tmp_path / "t.jsonl",
        {**PROMPT, "turn_id": "t1"},
        event("missing.requested", gap, turn_id="t1"),
        {**item("contract", "It is signed.", "file_excerpt"), "turn_id": "t2"},
        event(
            "missing.resolved",
            {**found, "scope": "task", "question": "", "severity": "blocking"},
            turn_id="t2",
        ),
    )
    first, second = steps(path)
    (asked,), (came,) = first["missing"], second["missing"]
    assert (asked["severity"], asked["status"], asked["requested_from"]) == ("blocking", "requested", "user")
    assert (asked["blocked_actions"], asked["candidate_sources"]) == (
        ["final_answer"],
        ["file: contract.pdf"],
    )
    assert (came["status"], came["resolution_refs"], came["requested_from"]) == (
        "resolved",
        ["contract"],
        "user",
    )
    assert "missing_context" in first["flags"]
    assert "missing_context" not in second["flags"]
    text = plain(path)
    says(text, "gap-1 [blocking, requested]", "Where is the signed contract?", "asked of: user",
         "blocks: final_answer", "gap-1 [blocking, resolved]", "resolved by: contract")  # fmt: skip
    says(
        await screens(path, ".", "s"),
        "! lacking: gap-1 [blocking, requested]",
        "blocks: final_answer",
        "asked of: user",
    )
    says(await screens(path, "G", "s"), "gap-1 [blocking, resolved]", "resolved by: contract")


SECRET = "4929 1234 5678 9012"


def redacted() -> list[Json]:
    raw = item("card", f"The customer's card is {SECRET}.", "external_resource")
    redaction = {"item_id": "card", "redaction_state": "masked", "redaction_method": "pan-filter",
                 "policy_refs": ["policy:payment-data"], "reason": "payment data"}  # fmt: skip
    block = {"block_id": "b1", "item_refs": ["card"], "content": "The customer's card is [CARD].",
             "redaction_state": "masked"}  # fmt: skip
    return [
        {**raw, "turn_id": "t1"},
        {**selection("s1", ["card"]), "turn_id": "t1"},
        event("redaction.applied", redaction, turn_id="t1"),
        assembly("a1", [block], turn_id="t1"),
        injection("i1", "a1", turn_id="t1"),
    ]


async def test_scenario_redaction_shows_policy_and_the_redacted_block(tmp_path: Path) -> None:
    """SCENARIO-redaction."""
    path = trace(tmp_path / "t.jsonl", *redacted())
    (step,) = steps(path)
    (told,) = step["redactions"]
    assert (told["item"], told["state"], told["method"]) == ("card", "masked", "pan-filter")
    assert told["policy_refs"] == ["policy:payment-data"]
    says(plain(path), "card masked by pan-filter", "policy policy:payment-data")
    text = ctxctl("show", path, "--text").out
    says(text, "The customer's card is [CARD].")
    shown = await screens(path, "enter", "enter", "d", "escape", "escape", "t", "escape", "s")
    says(shown, "card masked by pan-filter", "policy:payment-data", "[CARD]")
    for seen in (text, plain(path), shown, ctxctl("show", path, "--text", "--json").out):
        assert SECRET not in seen


async def test_scenario_runtime_linkage_keeps_ids_and_claims_nothing(tmp_path: Path) -> None:
    """SCENARIO-runtime-linkage."""
    ids = {
        "session_id": "session-7",
        "thread_id": "main",
        "turn_id": "turn-3",
        "task_id": "task-9",
        "run_id": "run-2",
    }
    path = trace(
        tmp_path / "t.jsonl",
        {**PROMPT, **ids},
        assembly("a1", ["ask"], **ids),
        injection("i1", "a1", **ids, context_id="ctx-3"),
    )
    (step,) = steps(path)
    assert (step["session"], step["thread"], step["turn_id"]) == ("session-7", "main", "turn-3")
    assert step["ids"] == {"context_id": "ctx-3", "task_id": "task-9", "run_id": "run-2", "attempt_id": None}
    says(plain(path), "turn-3", "context ctx-3, task task-9, run run-2")
    says(await screens(path, ".", "s"), "session-7", "context ctx-3, task task-9, run run-2")
    for claim in ("completed", "approved", "succeeded"):
        assert claim not in plain(path)
        assert all(claim not in str(value) for value in step.values())
    assert findings(path) == []
