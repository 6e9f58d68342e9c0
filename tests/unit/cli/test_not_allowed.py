"""What may not be read in a directory is named: nothing is denied of what nobody looked at."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ctxctl.cli.main import run
from tests.forbidden import forbid

ROOT = Path(__file__).resolve().parents[3]
CAPTURE = ROOT / "fixtures/claude_code/compaction.jsonl"
TRANSCRIPT = ROOT / "fixtures/claude_bodies/transcript.jsonl"
TRACE = ROOT / "tests/golden/traces/window.jsonl"

Out = pytest.CaptureFixture[str]


@pytest.fixture
def several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two captures, one that may not be read, and a directory that may not be listed."""
    folder = tmp_path / "several"
    (folder / "below/secret").mkdir(parents=True)
    shutil.copy(CAPTURE, folder / "a.jsonl")
    shutil.copy(TRANSCRIPT, folder / "b.jsonl")
    shutil.copy(CAPTURE, folder / "shut.jsonl")
    shutil.copy(CAPTURE, folder / "below/secret/c.jsonl")
    forbid(monkeypatch, folder / "shut.jsonl", folder / "below/secret")
    return folder


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["replay", "IN", "--plain"], 0),
        (["replay", "IN", "--json"], 0),
        (["cost", "IN"], 0),
        (["cost", "IN", "--json"], 0),
        (["lint", "IN"], 3),
        (["check", "IN", "--max", "1m"], 3),
        (["find", "IN", "turn:1"], 0),
        (["calibrate", "IN"], 0),
        (["ls", "IN"], 0),
        (["import", "IN", "-o", "OUT"], 0),
        (["validate", "IN"], 1),
        (["fleet", "add", "IN", "--dataset", "OUT"], 0),
    ],
)
def test_what_may_not_be_read_is_named(
    command: list[str], code: int, several: Path, tmp_path: Path, capsys: Out
) -> None:
    names = {"IN": str(several), "OUT": str(tmp_path / "out")}
    for _ in ("read", "kept"):
        (tmp_path / "out").unlink(missing_ok=True) if (tmp_path / "out").is_file() else None
        assert run([names.get(word, word) for word in command]) == code
        said = "".join(capsys.readouterr())
        for lacking in ("shut.jsonl", "below/secret"):
            lines = [line for line in said.splitlines() if lacking in line and "Permission denied" in line]
            assert len(lines) == 1, said


@pytest.mark.parametrize("command", ["replay --plain", "lint", "cost", "validate", "export -q -o page.html"])
def test_a_directory_that_may_not_be_listed_is_not_an_empty_one(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shut").mkdir()
    forbid(monkeypatch, Path("shut"))
    verb, *options = command.split()
    assert run([verb, "shut", *options]) == 3
    err = capsys.readouterr().err
    assert err.count("\n") == 1, err
    assert "cannot list" in err
    assert "shut: Permission denied" in err


def test_one_place_that_may_not_be_listed_does_not_stop_the_others(
    several: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    shut = tmp_path / "shut"
    shut.mkdir()
    forbid(monkeypatch, shut)
    assert run(["fleet", "add", str(shut), str(several), "--dataset", str(tmp_path / "set")]) == 0
    out, err = capsys.readouterr()
    assert "2 captures read" in out + err
    assert f"{shut}: Permission denied" in err


def test_a_trace_alone_in_its_directory_says_what_of_that_was_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    folder = tmp_path / "runs"
    (folder / "secret").mkdir(parents=True)
    shutil.copy(TRACE, folder)
    forbid(monkeypatch, folder / "secret")
    assert run(["replay", str(folder), "--plain"]) == 0
    assert "not-readable: secret: Permission denied" in capsys.readouterr().err


def test_where_nothing_is_known_what_was_not_read_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    folder = tmp_path / "runs"
    (folder / "secret").mkdir(parents=True)
    (folder / "notes.txt").write_text("milk\n")
    forbid(monkeypatch, folder / "secret")
    assert run(["replay", str(folder), "--plain"]) == 3
    said = capsys.readouterr().err
    assert "none of its 1 file is a trace or a known capture" in said
    assert "as far as it can be read (secret: Permission denied)" in said


def test_a_watch_that_finds_nothing_says_what_it_could_not_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    folder = tmp_path / "runs"
    (folder / "secret").mkdir(parents=True)
    forbid(monkeypatch, folder / "secret")
    assert run(["watch", str(folder), "--plain", "--idle", "0.1"]) == 3
    assert f"as far as it can be read ({folder}/secret: Permission denied)" in capsys.readouterr().err


def test_of_more_files_than_are_looked_at_the_number_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    from ctxctl.ingest import folder as folders

    monkeypatch.setattr(folders.Folder.__init__, "__defaults__", (2,))
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        shutil.copy(CAPTURE, tmp_path / name / "run.jsonl")
        shutil.copy(CAPTURE, tmp_path / name / "other.jsonl")
    run(["replay", str(tmp_path), "--plain"])
    said = capsys.readouterr().err
    assert "too-many-files: it holds more files than are looked at: 2 of them are" in said
