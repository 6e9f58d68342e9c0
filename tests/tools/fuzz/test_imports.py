"""What an import writes is valid, and replays as its capture does, however the capture is damaged."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tools.fuzz import seeds
from tools.fuzz.laws import faults
from tools.fuzz.mutations import mutated

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


_SESSION = re.compile(
    rb'(?<=")(?:[\w.-]*[._-])?(?:session|conversation|thread)[._ -]?(?:id|Id|ID|uuid|key)(?=\\*"\s*[:,])'
)
_WAYS: dict[str, Callable[[int, int], bool]] = {
    "first half": lambda n, count: n < count / 2,
    "last half": lambda n, count: n >= count / 2,
    "every other": lambda n, count: bool(n % 2),
}
"""By name: which of a capture's session ids are lost."""


def _without_ids(data: bytes, lost: Callable[[int, int], bool]) -> bytes:
    """The capture in which some session ids have another name, as long as it was."""
    found = list(_SESSION.finditer(data))
    made = bytearray(data)
    for n, match in enumerate(found):
        if lost(n, len(found)):
            made[match.start() : match.end()] = b"x" * len(match.group())
    return bytes(made)


@pytest.mark.parametrize("way", _WAYS)
def test_imports_of_captures_that_lost_session_ids_are_valid_and_replay_alike(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXCTL_CACHE", "off")
    tried = 0
    for seed in CAPTURES:
        data = seed.read()
        damaged = _without_ids(data, _WAYS[way])
        if damaged == data or data.startswith((b"SQLite", b"PK")):
            continue
        path = tmp_path / f"capture{seed.path.suffix}"
        path.write_bytes(damaged)
        assert not faults(path, tmp_path / "trace.jsonl", str(seed.format())), seed.name
        tried += 1
    assert tried > 50
