"""``ctxctl export``: a trace in another form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ctxctl.cli import options as opt

if TYPE_CHECKING:
    from ctxctl.model.problem import Problem

_FORMATS = ("events",)


def _complete(incomplete: str) -> list[str]:
    return [name for name in _FORMATS if name.startswith(incomplete)]


Where = Annotated[
    str,
    typer.Option("--output", "-o", metavar="FILE", help="The file to write; - is stdout.", show_default=True),
]
Force = Annotated[bool, typer.Option("--force", help="Replace FILE if it is there.")]
As = Annotated[
    str,
    typer.Option(
        "--format", metavar="NAME", help="What to export as: events.", autocompletion=_complete,
        show_default=True,
    ),
]  # fmt: skip
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Only what the published schemas know: nothing spliced, nothing by ref."),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="NAME",
        help="For whom; evidence_export: contents are cited, not copied.",
        autocompletion=opt.complete_targets,
    ),
]
ReadAs = Annotated[
    str | None,
    typer.Option(
        "--read-as",
        metavar="NAME",
        help="Read TRACE as this format instead of detecting it.",
        autocompletion=opt.complete_formats,
    ),
]


def export(
    trace: opt.TraceArg,
    output: Where = "-",
    force: Force = False,
    format: As = "events",  # noqa: A002 - the option's name
    strict: Strict = False,
    target: Target = None,
    read_as: ReadAs = None,
    everything: opt.EveryProblem = False,
) -> None:
    """Write a trace in another form. What was redacted anywhere in it is in no export."""
    from ctxctl.cli.destination import Sink, destination
    from ctxctl.cli.output import note
    from ctxctl.cli.session import manner, opened
    from ctxctl.errors import Exit, UnreadableError
    from ctxctl.report.exports import Manner, by_name
    from ctxctl.report.problems import problem_lines

    exporter = by_name(format)
    how = manner(everything=everything, format=read_as, target=target)
    found: list[Problem] = []
    written = 0
    with (
        opened(trace, how, "exporting") as inspector,
        destination(output, how.out, force=force) as sink,
        Sink(sink) as out,
    ):
        manner_of = Manner(strict, how.settings.target)
        for piece in exporter(inspector, manner_of, found.append, how.out.progressed):
            out.write(piece)
            written += len(piece)
        if not written:
            raise UnreadableError("no-events", f"{trace}: nothing to export")
        found = sorted([*inspector.problems, *found])
        how.out.flush()
        cap = None if everything else how.settings.problems
        for line in problem_lines(inspector.name, found, len(found), cap):
            note(line)
    raise typer.Exit(Exit.OK)
