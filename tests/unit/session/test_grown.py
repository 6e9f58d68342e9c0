"""A log that has grown: the next read goes on where the last one ended, and answers as a first one does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxctl.session import Inspector, grown_replay, import_cache, kept_replays
from ctxctl.trace import inputs
from tests.unit.session.test_kept import answers, without_cache

ROOT = Path(__file__).parents[3]
TRACES = sorted((ROOT / "traces").glob("*.jsonl"))
LOGS = sorted((ROOT / "fixtures" / "claude_code").glob("*.jsonl")) + sorted(
    (ROOT / "fixtures" / "codex").glob("*.jsonl")
)


@pytest.fixture(autouse=True)
def _everything_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small, however young, and however much has come."""
    monkeypatch.setattr(import_cache, "LEAST", 0)
    monkeypatch.setattr(kept_replays, "LEAST", 0)
    monkeypatch.setattr(inputs, "YOUNG", -1e9)
    monkeypatch.setattr(grown_replay, "MOST", 1.0)
    monkeypatch.setattr(grown_replay, "AGAIN", 0.0)


@pytest.fixture
def grown(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What came of each try to go on with a replay."""
    came: list[bool] = []
    bring_up = grown_replay.GrownReplay.bring_up

    def tried(self: Any, inspector: Inspector) -> bool:
        came.append(bring_up(self, inspector))
        return came[-1]

    monkeypatch.setattr(grown_replay.GrownReplay, "bring_up", tried)
    return came


def cuts(data: bytes, count: int = 6) -> list[int]:
    """Some places in a file at which a line ends, from the third line on."""
    ends = [at + 1 for at, byte in enumerate(data) if byte == 10][2:-1]
    return ends[:: max(1, len(ends) // count)]


@pytest.mark.parametrize("path", [*TRACES, *LOGS], ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_log_cut_anywhere_and_grown_answers_as_one_read_at_once(
    path: Path, tmp_path: Path, grown: list[bool]
) -> None:
    data = path.read_bytes()
    log = tmp_path / path.name
    log.write_bytes(data)
    expected = without_cache(log)
    for cut in cuts(data):
        log.unlink()
        log.write_bytes(data[:cut])
        try:
            answers(log)
        except Exception:
            continue
        with log.open("ab") as file:
            file.write(data[cut:])
        assert answers(log) == expected, cut
    print(path.name, grown)
