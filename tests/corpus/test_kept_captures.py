"""Real captures: what a command prints is the same without a cache, with one that it fills, and from it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ctxctl.cli.main import run
from ctxctl.session import import_cache, kept_replays
from ctxctl.trace import inputs

ONE_IN = int(os.environ.get("KEPT_ONE_IN", 40))
"""Of the files of the corpus; `python -m pytest` with KEPT_ONE_IN=1 takes all."""

COMMANDS = (
    ("replay", "--json", "{}"),
    ("show", "--json", "--text", "{}@-1"),
    ("cost", "--json", "{}"),
    ("diff", "--json", "{}@-1"),
    ("find", "--json", "{}", "tokens>100"),
    ("blame", "--json", "--stat", "{}@-1"),
    ("lint", "--json", "{}"),
    ("replay", "--plain", "--model", "gpt-4o", "{}"),
)


def captures() -> Iterator[Path]:
    data = Path(os.environ["CTXCTL_CORPUS"]) / "data"
    files = sorted(path for path in data.rglob("*") if path.is_file() and path.stat().st_size < 3_000_000)
    files += sorted(
        {path.parent for path in files if "claude-code" not in path.parts and "codex" not in path.parts}
    )
    return iter(files[::ONE_IN])


def printed(arguments: list[str], capture: pytest.CaptureFixture[bytes]) -> tuple[int, bytes, bytes]:
    code = run(arguments)
    told = capture.readouterr()
    return code, told.out, told.err


def differences(path: Path, asked: Callable[[list[str]], tuple[int, bytes, bytes]]) -> tuple[list[str], bool]:
    """Commands that printed something else, and whether anything was kept of the capture."""
    found = []
    names = [[word.replace("{}", str(path)) for word in command] for command in COMMANDS]
    os.environ["CTXCTL_CACHE"] = "off"
    try:
        expected = [asked(name) for name in names]
    finally:
        del os.environ["CTXCTL_CACHE"]
    if expected[0][0] not in (0, 1):
        return [], False
    for turn in ("fills", "reads"):
        for name, was in zip(names, expected, strict=True):
            if asked(name) != was:
                found.append(f"{turn}: {' '.join(name)}")
    kept = Path(os.environ["CTXCTL_CACHE_DIR"])
    return found, any(kept.rglob("*.replay-*"))


@pytest.mark.corpus
def test_nothing_prints_otherwise_with_a_cache(
    corpus: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(import_cache, "LEAST", 0)
    monkeypatch.setattr(kept_replays, "LEAST", 0)
    monkeypatch.setattr(inputs, "YOUNG", -1e9)
    looked = 0
    for number, path in enumerate(captures()):
        monkeypatch.setenv("CTXCTL_CACHE_DIR", str(tmp_path / str(number)))
        found, kept = differences(path, lambda name: printed(name, capfdbinary))
        assert found == []
        looked += kept
    assert looked >= 20
