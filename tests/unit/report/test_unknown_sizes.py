"""The size of an item that has neither a text nor a count is null in JSON, empty in CSV and `-` in text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from ctxctl.cli.main import run

CAPTURE: Final = str(Path(__file__).parents[3] / "fixtures" / "codex" / "compacted.jsonl")
"""Holds encrypted reasoning: `rs_0050/sealed`."""
ITEM: Final = "rs_0050/sealed"
Out = pytest.CaptureFixture[str]


def printed(capsys: Out, *arguments: str) -> list[str]:
    capsys.readouterr()
    assert run(list(arguments)) in (0, 3)
    return capsys.readouterr().out.splitlines()


def test_a_change_has_no_size_and_adds_nothing(capsys: Out) -> None:
    steps = [
        one for one in map(json.loads, printed(capsys, "replay", CAPTURE, "--json")) if one["type"] == "step"
    ]
    (change,) = [one for step in steps for one in step["changes"] if one["item"] == ITEM]
    assert (change["tokens"], change["in_window"], change["new"]) == (None, 0, 0)
    for step in steps:
        assert sum(one["new"] for one in step["changes"]) == step["ledger"]["new"]
    assert any(one["tokens"] for step in steps for one in step["changes"])


def test_neither_has_its_history(capsys: Out) -> None:
    told = list(map(json.loads, printed(capsys, "log", CAPTURE, ITEM, "--json")))
    assert {one["tokens"] for one in told if one["type"] == "life"} == {None}
    (row,) = [line for line in printed(capsys, "log", CAPTURE, ITEM) if line.lstrip().startswith("+ added")]
    assert row.split()[-1] == "-"


def test_nor_a_row_of_csv(capsys: Out, tmp_path: Path) -> None:
    out = tmp_path / "changes.csv"
    printed(capsys, "export", CAPTURE, "-o", str(out), "--table", "changes")
    head, *rows = [line.split(",") for line in out.read_text("utf-8").splitlines()]
    (row,) = [row for row in rows if ITEM in row and "added" in row]
    assert (row[head.index("tokens")], row[head.index("new")]) == ("", "0")
