"""Real runs of Claude Code: detected as what they are, and billed as they say themselves.

The captures are not in the repository: CTXCTL_CORPUS names the directory that holds
`data/claude-stream-json`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ctxctl.importers import registry
from ctxctl.model.problem import Problem
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.trace.source import open_source

Json = dict[str, Any]
PROMPT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def captures() -> list[Path]:
    return sorted((Path(os.environ["CTXCTL_CORPUS"]) / "data" / "claude-stream-json").rglob("*.jsonl"))


def imported(path: Path) -> tuple[list[Json], list[Problem]]:
    problems: list[Problem] = []
    with open_source(path) as opened:
        found = registry.detect(opened)
        assert found is not None, path
        assert found.name == "claude-stream-json", path
        return list(found.events(opened, problems.append)), problems


def lines(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def totals(path: Path) -> tuple[int, Json | None]:
    """Lines up to and with a capture's first result, and its usage."""
    for number, value in enumerate(lines(path), 1):
        if value["type"] == "result":
            return number, value.get("usage") or value["message"]["usage"]
    return 0, None


def test_every_message_id_is_a_step_and_the_ledger_balances(corpus: Path) -> None:
    assert len(captures()) >= 10
    for path in captures():
        answers = [v["message"] for v in lines(path) if v["type"] == "assistant"]
        asked = {message["id"] for message in answers if message["model"] != "<synthetic>"}
        with Inspector.open(path) as inspector:
            steps = [result for result in inspector.replay() if isinstance(result, Step)]
            slugs = [problem.slug for problem in inspector.problems]
        assert len(steps) == len(asked), path
        assert slugs == ([] if asked else ["no-model-calls"]), path
        for step in steps:
            ledger = step.ledger
            assert (
                ledger.window_before + ledger.reweighed + ledger.new - ledger.freed == ledger.window_after
            ), path
            assert step.usage is not None, path


def test_bills_sum_to_the_captures_own_totals(corpus: Path) -> None:
    compared = 0
    for path in captures():
        upto, total = totals(path)
        if total is None:
            continue
        found, _ = imported(path)
        used = [
            (e["data"], e["metadata"]["ctxctl"]["source_line"])
            for e in found
            if e["event_type"] == "ctxctl.usage.reported"
        ]
        billed = [data for data, line in used if line <= upto]
        whole = sum(total[key] for key in PROMPT)
        inputs = sum(data["input_tokens"] for data in billed)
        if "OpenAgents" in str(path):
            # Its last call answered nothing, so that no line tells of it; its totals do.
            assert 0 < whole - inputs < max(data["input_tokens"] for data in billed) + 1000, path
            continue
        assert inputs == whole, path
        assert sum(data.get("cached_tokens", 0) for data in billed) == total[PROMPT[1]], path
        assert sum(data.get("cache_write_tokens", 0) for data in billed) == total[PROMPT[2]], path
        outputs = [data.get("output_tokens") for data in billed]
        told = sum(count for count in outputs if count is not None)
        assert told == total["output_tokens"] if None not in outputs else told < total["output_tokens"], path
        compared += 1
    assert compared >= 8
