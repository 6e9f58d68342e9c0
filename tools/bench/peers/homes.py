"""Captures laid out as Claude Code leaves them, for tools that look there."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

_SESSION = re.compile(rb'"sessionId":"([^"]+)"')
_OUTPUT = re.compile(rb'"output_tokens":(\d+)')
_PROJECT = "-home-dev-shop"


@dataclass(frozen=True)
class ClaudeHome:
    """A folder with `.claude/projects`."""

    path: Path
    output_tokens: int
    """What the sessions bill as output, all together: whoever has read them can say it."""
    first: Path
    """The first session."""

    @property
    def projects(self) -> Path:
        """Where the sessions are, a folder for each project."""
        return self.path / ".claude" / "projects"


def claude_home(path: Path, captures: Path) -> ClaudeHome:
    """Copy a session, or a folder of them, to a home that is made at `path`: each named by its own id."""
    project = path / ".claude" / "projects" / _PROJECT
    project.mkdir(parents=True, exist_ok=True)
    copies, billed = [], 0
    for file in [captures] if captures.is_file() else sorted(captures.glob("*.jsonl")):
        data = file.read_bytes()
        found = _SESSION.search(data)
        if found is None:
            raise ValueError(f"{file.name} names no session")
        copies.append(project / f"{found[1].decode()}.jsonl")
        if not copies[-1].exists():
            shutil.copyfile(file, copies[-1])
        billed += sum(int(number[1]) for number in _OUTPUT.finditer(data))
    return ClaudeHome(path, billed, copies[0])
