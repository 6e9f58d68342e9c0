"""Hand-computed expectations against the reference and against the engine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.oracle import build, real, reference
from tests.oracle.case import Case, Replayed, check
from tests.oracle.cases import ALL
from tests.oracle.counting import count

BY_NAME = {case.name: case for case in ALL}


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(ALL)


@pytest.mark.parametrize(("text", "tokens"), build.SIZES.items())
def test_sizes(text: str, tokens: int) -> None:
    assert count(text) == tokens


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_traces_fit_the_schemas(case: Case) -> None:
    from ctxctl.trace.validate import validate_event

    for line in build.lines(case.events).splitlines():
        assert validate_event(json.loads(line)) == []


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_reference(case: Case) -> None:
    said = reference.replay(case.events, count, target=case.target, model=case.model)
    assert check(case, said) == []


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_engine(case: Case, tmp_path: Path) -> None:
    assert check(case, real.run(case, tmp_path / "trace.jsonl")) == []


def test_the_command_prints_it(tmp_path: Path) -> None:
    case, trace = BY_NAME["the-same-event-twice"], tmp_path / "trace.jsonl"
    trace.write_bytes(build.lines(case.events))
    command = [sys.executable, "-m", "ctxctl", "replay", "--json", "--all", str(trace)]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60)
    printed = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = {kind: [said for said in printed if said["type"] == kind] for kind in ("step", "turn", "problem")}
    assert check(case, Replayed(kinds["step"], kinds["turn"], kinds["problem"])) == []
