"""The examples of every help: each is run as it stands, on the traces of this repository."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ctxctl.cli.commands import COMMANDS
from ctxctl.cli.examples import EXAMPLES, Example
from ctxctl.cli.main import run
from tests.unit.dataset.dataset_rows import by_chance, dataset
from tests.unit.session.learned_help import DUMP

ROOT = Path(__file__).parents[3]
ALL = [pytest.param(name, one, id=one.line) for name, examples in EXAMPLES.items() for one in examples]
FINDING = ("lint", "budget")
"""Commands whose exit code 1 says that they found something."""


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that the examples name."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "traces" / "coding-agent.jsonl", "run.jsonl")
    other = Path("run.jsonl").read_bytes().replace(b"Write the change log entry", b"Write the release notes")
    Path("other.jsonl").write_bytes(other)
    shutil.copy(ROOT / "traces" / "retrieval-agent.jsonl", "events.jsonl")
    shutil.copy(ROOT / "fixtures" / "codex" / "compacted.jsonl", "rollout.jsonl")
    shutil.copytree(DUMP, "bodies")
    dataset(Path("fleet"), by_chance(1, 20))
    rule = '[[rule]]\nname = "something is read"\nmeasure = "cache-rate"\nat_least = 0.0\ndays = 0\n'
    Path("rules.toml").write_text(rule)
    at_home = Path.home() / ".claude" / "projects" / "shop"
    at_home.mkdir(parents=True)
    shutil.copy(ROOT / "fixtures" / "claude_code" / "session.jsonl", at_home / "1.jsonl")
    Path("own.sql").write_text("SELECT count(*) AS requests FROM requests\n")
    Path("sessions").mkdir()
    for number in (1, 2):
        shutil.copy(ROOT / "fixtures" / "claude_code" / "session.jsonl", Path("sessions", f"{number}.jsonl"))


def by_shell(line: str, folder: Path) -> tuple[int, str]:
    """Run a line with redirections, or with another program, in a shell; what it printed on both streams."""
    programs = folder / "bin"
    programs.mkdir()
    for name, told in (
        ("ctxctl", f'exec {shlex.quote(sys.executable)} -m ctxctl "$@"'),
        ("claude", "exit 0"),
    ):
        (programs / name).write_text(f"#!/bin/sh\n{told}\n")
        (programs / name).chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(("name", "example"), ALL)
def test_it_works(name: str, example: Example, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = set(os.listdir())
    if name == "budget" and "--from" not in example.line:
        assert run(["budget", "plan.toml", "--from", "run.jsonl"]) == 0
        capsys.readouterr()
    if name == "record":
        Path("run.jsonl").unlink()
    words = [os.path.expanduser(word) for word in shlex.split(example.line)]
    assert " ".join(words[1:]).startswith(name)
    if {"<", ">", "--"} & set(words):
        code, said = by_shell(example.line, tmp_path)
    else:
        code = run(words[1:])
        said = "".join(capsys.readouterr())
    assert code in ((0, 1) if name in FINDING else (0,)), said
    made = set(os.listdir()) - before - {"bin", "plan.toml"}
    assert said or made
    for flag in ("-o", "--to", ">"):
        if flag in words:
            assert Path(words[words.index(flag) + 1]).stat().st_size or "claude" in words  # that asks nothing


def test_every_command_has_some() -> None:
    assert list(EXAMPLES) == list(COMMANDS)
    assert all(2 <= len(examples) <= 4 for examples in EXAMPLES.values())


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_shows_them_whole(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert run([*name.split(), "--help"]) == 0
    said = capsys.readouterr().out
    for example in EXAMPLES[name]:
        assert f"{example.line} " in said
