"""Real traces of observability tools: each is known, its ledger balances, its bills are its own totals.

The captures are not in the repository: CTXCTL_CORPUS names the directory of `data/langfuse` and so on.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers import registry
from ctxctl.ingest.about import Level
from ctxctl.model.problem import Problem
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.trace.source import open_source
from ctxctl.trace.validate import validate_event

Json = dict[str, Any]
KINDS = {
    "otel-genai": ({"otel", "openinference"}, 17),
    "langfuse": ({"langfuse"}, 41),
    "langsmith": ({"langsmith"}, 11),
}
NO_TRACE = {"capture-results.json"}
"""A test run's summary that lies beside its traces."""
EXPECTED_PROBLEMS = {"no-model-calls", "bad-escape", "not-understood"}
NO_CALLS = {
    "ai-embed.json", "ai-embed-doEmbed.json", "metric.json", "inputs_0.jsonl", "inputs_1.jsonl",
    "autogen-2025-06-06.chatml.json",
}  # fmt: skip
"""Embeddings, metrics, inputs of runs without the runs, a rendering that failed."""


def files(kind: str) -> list[Path]:
    base = Path(os.environ["CTXCTL_CORPUS"]) / "data" / kind
    return sorted(path for path in base.rglob("*") if path.is_file() and path.name not in NO_TRACE)


def imported(path: Path) -> tuple[list[Json], list[Problem]]:
    problems: list[Problem] = []
    with open_source(path) as source:
        found = registry.detect(source)
        assert found is not None, path
        return list(registry.capture_events(found, source, problems.append)), problems


def billed(path: Path) -> tuple[int, int]:
    """Input and output tokens of all calls."""
    bills = [e["data"] for e in imported(path)[0] if e["event_type"] == "ctxctl.usage.reported"]
    return sum(b["input_tokens"] for b in bills), sum(b.get("output_tokens", 0) for b in bills)


@pytest.mark.parametrize("kind", KINDS)
def test_every_capture_is_known_imports_and_validates(corpus: Path, kind: str) -> None:
    names, count = KINDS[kind]
    seen = files(kind)
    assert len(seen) == count - sum(kind == "otel-genai" for _ in NO_TRACE)
    for path in seen:
        events, problems = imported(path)
        name = events[0]["metadata"]["ctxctl"]["format"]
        assert name in names, path
        assert {p.slug for p in problems} <= EXPECTED_PROBLEMS, path
        assert any(p.slug == "no-model-calls" for p in problems) == (path.name in NO_CALLS), path
        assert len({e["event_id"] for e in events}) == len(events), path
        assert not [(e["event_id"], fault) for e in events[::7] for fault in validate_event(e)], path
        about = registry.by_name(name).about
        for fact, levels in events[-1]["data"]["facts"].items():
            if about.claim(fact).level is Level.NOT_RECORDED:
                assert set(levels) == {"not recorded"}, (path, fact, levels)


@pytest.mark.parametrize("kind", KINDS)
def test_the_ledger_balances_on_every_step(corpus: Path, kind: str) -> None:
    for path in files(kind):
        with Inspector.open(path, encoding="o200k_base") as inspector:
            steps = [step for step in inspector.replay() if isinstance(step, Step)]
        for step in steps:
            ledger = step.ledger
            assert (
                ledger.window_before + ledger.reweighed + ledger.new - ledger.freed == ledger.window_after
            ), path
            assert sum(step.segments.values()) == step.window.used, path
        assert steps or path.name in NO_CALLS, path


def test_langfuse_bills_what_its_innermost_generations_say(corpus: Path) -> None:
    compared = 0
    for path in files("langfuse"):
        value = json.loads(path.read_text())
        calls = [o for o in value.get("observations", []) if o["type"] == "GENERATION"]
        outer = {o.get("parentObservationId") for o in calls}
        calls = [o for o in calls if o["id"] not in outer]
        totals = [o.get("usageDetails") for o in calls]
        if not totals or not all(totals):
            continue
        given, made = billed(path)
        listed = sum(t["total"] for t in totals)
        told = sum(t["input"] + t["output"] for t in totals)
        assert given + made in (listed, told), path
        compared += 1
    assert compared >= 20


def test_spans_bill_what_calls_say_and_agents_nothing(corpus: Path) -> None:
    compared = 0
    for path in files("otel-genai"):
        if path.suffix != ".json":
            continue
        value = json.loads(path.read_text())
        held = [value] if isinstance(value, list) else [v for v in value.values() if isinstance(v, list)]
        rows = [row for rows in held for row in rows if isinstance(row, dict)]
        calls = [s["attributes"] for s in rows if ".do" in s.get("name", "") and "Embed" not in s["name"]]
        given = sum(a["gen_ai.usage.input_tokens"] for a in calls)
        made = sum(a["gen_ai.usage.output_tokens"] for a in calls)
        if calls:
            assert billed(path) == (given, made), path
            compared += 1
    assert compared >= 5


def test_copilots_spans_are_one_step_each_and_redacted_bills_are_none(corpus: Path) -> None:
    for path in files("otel-genai"):
        if path.suffix == ".jsonl":
            calls = path.read_text().count('"name":"chat ')
            events, _ = imported(path)
            assert sum(e["event_type"] == "context.injection.applied" for e in events) == calls, path
            assert billed(path) == (0, 0)


def test_langsmith_bills_what_its_llm_runs_say(corpus: Path) -> None:
    for path in files("langsmith"):
        if path.suffix == ".json":
            patches = json.loads(path.read_text())["patch"]
            uses = [p["outputs"].get("usage_metadata") or {} for p in patches]
            expected = (
                sum(u.get("input_tokens", 0) for u in uses),
                sum(u.get("output_tokens", 0) for u in uses),
            )
            assert billed(path) == expected, path
    [ops] = [path for path in files("langsmith") if path.name.startswith("run_ops")]
    events, _ = imported(ops)
    assert sum(e["event_type"] == "context.injection.applied" for e in events) == 8
