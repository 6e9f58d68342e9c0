"""What an import writes is valid, and replays as its capture does, however the capture is damaged."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.fuzz import seeds
from tests.fuzz.laws import faults
from tests.fuzz.mutations import mutated

CAPTURES = [seed for seed in seeds.fixtures() if seed.format() is not None]
DONORS = [seed.read() for seed in CAPTURES if seed.path.stat().st_size < 30_000]


def _groups() -> list[object]:
    by_format: dict[str, list[seeds.Seed]] = {}
    for seed in CAPTURES:
        by_format.setdefault(str(seed.format()), []).append(seed)
    return [pytest.param(found, id=name) for name, found in sorted(by_format.items())]


@pytest.mark.parametrize("captures", _groups())
def test_imports_of_damaged_captures_are_valid_and_replay_alike(
    captures: list[seeds.Seed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXCTL_CACHE", "off")
    for seed in captures:
        path = tmp_path / f"capture{seed.path.suffix}"
        for name in ("sound", "first"):
            data = seed.read()
            path.write_bytes(
                data if name == "sound" else mutated(data, Random(f"{seed.name} {name}"), DONORS)
            )
            assert not faults(path, tmp_path / "trace.jsonl", str(seed.format())), (seed.name, name)
