"""What is installed is looked at: every lock against advisories, and every platform for wheels."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts import audit

ROOT = Path(__file__).resolve().parents[2]
NAMES = [
    "requirements.txt",
    "requirements-dev.txt",
    "requirements-site.txt",
    "scripts/requirements-audit.txt",
]


def test_every_lock_of_the_repository_is_audited() -> None:
    written = {str(p.relative_to(ROOT)) for p in ROOT.glob("tests/*/requirements-*.txt")} | {*NAMES}
    assert len(written) > 8
    assert set(audit.locks()) == written
    assert audit.locks()[0] == "requirements.txt"


def test_a_lock_is_found_wherever_it_is_and_environments_hold_none(tmp_path: Path) -> None:
    lock = "a==1 \\\n    --hash=sha256:00\n"
    for name in ("new/locked.txt", ".venv/lib/locked.txt", "build/locked.txt", "new/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a word" if "notes" in name else lock)
    assert audit.locks(tmp_path) == ["new/locked.txt"]


def one(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "version": "1", "vulns": [], **more}


SKIPPED = [{"name": "a", "skip_reason": "not found"}, {"name": "b", "skip_reason": "not found"}]
FAULTY = [one("a", vulns=[{"id": "X-1", "fix_versions": ["2"]}]), one("b")]


@pytest.mark.parametrize(
    ("lock", "found", "alone", "in_ci", "says"),
    [
        ("requirements.txt", [one("a"), one("b")], 0, 0, "nothing is known against 2 packages"),
        ("requirements.txt", FAULTY, 1, 1, "a 1: X-1 (mended in: 2)\n"),
        ("tests/x/requirements-y.txt", FAULTY, 0, 0, "only tests install"),
        ("requirements.txt", SKIPPED, 0, 1, "NOT LOOKED UP"),
        ("tests/x/requirements-y.txt", SKIPPED, 0, 1, "NOT LOOKED UP"),
        ("requirements.txt", [one("a"), SKIPPED[1]], 1, 1, "not looked up: b"),
    ],
)
def test_what_an_audit_finds_is_a_failure(
    capsys: pytest.CaptureFixture[str],
    lock: str,
    found: list[dict[str, Any]],
    alone: int,
    in_ci: int,
    says: str,
) -> None:
    assert audit.told(lock, {"dependencies": found}, needed=False) == alone
    assert audit.told(lock, {"dependencies": found}, needed=True) == in_ci
    assert says in capsys.readouterr().out


@pytest.mark.parametrize(("ci", "code"), [("", 0), ("true", 1)])
def test_an_audit_that_could_not_be_made_fails_in_ci(tmp_path: Path, ci: str, code: int) -> None:
    tool = tmp_path / "pip-audit"
    tool.write_text(f"#!/bin/sh\necho '{json.dumps({'dependencies': SKIPPED})}'\n")
    tool.chmod(0o755)
    command = [
        sys.executable,
        str(ROOT / "scripts" / "audit.py"),
        str(tmp_path),
        str(tmp_path / "licences.md"),
    ]
    done = subprocess.run(command, env={**os.environ, "CI": ci}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.count("NOT LOOKED UP")) == (code, len(audit.locks())), done.stderr
