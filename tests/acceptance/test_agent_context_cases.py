# ruff: noqa: E501 - a case a paragraph
"""Every published case of Agent Context 0.1.1 in one table: what is given, what the standard expects, what ctxctl says.

The other two files go through each case in all views; this one shows at a glance that none is left out, and
holds what the cases leave open: records that contradict the window, and leaks that are not verbatim.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from contexts import Json, assembly, event, findings, injection, item, plain, selection, steps, trace
from runs import ctxctl

WORDS = " ".join(f"word{n}" for n in range(200))
"""400 tokens."""
CARD = "4929 1234 5678 9012"


class Case(NamedTuple):
    """One case."""

    id: str
    expects: str
    """What the standard asks for, in our words."""
    given: list[Json]
    says: tuple[str, ...]
    """What stands in the plain report."""
    step: Callable[[Json], object]
    """What is looked up in the last step of `--json`..."""
    holds: object
    """... and what stands there."""
    finds: tuple[str, ...] = ()
    """Slugs of `ctxctl validate`, and codes of `ctxctl lint`."""
    never: tuple[str, ...] = ()
    """What no view and no export says."""


def budget(left: int = 150, **more: object) -> Json:
    records = [{"item_ref": "d", "action": "truncated", "tokens_after": left, "reason": "truncate_tail"}]
    return event("budget.applied", {"budget_id": "b", "target": "model", "max_tokens": 150, "actual_tokens": left,
                                    "overflow_strategy": "truncate_tail", "truncation_records": records, **more})  # fmt: skip


def redaction(**more: object) -> Json:
    told = {"item_id": "card", "redaction_state": "masked", "redaction_method": "pan", "policy_refs": ["pci"]}
    return event("redaction.applied", {**told, "reason": "payment data", **more}, turn="t2")


RAW = item(
    "card", f"Paid by card {CARD} in the harbour office on the second floor.", "tool_result", turn="t1"
)
ASK = item("ask", "When does it leave?", "user_message")
IDS = {
    "session_id": "s",
    "thread_id": "th",
    "turn_id": "tu",
    "task_id": "ta",
    "run_id": "ru",
    "attempt_id": "at",
}
GAP = {"missing_id": "m", "scope": "task", "question": "Where is it?", "severity": "blocking", "status": "requested",
       "requested_from": "user", "requested_action": "send it", "blocked_actions": ["sign"],
       "user_summary": "A file is missing."}  # fmt: skip
FULL = [
    event("surface.created", {"surface_id": "surface-1", "scope": "turn", "surface_kind": "turn", "available_item_refs": ["d", "ask"]}),
    item("d", "Ferries leave at 9.", source_refs=[{"source_id": "timetable", "uri": "file:t.md"}]), ASK,
    selection("s1", ["d", "ask"], [{"item_ref": "x", "reason": "low_relevance"}]),
    event("budget.applied", {"budget_id": "b", "target": "model", "max_tokens": 100, "max_items": 2, "actual_items": 2}),
    assembly("a1", ["d", "ask"]), injection("i1", "a1"),
    event("exported", {"context_id": "ctx-1", "scope": "turn", "lifecycle": "injected", "assembly_refs": ["a1"]}),
]  # fmt: skip
COMPACTED = [
    item("talk", "We talked for a long time.", "session_history", turn="t1"),
    assembly("a1", ["talk"], turn_id="t1"),
    event("summary.created", {"summary_id": "sum", "content": "They talked."}, turn="t2"),
    event("compaction.completed", {"compaction_id": "c", "scope": "session", "source_item_refs": ["talk"],
          "summary_ref": "sum", "method": "rolling", "coverage": {"items": 1}, "loss_notes": ["the jokes"],
          "replacement_policy": "replace"}, turn="t2"),
    assembly("a2", ["sum"], turn_id="t2"),
]  # fmt: skip

CASES = [
    Case("SCENARIO-turn-snapshot", "all stages of a turn, bound by its envelope", FULL,
         ("ctx-1 [turn, injected] binds",), lambda s: s["envelopes"][0]["refs"], {"assembly_refs": ["a1"]}),
    Case("SCENARIO-omitted", "what was omitted, and why; budgets of items", FULL,
         ("low_relevance", "2 of 2 items"), lambda s: s["counts"]["omitted"], 1),
    Case("SCENARIO-compaction", "sources, summary, coverage, losses, policy", COMPACTED,
         ("into sum (", " of talk", "items 1", "the jokes", "replacement policy replace"),
         lambda s: [(c["item"], c["status"], c["cause"]) for c in s["changes"]],
         [("sum", "added", None), ("talk", "removed", "compacted")]),
    Case("SCENARIO-tool-visible", "what only a tool gets is not the model's",
         [item("file", "for the tool", visibility=["tool"]), ASK, assembly("t", ["file"], "tool"), assembly("m", ["ask"]), injection("i", "m")],
         ("ask",), lambda s: [c["item"] for c in s["changes"]], ["ask"]),
    Case("SCENARIO-missing", "severity, who is asked, what is blocked, status", [ASK, event("missing.requested", GAP)],
         ("m [blocking, requested]", "asked of: user", "blocks: sign"), lambda s: "missing_context" in s["flags"], True),
    Case("SCENARIO-redaction", "state, method, policy; the redacted block",
         [RAW, redaction(), assembly("a", [{"block_id": "b", "item_refs": ["card"], "content": "Paid by [CARD]."}], turn_id="t2")],
         ("card masked by pan", "policy pci"), lambda s: s["redactions"][0]["state"], "masked", never=(CARD,)),
    Case("SCENARIO-runtime-linkage", "runtime ids kept, nothing claimed", [{**ASK, **IDS}, assembly("a", ["ask"], **IDS)],
         ("task ta, run ru, attempt at",), lambda s: (s["session"], s["thread"], s["turn_id"], s["ids"]["task_id"]), ("s", "th", "tu", "ta")),
    Case("ACTX-AR-ID-001", "session, thread and turn of an envelope",
         [{**ASK, **IDS}, event("exported", {"context_id": "ctx-9", "scope": "turn", "lifecycle": "injected"}, **IDS)],
         ("context ctx-9",), lambda s: s["ids"]["context_id"], "ctx-9"),
    Case("ACTX-AR-ID-002", "an attempt does not overwrite the one before",
         [{**ASK, **IDS}, selection("s1", ["ask"], **IDS), selection("s2", ["ask"], **{**IDS, "attempt_id": "at2"})],
         ("attempt at2",), lambda s: (s["step"], s["ids"]["attempt_id"]), (2, "at2")),
    Case("ACTX-AR-SEL-001", "selected and omitted, each with its reason",
         [ASK, item("d", "far"), selection("s", [{"item_ref": "ask", "reason": "asked"}], [{"item_ref": "d", "reason": "budget_limit"}])],
         ("ask (asked)", "budget_limit"), lambda s: s["stages"]["selection"]["omitted_refs"], [{"item": "d", "reason": "budget_limit"}]),
    Case("ACTX-AR-BUDGET-001", "a cut is explained by the record, and the window is what the record left",
         [item("d", WORDS, "document_excerpt"), budget(), assembly("a", ["d"]), injection("i", "a")],
         ("d cut to 150 tokens (truncate_tail)", "150 recorded of 150"),
         lambda s: (s["window"]["used"], s["window"]["over"], s["changes"][0]["tokens"], s["changes"][0]["flags"]), (150, 0, 150, ["truncated"])),
    Case("ACTX-AR-BUDGET-001 selected", "the same where only the selection is recorded",
         [item("d", WORDS, "document_excerpt"), selection("s", ["d"]), budget()],
         ("150 recorded of 150",), lambda s: (s["basis"], s["window"]["used"]), ("selection", 150)),
    Case("ACTX-AR-BUDGET-001 kept", "a text that is what was left is not cut again",
         [item("d", "word1 word2 word3", "document_excerpt"), budget(6), assembly("a", ["d"])],
         ("d cut to 6 tokens",), lambda s: s["window"]["used"], 6),
    Case("ACTX-AR-BUDGET-001 contradicted", "a record that the window contradicts is a finding",
         [item("d", WORDS, "document_excerpt"), budget(), assembly("a", [{"block_id": "b", "item_refs": ["d"], "content": WORDS}]), injection("i", "a")],
         ("OVER BY 250",), lambda s: s["window"]["over"], 250, ("CTX015",)),
    Case("ACTX-AR-ASM-001", "from blocks to items and sources", FULL,
         ("retrieval_result  “Ferries leave at 9.”  d",), lambda s: [c["source"] for c in s["changes"] if c["item"] == "d"], ["timetable"]),
    Case("ACTX-AR-MISSING-001", "owner, action, a summary for users", [ASK, event("missing.detected", GAP)],
         ("asked of: user", "action: send it", "A file is missing."), lambda s: s["missing"][0]["requested_action"], "send it"),
    Case("ACTX-AR-COMPACT-001", "the boundary; a summary is context", COMPACTED,
         ("into sum (", " of talk",), lambda s: ("compacted" in s["flags"], s["changes"][0]["kind"]), (True, "thread_summary")),
    Case("ACTX-AR-POLICY-001", "reason and policy; the secret is nowhere, at no step",
         [RAW, assembly("a", ["card"], turn_id="t1"), redaction(), assembly("a2", ["card"], turn_id="t2")],
         ("because payment data", "policy pci"), lambda s: s["window"]["used"] > 10, True, never=(CARD, "second floor")),
    Case("ACTX-AR-POLICY-001 replaced", "what a redaction puts in its place is shown and counted",
         [RAW, assembly("a", ["card"], turn_id="t1"), item("safe", "Paid by card.", "tool_result", turn="t2"),
          redaction(replacement_ref="safe"), assembly("a2", ["card"], turn_id="t2")],
         ("replaced by safe",), lambda s: (s["counts"]["updated"], s["window"]["used"]), (1, 4), never=(CARD, "second floor")),
    Case("ACTX-AR-POLICY-001 in part", "a summary that says a part of it: found, and masked",
         [RAW, assembly("a", ["card"], turn_id="t1"), redaction(),
          event("summary.created", {"summary_id": "sum", "content": f"The customer used {CARD}."}, turn="t2"),
          event("summary.created", {"summary_id": "two", "content": "It was IN the harbour office - on the second floor!"}, turn="t2"),
          assembly("a2", ["sum", "two"], turn_id="t2")],
         ("card masked",), lambda s: s["counts"]["added"], 2,
         ("redacted-content-returned", "redacted-content-returned", "CTX020"), (CARD, "harbour office")),
    Case("ACTX-AR-EVID-001", "an export as evidence cites and does not copy (below)", FULL,
         ("ctx-1",), lambda s: s["ids"]["context_id"], "ctx-1"),
    Case("ACTX-AR-GOV-001", "no record says that a turn is over, or that a tool succeeded",
         [ASK, event("exported", {"context_id": "c", "scope": "turn", "lifecycle": "completed"})],
         ("ask",), lambda s: s["counts"]["added"], 1, ("declares-runtime-status", "CTX022")),
    Case("ACTX-AR-GOV-001 approval", "missing context is no approval",
         [ASK, event("missing.resolved", {**GAP, "status": "resolved", "approval": "granted"})],
         ("ask",), lambda s: s["counts"]["added"], 1, ("declares-runtime-status", "CTX022")),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id.replace(" ", "-"))
def test_a_case_of_the_standard(case: Case, tmp_path: Path) -> None:
    path = trace(tmp_path / "t.jsonl", *case.given)
    text = plain(path)
    assert [word for word in case.says if word not in text] == [], text
    assert case.step(steps(path)[-1]) == case.holds, case.expects
    found = [slug for slug in findings(path) if slug not in ("schema-violation", "no-schema-version")]
    if "CTX" in "".join(case.finds):
        lint = ctxctl("lint", path, "--format", "text").out
        found += [code for code in dict.fromkeys(re.findall(r"^CTX\d+", lint, re.M)) if code in case.finds]
    assert found == list(case.finds), case.expects


@pytest.mark.parametrize("case", [case for case in CASES if case.never], ids=lambda case: case.id)
def test_no_view_and_no_export_says_what_was_redacted(case: Case, tmp_path: Path) -> None:
    path = trace(tmp_path / "t.jsonl", *case.given)
    views = [
        [command, f"{path}@{turn}", *form]
        for command, *form in (["show", "--text"], ["show", "--json", "--text"], ["blame", "--all"])
        for turn in ("1", "-1")
    ]
    views += [
        ["diff", f"{path}@1", "@-1", "--patch"],
        ["why", f"{path}@-1", "card"],
        ["log", str(path), "card"],
    ]
    views += [["export", str(path), "--format", form] for form in ("events", "markdown", "otlp", "envelopes")]
    for view in views:
        out = ctxctl(*view).out.lower()
        assert [word for word in case.never if word.lower() in out] == [], view


def test_evidence_is_cited(tmp_path: Path) -> None:
    path = trace(tmp_path / "t.jsonl", *FULL)
    out = ctxctl("export", path, "--target", "evidence_export").out
    assert "Ferries leave" not in out
    assert "When does it leave" not in out
    assert [word for word in ("sha256:", "timetable", "ctx-1") if word not in out] == []


def test_every_published_case_is_in_the_table() -> None:
    page = Path(os.environ.get("CTXCTL_CORPUS", "-")) / "reference" / "agent-context-cases.md"
    if not page.exists():
        pytest.skip("the list of cases is part of the corpus")
    published = set(re.findall(r"^\| ((?:SCENARIO|ACTX)-[\w-]+) \|", page.read_text(), re.M))
    assert published == {case.id.split()[0] for case in CASES}
