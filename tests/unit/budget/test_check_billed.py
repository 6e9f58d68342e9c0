"""A plan from a session whose bills exceed its cap fails its check, however little the trace holds of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxctl.cli.main import run

CAP = 2_000
RECORDED = 20
"""More or less: tokens of a message of one turn."""


def event(number: int, kind: str, data: dict[str, Any], turn: int) -> str:
    return json.dumps({
        "schema_version": "0.1.1", "event_id": f"e{number}", "source": "test", "turn_id": f"t{turn}",
        "time": "2026-01-01T00:00:00Z", "event_type": kind, "data": data,
    })  # fmt: skip


def billed(path: Path, *bills: int) -> Path:
    """Write a session of one request in each turn, in which a few words are recorded with each bill."""
    lines: list[str] = []
    refs: list[dict[str, Any]] = []
    for turn, tokens in enumerate(bills, 1):
        item = {
            "item_id": f"u{turn}", "context_kind": "user_message", "content_mode": "inline",
            "content": "word " * RECORDED, "visibility": ["model"],
        }  # fmt: skip
        refs.append({"block_id": str(turn), "item_refs": [f"u{turn}"]})
        assembly = {"assembly_id": f"a{turn}", "target": "model", "ordered_blocks": list(refs)}
        for kind, data in (
            ("context.item.added", item),
            ("context.budget.applied", {"budget_id": f"b{turn}", "max_tokens": CAP}),
            ("context.assembly.created", assembly),
            ("context.injection.applied", {"assembly_id": f"a{turn}", "target": "model"}),
            ("ctxctl.usage.reported", {"model": "gpt-4o", "input_tokens": tokens}),
        ):
            lines.append(event(len(lines), kind, data, turn))
    path.write_text("\n".join(lines) + "\n")
    return path


def checked(capsys: pytest.CaptureFixture[str], path: Path, address: str = "") -> tuple[int, str, str]:
    """Derive a plan and check it; the exit code, the report and the plan."""
    plan = path.with_suffix(".toml")
    plan.unlink(missing_ok=True)
    assert run(["budget", "--from", f"{path}{address}", str(plan)]) == 0
    capsys.readouterr()
    code = run(["budget", str(plan), "--check"])
    return code, capsys.readouterr().out, plan.read_text()


def test_a_session_whose_bills_were_over_the_cap_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = billed(tmp_path / "over.jsonl", *(1_000 + 200 * turn for turn in range(10)))
    code, out, plan = checked(capsys, path)
    assert code == 1
    assert "# Over the cap of their time: 4 requests, in 1 of 1 sessions.\n" in plan
    assert 'name = "not recorded"\n' in plan
    # Nothing of the record is near the cap: 10 turns of some 20 tokens.
    assert "FAIL  overflow-limit: turn 6 overflows at p95, turn 11 may be the first" in out


def test_the_cost_is_that_of_what_is_billed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bills = [1_000 + 50 * turn for turn in range(10)]
    path = billed(tmp_path / "under.jsonl", *bills)
    plan = path.with_suffix(".toml")
    assert run(["budget", "--from", str(path), str(plan)]) == 0
    capsys.readouterr()
    assert run(["budget", str(plan), "--json"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[0])["cost"]["tokens"]
    sent = told["input"] + told["cached"] + told["written"]
    assert sent == pytest.approx(sum(bills), rel=0.03)  # some 1,100 tokens are recorded in all
    # What is not recorded is read from the cache like what is.
    assert told["cached"] > 0.8 * sent


def test_a_session_that_stayed_below_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = billed(tmp_path / "under.jsonl", *(1_000 + 50 * turn for turn in range(10)))
    code, out, plan = checked(capsys, path)
    assert (code, out.splitlines()[-1]) == (0, "check: passed")
    assert "Over the cap" not in plan


def test_a_session_that_is_over_already_does_not_fit_when_it_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = billed(tmp_path / "over.jsonl", *(1_000 + 200 * turn for turn in range(10)))
    code, out, _ = checked(capsys, path, "@8")
    assert code == 1
    assert "does-not-fit" in out
    assert "starts        after request 8 of over.jsonl, with 2,400 tokens" in out


def test_the_demo_overflows_where_nothing_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its runtime compacts below the cap; without that its own bills lead over it."""
    demo = Path(__file__).parents[3] / "traces" / "coding-agent.jsonl"
    copy = tmp_path / "demo.jsonl"
    copy.write_bytes(demo.read_bytes())
    code, out, plan = checked(capsys, copy)
    assert code == 1
    assert "overflow-limit: turn" in out
    assert "Over the cap" not in plan
