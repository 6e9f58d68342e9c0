"""The runtime profile's cases of Agent Context (ACTX-AR-*), each through the command line and the UI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from contexts import (
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

from ctxctl.trace.validate import RECORD_SCHEMAS

SCHEMAS = Path(__file__).parents[2] / "ctxctl" / "trace" / "schemas"
SECRET = "tok_live_8c1f20aa97"


def schema(name: str) -> Any:
    """A published schema's validator; not the one that ctxctl itself uses."""
    found = json.loads((SCHEMAS / f"agentcontext-{name}.schema.json").read_text())
    return jsonschema.Draft202012Validator(found, format_checker=jsonschema.FormatChecker())


async def test_actx_ar_id_001_an_envelope_keeps_ids_and_addresses_its_frame(tmp_path: Path) -> None:
    """ACTX-AR-ID-001."""
    ids = {"session_id": "s1", "thread_id": "helper", "turn_id": "turn-2"}
    envelope = {"context_id": "ctx_01HZ", "scope": "turn", "lifecycle": "injected", "item_refs": ["ask"],
                "runtime_refs": [{"kind": "turn", "id": "turn-2"}]}  # fmt: skip
    path = trace(
        tmp_path / "t.jsonl",
        {**item("first", "An earlier turn.", "user_message"), **ids, "turn_id": "turn-1"},
        {**item("ask", "When does it leave?", "user_message"), **ids},
        assembly("a1", ["ask"], **ids),
        injection("i1", "a1", **ids),
        event("exported", envelope, **ids),
        {**item("last", "A later turn.", "user_message"), **ids, "turn_id": "turn-3"},
    )
    step = steps(path)[1]
    assert (step["session"], step["thread"], step["turn_id"]) == ("s1", "helper", "turn-2")
    assert step["ids"]["context_id"] == "ctx_01HZ"
    for address in ("ctx:ctx_01HZ", "ctx_01HZ", "turn-2", "helper:2"):
        (frame,) = ctxctl("show", f"{path}@{address}", "--json").of_type("frame")
        assert frame["step"]["turn_id"] == "turn-2", address
        assert frame["step"]["envelopes"][0]["context_id"] == "ctx_01HZ"
    says(ctxctl("diff", f"{path}@1", "@ctx:ctx_01HZ").out, "@helper:2.1")
    assert ctxctl("show", f"{path}@ctx:nobody").code == 2
    says(plain(path), "turn helper:2 (turn-2)", "context ctx_01HZ")
    says(await screens(path, "j", "s"), "helper", "context ctx_01HZ", "envelope: ctx_01HZ [turn, injected]")


async def test_actx_ar_id_002_a_second_attempt_does_not_overwrite_the_first(tmp_path: Path) -> None:
    """ACTX-AR-ID-002."""

    def attempt(n: int) -> dict[str, str]:
        return {"turn_id": "t1", "task_id": "task-1", "run_id": f"run-{n}", "attempt_id": f"attempt-{n}"}

    path = trace(
        tmp_path / "t.jsonl",
        {**item("plan", "First, the plan.", "user_message"), **attempt(1)},
        {**item("file", "Then the file.", "file_excerpt"), **attempt(1)},
        selection("sel-1", ["plan"], [{"item_ref": "file", "reason": "too_large"}], **attempt(1)),
        selection("sel-2", ["plan", "file"], **attempt(2)),
    )
    first, second = steps(path)
    assert first["ids"] == {
        "context_id": None,
        "task_id": "task-1",
        "run_id": "run-1",
        "attempt_id": "attempt-1",
    }
    assert second["ids"]["attempt_id"] == "attempt-2"
    assert (first["turn"], second["turn"]) == (1, 1)
    assert first["stages"]["selection"]["selection_id"] == "sel-1"
    assert [(c["item"], c["reason"]) for c in first["changes"] if c["status"] == "omitted"] == [
        ("file", "too_large")
    ]
    assert second["stages"]["selection"]["selection_id"] == "sel-2"
    assert [c["item"] for c in second["changes"] if c["status"] == "added"] == ["file"]
    says(
        plain(path), "task task-1, run run-1, attempt attempt-1", "task task-1, run run-2, attempt attempt-2"
    )
    says(await screens(path, "l", "j", "s"), "selection_id        sel-1", "attempt attempt-1")
    says(await screens(path, "l", "j", "j", "s"), "selection_id        sel-2", "attempt attempt-2")


