"""Where a session ran: the directory in which it began, and the branch at each time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ctxctl.importers.whereabouts import Whereabouts, whereabouts


def written(path: Path, *lines: Any) -> str:
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return str(path)


def claude(time: str, cwd: str, branch: str | None) -> dict[str, Any]:
    return {"type": "user", "timestamp": time, "cwd": cwd, "gitBranch": branch, "message": {"cwd": "/no"}}


def test_claude_code_says_it_on_each_line(tmp_path: Path) -> None:
    path = written(
        tmp_path / "s.jsonl",
        {"type": "summary", "leafUuid": "x"},
        claude("2026-01-01T10:00:00Z", "/home/p", "main"),
        "not json",
        claude("2026-01-01T11:00:00Z", "/home/p/sub", "main"),
        claude("2026-01-01T12:00:00Z", "/home/p", "fix"),
        claude("2026-01-01T13:00:00Z", "/home/p", None),
    )
    found = whereabouts(path, "claude-code")
    assert found.directory == "/home/p"
    assert [found.branch(f"2026-01-01T{hour}:30:00Z") for hour in ("09", "10", "11", "12", "14")] == [
        "main", "main", "main", "fix", "fix",
    ]  # fmt: skip
    assert found.branch(None) == "main"


def test_codex_says_it_first(tmp_path: Path) -> None:
    first = {
        "timestamp": "2026-01-01T10:00:00Z",
        "type": "session_meta",
        "payload": {"id": "x", "cwd": "/home/q", "git": {"branch": "dev"}},
    }
    path = written(tmp_path / "r.jsonl", first, {"type": "event_msg", "payload": {"cwd": "/other"}})
    assert whereabouts(path, "codex") == Whereabouts("/home/q", (("2026-01-01T10:00:00Z", "dev"),))


def test_what_does_not_say_it_is_not_read(tmp_path: Path) -> None:
    path = written(tmp_path / "s.jsonl", claude("2026-01-01T10:00:00Z", "/home/p", "main"))
    assert whereabouts(path, "har") == Whereabouts()
    assert whereabouts(str(tmp_path), "claude-code") == Whereabouts()
    assert whereabouts(str(tmp_path / "gone"), "claude-code") == Whereabouts()
    assert Whereabouts().branch("2026-01-01T10:00:00Z") is None
