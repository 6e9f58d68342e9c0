"""``ctxctl import``: foreign captures become one native trace."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Annotated, NamedTuple

from ctxctl.cli import options as opt
from ctxctl.cli.parameters import Argument, Done, Option

if TYPE_CHECKING:
    from ctxctl.cli.run import Run
    from ctxctl.model.problem import Problem

Sources = Annotated[
    list[str],
    Argument(metavar="SRC...", help="Foreign captures; - is stdin.", autocompletion=opt.complete_files),
]
Where = Annotated[
    str,
    Option("--output", "-o", metavar="FILE", help="The trace to write; - is stdout.", show_default=True),
]
Force = Annotated[bool, Option("--force", help="Replace FILE if it exists.")]


class Imported(NamedTuple):
    """What became of one source."""

    source: str
    format: str
    events: int
    problems: list[Problem]


@opt.takes("json quiet everything read_as strict", everything=opt.EveryProblem)
def convert(
    options: opt.CommonOptions,
    sources: Sources,
    output: Where = "-",
    force: Force = False,
) -> None:
    """Convert foreign captures to a trace; formats are detected. Other commands open them directly too."""
    from ctxctl.cli.destination import destination
    from ctxctl.cli.run import begin
    from ctxctl.cli.selection import whole_trace
    from ctxctl.errors import Exit, UsageError

    run = begin(options)
    sources = [whole_trace(source, "leave the turn out; `ctxctl show {}` shows it") for source in sources]
    if options.json and output == "-":
        raise UsageError(
            "output-needed", "--json and the trace would both go to standard output", hint="give -o FILE"
        )
    with run.out.progress("importing"), destination(output, run.out, force=force, read=sources) as target:
        several = len(sources) > 1
        taken: dict[str, int] = {}
        done = []
        for n, source in enumerate(sources, 1):
            others = [other for other in sources if other != source]
            done.append(_import(source, n if several else 0, target, run, others, taken))
    run.out.flush()
    _tell(done, run, output)
    problems = sum(not problem.is_note for one in done for problem in one.problems)
    raise Done(Exit.FINDINGS if run.settings.strict and problems else Exit.OK)


def _import(
    source: str,
    number: int,
    target: IO[bytes],
    run: Run,
    others: list[str],
    taken: dict[str, int],
) -> Imported:
    """Convert one source; `number` tells several apart, as two may give their events the same ids.

    A session that an earlier source told of already becomes one of its own (`taken`: by session, the source);
    a directory may be completed from the `others`.
    """
    from pathlib import Path

    from ctxctl.errors import UnreadableError
    from ctxctl.importers import registry
    from ctxctl.importers.capture import open_capture
    from ctxctl.ingest.folder import Folder, told_apart
    from ctxctl.report.heading import base_name
    from ctxctl.trace.source import Source
    from ctxctl.trace.writer import TraceWriter

    with open_capture(source, run.settings.read_as) as (opened, importer):
        if importer is None:
            raise UnreadableError(
                "unknown-capture", f"{source} is in no known format (is it a trace already?)",
                hint="`ctxctl formats` lists the formats; --read-as names one",
            )  # fmt: skip
        problems: list[Problem] = list(opened.problems) if isinstance(opened, Source) else []
        size = max(1, opened.size) if isinstance(opened, Source) else 0
        name = f"{number}:{base_name(source)}"
        if isinstance(opened, Folder):
            opened.beside = tuple(Path(other) for other in others if Path(other).is_file())
        with TraceWriter(
            target, source=importer.name, prefix=f"{importer.name}-{number}", report=problems.append
        ) as writer:
            for event in registry.capture_events(importer, opened, problems.append):
                if number:
                    event = told_apart(event, name, number)
                    session = event["session_id"]
                    if taken.setdefault(session, number) != number:
                        event["session_id"] = f"{session}~{number}"
                writer.write(event)
                if size:
                    run.out.progressed(min(1.0, writer.written / size))
            events = writer.events
        if not events:
            raise UnreadableError("no-events", f"{source} has no events (read as {importer.name})")
        return Imported(source, importer.name, events, sorted(problems))


def _tell(done: list[Imported], run: Run, output: str) -> None:
    """What was imported: narration on standard error, or lines of JSON on standard output."""
    from ctxctl.cli.output import narrate
    from ctxctl.cli.run import note_problems
    from ctxctl.report import jsonout
    from ctxctl.report.heading import base_name
    from ctxctl.wording import plural

    for one in done:
        if run.json:
            for problem in one.problems:
                run.out.json(jsonout.problem(problem, source=base_name(one.source)))
            run.out.json(
                {
                    "type": "import",
                    "source": base_name(one.source),
                    "format": one.format,
                    "output": base_name(output),
                    "events": one.events,
                    "problems": len(one.problems),
                }
            )
            continue
        note_problems(one.source, one.problems, len(one.problems), run)
        if output == "-":
            continue  # the trace itself says what it holds, and a pipe may be gone
        found = f", {plural(len(one.problems), 'problem')}" if one.problems else ""
        narrate(f"{one.source}: {one.format}, {plural(one.events, 'event')}{found}")
    run.out.flush()
