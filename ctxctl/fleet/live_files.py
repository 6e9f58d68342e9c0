"""Which of some files a program of this user has open for writing, where the system tells (Linux)."""

from __future__ import annotations

import os
from collections.abc import Container
from typing import Final

_PROCESSES: Final = "/proc"
_WRITING: Final = os.O_WRONLY | os.O_RDWR


def open_for_writing(files: Container[str]) -> set[str]:
    """Those of some absolute paths that another process has open for writing, as far as one may look."""
    found: set[str] = set()
    own = str(os.getpid())
    try:
        with os.scandir(_PROCESSES) as entries:
            numbers = [entry.name for entry in entries if entry.name.isdigit() and entry.name != own]
    except OSError:
        return found
    for number in numbers:
        folder = f"{_PROCESSES}/{number}/fd"
        try:
            descriptors = os.listdir(folder)
        except OSError:  # somebody else's, or it has ended
            continue
        for descriptor in descriptors:
            try:
                path = os.readlink(f"{folder}/{descriptor}")
            except OSError:
                continue
            if path in files and path not in found and _is_writing(number, descriptor):
                found.add(path)
    return found


def _is_writing(number: str, descriptor: str) -> bool:
    try:
        with open(f"{_PROCESSES}/{number}/fdinfo/{descriptor}", encoding="ascii") as file:
            flags = next((line.split()[1] for line in file if line.startswith("flags:")), "0")
        return bool(int(flags, 8) & _WRITING)
    except (OSError, ValueError, IndexError):
        return False
