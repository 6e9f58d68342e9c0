"""Bills that cannot be true in public captures: where they are known to be, and hardly anywhere else."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from ctxctl.errors import CtxctlError
from ctxctl.model.results import Step
from ctxctl.session import Inspector

SHARE = (0.45, 0.65)
"""Of Claude Code's answers: 2,432 of 4,622 were below half of what is visible when this was written."""


class Found(NamedTuple):
    bills: int
    answers: int
    """Bills with an answer behind them."""
    doubts: Counter[tuple[str, str]]
    largest: int
    """The largest input that is doubted."""


def doubted(top: Path) -> Found:
    doubts: Counter[tuple[str, str]] = Counter()
    bills = answers = largest = 0
    for path in sorted(path for path in top.rglob("*") if path.is_file()):
        try:
            inspector = Inspector.open(str(path), encoding="o200k_base")
        except CtxctlError:
            continue
        with inspector:
            for step in inspector.replay():
                if not isinstance(step, Step) or step.usage is None:
                    continue
                bills += 1
                answers += bool(step.usage.counted_output)
                doubts.update((doubt.part, doubt.why) for doubt in step.usage.doubts)
                told = [doubt.reported for doubt in step.usage.doubts if doubt.part == "input"]
                largest = max([largest, *told])
    return Found(bills, answers, doubts, largest)


def test_claude_code_keeps_the_counts_with_which_a_stream_began(corpus: Path) -> None:
    found = doubted(corpus / "data" / "claude-code")
    assert found.answers >= 0.99 * found.bills
    assert SHARE[0] * found.answers <= found.doubts["output", "below_content"] <= SHARE[1] * found.answers
    assert sum(n for (part, _), n in found.doubts.items() if part == "input") <= 0.01 * found.bills
    assert found.largest <= 100, "only hand-made bills are below what is recorded"


@pytest.mark.parametrize(
    "kind", ["codex", "pi", "opencode", "gemini-cli", "claude-stream-json", "copilot-cli"]
)
def test_other_formats_bill_what_an_answer_cost(kind: str, corpus: Path) -> None:
    found = doubted(corpus / "data" / kind)
    # Not `claude-stream-json`, `copilot-cli`: most of their lines have no output count at all.
    assert found.answers > 0
    assert found.doubts["output", "below_content"] == 0
    assert found.doubts["output", "repeated"] == 0
    assert found.doubts["output", "zero"] <= (6 if kind == "copilot-cli" else 0)
    assert sum(n for (part, _), n in found.doubts.items() if part == "input") <= 2
    assert found.largest <= 10
