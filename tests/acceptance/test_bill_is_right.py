"""No headline, sum, share, tier or gate of any view rests on a count where the provider billed an input.

The content is some 240,000 tokens, and each of the four requests was billed 20,000 to 23,000: at the
list price for short contexts they cost $0.2616, whatever is recorded.
"""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ctxctl.cli.main import run

BILLS = ((20_000, 100), (21_000, 100), (22_000, 100), (23_000, 100))
COST = Decimal(sum(billed for billed, _ in BILLS) * 3 + sum(said for _, said in BILLS) * 15) / 1_000_000
SESSION = "11111111-1111-4111-8111-111111111111"
Out = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project's folder with one transcript of Claude Code."""
    folder = tmp_path_factory.mktemp("bills")
    same = {
        "isSidechain": False,
        "sessionId": SESSION,
        "version": "2.1.62",
        "cwd": "/p",
        "userType": "external",
    }
    lines: list[dict[str, Any]] = []
    parent = None
    for n, (billed, said) in enumerate(BILLS):
        when = f"2026-09-01T10:0{n}"
        text = f"question {n} " + "boat pier crane rope " * 15_000
        stop = {"stop_reason": "end_turn", "usage": {"input_tokens": billed, "output_tokens": said}}
        answer = {
            "content": [{"type": "text", "text": f"answer {n}"}],
            "model": "claude-sonnet-4-5-20250929",
            **stop,
        }
        lines += [
            {"type": "user", "uuid": f"u{n}", "parentUuid": parent, "timestamp": f"{when}:00.000Z",
             "message": {"role": "user", "content": text}, **same},
            {"type": "assistant", "uuid": f"a{n}", "parentUuid": f"u{n}", "requestId": f"r{n}",
             "timestamp": f"{when}:30.000Z", **same,
             "message": {"id": f"msg_{n}", "type": "message", "role": "assistant", **answer}},
        ]  # fmt: skip
        parent = f"a{n}"
    (folder / f"{SESSION}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture
def trace(folder: Path, one_cache: object) -> str:
    return str(folder / f"{SESSION}.jsonl")


def printed(capsys: Out, *arguments: str, code: int = 0) -> str:
    capsys.readouterr()
    assert run(list(arguments)) == code
    return capsys.readouterr().out


def objects(capsys: Out, *arguments: str, of: str, code: int = 0) -> list[dict[str, Any]]:
    lines = map(json.loads, printed(capsys, *arguments, "--json", code=code).splitlines())
    return [line for line in lines if line["type"] == of]


def test_sizes_are_those_of_the_bills(trace: str, capsys: Out) -> None:
    steps = objects(capsys, "replay", trace, of="step")
    assert [step["window"]["used"] for step in steps] == [billed for billed, _ in BILLS]
    assert {step["window"]["used_method"] for step in steps} == {"reported"}
    assert [sum(step["segments"].values()) for step in steps] == [billed for billed, _ in BILLS]
    assert all(step["cut"]["unsent"] > 0 for step in steps)
    assert "23,000 of 200,000 (12%)" in " ".join(printed(capsys, "replay", trace).split())
    assert "23,000 of 200,000 (12%)" in " ".join(printed(capsys, "show", f"{trace}@-1").split())
    assert int(printed(capsys, "find", trace, "sent>23000", "--count", code=1).split()[0]) == 0
    assert int(printed(capsys, "find", trace, "sent>=20000", "--count").split()[0]) == 4


def test_costs_are_those_of_the_bills_at_their_own_tier(trace: str, folder: Path, capsys: Out) -> None:
    (cost,) = objects(capsys, "cost", trace, of="cost")
    assert Decimal(cost["sent"]["total"]) == Decimal(cost["billed"]["total"]) == COST
    steps = objects(capsys, "cost", trace, "--steps", of="step_cost")
    assert [step["sent_tokens"]["input"] for step in steps] == [billed for billed, _ in BILLS]
    spent = objects(capsys, "cost", trace, of="spent")
    assert sum(Decimal(one["cost"]) for one in spent) == Decimal(cost["sent"]["input"])
    (whole,) = objects(capsys, "cost", str(folder), of="cost")
    assert Decimal(whole["sent"]["total"]) == COST
    (listed,) = objects(capsys, "ls", str(folder), of="listed_session")
    assert Decimal(listed["cost"]) == COST
    assert not listed["counted"]
    assert not listed["at_least"]
    for command in (
        ["replay", trace],
        ["ls", str(folder)],
        ["export", trace, "--format", "markdown", "-o", "-"],
    ):
        assert f"${COST:.4f}"[:6] in printed(capsys, *command)


def test_gates_rest_on_the_bills(trace: str, capsys: Out) -> None:
    assert run(["check", trace, "--max", "23000", "--max-cost", str(COST)]) == 0
    assert run(["check", trace, "--max", "22999"]) == 1
    assert run(["check", trace, "--max-cost", str(COST - Decimal("0.0001"))]) == 1


def test_exports_and_comparisons_rest_on_the_bills(trace: str, tmp_path: Path, capsys: Out) -> None:
    rows = list(csv.DictReader(io.StringIO(printed(capsys, "export", trace, "--format", "csv", "-o", "-"))))
    assert [int(row["window_used"]) for row in rows] == [billed for billed, _ in BILLS]
    other = tmp_path / "other.jsonl"
    other.write_bytes(Path(trace).read_bytes())
    (found,) = objects(capsys, "diff", "--sessions", trace, str(other), of="sessions")
    assert Decimal(found["total_a"]["cost"]) == COST
    assert found["total_a"]["partial_outputs"] == 0