async def test_actx_ar_sel_001_selected_and_omitted_have_their_reasons(tmp_path: Path) -> None:
    """ACTX-AR-SEL-001."""
    selected = [{"item_ref": "near", "reason": "names the harbour", "score": 0.9, "rank": 1}]
    omitted = [{"item_ref": "far", "reason": "budget_limit", "score": 0.4}]
    path = trace(
        tmp_path / "t.jsonl",
        item("near", "The harbour is here."),
        item("far", "The hills are there."),
        selection("s1", selected, omitted, candidate_item_refs=["near", "far"], rationale="closest first"),
    )
    (step,) = steps(path)
    stage = step["stages"]["selection"]
    assert stage["selected_refs"] == [
        {"item": "near", "reason": "names the harbour", "rank": 1, "score": 0.9}
    ]
    assert stage["omitted_refs"] == [{"item": "far", "reason": "budget_limit", "score": 0.4}]
    assert (stage["candidates"], stage["rationale"]) == (2, "closest first")
    says(plain(path), "far", "budget_limit", "chosen   near (names the harbour)")
    says(await screens(path, "s"), "names the harbour", "budget_limit", "closest first")


async def test_actx_ar_budget_001_the_record_explains_each_truncation(tmp_path: Path) -> None:
    """ACTX-AR-BUDGET-001."""
    truncations = [
        {"item_ref": "log", "action": "truncated", "tokens_after": 4, "reason": "truncate_tail"},
        {"item_ref": "old", "action": "dropped", "reason": "budget_limit"},
    ]
    cut = {"block_id": "b1", "item_refs": ["log"], "content": "line one"}
    path = trace(
        tmp_path / "t.jsonl",
        item("log", "line one and line two and line three", "tool_result"),
        item("old", "an old note", "manual_note"),
        event("budget.applied", {"budget_id": "b", "target": "model", "max_tokens": 20, "reserved_tokens": 10,
                                 "overflow_strategy": "truncate_tail", "truncation_records": truncations}),
        assembly("a1", [cut]),
        injection("i1", "a1"),
    )  # fmt: skip
    (step,) = steps(path)
    budget = step["stages"]["budget"]
    assert (budget["dropped"], budget["truncated"], budget["overflow_strategy"]) == (1, 1, "truncate_tail")
    assert budget["truncations"] == [
        {"item": "log", "action": "cut", "reason": "truncate_tail", "tokens_left": 4},
        {"item": "old", "action": "dropped", "reason": "budget_limit"},
    ]
    assert [c["flags"] for c in step["changes"] if c["item"] == "log"] == [["truncated"]]
    assert [c["reason"] for c in step["changes"] if c["item"] == "old"] == ["budget_limit"]
    says(plain(path), "log cut to 4 tokens (truncate_tail)", "old dropped (budget_limit)")
    says(
        await screens(path, "s"),
        "cut: log cut to 4 tokens (truncate_tail)",
        "cut: old dropped (budget_limit)",
    )


async def test_actx_ar_asm_001_blocks_lead_back_to_items_and_sources(tmp_path: Path) -> None:
    """ACTX-AR-ASM-001."""
    sources = [
        {"source_id": "handbook", "uri": "file:handbook.md", "selector": {"type": "line_range", "start": 3}}
    ]
    path = trace(
        tmp_path / "t.jsonl",
        item("excerpt", "Opening hours are nine to five.", "document_excerpt", source_refs=sources),
        item("ask", "When is it open?", "user_message"),
        assembly("a1", ["excerpt", "ask"]),
        injection("i1", "a1"),
    )
    (frame,) = ctxctl("show", path, "--json").of_type("frame")
    assert [(p["item"], p["source"]) for p in frame["placements"]] == [("excerpt", "handbook"), ("ask", None)]
    assert (
        frame["step"]["stages"]["injection"]["assembly_id"]
        == frame["step"]["stages"]["assembly"]["assembly_id"]
    )
    says(ctxctl("show", path, "--ids", env={"COLUMNS": "200"}).out, "excerpt", "handbook", "assembly id a1")
    says(await screens(path, "enter", "enter"), "handbook", "Opening hours are nine to five.")


