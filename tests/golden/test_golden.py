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
    "replay-window": ["replay", "window.jsonl", "--steps"],
    "replay-window-json": ["replay", "window.jsonl", "--json"],
    "replay-window-all": ["replay", "window.jsonl", "--all"],
    "replay-window-all-json": ["replay", "window.jsonl", "--all", "--json"],
    "replay-window-turn": ["replay", "window.jsonl", "--turn", "-1"],
    "replay-window-color": ["replay", "window.jsonl", "--color", "always", "--turn", "2"],
    "replay-append": ["replay", "append.jsonl", "--steps"],
    "replay-append-json": ["replay", "append.jsonl", "--json"],
    "replay-append-sanqian": ["replay", "append.jsonl", "--steps", "--policy", "sanqian"],
    "replay-supposed": ["replay", "window.jsonl", "--steps", "--window", "1k", "--reserve", "900"],
    "replay-supposed-json": ["replay", "window.jsonl", "--max-input", "60", "--json"],
    "replay-supposed-wrong": ["replay", "window.jsonl", "--reserve", "-1"],
    "replay-dropped": [
        "replay",
        "window.jsonl",
        "--steps",
        "--drop",
        "retrieval_result",
        "--set",
        "sys=other.txt",
    ],
    "replay-dropped-json": [
        "replay",
        "window.jsonl",
        "--drop",
        "retrieval_result",
        "--set",
        "sys=other.txt",
        "--json",
    ],
    "replay-dropped-wrong": ["replay", "window.jsonl", "--drop", "kind:tool_results"],
    "replay-set-wrong": ["replay", "window.jsonl", "--set", "sistem=other.txt"],
    "compare": ["replay", "window.jsonl", "--compare", "--drop", "retrieval_result", "--window", "30"],
    "compare-wide": [
        "replay",
        "threads.jsonl",
        "--compare",
        "--policy",
        "fifo",
        "--window",
        "60",
        "--encoding",
        "cl100k_base",
    ],
    "compare-nothing": ["replay", "window.jsonl", "--compare"],
    "compare-json": ["replay", "threads.jsonl", "--compare", "--policy", "fifo", "--window", "60", "--json"],
    "where": ["replay", "window.jsonl", "--where", "new > 15"],
    "where-json": ["replay", "window.jsonl", "--where", "is updated", "--json"],
    "replay-threads": ["replay", "threads.jsonl", "--steps"],
    "replay-threads-one": ["replay", "threads.jsonl", "--thread", "explorer", "--json"],
    "replay-hostile": ["replay", "hostile.jsonl", "--steps", "--ids"],
    "replay-hostile-json": ["replay", "hostile.jsonl", "--json"],
    "replay-damaged": ["replay", "damaged.jsonl", "--steps"],
    "replay-damaged-json": ["replay", "damaged.jsonl", "--json", "--strict"],
    "turns-window": ["replay", "window.jsonl"],
    "turns-threads-wide": ["replay", "threads.jsonl"],
    "turns-append-thread": ["replay", "append.jsonl", "--thread", "main"],
    "turns-supposed": ["replay", "window.jsonl", "--window", "1k", "--reserve", "900"],
    "turns-hostile": ["replay", "hostile.jsonl"],
    "turns-damaged": ["replay", "damaged.jsonl"],
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
    "bisect": ["bisect", "append.jsonl", "-status:added"],
    "bisect-json": ["bisect", "window.jsonl", "has:=doc", "--json"],
    "bisect-two": ["bisect", "window.jsonl", "append.jsonl"],
    "bisect-two-json": ["bisect", "window.jsonl", "threads.jsonl", "window > 20", "--json"],
    "blame": ["blame", "window.jsonl@2.1"],
    "blame-append": ["blame", "append.jsonl", "--stale"],
    "blame-hostile": ["blame", "hostile.jsonl"],
    "blame-json": ["blame", "append.jsonl", "--json"],
    "blame-stat": ["blame", "append.jsonl", "--stat"],
    "diff-sessions": ["diff", "window.jsonl", "threads.jsonl", "--sessions", "--exit-code"],
    "diff-sessions-json": ["diff", "window.jsonl", "threads.jsonl", "--sessions", "--json"],
    "diff-sessions-same": ["diff", "window.jsonl", "window.jsonl", "--sessions", "--exit-code"],
    "find": ["find", "window.jsonl", "append.jsonl", "status:updated or has:=sum"],
    "find-hostile": ["find", "hostile.jsonl", "new > 0"],
    "find-json": ["find", "window.jsonl", "is updated", "--json"],
    "find-mistake": ["find", "window.jsonl", "turn > 1 windw > 5"],
    "find-none": ["find", "window.jsonl", "-text:open", "--count"],
    "log": ["log", "append.jsonl", "editor"],
    "log-json": ["log", "append.jsonl", "editor", "--json"],
    "log-title": ["log", "window.jsonl", "opening-hours.md"],
    "log-compacted": ["log", "threads.jsonl", "found"],
    "why-present": ["why", "window.jsonl@2.1", "doc"],
    "why-present-json": ["why", "window.jsonl@2.1", "doc", "--json"],
    "why-omitted": ["why", "window.jsonl@2", "prices"],
    "why-stale": ["why", "append.jsonl@-1", "editor"],
    "why-compacted": ["why", "threads.jsonl@-1", "found"],
    "why-compacted-json": ["why", "threads.jsonl@-1", "found", "--json"],
    "why-unknown": ["why", "window.jsonl@1", "zebras"],
    "why-hostile": ["why", "hostile.jsonl@-1", "evil\u009b31m", "--no-what-if", "--ids"],
    "validate-window": ["validate", "window.jsonl"],
    "validate-window-json": ["validate", "window.jsonl", "--json"],
    "validate-damaged": ["validate", "damaged.jsonl"],
    "check": [
        "check",
        "window.jsonl",
        "--max",
        "80%",
        "--stable-prefix",
        "--no-misses",
        "--never",
        "has:=doc",
    ],
    "check-json": ["check", "window.jsonl", "--max", "60", "--always", "sent<50", "--json"],
    "check-several": [
        "check",
        "window.jsonl",
        "append.jsonl",
        "--max-tool-result",
        "5",
        "--no-compaction",
        "--all",
    ],
    "check-hostile": ["check", "hostile.jsonl", "--never", "new > 0", "--github"],
    "check-nothing": ["check", "window.jsonl"],
    "formats": ["formats"],
    "formats-json": ["formats", "--json"],
}


@pytest.mark.parametrize("name", CASES)
def test_output(
    name: str, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.chdir(HERE / "traces")
    monkeypatch.setenv("COLUMNS", "120" if name.endswith("-wide") else "80")
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
        where = f"tests/{ACTUAL.name}/{expected.name}"
        sys.stderr.write(f"the output is in {where}: read it, and if it is meant: make goldens\n")
    assert got.decode() == wanted.decode()


def test_every_expected_output_belongs_to_a_case() -> None:
    assert {path.stem for path in EXPECTED.glob("*.txt")} == set(CASES)
