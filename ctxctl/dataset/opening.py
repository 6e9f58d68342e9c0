"""One version of a dataset, opened for reading: its live files, as they are at that moment."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from ctxctl.dataset import schema
from ctxctl.errors import UnreadableError

HEAD = "dataset.json"


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


def opened(place: str) -> Snapshot:
    """The newest version of a dataset.

    Raises UnreadableError (`no-dataset`, `newer-dataset`).
    """
    root = Path(place.removeprefix("file://"))
    try:
        head = msgspec.json.decode((root / HEAD).read_bytes())
        commits = sorted(name for name in os.listdir(root / "log") if name[:20].isdigit())
    except (OSError, msgspec.DecodeError) as error:
        raise UnreadableError(
            "no-dataset", f"{place}: no dataset is there",
            hint="ctxctl fleet add DIR --to DATASET makes one",
        ) from error  # fmt: skip
    if head.get("schema", 0) > schema.SCHEMA_VERSION:
        raise UnreadableError("newer-dataset", f"{place} was made by a newer ctxctl", hint="update ctxctl")
    live: dict[str, str] = {}
    version = 0
    for name in commits:
        commit = msgspec.json.decode((root / "log" / name).read_bytes())
        version = commit["version"]
        for path in commit["remove"]:
            live.pop(path, None)
        live |= {one["path"]: one["table"] for one in commit["add"]}
    files: dict[str, list[str]] = {table.name: [] for table in schema.TABLES}
    for path, table in live.items():
        files[table].append(str(root / path))
    return Snapshot(place, head["id"], bool(head["texts"]), version, files)
