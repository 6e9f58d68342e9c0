"""Whole outputs, byte for byte.  ``make goldens`` accepts the present ones; read the difference before."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ctxctl.cli.main import BUG, run

HERE = Path(__file__).parent
EXPECTED = HERE / "expected"
ACTUAL = HERE.parent / "actual"

CASES: dict[str, list[str]] = {
    "replay-window": ["replay", "window.jsonl"],
    "replay-window-json": ["replay", "window.jsonl", "--json"],
    "replay-window-all": ["replay", "window.jsonl", "--all"],
    "replay-window-all-json": ["replay", "window.jsonl", "--all", "--json"],
    "replay-window-turn": ["replay", "window.jsonl", "--turn", "-1"],
    "replay-window-color": ["replay", "window.jsonl", "--color", "always", "--turn", "2"],
    "replay-append": ["replay", "append.jsonl"],
    "replay-append-json": ["replay", "append.jsonl", "--json"],
    "replay-append-sanqian": ["replay", "append.jsonl", "--policy", "sanqian"],
    "replay-supposed": ["replay", "window.jsonl", "--window", "1k", "--reserve", "900"],
    "replay-supposed-json": ["replay", "window.jsonl", "--max-input", "60", "--json"],
    "replay-supposed-wrong": ["replay", "window.jsonl", "--reserve", "-1"],
    "replay-threads": ["replay", "threads.jsonl"],
    "replay-threads-one": ["replay", "threads.jsonl", "--thread", "explorer", "--json"],
    "replay-hostile": ["replay", "hostile.jsonl"],
    "replay-hostile-json": ["replay", "hostile.jsonl", "--json"],
    "replay-damaged": ["replay", "damaged.jsonl"],
    "replay-damaged-json": ["replay", "damaged.jsonl", "--json", "--strict"],
    "show-window": ["show", "window.jsonl@2.1"],
    "show-window-json": ["show", "window.jsonl@2.1", "--json"],
    "show-stage": ["show", "window.jsonl@2.1", "--stage", "budget"],
    "show-stage-json": ["show", "window.jsonl@2.1", "--stage", "budget", "--json"],
    "show-text": ["show", "window.jsonl@2.1", "--text"],
    "show-text-json": ["show", "window.jsonl@2.1", "--text", "--json"],
    "show-text-alone": ["show", "window.jsonl@2.1", "--text", "--stage", "assembly"],
    "show-append-last": ["show", "append.jsonl"],
    "show-hostile-text": ["show", "hostile.jsonl", "--text"],
    "diff": ["diff", "window.jsonl@1", "@-1"],
    "diff-json": ["diff", "window.jsonl@1", "@-1", "--json"],
    "diff-stat": ["diff", "window.jsonl@1", "@2.1", "--stat", "--exit-code"],
    "diff-patch": ["diff", "window.jsonl@2.1", "@1", "--patch"],
    "diff-before": ["diff", "threads.jsonl@2"],
    "diff-two-files": ["diff", "window.jsonl@1", "append.jsonl@1", "--stat"],
    "diff-same": ["diff", "window.jsonl@1", "@1", "--exit-code"],
    "diff-hostile": ["diff", "hostile.jsonl@1", "@2"],
    "log": ["log", "append.jsonl", "editor"],
    "log-json": ["log", "append.jsonl", "editor", "--json"],
    "log-title": ["log", "window.jsonl", "opening-hours.md"],
    "log-compacted": ["log", "threads.jsonl", "found"],
    "validate-window": ["validate", "window.jsonl"],
    "validate-window-json": ["validate", "window.jsonl", "--json"],
    "validate-damaged": ["validate", "damaged.jsonl"],
    "formats": ["formats"],
    "formats-json": ["formats", "--json"],
}


@pytest.mark.parametrize("name", CASES)
def test_output(
    name: str, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.chdir(HERE / "traces")
    monkeypatch.setenv("COLUMNS", "80")
    arguments = CASES[name]
    code = run(arguments)
    out, err = capsysbinary.readouterr()
    assert code != BUG, err.decode()
    command = " ".join(arguments)
    got = f"$ ctxctl {command}\n".encode() + out
    if err:
        got += b"--- standard error\n" + err
    got += f"--- exit code {code:d}\n".encode()
    expected = EXPECTED / f"{name}.txt"
    if os.environ.get("CTXCTL_UPDATE_GOLDENS"):
        expected.write_bytes(got)
    wanted = expected.read_bytes() if expected.exists() else b""
    if got != wanted:
        ACTUAL.mkdir(exist_ok=True)
        (ACTUAL / expected.name).write_bytes(got)
        sys.stderr.write(f"the actual output is in {ACTUAL.name}/{expected.name}\n")
    assert got.decode() == wanted.decode()


def test_every_expected_output_belongs_to_a_case() -> None:
    assert {path.stem for path in EXPECTED.glob("*.txt")} == set(CASES)
