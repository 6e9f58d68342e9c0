"""Directories whose files have odd names: not UTF-8, with line ends, with what steers a terminal."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from ctxctl.cli.main import run
from ctxctl.fleet.asking import Asker

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
NAMES = (
    b"bad\xff\xfe.jsonl",
    b"new\nline.jsonl",
    b"esc\x1b[31m.jsonl",
    "rtl\u202e.jsonl".encode(),
    b"-dash.jsonl",
    b" @1.jsonl",
)
pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="names of files are UTF-8 there")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The same session by each name, and one in a directory with such a name."""
    place = tmp_path / "sessions"
    inner = os.fsencode(place) + b"/dir\xff\n"
    os.makedirs(inner)
    for name in (*NAMES, b"dir\xff\n/inner.jsonl"):
        shutil.copy(FIXTURES / "claude_code" / "session.jsonl", os.fsencode(place) + b"/" + name)
    return place


def test_captures_are_found_by_whatever_name(folder: Path) -> None:
    found = {os.fsencode(one.name) for one in Asker(str(folder), None).captures(None, "")}
    assert found >= set(NAMES)


@pytest.mark.parametrize(
    "words",
    [
        ["cost"],
        ["cost", "--json"],
        ["find", "the"],
        ["watch", "--json", "--idle", "0"],
        ["ls"],
        ["ls", "--json"],
        ["lint"],
        ["lint", "--json"],
        ["lint", "--format", "sarif"],
        ["check", "--max", "80%"],
        ["check", "--json", "--max", "80%"],
    ],
)
def test_commands_take_them(
    words: list[str], folder: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXCTL_CACHE", "off")
    code = run([words[0], str(folder), *words[1:]])
    told = b"".join(capfdbinary.readouterr())
    assert code in (0, 1), told
    assert b"bug in ctxctl" not in told
    told.decode()
    assert not {sign for sign in told if sign < 32} - {9, 10}
