"""Samples of Sibyl, Luminarys and sanqian: the numbers that are known of them come out.

The captures are not in the repository: CTXCTL_CORPUS names the directory that holds `samples`.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers import registry
from ctxctl.ingest.about import Level
from ctxctl.model.results import Frame, Step
from ctxctl.session import Inspector

Json = dict[str, Any]
MEMORY = "durable_memory"


def samples() -> Path:
    return Path(os.environ["CTXCTL_CORPUS"]) / "samples"


def opened(path: Path, target: str = "model") -> tuple[list[Step], Inspector]:
    inspector = Inspector.open(str(path), encoding="o200k_base", target=target)
    found = [step for step in inspector.replay() if isinstance(step, Step)]
    for step in found:
        assert (
            step.ledger.window_after
            == step.ledger.window_before + step.ledger.reweighed + step.ledger.new - step.ledger.freed
        )
    return found, inspector


def of(step: Step, status: str) -> list[str]:
    return [c.item for c in step.changes if c.status == status and c.kind in (MEMORY, "custom")]


def sibyl(name: str) -> tuple[Step, Inspector, Json]:
    path = samples() / "sibyl" / f"{name}.json"
    (step,), inspector = opened(path)
    assert not inspector.problems
    return step, inspector, json.loads(path.read_text())["response"]


# -- Sibyl ---------------------------------------------------------------------------------------------------


def test_the_markdown_of_a_small_budget_renders_three_of_nine(corpus: Path) -> None:
    step, _, pack = sibyl("pack-1-budget300")
    assert pack["total_items"] == step.stages["selection"].facts["selected"] == 9
    assert of(step, "added") == ["task_audit", "task_rot", "sess_1"]
    assert len(of(step, "omitted")) == 6
    assert {c.reason for c in step.changes if c.status == "omitted"} == {"budget_limit"}
    facts = step.stages["budget"].facts
    assert (facts["max_chars"], facts["chars_by"]) == (1200, "300 of the tool's tokens, 4 characters each")
    assert facts["actual_chars"] == len(pack["markdown"].partition("\n\n_Trimmed")[0]) + 1
    assert step.window.limit is None, "a markdown's budget is no window"
    (cut,) = [c for c in step.changes if "truncated" in c.flags]
    assert cut.item == "sess_1"


@pytest.mark.parametrize(
    ("name", "limit", "held"),
    [
        ("pack-1-wake-limit12", 8, 7),
        ("pack-1-recall-limit40-audit", 24, 9),
        ("pack-1-recall", 24, 9),
        ("pack-2-recall", 24, 9),
    ],
)
def test_limits_are_clamped_to_the_layer(corpus: Path, name: str, limit: int, held: int) -> None:
    step, _, _ = sibyl(name)
    facts = step.stages["budget"].facts
    assert (facts["max_items"], facts["actual_items"]) == (limit, held)
    assert len(of(step, "added")) == held
    assert not of(step, "omitted")


def test_the_assembled_text_is_the_markdown(corpus: Path) -> None:
    for path in sorted((samples() / "sibyl").glob("*.json")):
        _, inspector, pack = sibyl(path.stem)
        assert inspector.assembled(0) == pack["markdown"], path


def test_two_packs_of_one_goal(corpus: Path, tmp_path: Path) -> None:
    for name in ("pack-1-recall.json", "pack-2-recall.json"):
        shutil.copy(samples() / "sibyl" / name, tmp_path / name)
    (_, second), inspector = opened(tmp_path)
    assert of(second, "added") == ["dec_jwt2"]
    assert of(second, "removed") == ["dec_jwt"]
    assert sorted(of(second, "updated")) == ["err_race", "task_rot"]
    (_, again) = Inspector.open(str(tmp_path)).frame(0), inspector.frame(1)
    assert next(p.segment for p in again.placements if p.item == "task_rot") == "prior_art"
    moved, rescored = flags(inspector, 1)
    assert {"proc_rel", "art_doc"} <= moved
    # A looked-up task has the score 0 in both; what is new or gone has none to compare.
    assert rescored == {"task_rot", "dec_store", "rule_log", "proc_rel", "err_race", "art_doc", "sess_1"}


def flags(inspector: Inspector, ordinal: int) -> tuple[set[str], set[str]]:
    """The items of a step that moved, and those that were rescored."""
    changes = inspector.step(ordinal).changes
    listed = [c for c in changes if c.kind == MEMORY]
    return {c.item for c in listed if "moved" in c.flags}, {c.item for c in listed if "rescored" in c.flags}


def test_two_packs_in_two_files(corpus: Path) -> None:
    _, one, _ = sibyl("pack-1-recall")
    _, two, _ = sibyl("pack-2-recall")
    found = two.compare(one.frame(0), two.frame(0))
    by_status = {
        status: [c.item for c in found.changes if c.status == status and c.kind == MEMORY]
        for status in ("added", "removed", "updated")
    }
    assert by_status == {"added": ["dec_jwt2"], "removed": ["dec_jwt"], "updated": ["task_rot", "err_race"]}
    assert any("moved" in c.flags for c in found.changes)


def test_no_sample_pack_claims_an_injection(corpus: Path) -> None:
    for path in sorted((samples() / "sibyl").glob("*.json")):
        step, _, _ = sibyl(path.stem)
        assert step.layer == "view", path
        assert step.stages["injection"].verdict == "not_recorded", path


def test_the_data_set_has_no_packs_and_says_so(corpus: Path) -> None:
    slugs: dict[str, int] = {}
    for path in sorted((samples().parent / "data" / "sibyl").rglob("*")):
        if path.is_file() and "transcripts" not in path.parts:
            _, inspector = opened(path)
            for problem in inspector.problems:
                slugs[problem.slug] = slugs.get(problem.slug, 0) + 1
    assert slugs == {"no-context-pack": 7}


# -- Luminarys -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [".", "calls.jsonl"])
def test_three_calls(corpus: Path, name: str) -> None:
    found, inspector = opened(samples() / "luminarys" / name)
    assert [(s.session, s.thread, s.step_id) for s in found] == [
        ("s1", "llm-77", f"req-{n}") for n in (1, 2, 3)
    ]
    assert [s.counts.added for s in found] == [2, 1, 2]
    assert {s.mode for s in found} == {"append"}
    context = "Warning: file contains binary data\nTip: use --format json"
    assert inspector.assembled(0) == f"{context}\n---\nCall #1 by s1"
    assert not inspector.problems


def test_state_is_never_the_models(corpus: Path) -> None:
    found, inspector = opened(samples() / "luminarys")
    assert {c.kind for s in found for c in s.changes} == {"tool_result"}
    tools, inspector = opened(samples() / "luminarys", target="tool")
    states = [p for n in range(3) for p in inspector.frame(n).placements if p.kind == "runtime_state"]
    texts = [inspector.text(p.content) for p in states if p.content is not None]
    assert texts == [f'{{"data":{{"counter":{n}}},"schema_version":1}}' for n in (1, 2)]
    assert [c.status for c in tools[2].changes if c.kind == "runtime_state"] == ["updated"]


# -- sanqian -------------------------------------------------------------------------------------------------


def test_the_version_diff_is_that_of_the_post(corpus: Path) -> None:
    found, inspector = opened(samples() / "sanqian" / "provider-calls.jsonl")
    assert inspector.params.policy == "sanqian"
    simulated = (samples() / "sanqian" / "blog-diff-simulated.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in simulated]
    for turn, step in enumerate(found, 1):
        of_turn = [row for row in rows if row["turn"] == turn]
        wanted = {
            row["provider_id"]: row["action"] for row in of_turn if row["action"] in ("added", "updated")
        }
        made = {
            c.item: c.status for c in step.changes if c.kind == "external_resource" and c.status != "skipped"
        }
        assert made == wanted, turn
        texts = texts_of(inspector, inspector.frame(turn - 1))
        for row in of_turn:
            if row["inject"]:
                # The post does not say what an untitled context shows as its title; here it is its id.
                wanted_text = (
                    row["inject"].replace("[Context: None]", "").replace("[Context updated: None]", "")
                )
                assert any(wanted_text in text for text in texts), row
    assert (found[1].counts.skipped, found[1].counts.added, found[1].ledger.new) == (2, 0, 0)
    assert "missing_context" in found[4].flags


def texts_of(inspector: Inspector, frame: Frame) -> list[str]:
    return [inspector.text(p.content) for p in frame.placements if p.content is not None]


# -- all -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sibyl", "luminarys", "sanqian"])
def test_declarations_are_true_of_the_samples(corpus: Path, name: str) -> None:
    about = registry.by_name(name).about
    for path in sorted((samples() / name).iterdir()):
        if path.suffix == ".md" or path.name == "blog-diff-simulated.jsonl":
            continue
        _, inspector = opened(path)
        assert inspector.summary is not None
        for fidelity in inspector.summary.fidelity:
            assert fidelity.format == name
            for fact, levels in fidelity.facts.items():
                if about.claim(fact).level is Level.NOT_RECORDED:
                    assert set(levels) <= {"not recorded"}, (path, fact, levels)
