"""What OpenAI billed for requests that a capture holds whole, held against what its rules had said before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ctxctl.errors import CtxctlError
from ctxctl.model.results import Placement, Step
from ctxctl.session import Inspector
from ctxctl.tokens.model_encodings import resolve_encoding

FOLDERS = ("api-captures", "langfuse", "langsmith", "otel-genai", "inspect-ai")
"""Of the corpus's data: those with requests to Chat Completions."""


def asked(corpus: Path) -> Iterator[tuple[Step, tuple[Placement, ...]]]:
    """Every request to a model whose encoding is public."""
    for folder in FOLDERS:
        for path in sorted(p for p in (corpus / "data" / folder).rglob("*") if p.is_file()):
            with suppress(CtxctlError), Inspector.open(path, calibration="shipped") as inspector:
                for at, _ in inspector.walk():
                    if resolve_encoding(at.step.model).known:
                        yield at.step, tuple(at.placements)


def test_no_tool_is_counted_exactly_and_first_bills_are_as_the_rules_say(corpus: Path) -> None:
    tools = ruled = 0
    for step, placements in asked(corpus):
        exact = sum(n for name, n in step.window.by_method.items() if name.startswith("exact:"))
        defined = sum(p.tokens for p in placements if p.kind == "tool_definition")
        tools += bool(defined)
        assert exact <= step.window.recorded - defined
        facts = step.stages["evidence"].facts
        expected, billed = facts.get("expected_input"), facts.get("reported_input")
        if step.ledger.window_before or expected is None or billed is None:
            continue
        ruled += 1
        assert abs(expected - billed) <= facts["expected_error"], (step.model, billed, expected)
    assert tools >= 20
    assert ruled >= 5
