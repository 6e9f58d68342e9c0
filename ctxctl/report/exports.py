"""What a trace can be exported as: one entry a format, each a stream of bytes made in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ctxctl.errors import UsageError
from ctxctl.model.problem import Problem
from ctxctl.model.results import Step, Turn
from ctxctl.report.heading import Header
from ctxctl.session import Inspector

if TYPE_CHECKING:
    from ctxctl.lint.run import LintedWalk

Progress = Callable[[float], None]
Report = Callable[[Problem], None]


class ExportOptions(NamedTuple):
    """How a trace is exported: what the options of the command and the settings say."""

    header: Header
    """What the trace is replayed under; only some formats name it."""
    strict: bool = False
    """Whether every line follows the published schemas by itself."""
    target: str = "model"
    """Whom the export is for; `evidence_export`: contents are cited, not copied."""
    only: Callable[[Step | Turn], bool] | None = None
    """Which steps and turns; None: all."""
    max_content: int | None = None
    """Bytes that all texts together may have; None: as many as there are."""
    models: Mapping[str, dict[str, Any]] = {}
    """Prices of the user's own, as the settings have them."""
    lint: Mapping[str, Any] = {}
    """Which rules look for findings, as the settings have them."""
    table: str = "steps"
    """Which table, for formats that hold one."""
    texts: bool = False
    """Whether a database has the texts, too."""


Exporter = Callable[[Inspector, ExportOptions, Report, Progress], Iterator[bytes]]
"""Gives the file piece by piece, and reports what could not be exported."""


class Writer(NamedTuple):
    """A format that traces can be exported as."""

    make: Exporter
    takes: frozenset[str] = frozenset()
    """Options of the command that mean something to it; the others are refused, not ignored."""
    readable: bool = False
    """Plain text that may go to a terminal: everything in it is visible."""


def _events(inspector: Inspector, how: ExportOptions, report: Report, progress: Progress) -> Iterator[bytes]:
    from ctxctl.report import events

    cite = how.target == "evidence_export"
    if how.strict:
        return events.strict_lines(inspector, report, progress, cite=cite)
    return events.native_lines(inspector, report, progress, cite=cite)


def _html(inspector: Inspector, how: ExportOptions, report: Report, progress: Progress) -> Iterator[bytes]:
    from ctxctl.report.html.writer import write
    from ctxctl.tokens.catalogue.rates import RateBook

    prices = RateBook(dict(how.models))
    return write(
        inspector,
        how.header,
        progress,
        prices=prices,
        rules=_rules(inspector, how),
        max_content=how.max_content,
        report=report,
    )


def _markdown(
    inspector: Inspector, how: ExportOptions, report: Report, progress: Progress
) -> Iterator[bytes]:
    from ctxctl.report.markdown import write
    from ctxctl.tokens.catalogue.rates import RateBook

    prices = RateBook(dict(how.models))
    return write(inspector, how.header, progress, prices=prices, rules=_rules(inspector, how), only=how.only)


def _rules(inspector: Inspector, how: ExportOptions) -> LintedWalk:
    """The lint rules that the settings ask for."""
    from ctxctl.lint.registry import configured_rules
    from ctxctl.lint.run import LintedWalk

    return LintedWalk(inspector, configured_rules(how.lint), how.models)


def _csv(inspector: Inspector, how: ExportOptions, _report: Report, progress: Progress) -> Iterator[bytes]:
    from ctxctl.report import tabular

    return tabular.csv_pieces(inspector, how.table, progress)


def _parquet(
    inspector: Inspector, how: ExportOptions, _report: Report, progress: Progress
) -> Iterator[bytes]:
    from ctxctl.report import tabular

    return tabular.parquet_pieces(inspector, how.table, progress)


def _sqlite(inspector: Inspector, how: ExportOptions, _report: Report, progress: Progress) -> Iterator[bytes]:
    from ctxctl.report import database

    return database.database_pieces(inspector, how.models, how.texts, progress)


def _otlp(inspector: Inspector, how: ExportOptions, _report: Report, progress: Progress) -> Iterator[bytes]:
    from ctxctl.report import otlp

    return otlp.otlp_lines(inspector, how.header.version, progress)


def _envelopes(
    inspector: Inspector, how: ExportOptions, report: Report, progress: Progress
) -> Iterator[bytes]:
    from ctxctl.report import envelopes

    return envelopes.envelope_lines(inspector, how.header.version, progress, report)


_REPLAYED: Final = frozenset({"--model", "--encoding", "--policy"})
"""Options of formats that say what a replay found, not only what was recorded."""

EXPORTERS: Final[dict[str, Writer]] = {
    "events": Writer(_events, frozenset({"--strict"})),
    "html": Writer(_html, _REPLAYED | {"--max-content"}),
    "markdown": Writer(_markdown, _REPLAYED | {"--turn", "--thread"}, readable=True),
    "csv": Writer(_csv, _REPLAYED | {"--table"}, readable=True),
    "parquet": Writer(_parquet, _REPLAYED | {"--table"}),
    "sqlite": Writer(_sqlite, _REPLAYED | {"--texts"}),
    "otlp": Writer(_otlp, _REPLAYED),
    "envelopes": Writer(_envelopes, _REPLAYED),
}
"""The formats; another one is another line."""


_SUFFIXES: Final = {
    ".jsonl": "events", ".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown",
    ".csv": "csv", ".parquet": "parquet", ".sqlite": "sqlite", ".db": "sqlite",
}  # fmt: skip
"""Formats by the end of a file's name; what several formats may be in (.json) tells nothing."""


def format_for_file(output: str) -> str:
    """The format that a file's name asks for: by its suffix, else `events`."""
    return _SUFFIXES.get(os.path.splitext(output)[1].lower(), "events")


def writer_by_name(name: str) -> Writer:
    """The writer of a format; raises UsageError("unknown-export") naming what there is."""
    found = EXPORTERS.get(name)
    if found is None:
        raise UsageError(
            "unknown-export", f"there is no export called {name!r}", hint=f"there are: {', '.join(EXPORTERS)}"
        )
    return found


def refuse_options(name: str, given: Mapping[str, object]) -> None:
    """Raise UsageError("option-not-exported") for an option that means nothing to a format.

    Args:
        name: The format's.
        given: Options by name; those that are None or False were not given.
    """
    takes = writer_by_name(name).takes
    for option, value in given.items():
        if value not in (None, False) and option not in takes:
            whose = [other for other, writer in EXPORTERS.items() if option in writer.takes]
            raise UsageError(
                "option-not-exported", f"{option} means nothing to --format {name}",
                hint=f"it is for --format {' and '.join(whose)}",
            )  # fmt: skip
