"""Real Amplifier sessions: frames are the bodies that were sent, bills are the provider's own.

The captures are not in the repository: CTXCTL_CORPUS names the directory that holds `data` and `samples`.
"""

from __future__ import annotations

import csv
import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest

from ctxctl.model.results import Frame, Step
from ctxctl.plugins.amplifier.compactions import CompactionCounters
from ctxctl.providers.dialects import of_body
from ctxctl.session import Inspector
from tests.unit.providers.wire_rebuild import compare, places, rebuilt

Json = dict[str, Any]


def samples() -> Path:
    return Path(os.environ["CTXCTL_CORPUS"]) / "samples" / "amplifier"


def real() -> Path:
    """The one session of a real model: nine requests, and a transcript beside them."""
    (found,) = (Path(os.environ["CTXCTL_CORPUS"]) / "data" / "amplifier").rglob("c37652eb-*")
    return found


def records(path: Path) -> list[Json]:
    found = []
    for line in path.read_bytes().splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def opened(path: Path) -> tuple[list[Step], Inspector]:
    inspector = Inspector.open(str(path), encoding="o200k_base")
    found = [step for step in inspector.replay() if isinstance(step, Step)]
    for step in found:
        assert (
            step.ledger.window_after
            == step.ledger.window_before + step.ledger.reweighed + step.ledger.new - step.ledger.freed
        )
        assert sum(step.segments.values()) == step.window.used
    assert not [p for p in inspector.problems if p.slug == "invalid-event"]
    return found, inspector


def kinds(frame: Frame) -> list[str]:
    return [placement.kind for placement in frame.placements]


def differences(path: Path, bodies: list[Json]) -> list[str]:
    """Where a frame's items and texts, put together again, are not the body of the same request."""
    _, inspector = opened(path)
    found = []
    for at, (sent, blocks) in enumerate(zip(bodies, places(inspector).values(), strict=True)):
        frame = inspector.frame(at)
        dialect = of_body(sent)
        assert dialect is not None
        texts = [None if p.content is None else inspector.text(p.content) for p in frame.placements]
        made = rebuilt([(place, text) for (_, place), text in zip(blocks, texts, strict=True)])
        difference = compare(made, dialect.name, sent)
        if difference is not None:
            found.append(f"request {at + 1}: {difference}")
    return found


def test_frames_are_what_the_server_received(corpus: Path) -> None:
    run = samples() / "run-streaming-openai"
    bodies = [row["body"] for row in records(run / "wire.jsonl")]
    assert len(bodies) == 10
    assert differences(run / "events.jsonl", bodies) == []


def test_frames_of_the_real_session_are_its_bodies(corpus: Path) -> None:
    path = real() / "context-intelligence" / "events.jsonl"
    bodies = [row["data"]["raw"] for row in records(path) if row["event"] == "llm:request"]
    assert len(bodies) == 9
    assert differences(path, bodies) == []


def test_bills_are_the_providers_own(corpus: Path) -> None:
    path = real() / "context-intelligence" / "events.jsonl"
    steps, _ = opened(path)
    bills = [row["data"]["raw"]["usage"] for row in records(path) if row["event"] == "llm:response"]
    fields = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    assert [step.usage.reported_input for step in steps if step.usage] == [
        sum(bill[field] for field in fields) for bill in bills
    ]
    assert [step.usage.reported_cached for step in steps if step.usage] == [bill[fields[1]] for bill in bills]
    assert [step.usage.reported_output for step in steps if step.usage] == [
        bill["output_tokens"] for bill in bills
    ]


