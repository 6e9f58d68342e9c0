"""Tables as Parquet: columns of the schema from lists of values; the same rows give the same bytes.

Encodings are by what a column holds, as measured on real captures: names and keys that repeat by dictionary,
numbers that grow by differences, shares of money by bytes apart, digests as they are.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from ctxctl.dataset.schema import Column, Table
from ctxctl.errors import UnavailableError

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

ROW_GROUP: Final = 1 << 17
"""Rows that are compressed, and can be passed over, together."""
_LEVEL: Final = 9
_REPEATED: Final = frozenset({"session", "source"})
_STATISTICS: Final = ("session", "source", "time", "started", "month", "format")
"""Columns by whose bounds readers pass over groups of rows."""


def arrow() -> Any:
    """pyarrow; raises UnavailableError("needs-fleet")."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UnavailableError(
            "needs-fleet", "a dataset of many captures needs the packages of the extra `fleet`",
            hint="pip install 'ctxctl[fleet]'",
        ) from None  # fmt: skip
    return pyarrow


@lru_cache(maxsize=16)
def arrow_schema(table: Table) -> pa.Schema:
    """A table's columns as pyarrow has them."""
    pa = arrow()
    kinds = {
        "string": pa.string(), "bool": pa.bool_(), "int32": pa.int32(), "int64": pa.int64(),
        "uint64": pa.uint64(), "double": pa.float64(), "timestamp": pa.timestamp("us", tz="UTC"),
        "binary": pa.binary(), "labels": pa.map_(pa.string(), pa.string()),
        "tokens by name": pa.map_(pa.string(), pa.int64()),
    }  # fmt: skip
    return pa.schema([pa.field(one.name, kinds[one.type], nullable=one.null) for one in table.columns])


def arrow_table(table: Table, rows: Sequence[Sequence[Any]]) -> pa.Table:
    """Rows, in the order of the schema's columns, as a table in the order of its keys."""
    pa = arrow()
    schema = arrow_schema(table)
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    made = pa.Table.from_arrays(
        [pa.array(list(map(_text, values)) if field.type == pa.string() else values, type=field.type)
         for values, field in zip(columns, schema, strict=True)],
        schema=schema,
    )  # fmt: skip
    return ordered(table, made)


def _text(value: str | None) -> str | None:
    """A text as UTF-8 can hold it."""
    return value if value is None or value.isascii() else value.encode("utf-8", "replace").decode("utf-8")


def ordered(table: Table, made: pa.Table) -> pa.Table:
    """The rows in the order of the table's keys."""
    return made.sort_by([(name, "ascending") for name in table.order])


def joined(table: Table, parts: Iterable[pa.Table]) -> pa.Table:
    """The rows of several files, in order."""
    return ordered(table, arrow().concat_tables(list(parts)))


def packed(table: Table, made: pa.Table) -> bytes:
    """A table's rows, in order, as a file."""
    import pyarrow.parquet as pq

    buffer = BytesIO()
    pq.write_table(
        made.combine_chunks().replace_schema_metadata(None), buffer, row_group_size=ROW_GROUP, version="2.6",
        compression="zstd", compression_level=_LEVEL, store_schema=False, data_page_version="2.0",
        data_page_size=1 << 20,
        write_statistics=[c.name for c in table.columns if c.name in _STATISTICS],
        use_dictionary=[c.name for c in table.columns if _encoding(c) is None],
        column_encoding={c.name: e for c in table.columns if (e := _encoding(c)) is not None},
    )  # fmt: skip
    return buffer.getvalue()


def _encoding(column: Column) -> str | None:
    """How a column is written; None: by dictionary."""
    if column.type == "double":
        return "BYTE_STREAM_SPLIT"
    if column.type in ("int32", "int64", "timestamp"):
        return "DELTA_BINARY_PACKED"
    if column.type == "uint64" and column.name not in _REPEATED:
        return "PLAIN"
    if column.type == "bool":
        return "RLE"
    return None


def unpacked(data: bytes | Path, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of a file, by its bytes or its path, or some of its columns.

    Raises ValueError where they are no such file, and OSError where the system fails.
    """
    pa = arrow()
    import pyarrow.parquet as pq

    try:
        source = pa.BufferReader(data) if isinstance(data, bytes) else pa.OSFile(str(data), "rb")
        try:
            return pq.ParquetFile(source).read(columns=columns and list(columns), use_threads=False)
        finally:
            with suppress(OSError):  # it was read only
                source.close()
    except OSError as error:
        if not error.errno or isinstance(error, FileNotFoundError):
            raise ValueError(str(error)) from None
        # What the library says in place of the system is about its own doing.
        raise OSError(error.errno, os.strerror(error.errno)) from None
    except pa.ArrowException as error:
        raise ValueError(str(error)) from None


def without(made: pa.Table, keys: Iterable[int], column: str = "source") -> pa.Table:
    """The rows that are of none of some captures, or sessions."""
    pa = arrow()
    import pyarrow.compute as pc

    gone = pc.is_in(made[column], value_set=pa.array(sorted(keys), type=pa.uint64()))
    return made.filter(pc.invert(gone))
