"""`ctxctl cache`: what is kept, and what becomes of it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from ctxctl.cli.main import run
from ctxctl.session import import_cache, kept_replays
from ctxctl.trace import inputs

CAPTURE = Path(__file__).parents[3] / "fixtures" / "claude_code" / "session.jsonl"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A cache directory that holds two imports, the answers of a directory, and a file of somebody else."""
    monkeypatch.setattr(import_cache, "LEAST", 0)
    monkeypatch.setattr(kept_replays, "LEAST", 0)
    monkeypatch.setattr(inputs, "YOUNG", -1e9)
    path = tmp_path / "one.jsonl"
    shutil.copy(CAPTURE, path)
    assert run(["replay", "--json", str(path)]) == 0
    assert run(["cost", str(tmp_path)]) == 0
    capsys.readouterr()
    cache = Path(os.environ["CTXCTL_CACHE_DIR"])
    (cache / "captures" / "mine").mkdir()
    (cache / "captures" / "mine" / "notes.txt").write_text("not ctxctl's")
    return cache


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, dict[str, object]]:
    assert run(["cache", *arguments, "--json"]) == 0
    lines = map(json.loads, capsys.readouterr().out.splitlines())
    return {line.get("kind", line["type"]): line for line in lines}


def test_it_shows_and_clears(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = told(capsys)
    entries = [path for path in (kept / "captures").iterdir() if path.name != "mine"]
    size = sum(path.stat().st_size for entry in entries for path in entry.iterdir())
    assert shown["imports"] == {"type": "kept", "kind": "imports", "entries": 2, "bytes": size}
    assert shown["cache"]["directory"] == str(kept)
    assert shown["cache"]["bytes"] == sum(
        shown[kind]["bytes"] for kind in ("imports", "indexes", "answers", "counts")
    )
    assert shown["answers"]["bytes"]
    cleared = told(capsys, "clear")
    assert (cleared["cache"]["bytes"], cleared["cache"]["freed"]) == (0, shown["cache"]["bytes"])
    assert [entry for entry in entries if entry.exists()] == []
    assert (kept / "captures" / "mine" / "notes.txt").read_text() == "not ctxctl's"


def test_prune_goes_by_the_size_that_is_named_or_set(
    kept: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert told(capsys, "prune")["cache"]["freed"] == 0
    config = tmp_path / "ctxctl.toml"
    config.write_text('[cache]\nmax = "1K"\n')
    monkeypatch.setenv("CTXCTL_CONFIG", str(config))
    assert told(capsys)["cache"]["max"] == 1024
    assert told(capsys, "prune", "--max", "100M")["imports"]["entries"] == 2
    pruned = told(capsys, "prune")
    assert pruned["imports"]["entries"] == 0
    assert pruned["cache"]["freed"] > 1024


def test_in_words(kept: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(["cache"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == str(kept)
    assert lines[1].split()[:2] == ["imports", "2"]
    assert lines[-1].endswith("of at most 2 GiB")
    monkeypatch.setenv("CTXCTL_CACHE", "off")
    assert run(["cache"]) == 0
    assert capsys.readouterr().out == "nothing is kept: CTXCTL_CACHE is off\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["tidy"], "no action is called 'tidy'"),
        (["prune", "--max", "lots"], "--max lots: not a size"),
    ],
)
def test_what_it_cannot_do(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["cache", *arguments]) == 2
    assert says in capsys.readouterr().err
