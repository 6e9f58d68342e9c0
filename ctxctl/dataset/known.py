"""Which captures a dataset has, and which files hold their rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ctxctl.dataset.parquet import unpacked
from ctxctl.errors import UnreadableError
from ctxctl.text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxctl.dataset.log import DataFile, Snapshot


class KnownSource(NamedTuple):
    """A capture of the dataset."""

    format: str
    sealed: bytes
    """What it was read from (`batch.unchanged`)."""
    is_failed: bool


class KnownSources:
    """The captures of a dataset; a later version is known by its new files alone."""

    def __init__(self) -> None:
        self._files: dict[str, dict[int, KnownSource]] = {}

    def at(self, snapshot: Snapshot) -> dict[int, KnownSource]:
        """By key, the captures at a version."""
        live = {one.path: one for one in snapshot.of("sources")}
        for path in self._files.keys() - live.keys():
            del self._files[path]
        for path, one in live.items():
            if path not in self._files:
                columns = read_file(snapshot, one, ("source", "format", "inputs", "failed")).to_pydict()
                self._files[path] = {
                    source: KnownSource(format_name, sealed, failed is not None)
                    for source, format_name, sealed, failed in zip(*columns.values(), strict=True)
                }
        found: dict[int, KnownSource] = {}
        for some in self._files.values():
            found |= some
        return found


def files_with(
    snapshot: Snapshot, sources: Collection[int], formats: Collection[str], but: Collection[str] = ()
) -> Iterator[tuple[DataFile, Any]]:
    """The files that hold rows of some captures, with all their rows; `but`: paths that are passed over."""
    wanted = set(sources)
    for path in sorted(snapshot.files):
        one = snapshot.files[path]
        if one.format in formats and path not in but:
            held = read_file(snapshot, one, ("source",)).column("source").unique().to_pylist()
            if not wanted.isdisjoint(held):
                yield one, read_file(snapshot, one)


def read_file(snapshot: Snapshot, file: DataFile, columns: Sequence[str] | None = None) -> Any:
    """The rows of a file, or some of its columns.

    Raises UnreadableError (`dataset-damaged`, `dataset-unreachable`).
    """
    store = snapshot.store
    where = visible(store.url(file.path))
    try:
        if store.folder is not None:
            return unpacked(store.folder / file.path, columns)
        data = store.get(file.path)
        if data is None:
            raise ValueError("it is not there")
        return unpacked(data, columns)
    except OSError as error:
        raise UnreadableError("dataset-unreachable", f"{where}: {error.strerror}") from None
    except ValueError as error:
        raise UnreadableError("dataset-damaged", f"{where}: {visible(str(error)[:200])}") from None
