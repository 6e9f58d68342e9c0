"""A table as Parquet, with zstd; needs pyarrow (extra `parquet`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

from ctxctl.errors import UnavailableError
from ctxctl.report.tabular.rows import columns, rows
from ctxctl.session import Inspector

_BATCH: Final = 8192
"""Rows of a row group: what a reader may skip at once, and what is in memory here."""


class _Pieces:
    """What a writer of files needs; hands out what was written since the last time."""

    closed = False

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._at = 0

    def write(self, data: Any) -> int:
        """Take some bytes in."""
        held = bytes(data)
        self._held.append(held)
        self._at += len(held)
        return len(held)

    def tell(self) -> int:
        """How much was written altogether."""
        return self._at

    def flush(self) -> None:
        """Nothing waits here."""

    def close(self) -> None:
        """It stays readable."""

    def taken(self) -> bytes:
        """All since the last time."""
        data = b"".join(self._held)
        self._held.clear()
        return data


def written(inspector: Inspector, table: str, progress: Callable[[float], None]) -> Iterator[bytes]:
    """The file, piece by piece; raises UsageError("unknown-table") and UnavailableError("needs-parquet")."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UnavailableError(
            "needs-parquet", "writing Parquet needs pyarrow", hint="pip install 'ctxctl[parquet]'"
        ) from None
    made = columns(table)
    types = {"text": pa.string(), "int": pa.int64(), "bool": pa.bool_()}
    schema = pa.schema([(column.name, types[column.type]) for column in made])
    pieces = _Pieces()
    found = rows(inspector, table, progress)
    with pq.ParquetWriter(pa.PythonFile(pieces, mode="w"), schema, compression="zstd") as writer:
        while batch := list(islice(found, _BATCH)):
            cells = [
                pa.array([_sound(row[place]) for row in batch], types[column.type])
                for place, column in enumerate(made)
            ]
            writer.write_batch(pa.record_batch(cells, schema=schema))
            yield pieces.taken()
    yield pieces.taken()


def _sound(value: Any) -> Any:
    """A value that the file can hold: lone surrogates are no UTF-8, and integers have 64 bits."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return None
    return value
