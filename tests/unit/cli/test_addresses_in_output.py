"""An address that a report prints can be pasted behind another command, wherever the trace lies."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from ctxctl.cli.main import run

ROOT = Path(__file__).parents[3]
Said = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("find", ["find", "{}", "turn == 3"]),
        ("find of a directory", ["find", "captures of mine", "turn > 0"]),
        ("diff", ["diff", "{}@3"]),
        ("blame", ["blame", "{}@3"]),
        ("bisect", ["bisect", "{}", "turn > 2"]),
        ("bisect of two", ["bisect", "{}", "notes.jsonl"]),
        ("lint", ["lint", "notes of mine/notes.jsonl"]),
    ],
)
def test_what_is_printed_is_taken(
    name: str, arguments: list[str], tmp_path: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("it's a run", "notes of mine", "captures of mine"):
        Path(folder).mkdir()
    trace = Path("it's a run", "coding agent.jsonl")
    shutil.copy(ROOT / "traces" / "coding-agent.jsonl", trace)
    shutil.copy(ROOT / "traces" / "notes-assistant.jsonl", "notes.jsonl")
    shutil.copy(ROOT / "traces" / "notes-assistant.jsonl", Path("notes of mine", "notes.jsonl"))
    for number in (1, 2):
        shutil.copy(
            ROOT / "fixtures" / "codex" / "compacted.jsonl", Path("captures of mine", f"{number}.jsonl")
        )
    assert run([argument.replace("{}", str(trace)) for argument in arguments]) in (0, 1)
    said = capsys.readouterr().out
    found = re.findall(r"""'[^'@]+(?:'"'"'[^'@]*)*@\S+'|\bnotes\.jsonl@\S+""", said)
    assert found, said
    for address in dict.fromkeys(found):
        (word,) = shlex.split(address)
        assert run(["show", word.rstrip(",")]) == 0, address
