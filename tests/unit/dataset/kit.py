"""Captures to make datasets of, and what they are read under."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from ctxctl.analysis.cost_groups import CostWords
from ctxctl.dataset.rows.capture import CaptureRows, read_rows
from ctxctl.dataset.rows.words import DatasetWords
from ctxctl.dataset.schema import table
from ctxctl.errors import CtxctlError
from ctxctl.fleet.captures import NATIVE
from ctxctl.importers.capture import open_capture

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "fixtures"
KEY = bytes(range(32))
WORDS = DatasetWords(
    CostWords("model", None, None, None, "none", "none", {}),
    KEY, "host", texts=False, paths=True, redactor="ctxctl.record.redact:text_redactor",
)  # fmt: skip


@lru_cache(maxsize=1)
def captures() -> list[tuple[str, str]]:
    """Path and format of every fixture that can be read, and of the traces that come with the project."""
    found = []
    places = [*sorted(FIXTURES.glob("*/*")), *sorted((ROOT / "traces").glob("*.jsonl"))]
    for path in places:
        if path.parent.name in ("damaged", "bills_and_content"):
            continue
        try:
            with open_capture(str(path), None) as capture:
                name = NATIVE if capture.format is None else capture.format.name
        except (CtxctlError, OSError):
            continue
        found.append((str(path), name))
    return found


def rows_of(path: str, format_name: str, words: DatasetWords = WORDS) -> CaptureRows | None:
    """A fixture's rows; None where it cannot be read."""
    try:
        return read_rows(path, format_name, 7, words)
    except CtxctlError:
        return None


def named(rows: CaptureRows, name: str) -> list[dict[str, object]]:
    """A table's rows by the names of its columns."""
    names = [column.name for column in table(name).columns]
    return [dict(zip(names, row, strict=True)) for row in rows.rows[name]]
