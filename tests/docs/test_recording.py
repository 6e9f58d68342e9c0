"""Runs every example of the page on recording, and reads what each has written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ctxctl.trace.validate import validate_event

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "recording.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 5


@pytest.mark.parametrize("number", range(5))
def test_an_example_runs_and_its_trace_is_shown(number: int, tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", EXAMPLES[number]], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    (trace,) = tmp_path.glob("*.jsonl")
    for line in trace.read_bytes().splitlines():
        assert validate_event(json.loads(line)) == []
    command = [sys.executable, "-m", "ctxctl", "replay", "--json", trace.name]
    shown = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert not any(json.loads(line)["type"] == "problem" for line in shown.stdout.splitlines())
