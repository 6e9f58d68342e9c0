"""The GitHub Action and the pre-commit hook, run as their files say."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from budget_help import HAND

from ctxctl.cli.main import run

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[3]


def checked(folder: Path, plan: str, baseline: str = "") -> subprocess.CompletedProcess[str]:
    """Return what the action's last step does, with the program where its first one puts it."""
    action: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    step = action["runs"]["steps"][-1]
    assert set(step["env"]) == {"PLAN", "BASELINE"}
    assert "${{" not in step["run"]
    program = folder / "tmp" / "ctxctl" / "bin" / "ctxctl"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m ctxctl "$@"\n')
    program.chmod(0o755)
    env = os.environ | {
        "RUNNER_TEMP": str(folder / "tmp"), "PLAN": plan, "BASELINE": baseline,
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"), "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
    )


def test_the_action(tmp_path: Path) -> None:
    (tmp_path / "budget.toml").write_text(HAND.replace("POLICY", "fifo"))
    done = checked(tmp_path, "budget.toml")
    assert (done.returncode, done.stdout, done.stderr) == (0, "check: passed\n", "")
    assert "passed" in (tmp_path / "summary.md").read_text()
    evil = "$(touch owned).toml"
    (tmp_path / evil).write_text(HAND.replace("POLICY", "fifo").replace("= 1000", "= 200"))
    done = checked(tmp_path, evil)
    assert done.returncode == 1
    assert done.stdout.startswith("::error file=$(touch owned).toml,line=1,title=does-not-fit::")
    assert not (tmp_path / "owned").exists()
    assert checked(tmp_path, "budget.toml", "none.json").returncode == 3


def test_the_action_installs_by_hash_and_resolves_nothing() -> None:
    step = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"][0]
    installs = [shlex.split(line) for line in step["run"].splitlines() if "pip install" in line]
    hashed, own = ([word for word in words if word.startswith("-")] for words in installs)
    assert hashed == ["-m", "--quiet", "--require-hashes", "-r"]
    assert installs[0][-1] == "$GITHUB_ACTION_PATH/requirements.txt"
    assert own == ["-m", "--quiet", "--no-deps", "--no-build-isolation"]
    locked = (ROOT / "requirements.txt").read_text()
    for name in ("hatchling", "textual", "tiktoken", "google-re2"):
        assert f"\n{name}==" in locked


def test_the_hook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())[0]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "budget.toml").write_text(HAND.replace("POLICY", "fifo"))
    program, *arguments = [*shlex.split(hook["entry"]), *hook["args"]]
    assert program == "ctxctl"
    assert hook["pass_filenames"] is False
    assert run(arguments) == 0
    assert "check: passed" in capsys.readouterr().out
