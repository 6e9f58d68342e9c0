"""One version of a dataset, opened for reading: its live files, as they are at that moment.

Files of an object store are copied into the user's cache as they are asked for: their names say what they
hold, so a copy is good for ever.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ctxctl.dataset import log, schema
from ctxctl.errors import UnreadableError
from ctxctl.trace.cache_files import cache_directory
from ctxctl.whole_file import replace_file


class Snapshot(NamedTuple):
    """What readers of one version see; later commits do not change it."""

    place: str
    id: str
    texts: bool
    """Whether texts of contents are kept."""
    version: int
    """The last commit that it holds; 0: none."""
    files: Mapping[str, Sequence[str]]
    """The live files of each table, as paths on this machine."""


def opened(place: str, version: int | None = None) -> Snapshot:
    """A version of a dataset, the newest one where none is named.

    Raises UnreadableError (`no-dataset`, `newer-dataset`, `dataset-damaged`, `dataset-unreachable`) and
    UsageError (`no-such-version`).
    """
    found = log.live(place.removeprefix("file://"), version)
    files = {table.name: found.urls(table.name) for table in schema.TABLES}
    if found.store.folder is None:
        files = {table.name: [_copy(found, one) for one in found.of(table.name)] for table in schema.TABLES}
    return Snapshot(place, found.head.id, found.head.texts, found.version, files)


def _copy(found: log.Snapshot, file: log.DataFile) -> str:
    """Where a file of an object store is on this machine."""
    folder = cache_directory()
    if folder is None:
        raise UnreadableError(
            "dataset-unreachable", "a dataset in an object store is read from a copy, and there is no cache",
            hint="CTXCTL_CACHE_DIR names a folder for it",
        )  # fmt: skip
    path = Path(folder, "fleet", found.head.id, f"{file.table}-{file.sha256[:32]}.parquet")
    if not path.is_file() or path.stat().st_size != file.bytes:
        data = found.store.get(file.path)
        if data is None:
            raise UnreadableError("dataset-damaged", f"{found.store.url(file.path)} is not there")
        os.makedirs(path.parent, mode=0o700, exist_ok=True)
        replace_file(path, data)
    return str(path)
