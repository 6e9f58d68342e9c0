"""Exports of traces, in memory."""

from __future__ import annotations

from pathlib import Path

from ctxctl.cli.run import header
from ctxctl.model.results import Step
from ctxctl.report.exports import ExportOptions, writer_by_name
from ctxctl.session import Inspector

TRACES = sorted((Path(__file__).parents[3] / "traces").glob("*.jsonl"))


def exported(path: Path, name: str, **how: str) -> bytes:
    """Return the whole file that an export gives."""
    with Inspector.open(path) as inspector:
        manner = ExportOptions(header(inspector), **how)  # type: ignore[arg-type]
        return b"".join(writer_by_name(name).make(inspector, manner, lambda _: None, lambda _: None))


def steps_of(path: Path) -> list[Step]:
    """Return the steps of a plain replay."""
    with Inspector.open(path) as inspector:
        return [result for result in inspector.replay() if isinstance(result, Step)]
