"""Four long sessions that their runtime compacted near its line: the check of the plan from each fails."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from test_true_window import SESSIONS

from ctxctl.cli.main import run

MANUAL = Path(__file__).resolve().parents[2] / "docs" / "true-window.md"
MARKS = ("<!-- checks -->", "<!-- end of checks -->")


def checked(plan: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The cells of one check, which has to fail."""
    capsys.readouterr()
    assert run(["budget", str(plan), "--check", "--json"]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert "overflow-limit" in {row["rule"] for row in rows if row["type"] == "budget_finding"}
    first = rows[0]["first_overflow"]
    return " | ".join("none" if first[level] is None else str(first[level]) for level in ("p50", "p95"))


@pytest.mark.slow
def test_the_check_of_sessions_that_filled_their_window_fails(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = corpus / "data" if (corpus / "data").is_dir() else corpus
    table = [
        "| session | turns | overflow of 200,000: p50 | p95 | of its compaction line: p50 | p95 |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, (path, _, _, line) in SESSIONS.items():
        plan = tmp_path / f"{name}.toml"
        assert run(["budget", "--from", str(root / "claude-code" / path), str(plan)]) == 0
        text = plan.read_text()
        assert f"\n# The client compacts by itself at {line:,}" in text
        turns = text.split("\nturns = ", 1)[1].split()[0]
        plan.write_text(text.replace(f"\nmax_input = {line}\n", "\n"))
        whole = checked(plan, capsys)
        plan.write_text(text)
        table.append(f"| **{name}** | {turns} | {whole} | {checked(plan, capsys)} |")
    wanted = "\n".join(table)
    page = MANUAL.read_text()
    head, mark, rest = page.partition(MARKS[0])
    found, end, tail = rest.partition(MARKS[1])
    assert mark
    assert end
    if os.environ.get("CTXCTL_UPDATE_GOLDENS"):
        MANUAL.write_text(f"{head}{mark}\n\n{wanted}\n\n{end}{tail}")
        return
    assert found.strip() == wanted, "docs/true-window.md: CTXCTL_UPDATE_GOLDENS=1 writes the table anew"
