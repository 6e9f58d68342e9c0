"""Reads back what a recorder wrote, and holds it against the schemas and the replay's own arithmetic."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from ctxctl.trace.validate import validate_event
from tests.acceptance import runs

ROOT = Path(__file__).resolve().parents[3]
SECRET = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"


def events(path: Path) -> list[dict[str, Any]]:
    """Every line, each valid by the schemas; ids are unique."""
    found = []
    for line in path.read_bytes().split(b"\n"):
        if line:
            event = json.loads(line)
            assert validate_event(event) == [], line
            found.append(event)
    assert max(Counter(event["event_id"] for event in found).values(), default=1) == 1
    return found


def data(path: Path, event_type: str) -> list[dict[str, Any]]:
    """The records of the events of one type."""
    return [event["data"] for event in events(path) if event["event_type"] == event_type]


def types(path: Path) -> list[str]:
    """Event types in order, less what they all begin with."""
    return [event["event_type"].removeprefix("context.") for event in events(path)]


def ctxctl(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line, in a process of its own."""
    done = runs.ctxctl(*arguments, mannered=False)
    return subprocess.CompletedProcess(arguments, done.code, done.out, done.err)


def replayed(path: Path, *more: str) -> list[dict[str, Any]]:
    """The steps that `ctxctl replay --json` shows, without any problem and with a ledger that balances."""
    done = ctxctl("replay", "--json", "--all", *more, str(path))
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    problems = [row for row in rows if row["type"] == "problem"]
    assert problems == [], problems
    steps = [row for row in rows if row["type"] == "step"]
    before: dict[str, int] = {}
    for step in steps:
        ledger = step["ledger"]
        thread = f"{step['session']}/{step['thread']}"
        assert ledger["window_before"] == before.get(thread, 0)
        assert ledger["window_after"] == ledger["window_before"] + ledger["new"] - ledger["freed"]
        before[thread] = ledger["window_after"]
    return steps


def child(code: str, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program that records."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, **options)
