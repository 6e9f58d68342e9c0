"""The lines of ``budget``, ``cost``, ``models`` and ``policies`` are what docs/json.schema.json says.

Apart from the kept outputs, because prices and the table of models move by themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from test_json_contract import BESIDE, SCHEMA, VALIDATOR, definition, keys_in_order

from ctxctl.cli.main import run

ROOT = Path(__file__).resolve().parents[2]
TRACE = str(ROOT / "traces" / "coding-agent.jsonl")
PLAN = """
policy = "fifo"
runs = 5
[model]
name = "gpt-5"
provider = "openai"
max_input = 5000
[[part]]
name = "rules"
text = "Be kind."
[[part]]
name = "state"
tokens = { p50 = 100 }
[conversation]
turns = 6
user = { p50 = 1000, max = 1500 }
answer = 300
calls = 1
call = 20
result = 600
[limits]
total = 50
"""
Line = dict[str, Any]


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> list[Line]:
    assert run([*arguments, "--json"]) == code
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for number, line in enumerate(found):
        VALIDATOR.validate(line)
        keys_in_order(line, definition(name_of(line)), f"{arguments}:{number}")
    return found


def name_of(line: Line) -> str:
    return "model_row" if line["type"] == "model" and "asked" not in line else str(line["type"])


def kinds(found: Iterable[Line]) -> set[str]:
    return {name_of(line) for line in found}


def test_budget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    found = said(capsys, "budget", str(plan), "--check", code=1)
    assert kinds(found) == {"budget", "part", "budget_turn", "shrunk", "budget_finding", "check"}
    head, last = found[0], found[-1]
    assert head["start"] is None
    assert Decimal(head["cost"]["p50"]) <= Decimal(head["cost"]["p95"])
    assert last["failed"] == sum(line["type"] == "budget_finding" for line in found) > 0
    for line in found:
        if line["type"] == "budget_turn":
            for level, wanted in line["wanted"].items():
                assert line["free"][level] == head["cap"] - wanted
    parts = [line for line in found if line["type"] == "part"]
    assert head["total"]["p95"] == sum(part["tokens"]["p95"] for part in parts)


def test_a_budget_that_goes_on_and_one_whose_cost_nobody_knows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "onward.toml"
    assert run(["budget", "--from", f"{TRACE}@12", str(plan)]) == 0
    capsys.readouterr()
    plan.write_text(plan.read_text().replace("runs = 200", "runs = 5").replace('\nname = "claude', '\n# "'))
    (head, *_) = said(capsys, "budget", str(plan))
    assert head["start"]["turn"] == 12
    assert head["cost"] is None


def test_cost(capsys: pytest.CaptureFixture[str]) -> None:
    found = said(capsys, "cost", TRACE)
    assert kinds(found) == {"trace", "step_cost", "spent", "cost"}
    steps = [line for line in found if line["type"] == "step_cost"]
    total = found[-1]
    assert total["steps"] == len(steps)
    assert Decimal(total["billed"]["total"]) == sum(
        Decimal(s["billed"]["total"]) for s in steps if s["billed"]
    )


def test_models(capsys: pytest.CaptureFixture[str]) -> None:
    assert kinds(said(capsys, "models", "gpt-5")) == {"model"}
    assert kinds(said(capsys, "models", "--provider", "anthropic")) == {"model_row"}


def test_policies(capsys: pytest.CaptureFixture[str]) -> None:
    every = said(capsys, "policies")
    assert kinds(every) == {"policy"}
    assert said(capsys, "policies", "fifo") == [line for line in every if line["name"] == "fifo"]


def test_all_that_is_beside_the_kept_outputs_is_here() -> None:
    described = {ref["$ref"].rpartition("/")[2] for ref in SCHEMA["oneOf"]}
    mine = {"budget", "part", "budget_turn", "shrunk", "budget_finding", "check"}
    mine |= {"step_cost", "spent", "cost", "model", "model_row", "policy"}
    assert mine <= described
    assert mine - {"model_row"} <= BESIDE
