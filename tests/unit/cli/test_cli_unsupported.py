"""A system that ctxctl does not run on: one line says so, before anything is read or recorded."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# As if for Windows: `os` says so, and what only POSIX has cannot be imported.
WINDOWS = """
import os, sys
from pathlib import Path
os.name = "nt"
sys.modules["fcntl"] = None
sys.argv[0] = "ctxctl"
before = set(sys.modules)
from ctxctl.__main__ import main
code = main()
loaded = {name for name in set(sys.modules) - before if name.startswith("ctxctl.")}
assert loaded == {"ctxctl.__main__"}, loaded
sys.exit(code)
"""


@pytest.mark.parametrize(
    "arguments",
    [(), ("--version",), ("--help",), ("ls",), ("record", "-o", "t.jsonl", "--", "true"), ("replay", "x")],
    ids=" ".join,
)
def test_on_windows_every_command_says_where_ctxctl_runs(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    command = [sys.executable, "-c", WINDOWS, *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr == "ctxctl: error: ctxctl runs on Linux and macOS; on Windows it works under WSL\n"
    assert list(tmp_path.iterdir()) == []


def test_the_readme_names_the_pythons_that_the_package_declares() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {one.rpartition(" :: ")[2] for one in project["classifiers"] if ":: Python :: 3." in one}
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Where it runs")[2]
    assert set(re.findall(r"\b3\.\d+\b", section.partition("\n## ")[0])) == declared
