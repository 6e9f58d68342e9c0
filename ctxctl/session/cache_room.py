"""The contents of the user's cache directory: their sizes and kinds, and how space is freed."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from ctxctl.errors import UsageError
from ctxctl.trace.cache_files import cache_directory

MOST: Final = 2 << 30
"""Most bytes of the whole cache, unless the settings say otherwise."""
_CAPTURES: Final = "captures"
_OURS: Final = {
    "imports": re.compile(r"[0-9a-f]{32}"),
    "indexes": re.compile(r"[0-9a-f]{32}\.|\.steps-"),
    "answers": re.compile(r"answers-"),
    "counts": re.compile(r"counts-"),
}
"""Names of ctxctl's own files. Nothing else in the directory is counted or removed."""


class CacheEntry(NamedTuple):
    """One cached thing, which is removed as a whole."""

    path: Path
    kind: str
    """`imports`, `indexes`, `counts`, `answers`."""
    size: int
    """Bytes."""
    used: float
    """When it was last used, in seconds since the epoch."""


def cache_entries(directory: Path | None = None) -> list[CacheEntry]:
    """Return all cache entries, the last used at the end. None is opened."""
    top = directory or cache_directory()
    if top is None:
        return []
    found = [*_captures(top / _CAPTURES), *_files(top / "index", "indexes")]
    found += [*_files(top / "answers", "answers"), *_files(top, "counts")]
    return sorted(found, key=lambda entry: (entry.used, str(entry.path)))


def prune_cache(most: int | None = None, *, spare: Path | None = None) -> int:
    """Remove the least recently used entries until the rest has `most` bytes. Return the bytes removed.

    Counts and answers are never removed for space: they are small, and limit themselves.
    """
    entries = cache_entries()
    total = sum(entry.size for entry in entries)
    freed = 0
    for entry in entries:
        if total - freed <= (room() if most is None else most):
            break
        if entry.path != spare and entry.kind in ("imports", "indexes"):
            drop(entry)
            freed += entry.size
    return freed


def clear_cache() -> int:
    """Remove all cache entries. Return the bytes removed."""
    entries = cache_entries()
    for entry in entries:
        drop(entry)
    return sum(entry.size for entry in entries)


def drop(entry: CacheEntry) -> None:
    """Remove an entry. Those who have it open can still read it."""
    if entry.path.is_dir():
        shutil.rmtree(entry.path, ignore_errors=True)
    else:
        entry.path.unlink(missing_ok=True)


def room() -> int:
    """Return the bytes that the cache may take, by the settings."""
    from ctxctl.config import load

    try:
        return load().cache.get("max", MOST)
    except UsageError:  # reported by the command itself, when it reads them
        return MOST


def _captures(top: Path) -> Iterator[CacheEntry]:
    for folder in _scan(top):
        if not _OURS["imports"].fullmatch(folder.name) or not folder.is_dir(follow_symlinks=False):
            continue
        files = [state for entry in _scan(Path(folder.path)) if (state := _state(entry)) is not None]
        used = max((now.st_mtime for now in files), default=0.0)
        yield CacheEntry(Path(folder.path), "imports", sum(now.st_size for now in files), used)


def _files(top: Path, kind: str) -> Iterator[CacheEntry]:
    for entry in _scan(top):
        if entry.is_file(follow_symlinks=False) and _OURS[kind].match(entry.name):
            now = _state(entry)
            if now is not None:
                yield CacheEntry(Path(entry.path), kind, now.st_size, max(now.st_mtime, now.st_atime))


def _state(entry: os.DirEntry[str]) -> os.stat_result | None:
    """Return a file's status; None if another process has just removed or replaced it."""
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:
        return None


def _scan(top: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(top) as entries:
            return list(entries)
    except OSError:
        return []
