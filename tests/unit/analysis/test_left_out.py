"""What a supposed policy has left out of the last request."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ctxctl.cli.main import run

ROOT = Path(__file__).resolve().parents[3]
COMPACTED = str(ROOT / "fixtures" / "codex" / "compacted.jsonl")
RETRIEVAL = str(ROOT / "traces" / "retrieval-agent.jsonl")
Out = pytest.CaptureFixture[str]


def head(capsys: Out, *arguments: str) -> dict[str, str]:
    """The labelled lines in front of the turns, whole."""
    assert run(["replay", "--plain", *arguments]) == 0
    lines = capsys.readouterr().out.split("\n\n")[0].splitlines()
    said: dict[str, str] = {}
    label = ""
    for line in lines:
        label = line[:9].strip() or label
        said[label] = f"{said.get(label, '')} {line[10:].strip()}".strip()
    return said


def out_by_json(capsys: Out, *arguments: str) -> dict[str, int]:
    """The items that the changes of all steps leave out, with their tokens."""
    assert run(["replay", "--json", *arguments]) == 0
    out: dict[str, int] = {}
    for line in map(json.loads, capsys.readouterr().out.splitlines()):
        for change in line["changes"] if line["type"] == "step" else ():
            if change["status"] in ("added", "updated"):
                out.pop(change["item"], None)
            elif change["provenance"] == "simulated" and change["status"] != "skipped":
                out[change["item"]] = change["freed"] or change["tokens"] or 0
    return out


@pytest.mark.parametrize("trace", [COMPACTED, RETRIEVAL])
@pytest.mark.parametrize("policy", ["fifo", "fifo:protect_recent=0", "priority"])
def test_it_is_what_the_changes_leave_out(trace: str, policy: str, capsys: Out) -> None:
    asked = (trace, "--window", "1k", "--policy", policy)
    wanted = out_by_json(capsys, *asked)
    said = head(capsys, *asked)["left out"]
    assert wanted
    assert re.search(
        rf"at the last step, [\d.]+: {len(wanted):,} items?, {sum(wanted.values()):,} tokens?: ", said
    )
    assert said.endswith("(simulated)")


def test_where_all_fits_nothing_is_out(capsys: Out) -> None:
    said = head(capsys, COMPACTED, "--window", "2M", "--policy", "fifo")
    assert said["left out"] == "at the last step, 1.5: nothing (simulated)"


def test_the_record_itself_leaves_nothing_out(capsys: Out) -> None:
    assert "left out" not in head(capsys, COMPACTED)
    assert "left out" not in head(capsys, COMPACTED, "--window", "1k")


def test_compactions_of_the_session_are_undone_and_not_unknown(capsys: Out) -> None:
    assert run(["replay", "--plain", COMPACTED, "--window", "200k", "--policy", "fifo"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "1 recorded compaction undone (1.4)" in said
    assert "what it took is not recorded" not in said
    assert "cost by the recorded bills:" in said
    assert run(["replay", "--plain", COMPACTED]) == 0
    assert "1 compaction (1.4)" in " ".join(capsys.readouterr().out.split())
