"""Captures as they lie on Windows: its line ends, and its paths."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers import registry
from ctxctl.trace.source import Source, open_source
from tests.formats.damage import captures, imported


def is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data


def told(event: dict[str, Any]) -> dict[str, Any]:
    """An event without what counts the bytes of the capture."""
    event = json.loads(json.dumps(event))
    understood = event["data"].get("understood")
    if understood is not None:
        understood.update(bytes=0, looked_at=0)
    return event


TEXTS = [pytest.param(path, id=name) for name, path in captures() if is_text(path.read_bytes())]


@pytest.mark.parametrize("path", TEXTS)
def test_line_ends_of_windows_change_nothing(path: Path) -> None:
    with open_source(path) as source:
        importer = registry.detect(source)
        data = source.read(0, source.size)
    if importer is None:
        return
    changed = data.replace(b"\n", b"\r\n")
    with Source.from_bytes("capture", changed) as source:
        assert registry.detect(source) is importer
    plain, windows = imported(importer, data), imported(importer, changed)
    assert [told(event) for event in windows.events] == [told(event) for event in plain.events]
    said = [(problem.slug, problem.line) for problem in plain.problems]
    assert [(problem.slug, problem.line) for problem in windows.problems] == said


def test_a_native_trace_with_line_ends_of_windows_is_sound(tmp_path: Path, capsys: Any) -> None:
    from ctxctl.cli.main import run

    data = (Path(__file__).parents[1] / "golden" / "traces" / "window.jsonl").read_bytes()
    rows = []
    for name, one in (("plain", data), ("windows", data.replace(b"\n", b"\r\n"))):
        path = tmp_path / name / "run.jsonl"
        path.parent.mkdir()
        path.write_bytes(one)
        assert run(["replay", "--json", str(path)]) == 0
        rows.append(capsys.readouterr().out)
        assert run(["validate", str(path)]) == 0
        capsys.readouterr()
    assert rows[0] == rows[1]


def test_paths_of_windows_are_read_as_what_they_are(tmp_path: Path, capsys: Any) -> None:
    """Drives, backslashes and shares: texts, never places that are looked for here."""
    from ctxctl.cli.main import run

    fixture = Path(__file__).parents[2] / "fixtures" / "claude_code" / "session.jsonl"
    lines = []
    for line in fixture.read_text().splitlines():
        record = json.loads(line)
        if "cwd" in record:
            record["cwd"] = "C:\\Users\\ada\\proj ects\\tides"
        for block in blocks(record):
            if isinstance(block.get("input"), dict) and "file_path" in block["input"]:
                block["input"]["file_path"] = "\\\\server\\share\\..\\C:\\notes.txt"
        lines.append(json.dumps(record))
    path = tmp_path / "session.jsonl"
    path.write_bytes("\r\n".join(lines).encode() + b"\r\n")
    for command in ("replay", "lint", "cost", "compactions"):
        assert run([command, str(path)]) in (0, 1), command
        assert "bug in" not in capsys.readouterr().err
    assert run(["export", str(path), "-o", str(tmp_path / "out.html")]) == 0
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out.html", "session.jsonl"]


def blocks(record: dict[str, Any]) -> list[dict[str, Any]]:
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
