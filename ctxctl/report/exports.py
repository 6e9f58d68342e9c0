"""What a trace can be exported as: one entry a format, each a stream of bytes made in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from ctxctl.errors import UsageError
from ctxctl.inspector import Inspector
from ctxctl.model.problem import Problem
from ctxctl.report import events

Progress = Callable[[float], None]


class Manner(NamedTuple):
    """How to export; what a format has no use for it ignores."""

    strict: bool = False
    """Only what the published schemas know, whole."""
    target: str = "model"
    """For whom; `evidence_export`: contents are cited, not copied."""


Exporter = Callable[[Inspector, Manner, Callable[[Problem], None], Progress], Iterator[bytes]]
"""Gives the file piece by piece; tells what could not be exported."""


def _events(
    inspector: Inspector, how: Manner, report: Callable[[Problem], None], progress: Progress
) -> Iterator[bytes]:
    cite = how.target == "evidence_export"
    if how.strict:
        return events.strict(inspector, report, progress, cite=cite)
    return events.plain(inspector, report, progress, cite=cite)


EXPORTERS: Final[dict[str, Exporter]] = {"events": _events}


def by_name(name: str) -> Exporter:
    """The exporter of a format; raises UsageError("unknown-export") naming what there is."""
    found = EXPORTERS.get(name)
    if found is None:
        raise UsageError(
            "unknown-export", f"nothing is exported as {name!r}", hint=f"there are: {', '.join(EXPORTERS)}"
        )
    return found