def test_the_real_session_is_told_apart_by_its_markers(corpus: Path) -> None:
    steps, inspector = opened(real() / "context-intelligence" / "events.jsonl")
    frames = [inspector.frame(at) for at in range(len(steps))]
    assert all(kinds(frame).count("tool_definition") == 16 for frame in frames)
    assert all(kinds(frame).count("external_resource") == 18 for frame in frames)
    files = [p for p in frames[0].placements if p.kind == "external_resource"]
    assert not [p.item for p in files if "[REDACTED" in p.item], "a masked path was not resolved"
    hooks = {p.item for p in frames[0].placements if p.kind == "policy_note"}
    assert {"reminder:hooks-status-context", "reminder:mode-status"} < hooks
    for before, step in itertools.pairwise(steps):
        assert step.counts.added == 3, "reasoning, call and result"
        assert not {c.item for c in step.changes if c.status == "removed" and c.kind != "policy_note"}
        assert step.ledger.freed < 500 < before.window.recorded, "only reminders are replaced"
    # The reminders' share of what is counted: without them on each request the bill could not be met.
    assert all(
        0.3 < -step.usage.difference / step.usage.reported_input < 0.45 for step in steps if step.usage
    )


def test_views_and_compactions_agree(corpus: Path) -> None:
    run = samples() / "run-streaming-openai"
    steps, inspector = opened(run / "events.jsonl")
    told = [row["data"] for row in records(run / "events.jsonl") if row["event"] == "context:compaction"]
    views = [row["view"] for row in records(run / "views.jsonl")]
    compacted = [step for step in steps if "compacted" in step.flags]
    assert len(told) == 6, "the last one is of a view that no request carried"
    assert [step.stages["budget"].facts["actual_tokens"] for step in compacted] == [
        data["after_tokens"] for data in told[:5]
    ]
    assert "still_over_budget" not in {flag for step in steps for flag in step.flags}
    for at, view in enumerate(views[: len(steps)]):
        placements = inspector.frame(at).placements
        held = {p.item.removesuffix("/result") for p in placements if p.kind == "tool_result"}
        results = [message for message in view if message["role"] == "tool"]
        assert held == {message["tool_call_id"] for message in results}
        cut = [p for p in placements if p.truncated]
        assert len(cut) == sum(message["content"].startswith("[truncated: ~") for message in results)


def test_counters_of_a_published_storm(corpus: Path) -> None:
    text = (samples() / "published-compaction-storm-445ac89c.head.tsv").read_text().removeprefix("# ")
    rows = list(csv.DictReader(text.splitlines(), delimiter="\t"))
    assert len(rows) == 11
    counters = CompactionCounters()
    found = [
        counters.read({k: int(v) for k, v in row.items() if k != "timestamp"}, at)
        for at, row in enumerate(rows)
    ]
    assert [one.removed for one in found] == [1, 0, 3, 5, 6, 7, 5, 4, 4, 5, 335]
    kinds_told = [one.counters for one in found]
    assert kinds_told == ["undetermined"] * 5 + ["per event"] * 6, "a count of truncated results fell"
    over = [any("still over budget" in note for note in one.fields()["loss_notes"]) for one in found]
    assert over == [int(row["after_tokens"]) > int(row["budget"]) for row in rows]
    assert over.count(True) == 10


@pytest.mark.parametrize(
    ("name", "steps", "billed"), [("run-basic-mock", 8, 10), ("run-basic-mock-redacted", 2, 10)]
)
def test_logs_without_bodies(corpus: Path, name: str, steps: int, billed: int) -> None:
    (path,) = (samples() / name).glob("events*.jsonl")
    found, _ = opened(path)
    assert len(found) == steps
    assert {step.usage.reported_input for step in found if step.usage} == {billed}


def test_one_answer_in_two_envelopes_is_billed_once(corpus: Path) -> None:
    (step,), _ = opened(samples() / "two-envelope-shapes.jsonl")
    assert step.usage is not None
    assert step.usage.reported_input == 2 + 16534


def test_a_session_directory_is_one_session(corpus: Path) -> None:
    steps, inspector = opened(real())
    assert len(steps) == 9
    assert [p.slug for p in inspector.problems] == ["bad-escape"]


def test_a_transcript_that_tells_of_another_session_is_left_out(corpus: Path) -> None:
    seeds = [path for path in real().parent.iterdir() if path.name != real().name]
    assert len(seeds) == 4
    for seed in seeds:
        steps, inspector = opened(seed)
        assert len(steps) == 55
        assert [p.slug for p in inspector.problems] == ["transcript-differs"]
