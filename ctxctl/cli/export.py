"""``ctxctl export``: a trace in another form."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from ctxctl.cli import options as opt
from ctxctl.cli.parameters import Done, Option

if TYPE_CHECKING:
    from typing import IO

    from ctxctl.cli.output import Output
    from ctxctl.cli.run import Run
    from ctxctl.cli.selection import TurnSelection
    from ctxctl.model.problem import Problem
    from ctxctl.report.exports import ExportOptions
    from ctxctl.session import Inspector

_FORMATS = ("events", "html", "markdown", "csv", "parquet", "sqlite", "otlp", "envelopes")


def _complete_format_names(incomplete: str) -> list[str]:
    return [name for name in _FORMATS if name.startswith(incomplete)]


Where = Annotated[
    str,
    Option("--output", "-o", metavar="FILE", help="The file to write; - is stdout.", show_default=True),
]
Force = Annotated[bool, Option("--force", help="Replace FILE if it exists.")]
As = Annotated[
    str | None,
    Option(
        "--format", metavar="NAME",
        help=f"Export as: {', '.join(_FORMATS)}. Default: from the name of FILE (report.html), else"
        " events.",
        autocompletion=_complete_format_names,
    ),
]  # fmt: skip
Strict = Annotated[
    bool,
    Option(
        "--strict",
        help="Write only what the published schemas define: no edits of earlier texts, no references.",
    ),
]
Target = Annotated[
    str | None,
    Option(
        "--target",
        metavar="NAME",
        help="Target of the export (default: model); with evidence_export, contents are cited, not copied.",
        autocompletion=opt.complete_targets,
    ),
]
Table = Annotated[
    str | None,
    Option("--table", metavar="NAME", help="Table to write: steps, changes (csv, parquet)."),
]
Texts = Annotated[bool, Option("--texts", help="sqlite: write the texts, too.")]
MaxContent = Annotated[
    str | None,
    Option(
        "--max-content",
        metavar="SIZE",
        help="html: limit on the size of all texts together (500K, 20M); the longest are cut to fit.",
    ),
]


@opt.takes(
    "turn thread max_content table texts",
    opt.COUNTED,
    "no_learned read_as everything quiet",
    target=Target,
    everything=opt.EveryProblem,
)
def export(
    options: opt.CommonOptions,
    trace: opt.TurnArg = None,
    output: Where = "-",
    force: Force = False,
    format: As = None,  # noqa: A002 - the option's name
    strict: Strict = False,
    max_content: MaxContent = None,
    table: Table = None,
    texts: Texts = False,
) -> None:
    """Write a trace in another form. Content redacted anywhere in the trace is left out of every export."""
    from ctxctl.cli.run import begin, note_problems, opened, tell_learned
    from ctxctl.cli.selection import nothing_there, place_selected, split_trace
    from ctxctl.cli.sessions import given_or_newest
    from ctxctl.errors import Exit, UnreadableError
    from ctxctl.report.exports import format_for_file, refuse_options, writer_by_name

    format = format or format_for_file(output)  # noqa: A001 - the option's name
    writer = writer_by_name(format)
    refuse_options(
        format,
        {
            "--strict": strict, "--turn": options.turn, "--thread": options.thread,
            "--max-content": max_content,
            "--model": options.model, "--encoding": options.encoding, "--policy": options.policy,
            "--table": table, "--texts": texts,
        },
    )  # fmt: skip
    # A trace is evidence: what was not in the capture is in no trace made of it (docs/learn.md).
    captured = options.no_learned or format == "events"
    run = begin(options._replace(no_learned=captured))
    place = split_trace(given_or_newest(trace, run))
    if place.address is not None:
        refuse_options(format, {"--turn": place.address})
    found: list[Problem] = []
    written = 0
    with opened(place.trace, run, "exporting") as inspector:
        chosen = place_selected(inspector, place.address, options.turn, options.thread)
        asked = _export_options(inspector, run, strict, chosen, max_content)
        asked = asked._replace(table=table or "steps", texts=texts)
        with _sink(output, run.out, place.trace, force=force, readable=writer.readable) as out:
            for piece in writer.make(inspector, asked, found.append, run.out.progressed):
                out.write(piece)
                written += len(piece)
            if not written and not chosen.is_all:
                raise nothing_there(chosen.named_turn, chosen.thread, inspector.places().spans)
            if not written:
                raise UnreadableError("no-events", f"{place.trace}: nothing to export")
        found = sorted([*inspector.problems, *found])
        run.out.flush()
        tell_learned(inspector, always=format not in ("html", "markdown"))
        note_problems(inspector.name, found, max(len(found), inspector.problem_count), run)
    raise Done(Exit.OK)


def _export_options(
    inspector: Inspector, run: Run, strict: bool, chosen: TurnSelection, max_content: str | None
) -> ExportOptions:
    from ctxctl.cli.run import header
    from ctxctl.report.exports import ExportOptions

    return ExportOptions(
        header(inspector, thread=chosen.thread, turn=chosen.named_turn),
        strict=strict,
        target=run.settings.target,
        only=None if chosen.is_all else chosen.__call__,
        max_content=None if max_content is None else _size(max_content),
        models=run.settings.models,
        lint=run.settings.lint,
    )


@contextmanager
def _sink(output: str, out: Output, trace: str, *, force: bool, readable: bool) -> Iterator[IO[bytes]]:
    """Where the export goes; only what is plain text may go to a terminal."""
    from typing import cast

    from ctxctl.cli.destination import StdoutFile, destination

    if output == "-" and readable:
        yield cast("IO[bytes]", StdoutFile(out))
        return
    with destination(output, out, force=force, read=(trace,)) as sink:
        yield sink


def _size(text: str) -> int:
    """The bytes of ``--max-content``; raises UsageError("bad-size")."""
    from ctxctl.config import size_of
    from ctxctl.errors import UsageError

    size = size_of(text)
    if size is None:
        raise UsageError("bad-size", f"--max-content {text}: not a size", hint="for example 500K, 20M, 1G")
    return size
