"""Real transcripts: nothing raises, everything validates, and known facts come out.

The captures are not in the repository: CTXCTL_CORPUS names the directory that holds `data/claude-code`.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ctxctl.importers import registry
from ctxctl.model.problem import Problem
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.trace.source import open_source
from ctxctl.trace.validate import validate_event

Json = dict[str, Any]
KINDS = ("context.assembly.created", "context.compaction.completed", "ctxctl.usage.reported")


def root() -> Path:
    return Path(os.environ["CTXCTL_CORPUS"]) / "data" / "claude-code"


def captures() -> Iterator[Path]:
    return itertools.chain(sorted(root().rglob("*.jsonl")), sorted(root().rglob("*.json")))


def imported(path: Path) -> tuple[list[Json], list[Problem]]:
    problems: list[Problem] = []
    with open_source(path) as opened:
        found = registry.detect(opened)
        assert found is not None, path
        assert found.name == "claude-code", path
        return list(found.events(opened, problems.append)), problems


def steps(name: str) -> list[Step]:
    opened = Inspector.open(str(root() / name), encoding="o200k_base")
    return [step for step in opened.replay() if isinstance(step, Step)]


def test_every_capture_imports_and_its_events_validate(corpus: Path) -> None:
    seen = 0
    for path in captures():
        found, problems = imported(path)
        assert found, path
        assert len({e["event_id"] for e in found}) == len(found), path
        seen += 1
        sample = [e for at, e in enumerate(found) if at % 41 == 0 or e["event_type"] == KINDS[1]]
        faults = [(e["event_id"], fault) for e in sample for fault in validate_event(e)]
        assert not faults, (path, faults[:3])
        assert all(p.line >= 0 and p.byte >= 0 and p.message for p in problems), path
    assert seen > 300


def test_every_placed_item_was_announced_in_its_thread(corpus: Path) -> None:
    for path in captures():
        announced: set[tuple[Any, ...]] = set()
        for event in imported(path)[0]:
            where = event.get("session_id"), event.get("thread_id")
            if event["event_type"] in ("context.item.added", "context.item.updated"):
                announced.add((*where, event["data"]["item_id"]))
            elif event["event_type"] == KINDS[0]:
                for block in event["data"]["ordered_blocks"]:
                    assert (*where, block["block_id"]) in announced, (path, block)


def test_every_call_is_one_step_with_the_usage_of_its_lines(corpus: Path) -> None:
    calls = usages = 0
    for path in captures():
        found, _ = imported(path)
        made = [(e["session_id"], e["thread_id"], e["step_id"]) for e in found if e["event_type"] == KINDS[0]]
        used = [(e["session_id"], e["thread_id"], e["step_id"]) for e in found if e["event_type"] == KINDS[2]]
        assert len(set(made)) == len(made), path
        assert set(used) <= set(made), path
        assert len(set(used)) == len(used), path
        calls, usages = calls + len(made), usages + len(used)
    assert usages > 0.95 * calls > 4000


def test_tool_results_are_never_lost(corpus: Path) -> None:
    """A walk over parents alone loses one in twenty tool items to parallel calls; here all are placed."""
    lost = total = 0
    for path in captures():
        found, _ = imported(path)
        placed = {
            b["block_id"] for e in found if e["event_type"] == KINDS[0] for b in e["data"]["ordered_blocks"]
        }
        for event in found:
            if event["event_type"] == "context.item.added" and event["data"]["context_kind"] == "tool_result":
                total += 1
                lost += event["data"]["item_id"] not in placed and "step_id" in event
    assert total > 4000
    assert lost < 0.005 * total


def test_a_microcompaction_matches_what_was_billed(corpus: Path) -> None:
    found = steps("entireio__cli/57/f1f346970c/1/full.jsonl")
    at = next(n for n, step in enumerate(found) if any("truncated" in c.flags for c in step.changes))
    before, after = found[at - 1], found[at]
    assert after.window.recorded - before.window.recorded == -25_385
    assert before.usage is not None
    assert after.usage is not None
    assert before.usage.reported_input is not None
    assert after.usage.reported_input is not None
    assert after.usage.reported_input - before.usage.reported_input == -25_359
    assert {c.status for c in after.changes if "truncated" in c.flags} == {"updated"}
    assert after.counts.updated == 9


def test_a_drop_that_nothing_records_is_an_unrecorded_cut(corpus: Path) -> None:
    found = steps("entireio__cli/57/f1f346970c/1/full.jsonl")
    reported = [step.usage.reported_input for step in found if step.usage is not None]
    at = reported.index(95_864)
    assert reported[at - 1] == 138_395
    assert found[at].window.recorded - found[at - 1].window.recorded == 1105
    assert "unrecorded_cut" in found[at].flags


def test_a_rewind_is_branched(corpus: Path) -> None:
    project = "handgemacht-ai__claude-code-log/test/test_data/real_projects/-experiments-ideas"
    found = steps(f"{project}/03eb5929-52b3-4b13-ada3-b93ae35806b8.jsonl")
    (rewound,) = [step for step in found if "branched" in step.flags]
    assert {c.cause for c in rewound.changes if c.status == "removed"} == {"branched"}
    assert rewound.counts.removed == 9


def test_compactions_take_the_history_into_the_summary(corpus: Path) -> None:
    path = root() / "entireio__cli/43/2b48f6b6e6/0/full.jsonl"
    found, _ = imported(path)
    compactions = [e["data"] for e in found if e["event_type"] == KINDS[1]]
    assert [c["metadata"]["native"]["preTokens"] for c in compactions] == [167_471, 167_448]
    assert all(c["trigger"] == "token_pressure" and c["summary_ref"] for c in compactions)
    replayed = [s for s in steps("entireio__cli/43/2b48f6b6e6/0/full.jsonl") if "compacted" in s.flags]
    assert len(replayed) == 2
    for step in replayed:
        removed = [c for c in step.changes if c.status == "removed"]
        assert {c.cause for c in removed} == {"compacted"}
        assert all(c.into for c in removed)


def test_the_ledger_balances_on_every_step(corpus: Path) -> None:
    for path in captures():
        after: dict[tuple[str | None, str], int] = {}
        for step in Inspector.open(str(path)).replay():
            if isinstance(step, Step):
                ledger, key = step.ledger, (step.session, step.thread)
                assert ledger.window_before == after.get(key, 0), path
                assert (
                    ledger.window_after == ledger.window_before + ledger.reweighed + ledger.new - ledger.freed
                ), path
                after[key] = ledger.window_after


def test_glued_and_damaged_lines_are_reported_by_line(corpus: Path) -> None:
    wanted = {
        "entireio__cli/37/995ebed6e4/2/full.jsonl": [(128, "glued-lines")],
        "entireio__cli/8c/fa910f8ef9/0/full.jsonl": [(115, "glued-lines"), (241, "glued-lines")],
        "entireio__cli/2c/ea8e895d35/0/full.jsonl": [(190, "bad-escape")],
    }
    for name, places in wanted.items():
        found = [(p.line, p.slug) for p in imported(root() / name)[1]]
        assert [place for place in found if place[1] not in ("missing-parent", "duplicate-uuid")] == places
