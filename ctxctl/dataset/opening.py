"""One version of a dataset, opened for asking: its live files on this machine, as they are at that moment."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ctxctl.dataset import log, questions, schema

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

_VIEWS = {"requests": "steps", "copies": "steps"}
_AT_ONCE = 8
"""Files that are fetched at the same time."""


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
    held: TemporaryDirectory[str] | None = None
    """Where files of an object store were brought to; they go with this."""


def opened(place: str, tables: Collection[str] | None = None, version: int | None = None) -> OpenDataset:
    """A version of a dataset, the newest by default; of an object store, its files are brought here.

    Args:
        place: A folder or a URL.
        tables: Those that are going to be asked for; None: all.
        version: Of the dataset.

    Raises what `log.live` raises.
    """
    found = log.live(place, version)
    wanted = [table.name for table in schema.TABLES if tables is None or table.name in tables]
    files = {name: found.urls(name) for name in wanted}
    held = None
    if found.store.folder is None:
        held = _folder()
        files = {name: _brought(found, name, Path(held.name)) for name in wanted}
    return OpenDataset(place, found.head.id, found.head.texts, found.version, files, held)


def tables_of(sql: str) -> set[str]:
    """The tables that a statement may read, by the names in it."""
    named = set(re.findall(r"\w+", questions.composed(sql)))
    tables = {table.name for table in schema.TABLES} & named
    return tables | {table for view, table in _VIEWS.items() if view in named}


def question_tables(name: str) -> set[str]:
    """The tables that a question reads."""
    question = questions.question(name)
    return tables_of(question.head) | tables_of(question.body)


def _folder() -> TemporaryDirectory[str]:
    from tempfile import TemporaryDirectory

    return TemporaryDirectory(prefix="ctxctl-fleet-")


def _brought(found: log.Snapshot, table: str, folder: Path) -> list[str]:
    """A table's files, fetched; their paths here."""
    from concurrent.futures import ThreadPoolExecutor

    def bring(file: log.DataFile) -> str:
        to = folder / file.path
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(log.data_of(found.store, file.path))
        return str(to)

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        return list(threads.map(bring, found.of(table)))
