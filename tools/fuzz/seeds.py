"""What is damaged: the fixtures, the traces, and captures of a corpus where there is one."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from ctxctl.importers import registry
from ctxctl.trace.unknown_file import is_native

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures"
TRACES = ROOT / "traces"

LARGEST = 2 << 20
"""Bytes of a capture of a corpus that is damaged: a larger one costs the time of many smaller ones."""


class Seed(NamedTuple):
    """A sound capture or trace; `name` is stable from run to run."""

    name: str
    path: Path

    def read(self) -> bytes:
        """Its bytes."""
        return _bytes(self.path)

    def format(self) -> str | None:
        """What it is read as while it is sound; None for a trace of our own, and for what nobody knows."""
        return _format(self.path)


@cache
def _bytes(path: Path) -> bytes:
    return path.read_bytes()


@cache
def _format(path: Path) -> str | None:
    head = _bytes(path)[: registry.HEAD]
    found = None if is_native(head) else registry.of_file(path, head)
    return None if found is None else found.name


def fixtures() -> list[Seed]:
    """Captures of the repository, those of traces of our own included."""
    found = [
        Seed(path.relative_to(ROOT).as_posix(), path)
        for folder in (FIXTURES, TRACES)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix not in (".py", ".pyc") and path.stat().st_size
    ]
    assert found
    return found


def corpus(folder: Path) -> list[Seed]:
    """Captures of a folder that are small enough, in the order of their names."""
    return [
        Seed(f"corpus/{path.relative_to(folder).as_posix()}", path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and 0 < path.stat().st_size <= LARGEST
    ]
