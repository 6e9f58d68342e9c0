"""The same dataset smaller and larger: some of its captures, or all of them several times, renamed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ctxctl.dataset.parquet import packed, unpacked
from ctxctl.dataset.schema import Table, table

_KEYS = frozenset({"session", "source", "item", "content", "request"})
_SPREAD = 0x9E3779B97F4A7C15
"""Odd: its multiples are spread over all 64 bits."""


def sampled(files: Mapping[str, Sequence[str]], to: Path, parts: int) -> dict[str, list[str]]:
    """One capture in so many, as files of a dataset again: by the bits of its key, so by chance."""
    most = pa.scalar((1 << 64) // parts, pa.uint64())
    return _written(files, to, [lambda rows: rows.filter(pc.less(rows["source"], most))])


def repeated(files: Mapping[str, Sequence[str]], to: Path, times: int) -> dict[str, list[str]]:
    """All captures so many times over, each time under other keys: nothing meets that did not before."""
    return _written(
        files, to, [lambda rows, n=n: _renamed(rows, n * _SPREAD % (1 << 64)) for n in range(times)]
    )


def _renamed(rows: Any, key: int) -> Any:
    for at, name in enumerate(rows.column_names):
        if name in _KEYS:
            made = pc.bit_wise_xor(rows[name], pa.scalar(key, pa.uint64()))
            rows = rows.set_column(at, rows.schema.field(name), made)
    return rows


def _written(files: Mapping[str, Sequence[str]], to: Path, changes: Sequence[Any]) -> dict[str, list[str]]:
    to.mkdir(parents=True, exist_ok=True)
    made: dict[str, list[str]] = {}
    for name, paths in files.items():
        shape: Table = table(name)
        for path in paths:
            rows = unpacked(Path(path))
            for number, change in enumerate(changes):
                some = change(rows)
                if len(some):
                    target = to / f"{name}-{len(made.get(name, ())):05}-{number}.parquet"
                    target.write_bytes(
                        packed(shape, some.sort_by([(key, "ascending") for key in shape.order]))
                    )
                    made.setdefault(name, []).append(str(target))
    return made
