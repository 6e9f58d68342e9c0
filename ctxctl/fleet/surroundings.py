"""What an answer rests on beside the capture and the question: the code, and what is installed and kept."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from ctxctl.trace.cache_files import code_state
from ctxctl.trace.inputs import file_state

_LIBRARIES: Final = ("genai_prices", "msgspec", "orjson", "rapidfuzz", "tiktoken", "xxhash", "zstandard")
"""Packages whose code or data has a part in answers."""


def surroundings(paths: Iterable[Path]) -> str:
    """Changes with whatever may change an answer: 32 hex digits.

    Of ctxctl itself, of the libraries that it counts and prices with, and of what is installed, the names,
    sizes and times of files are taken.

    Args:
        paths: Files, and directories with files, that answers depend on, wherever they are and if they are:
            what the user saved of calibrations and learned sets.
    """
    digest = sha256(f"{code_state()} {sys.version} {time.tzname}".encode())
    for name in _LIBRARIES:
        found = find_spec(name)
        for place in (found.submodule_search_locations or [found.origin or ""]) if found is not None else ():
            _add(digest, place)
    for entry in sys.path:  # what is installed may bring plug-ins
        digest.update("\n".join(_installed(entry)).encode("utf-8", "surrogateescape"))
    for path in paths:
        _add(digest, str(path))
    return digest.hexdigest()[:32]


def _installed(entry: str) -> list[str]:
    """The packages that a directory has, by the names of their metadata, which have their versions."""
    try:
        with os.scandir(entry or ".") as entries:
            return sorted(found.path for found in entries if found.name.endswith((".dist-info", ".egg-info")))
    except OSError:
        return []


def _add(digest: object, place: str) -> None:
    """A file, or a directory with the files in it, not those further down."""
    names = [place]
    try:
        with os.scandir(place) as entries:
            names += sorted(entry.path for entry in entries if entry.name != "__pycache__")
    except OSError:
        pass
    for name in names:
        digest.update(f"{name} {_state(name)}\n".encode("utf-8", "surrogateescape"))  # type: ignore[attr-defined]


def _state(name: str) -> str:
    state = file_state(name)
    return "" if state is None else f"{state.inode} {state.size} {state.mtime_ns}"
