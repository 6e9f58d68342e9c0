"""Shared by the guards: a command run in a clean interpreter, and a trace small enough to count by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.guards import sources

CHILD = Path(__file__).with_name("child.py")


def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Keep syntax trees for as long as guards run one after another."""
    if nextitem is None or not nextitem.path.is_relative_to(CHILD.parent):
        sources.forget()


@dataclass(frozen=True)
class Ran:
    """One finished command."""

    code: int
    out: str
    err: str
    modules: frozenset[str]
    network: list[str]
    patience: int


@pytest.fixture
def ran(tmp_path: Path) -> Callable[..., Ran]:
    """Return a function that runs ``ctxctl ARGUMENTS`` in a new interpreter without a network."""

    def run(*arguments: str, python: str = sys.executable) -> Ran:
        report = tmp_path / "report.json"
        report.unlink(missing_ok=True)
        command = [python, str(CHILD), str(report), *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert report.exists(), done.stderr
        told = json.loads(report.read_text(encoding="utf-8"))
        return Ran(
            done.returncode, done.stdout, done.stderr, frozenset(told["modules"]), told["network"],
            told["patience"],
        )  # fmt: skip

    return run


def _event(number: int, kind: str, data: dict[str, object]) -> str:
    time = f"2026-01-01T00:00:{number:02d}Z"
    return json.dumps(
        {
            "schema_version": "0.1.1",
            "event_id": f"e{number}",
            "event_type": kind,
            "source": "guard",
            "time": time,
            "session_id": "s",
            "turn_id": "1",
            "step_id": "1",
            "data": {"schema_version": "0.1.1", "created_at": time, **data},
        }
    )


@pytest.fixture
def small_trace(tmp_path: Path) -> Path:
    """Return a native trace of one step whose window is the two tokens ``hello`` and `` world``."""
    item = {
        "item_id": "greeting",
        "context_kind": "user_input",
        "content_mode": "inline",
        "content": "hello world",
    }
    blocks = [{"block_id": "b1", "item_refs": ["greeting"]}]
    metadata = {"ctxctl": {"model": "gpt-4o"}}
    assembly = {"assembly_id": "a1", "target": "model", "ordered_blocks": blocks, "metadata": metadata}
    injection = {"injection_id": "i1", "assembly_ref": "a1", "target": "model"}
    path = tmp_path / "small.jsonl"
    lines = [
        _event(1, "context.item.added", {**item, "visibility": ["model"], "source_refs": []}),
        _event(2, "context.assembly.created", assembly),
        _event(3, "context.injection.applied", injection),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
