"""One version of a dataset, opened for asking: its live files on this machine, as they are at that moment.

Files of an object store are copied into the user's cache as they are asked for: their names say what they
hold, so a copy is good for ever.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ctxctl.dataset import log, schema
from ctxctl.errors import UnreadableError
from ctxctl.trace.cache_files import cache_directory
from ctxctl.user_folders import make_private
from ctxctl.whole_file import replace_file

_AT_ONCE: Final = 8
"""Files that are copied at the same time."""


class OpenDataset(NamedTuple):
    """What readers of one version see; later commits do not change it."""

    place: str
    id: str
    texts: bool
    """Whether texts of contents are kept."""
    version: int
    """The last commit that it holds; 0: none."""
    files: Mapping[str, Sequence[str]]
    """The live files of each table, as paths on this machine."""


def opened(place: str, tables: Collection[str] | None = None, version: int | None = None) -> OpenDataset:
    """A version of a dataset, the newest one where none is named.

    Args:
        place: A folder or a URL.
        tables: Those that are going to be asked for; None: all.
        version: Of the dataset.

    Raises what `log.live` raises, and UnreadableError (`dataset-unreachable`) where copies have no place.
    """
    found = log.live(place.removeprefix("file://"), version)
    wanted = [table.name for table in schema.TABLES if tables is None or table.name in tables]
    files = {name: found.urls(name) for name in wanted}
    if found.store.folder is None:
        files = {name: _copies(found, name) for name in wanted}
    return OpenDataset(place, found.head.id, found.head.texts, found.version, files)


def _copies(found: log.Snapshot, table: str) -> list[str]:
    """A table's files of an object store, on this machine."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        return list(threads.map(lambda file: _copy(found, file), found.of(table)))


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
        data = log.data_of(found.store, file.path)
        make_private(path.parent)
        replace_file(path, data)
    return str(path)
