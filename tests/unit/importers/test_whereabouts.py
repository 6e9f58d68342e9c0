"""Where a session ran: the directory in which it began, and the branch at each time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers.registry import by_name, capture_events
from ctxctl.importers.whereabouts import Whereabouts, directory_of, whereabouts
from ctxctl.trace.source import Source, open_source


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


@pytest.mark.parametrize(
    ("lines", "directory"),
    [
        ([{"type": "summary"}, claude("", "/home/p", None), claude("", "/home/q", None)], "/home/p"),
        ([{"type": "session_meta", "payload": {"cwd": "/home/q"}}], "/home/q"),
        ([{"type": "session.start", "data": {"context": {"cwd": "/home/r"}}}], "/home/r"),
        ([{"working_dir": "/home/s", "message_count": 2}], "/home/s"),
        ([{"cwd": "C:\\work"}], "C:\\work"),
        ([{"cwd": "[trimmed]"}, {"cwd": 3}, {"arguments": {"cwd": "/no"}}], None),
        (["no json", {"text": '"cwd": "/no"'}], None),
    ],
)
def test_the_directory_is_told_by_the_first_line_that_has_it(
    tmp_path: Path, lines: list[Any], directory: str | None
) -> None:
    with open_source(written(tmp_path / "s.jsonl", *lines)) as source:
        assert directory_of(source) == directory


def test_an_imported_trace_tells_where_the_session_ran() -> None:
    made = claude("2026-01-01T10:00:00Z", "/home/p", None)
    made |= {"uuid": "u1", "sessionId": "s", "message": {"role": "user", "content": "hello"}}
    importer = by_name("claude-code")
    first, *others = capture_events(
        importer, Source.from_bytes("s.jsonl", json.dumps(made).encode()), [].append
    )
    assert first["metadata"]["ctxctl"]["cwd"] == "/home/p"
    assert not any("cwd" in event.get("metadata", {}).get("ctxctl", {}) for event in others)