async def test_actx_ar_missing_001_shows_owner_action_and_safe_summary(tmp_path: Path) -> None:
    """ACTX-AR-MISSING-001."""
    gap = {
        "missing_id": "gap-1", "scope": "turn", "question": "The wiki at host 10.0.0.7 does not answer.",
        "severity": "high", "status": "waiting", "requested_from": {"kind": "team", "id": "platform"},
        "requested_action": "grant access to the wiki",
        "user_summary": "A page that is needed is unreachable.",
    }  # fmt: skip
    path = trace(
        tmp_path / "t.jsonl", item("ask", "Look it up.", "user_message"), event("missing.detected", gap)
    )
    (step,) = steps(path)
    (told,) = step["missing"]
    assert (told["requested_from"], told["requested_action"]) == ("platform", "grant access to the wiki")
    assert told["summary"] == "A page that is needed is unreachable."
    words = (
        "asked of: platform",
        "action: grant access to the wiki",
        "A page that is needed is unreachable.",
    )
    says(plain(path), *words)
    says(await screens(path, "s"), *words)
    assert findings(path) == []


async def test_actx_ar_compact_001_a_summary_is_context_and_no_answer(tmp_path: Path) -> None:
    """ACTX-AR-COMPACT-001."""
    compaction = {"compaction_id": "c1", "scope": "session", "source_item_refs": ["talk"],
                  "summary_ref": "sum",
                  "method": "rolling_summary"}  # fmt: skip
    path = trace(
        tmp_path / "t.jsonl",
        item("talk", "I think that we should leave at nine.", "assistant_message", turn="t1"),
        assembly("a1", ["talk"], turn_id="t1"),
        injection("i1", "a1", turn_id="t1"),
        event(
            "summary.created", {"summary_id": "sum", "content": "Leaving at nine was proposed."}, turn_id="t2"
        ),
        event("compaction.completed", compaction, turn_id="t2"),
        assembly("a2", ["sum"], turn_id="t2"),
        injection("i2", "a2", turn_id="t2"),
    )
    before, step = steps(path)
    assert [c["item"] for c in before["changes"]] == ["talk"]
    (came,) = [c for c in step["changes"] if c["status"] == "added"]
    assert (came["item"], came["kind"]) == ("sum", "thread_summary")
    assert "compacted" in step["flags"]
    assert set(step["segments"]) == {"history"}
    says(plain(path), "1 item into sum (session, rolling_summary); c1 of talk", "thread_summary")
    says(await screens(path, "G", "s"), "thread_summary", "c1 of talk")
    assert findings(path) == []
    answer = trace(
        tmp_path / "answer.jsonl",
        event("compaction.completed", {**compaction, "replacement_policy": "final_answer"}),
    )
    assert "declares-runtime-status" in findings(answer)


async def test_actx_ar_policy_001_the_raw_secret_is_in_no_later_view(tmp_path: Path) -> None:
    """ACTX-AR-POLICY-001."""
    redaction = {"item_id": "env", "redaction_state": "masked", "redaction_method": "secret-scan",
                 "reason": "a credential", "policy_refs": ["policy:secrets"]}  # fmt: skip
    masked = item("env", "TOKEN=[masked]", "file_excerpt", redaction_state="masked", turn="t2")
    path = trace(
        tmp_path / "t.jsonl",
        item("env", f"TOKEN={SECRET}", "file_excerpt", turn="t1"),
        assembly("a1", ["env"], turn_id="t1"),
        injection("i1", "a1", turn_id="t1"),
        {**event("redaction.applied", redaction, turn_id="t2")},
        {**masked, "event_type": "context.item.updated"},
        assembly("a2", ["env"], turn_id="t2"),
        injection("i2", "a2", turn_id="t2"),
        # A request that is recorded by reference only: what took the secret's place is not known.
        {**item("env", f"TOKEN={SECRET}", "file_excerpt", turn="t3"), "event_type": "context.item.updated"},
        assembly("a3", ["env"], turn_id="t3"),
        injection("i3", "a3", turn_id="t3"),
    )
    step = steps(path)[1]
    (told,) = step["redactions"]
    assert (told["reason"], told["policy_refs"], told["state"]) == (
        "a credential",
        ["policy:secrets"],
        "masked",
    )
    assert "redacted" in step["flags"]
    says(plain(path), "env masked by secret-scan; because a credential; policy policy:secrets")
    views = [
        plain(path),
        ctxctl("show", f"{path}@2", "--text").out,
        ctxctl("show", f"{path}@2", "--text", "--json").out,
        ctxctl("show", f"{path}@3", "--text").out,
        ctxctl("diff", f"{path}@1", "@2").out,
        ctxctl("diff", f"{path}@1", "@3", "--patch").out,
        ctxctl("log", path, "env").out,
        ctxctl("export", path).out,
        ctxctl("export", path, "--strict").out,
        ctxctl("validate", path).out,
        await screens(path, "j", "enter", "j", "enter", "d", "d", "escape", "escape", "t", "escape", "s"),
        await screens(path, "G", "enter", "j", "enter", "d", "d", "escape", "escape", "t", "escape", "s"),
    ]
    for n, view in enumerate(views):
        assert SECRET not in view, n
    says(await screens(path, "j", "s"), "env masked by secret-scan", "policy:secrets")
    assert findings(path) == ["redacted-content-returned"]


