"""Where known clients write sessions, and which files lie there."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ctxctl.trace.inputs import FileState
from ctxctl.user_folders import own_below

if TYPE_CHECKING:
    from ctxctl.ingest.declaration import Format

MOST: Final = 20_000
"""Files looked at in one search, unless said otherwise."""
DEPTH: Final = 8
PARTS: Final = re.compile(r"(?:-wal|-shm|-journal|\.lock|\.tmp)$|(?:^|/)agent-[^/]*\.jsonl$")
"""Names of what belongs to another file's session."""
APART: Final = frozenset({"claude-code"})
"""Formats whose directories hold many sessions, each in a file that is read with what lies beside it."""
_SKIPPED: Final = frozenset({".git", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".ruff_cache"})
_VARIES: Final = re.compile(r"[*<{…\[]|^[A-Z-]+$|\s")


class SessionPlace(NamedTuple):
    """A directory of this user in which clients write sessions."""

    path: Path
    owners: tuple[Format, ...]
    """The formats of what is written there."""


def session_places() -> tuple[SessionPlace, ...]:
    """All there may be, whether they exist or not; none where nobody knows the user's own directory."""
    from ctxctl.importers import registry

    try:
        home = Path.home()
    except RuntimeError:
        return ()
    found: dict[Path, dict[str, Format]] = {}
    for importer in registry.built_in():
        for place in importer.about.places:
            if place.startswith("~/") and (fixed := _fixed(place)):
                found.setdefault(home.joinpath(*fixed), {})[importer.name] = importer
    return tuple(SessionPlace(path, tuple(owners.values())) for path, owners in found.items())


def _fixed(place: str) -> list[str]:
    """The directories of a place that are the same for everybody, below the user's own."""
    fixed: list[str] = []
    for part in place.split("/")[1:-1]:
        if _VARIES.search(part):
            break
        fixed.append(part)
    return fixed


def files_below(
    top: Path, most: int = MOST, deep: int = DEPTH, failed: Callable[[str, OSError], None] | None = None
) -> Iterator[tuple[str, FileState]]:
    """The regular files below a directory with their states; links are not followed, and
    what ctxctl keeps for itself is left out.

    Args:
        top: The directory.
        most: How many files, about.
        deep: How many directories deep.
        failed: Told of a directory that the system does not list, and why; not of one that is not there.
    """
    own = {os.path.join(top, name) if name else str(top) for name in own_below(top)}
    waiting = [(str(top), 0)] if str(top) not in own else []
    count = 0
    while waiting and count < most:
        folder, depth = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if depth < deep and entry.name not in _SKIPPED and entry.path not in own:
                            waiting.append((entry.path, depth + 1))
                    elif entry.is_file(follow_symlinks=False):
                        try:
                            now = entry.stat(follow_symlinks=False)
                        except FileNotFoundError:  # it was removed since
                            continue
                        count += 1
                        yield (
                            entry.path,
                            FileState(now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns),
                        )
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            if failed is not None:
                failed(folder, error)
