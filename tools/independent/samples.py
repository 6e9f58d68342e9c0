"""The samples of an Inspect log: one JSON file, or an archive of them."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.independent.raw import at, objects

_ATTACHED, _EARLIER = "attachment://", "tc://"


def samples(path: Path) -> Iterator[Any]:
    """The samples of a log: of one JSON file, or one a file in an archive."""
    if not zipfile.is_zipfile(path):
        for one in objects(path):
            yield from at(one, "samples") or ()
        return
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist(), key=_numbers):
            if name.startswith("samples/") and name.endswith(".json"):
                yield json.loads(_member(archive, name))


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    """A file of an archive, which may be packed with zstandard: that the zipfile module cannot undo."""
    info = archive.getinfo(name)
    if info.compress_type != 93:
        return archive.read(name)
    import zstandard

    file = archive.fp
    assert file is not None
    file.seek(info.header_offset)
    head = file.read(30)
    file.seek(int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little"), io.SEEK_CUR)
    return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(file.read(info.compress_size))).read()


def _numbers(name: str) -> list[tuple[int, str]]:
    """Sorts names by the numbers in them."""
    return [(int(part) if part.isdigit() else -1, part) for part in re.split(r"(\d+)", name)]


def resolved(value: Any, sample: Any) -> Any:
    """A value with its attachments in their places: long texts lie beside the events, by their digest."""
    if isinstance(value, str) and value.startswith((_ATTACHED, _EARLIER)):
        name = value.partition("://")[2]
        return at(sample, "attachments", name) or at(sample, "transcript", "content", name) or value
    if isinstance(value, list):
        return [resolved(one, sample) for one in value]
    return {key: resolved(one, sample) for key, one in value.items()} if isinstance(value, dict) else value