def test_actx_ar_policy_001_a_summary_that_brings_the_secret_back_is_a_finding(tmp_path: Path) -> None:
    """ACTX-AR-POLICY-001: redacted content back through a summary."""
    masked = {"block_id": "b", "item_refs": ["env"], "content": "TOKEN=[masked] for the staging host"}
    path = trace(
        tmp_path / "t.jsonl",
        item("env", f"TOKEN={SECRET} for the staging host", "file_excerpt"),
        event("redaction.applied", {"item_id": "env", "redaction_state": "masked", "policy_refs": ["p"]}),
        assembly("a1", [masked]),
        injection("i1", "a1"),
        event("summary.created", {"summary_id": "harmless", "content": "The staging host was set up."}),
        event("summary.created", {"summary_id": "leaky", "content": f"They used TOKEN={SECRET}."}),
    )
    done = ctxctl("validate", path)
    assert done.code == 1
    says(done.out, "redacted-content-returned: item leaky holds text of env that was redacted before")
    assert "harmless" not in done.out
    for options in ((), ("--strict",)):
        exported = ctxctl("export", path, *options).out
        assert SECRET not in exported
        assert "The staging host was set up." in exported


def test_actx_ar_evid_001_an_evidence_export_cites_and_does_not_copy(tmp_path: Path) -> None:
    """ACTX-AR-EVID-001."""
    sources = [{"source_id": "handbook", "uri": "file:handbook.md"}]
    path = trace(
        tmp_path / "t.jsonl",
        item("excerpt", "Opening hours are nine to five.", "document_excerpt", source_refs=sources),
        assembly(
            "a1", [{"block_id": "b", "item_refs": ["excerpt"], "content": "Opening hours: nine to five."}]
        ),
        injection("i1", "a1", context_id="ctx-1"),
    )
    for options in (("--strict",), ()):
        done = ctxctl("export", path, "--target", "evidence_export", *options)
        assert done.code == 0
        assert "nine to five" not in done.out
        excerpt, assembled, injected = done.lines
        assert excerpt["data"]["content_ref"].startswith("sha256:")
        assert excerpt["data"]["source_refs"][0]["source_id"] == "handbook"
        assert assembled["data"]["ordered_blocks"][0]["item_refs"] == ["excerpt"]
        assert injected["context_id"] == "ctx-1"
    # An assembly that was made as evidence is cited in every strict export.
    evidence = trace(
        tmp_path / "e.jsonl",
        item(
            "excerpt", "Opening hours are nine to five.", "document_excerpt", visibility=["evidence_export"]
        ),
        assembly(
            "a1", [{"block_id": "b", "item_refs": ["excerpt"], "content": "nine to five"}], "evidence_export"
        ),
        injection("i1", "a1", "review_export", "evidence_export"),
    )
    out = ctxctl("export", evidence, "--strict").out
    assert "nine to five" not in out
    says(out, "sha256:", "evidence_export")
    (step,) = steps(evidence, "--target", "evidence_export")
    assert step["stages"]["injection"]["points"] == ["review_export"]


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("exported", {"context_id": "c", "scope": "turn", "lifecycle": "completed"}),
        ("exported", {"context_id": "c", "scope": "turn", "lifecycle": "injected",
                      "runtime_refs": [{"kind": "turn", "id": "t", "status": "completed"}]}),
        ("selection.completed", {"selection_id": "s", "surface_id": "u", "task_status": "completed"}),
        ("injection.applied", {"injection_id": "i", "target": "model", "tool_succeeded": True}),
        ("item.added", {"item_id": "i", "context_kind": "tool_result", "content_mode": "inline",
                        "content": "x", "visibility": ["model"], "metadata": {"tool_status": "success"}}),
        ("missing.resolved", {"missing_id": "m", "scope": "turn", "question": "may it?", "severity": "high",
                              "status": "approved"}),
        ("missing.resolved", {"missing_id": "m", "scope": "turn", "question": "may it?", "severity": "high",
                              "status": "resolved", "approval_granted": True}),
        ("missing.resolved", {"missing_id": "m", "scope": "turn", "question": "may it?", "severity": "high",
                              "status": "resolved", "approval": "granted"}),
        ("missing.resolved", {"missing_id": "m", "scope": "turn", "question": "may it?", "severity": "high",
                              "status": "resolved", "metadata": {"approval": {"status": "granted"}}}),
        ("missing.detected", {"missing_id": "m", "scope": "turn", "question": "may it?", "severity": "high",
                              "status": "open", "resolution": {"permission": True}}),
        ("turn.completed", {"turn": "t"}),
    ],
)  # fmt: skip
def test_actx_ar_gov_001_a_record_that_declares_an_outcome_is_a_finding(
    kind: str, data: dict[str, Any], tmp_path: Path
) -> None:
    """ACTX-AR-GOV-001."""
    path = trace(tmp_path / "t.jsonl", event(kind, data, turn_id="t1", task_id="k1"))
    assert "declares-runtime-status" in findings(path)
    done = ctxctl("validate", path)
    assert done.code == 1
    says(done.out, "declares-runtime-status")


def test_actx_ar_gov_001_runtime_ids_and_states_of_context_are_none(tmp_path: Path) -> None:
    """ACTX-AR-GOV-001: what a context record may say."""
    path = trace(
        tmp_path / "t.jsonl",
        item("result", "the tool succeeded, the turn is completed, approved", "tool_result", turn="t1"),
        selection("s", ["result"]),
        event("missing.resolved", {"missing_id": "m", "scope": "turn", "question": "q", "severity": "low",
                                   "status": "declined", "blocked_actions": ["final_answer"]}),
        event("exported", {"context_id": "c", "scope": "turn", "lifecycle": "archived",
                           "runtime_refs": [{"kind": "turn", "id": "t1"}]},
              turn_id="t1", task_id="k", run_id="r"),
    )  # fmt: skip
    assert findings(path) == []


def test_a_strict_export_follows_the_published_schemas_and_replays_alike(tmp_path: Path) -> None:
    """Splices are expanded, refs written out, our kinds are `custom`; nothing is lost."""
    for name in ("coding-agent", "notes-assistant", "retrieval-agent"):
        source = Path(__file__).parents[2] / "traces" / f"{name}.jsonl"
        target = tmp_path / f"{name}.jsonl"
        assert ctxctl("export", source, "-o", target, "--strict").code == 0
        validators = {kind: schema(kind) for kind in {"event", *RECORD_SCHEMAS.values()}}
        for line in target.read_text().splitlines():
            made = json.loads(line)
            validators["event"].validate(made)
            if (kind := RECORD_SCHEMAS.get(made["event_type"])) is not None:
                validators[kind].validate(made["data"])
                assert made["data"]["schema_version"] == "0.1.1"
            assert '"splices"' not in line
            assert '"content_ref": "sha256:' not in line
        drop = ("trace", "line", "byte")
        before, after = (
            [
                {k: v for k, v in one.items() if k not in drop}
                for one in ctxctl("replay", path, "--json").lines
            ]
            for path in (source, target)
        )
        for one in (*before, *after):
            one.get("stages", {}).get("assembly", {}).pop("spliced_onto", None)
        assert before == after
